/*
 * Goal: nobody gets away with a false order, not in the longest rows that are sorted: a rank, an
 * index or a value that is another, columns that changed places in all three outputs, an index that
 * stands twice, one that is missing, equal numbers, zeros and NaN in another order.
 * Method: a row of SORT_COLUMNS_MAX as a liar commits to it, on both ledgers. The first element in
 * which it differs from the rule, as a walk finds it, convicts; of the true row no element does
 * that. Of one lie it is also shown that its neighbours are in order there: they prove nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/integers.h"
#include "engine/rules/evidence_bound.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

enum {
    HEIGHT = 2,
    WIDE = SORT_COLUMNS_MAX,
    PLACES = HEIGHT * WIDE,
    MADE = 3, /* rank, index, y */
    GAS_MAX = 16000000,
};

/* The second row of what is committed to, and all of what the rule makes. */
struct order {
    struct exhibit exhibit;
    bool descending;
    const uint32_t *x;
    uint32_t *made[MADE];
    uint32_t *right[MADE];
};

static uint32_t *row_of(uint32_t *all)
{
    return all + PLACES - WIDE;
}

/* The place that a column has among the true ones. */
static uint32_t true_place(const struct order *order, uint32_t column)
{
    return row_of(order->right[0])[column];
}

static uint32_t true_column(const struct order *order, uint32_t place)
{
    return row_of(order->right[1])[place];
}

/* ---- rows ------------------------------------------------------------------------ */

/* One whose x is a state. */
static struct tape *sort_tape(bool descending)
{
    uint64_t seed = 1;
    struct tape *tape = random_op_tape(OP_SORT, seed);
    struct op *op = &tape->ops[0];

    while (tape->tensors[op->inputs[0]].role != ROLE_STATE) {
        tape_free(tape);
        tape = random_op_tape(OP_SORT, ++seed);
        op = &tape->ops[0];
    }
    op->attributes[SORT_ROWS] = HEIGHT;
    op->attributes[SORT_COLUMNS] = WIDE;
    op->attributes[SORT_DESCENDING] = descending;
    for (uint32_t i = 0; i <= MADE; i++) {
        struct tensor *tensor = &tape->tensors[i == 0 ? op->inputs[0] : op->outputs[i - 1]];

        tensor->rank = 1;
        tensor->dims[0] = tensor->count = PLACES;
    }
    return tape;
}

/* Many are equal; the first columns are what orders differ about. */
static void fill_numbers(uint32_t *x, uint64_t random)
{
    static const uint32_t odd[] = {0x00000000, 0x80000000, 0x7fc00000, 0xffc12345,
                                   0x7f800000, 0xff800000, 0x3f800000, 0x3f800000};

    for (uint32_t i = 0; i < PLACES; i++) {
        x[i] = (uint32_t)(test_random_below(&random, 2) << 31 | 125 << 23 |
                          test_random_below(&random, 1000) << 10);
    }
    for (uint32_t row = 0; row < HEIGHT; row++) {
        memcpy(x + (size_t)row * WIDE, odd, sizeof(odd));
    }
}

static void commit_all(struct order *order)
{
    for (uint32_t output = 0; output < MADE; output++) {
        exhibit_changed(&order->exhibit,
                        trace_item_of_output(order->exhibit.tape, (struct op_turn){0, 0}, output));
    }
}

static void make_true(struct order *order)
{
    for (uint32_t output = 0; output < MADE; output++) {
        memcpy(order->made[output], order->right[output], PLACES * sizeof(uint32_t));
    }
}

static void open_order(struct order *order, bool descending)
{
    const struct tensor *tensor;
    struct evidence_target target = {.op = 0};
    uint32_t *x;

    *order = (struct order){.descending = descending};
    exhibit_of_op(&order->exhibit, sort_tape(descending), MOOD_TAME, 1);
    x = (uint32_t *)exhibit_operand(&order->exhibit, (struct op_turn){0, 0}, 0, &tensor);
    fill_numbers(x, 31);
    order->x = x + PLACES - WIDE;
    exhibit_changed(&order->exhibit, 0); /* the first state */
    for (uint32_t output = 0; output < MADE; output++) {
        order->made[output] = (uint32_t *)exhibit_operand(&order->exhibit, (struct op_turn){0, 0},
                                                          1 + output, &tensor);
        order->right[output] = calloc(PLACES, sizeof(uint32_t));
        assert_non_null(order->right[output]);
        target.output = output;
        for (target.element = 0; target.element < PLACES; target.element++) {
            order->made[output][target.element] = exhibit_rule(&order->exhibit, &target);
        }
        memcpy(order->right[output], order->made[output], PLACES * sizeof(uint32_t));
    }
}

static void close_order(struct order *order)
{
    for (uint32_t output = 0; output < MADE; output++) {
        free(order->right[output]);
    }
    exhibit_close(&order->exhibit);
}

/* ---- lies ------------------------------------------------------------------------ */

/* The column stands at this place, in all three outputs. */
static void put_column(struct order *order, uint32_t place, uint32_t column)
{
    row_of(order->made[0])[column] = place;
    row_of(order->made[1])[place] = column;
    row_of(order->made[2])[place] = (order->x[column] & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000)
                                        ? FLOAT_NAN_BITS
                                        : order->x[column];
}

/* What stands at `from` stands at `to`, and what lies between moves up. */
static void move_column(struct order *order, uint32_t from, uint32_t to)
{
    const int step = from < to ? 1 : -1;

    for (uint32_t place = from; place != to; place = (uint32_t)((int)place + step)) {
        put_column(order, place, true_column(order, (uint32_t)((int)place + step)));
    }
    put_column(order, to, true_column(order, from));
}

static void lie_rank(struct order *order)
{
    row_of(order->made[0])[WIDE / 2] ^= 1;
}

static void lie_rank_past_the_row(struct order *order)
{
    row_of(order->made[0])[WIDE - 1] = WIDE;
}

static void lie_rank_twice(struct order *order)
{
    row_of(order->made[0])[9] = row_of(order->made[0])[WIDE - 9];
}

static void lie_index_twice(struct order *order)
{
    put_column(order, 77, true_column(order, 78));
    row_of(order->made[0])[true_column(order, 78)] = 78;
}

static void lie_index_missing(struct order *order)
{
    row_of(order->made[1])[WIDE - 1] = WIDE;
    row_of(order->made[2])[WIDE - 1] = FLOAT_NAN_BITS;
}

static void lie_value(struct order *order)
{
    row_of(order->made[2])[WIDE / 3] ^= 1;
}

/* -0 is +0, but its bits are its own. */
static void lie_sign_of_zero(struct order *order)
{
    row_of(order->made[2])[true_place(order, 1)] = 0;
}

static void lie_neighbours(struct order *order)
{
    move_column(order, 2000, 2001);
}

static void lie_equal_numbers(struct order *order)
{
    assert_int_equal(order->x[6], order->x[7]);
    assert_int_equal(true_place(order, 6) + 1, true_place(order, 7));
    move_column(order, true_place(order, 6), true_place(order, 7));
}

static void lie_zeros(struct order *order)
{
    move_column(order, true_place(order, 0), true_place(order, 1));
}

static void lie_nan(struct order *order)
{
    move_column(order, true_place(order, 3), order->descending ? WIDE - 1 : 0);
}

/* What is first stands last. All neighbours but the last two are in order, and not in their
 * places. */
static void lie_first_is_last(struct order *order)
{
    move_column(order, 0, WIDE - 1);
}

static bool is_in_order(const struct order *order, uint32_t one, uint32_t other)
{
    const uint32_t a = sort_key(order->x[one], order->descending);
    const uint32_t b = sort_key(order->x[other], order->descending);

    return a < b || (a == b && one < other);
}

/* ---- disputes -------------------------------------------------------------------- */

/* The leftmost difference, in the order in which the operation makes its outputs. */
static struct evidence_target first_difference(const struct order *order)
{
    for (uint32_t output = 0; output < MADE; output++) {
        for (uint32_t i = 0; i < PLACES; i++) {
            if (order->made[output][i] != order->right[output][i]) {
                return (struct evidence_target){.output = output, .element = i};
            }
        }
    }
    fail_msg("it is no lie");
    return (struct evidence_target){.output = 0};
}

static void dispute(struct court *court, struct order *order, const struct evidence_target *target,
                    enum game_refusal_kind refusal, const char *what)
{
    struct buffer evidence;

    commit_all(order);
    exhibit_evidence(&evidence, &order->exhibit, target);
    assert_true(evidence.size <= evidence_bound(&order->exhibit.tape->ops[0],
                                                order->exhibit.tape->tensors, target->output));
    court_bring(court, &order->exhibit.context, target->element % 2,
                (uint32_t)target->element % COURT_STEPS);
    court_convict(court, &evidence, refusal);
    assert_true(court->twins.gas < GAS_MAX);
    if (refusal == GAME_REFUSED_NOT) {
        print_message("%s%s: output %u, evidence of %zu bytes, gas %llu\n", what,
                      order->descending ? ", descending" : "", target->output, evidence.size,
                      (unsigned long long)court->twins.gas);
        court_pay(court);
    }
    buffer_release(&evidence);
}

static const struct {
    const char *what;
    void (*tell)(struct order *order);
} lies[] = {
    {"a rank", lie_rank},
    {"a rank past the row", lie_rank_past_the_row},
    {"a rank that stands twice", lie_rank_twice},
    {"an index that stands twice", lie_index_twice},
    {"an index that is missing", lie_index_missing},
    {"a value", lie_value},
    {"the sign of a zero", lie_sign_of_zero},
    {"neighbours changed places", lie_neighbours},
    {"equal numbers changed places", lie_equal_numbers},
    {"zeros changed places", lie_zeros},
    {"NaN at the other end", lie_nan},
    {"what is first stands last", lie_first_is_last},
};

static void test_any_false_order_of_the_longest_row_convicts(void **state)
{
    struct court *court = (anvil_need(), calloc(1, sizeof(*court)));

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    for (int descending = 0; descending < 2; descending++) {
        struct order order;

        open_order(&order, descending == 1);
        for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
            struct evidence_target target;

            lies[i].tell(&order);
            target = first_difference(&order);
            dispute(court, &order, &target, GAME_REFUSED_NOT, lies[i].what);
            make_true(&order);
            dispute(court, &order, &target, GAME_NOT_GUILTY, lies[i].what);
        }
        close_order(&order);
    }
    court_close(court);
    free(court);
}

static void test_neighbours_that_are_in_order_prove_nothing(void **state)
{
    struct order order;
    struct evidence_target target;
    const uint32_t *rank;
    const uint32_t *index;
    uint32_t wrong = 0;

    (void)state;
    open_order(&order, false);
    lie_first_is_last(&order);
    target = first_difference(&order);
    assert_int_equal(target.output, 0);
    rank = row_of(order.made[0]);
    index = row_of(order.made[1]);
    const uint32_t column = (uint32_t)target.element % WIDE;
    const uint32_t place = rank[column];

    assert_int_not_equal(place, true_place(&order, column));
    assert_int_equal(index[place], column);
    assert_true(is_in_order(&order, index[place - 1], column));
    assert_true(is_in_order(&order, column, index[place + 1]));
    for (uint32_t i = 0; i + 1 < WIDE; i++) {
        wrong += !is_in_order(&order, index[i], index[i + 1]);
    }
    assert_int_equal(wrong, 1); /* and the pair that shows it is at the other end */
    close_order(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_that_are_in_order_prove_nothing),
        cmocka_unit_test(test_any_false_order_of_the_longest_row_convicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
