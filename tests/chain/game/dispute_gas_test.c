/*
 * Goal: a whole dispute costs what docs/GAS.md says, and a conviction what it may.
 * Method: the moves of a dispute as transactions of their own, with the contracts as deployed but
 * for a clock in storage: a walk through a tensor of 13 levels, and convictions by one element of
 * matmuls as GPT-2 124M has them. LOCKSTEP_WRITE_GAS=1 prints the table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/element.h"
#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/forgery.h"
#include "tests/support/dispute/walk.h"
#include "tests/support/game/court.h"
#include "tests/support/gas/gas_bill.h"
#include "tests/support/gas/gas_shapes.h"
#include "tests/support/test.h"

enum {
    MOST_768 = 1200000,
    MOST_3072 = 2000000,
    MOST = 6000000,
    MOST_TRANSACTION = 16000000,
    BITS = 14,
    BLOCK = 128,
};

static void check(const struct court *court, const char *name, uint64_t gas)
{
    uint64_t documented = 0;

    assert_true(court->twins.gas < MOST_TRANSACTION);
    if (getenv("LOCKSTEP_WRITE_GAS") != NULL) {
        print_message("| %s | %llu |\n", name, (unsigned long long)gas);
        return;
    }
    gas_bill_documented(&documented, 1, name);
    if (10 * gas > 11 * documented) {
        fail_msg("%s costs %llu gas, docs/GAS.md says %llu", name, (unsigned long long)gas,
                 (unsigned long long)documented);
    }
}

static void add_tensor(struct tape *tape, enum dtype dtype, enum role role, uint64_t count)
{
    struct tensor *tensor = &tape->tensors[tape->tensor_count++];

    *tensor =
        (struct tensor){.dtype = dtype, .role = role, .rank = 1, .dims = {count}, .count = count};
    (void)snprintf(tensor->name, sizeof(tensor->name), "t%u", tape->tensor_count);
}

/* One matmul of m rows and n columns. */
static struct tape *product(int64_t m, int64_t n, int64_t k)
{
    const int64_t attributes[CONTRACT_ATTRIBUTES] = {1, 1, 1, m, 1, n,    0,     0,
                                                     0, n, 0, 1, k, BITS, BLOCK, 0};
    uint64_t blocks = (uint64_t)(k + BLOCK - 1) / BLOCK;
    struct tape *tape = calloc(1, sizeof(*tape));

    assert_non_null(tape);
    tape->tensors = calloc(5, sizeof(*tape->tensors));
    tape->states = calloc(4, sizeof(*tape->states));
    tape->ops = calloc(1, sizeof(*tape->ops));
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)(m * k));
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)m * blocks);
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)(n * k));
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)n * blocks);
    add_tensor(tape, DTYPE_F32, ROLE_TEMPORARY, (uint64_t)(m * n));
    tape->op_count = 1;
    tape->loss = TENSOR_NONE;
    tape->ops[0] = (struct op){.kind = OP_CONTRACT,
                               .input_count = 4,
                               .output_count = 1,
                               .attribute_count = CONTRACT_ATTRIBUTES,
                               .inputs = {0, 1, 2, 3},
                               .outputs = {4}};
    memcpy(tape->ops[0].attributes, attributes, sizeof(attributes));
    for (uint32_t i = 0; i < 4; i++) {
        tape->states[tape->state_count++] = (struct state_pair){.before = i, .after = i};
    }
    return tape;
}

/* Rows that run down the columns of (rows, columns). */
static struct tape *column(int64_t rows, int64_t columns)
{
    const int64_t attributes[QUANTIZE_ATTRIBUTES] = {1, 1, 1, columns, 1,       rows, 0,
                                                     0, 0, 1, 0,       columns, BITS, BLOCK};
    uint64_t pieces = (uint64_t)(columns * ((rows + BLOCK - 1) / BLOCK));
    struct tape *tape = calloc(1, sizeof(*tape));

    assert_non_null(tape);
    tape->tensors = calloc(4, sizeof(*tape->tensors));
    tape->states = calloc(1, sizeof(*tape->states));
    tape->ops = calloc(1, sizeof(*tape->ops));
    add_tensor(tape, DTYPE_F32, ROLE_STATE, (uint64_t)(rows * columns));
    add_tensor(tape, DTYPE_I16, ROLE_TEMPORARY, pieces);
    add_tensor(tape, DTYPE_I16, ROLE_TEMPORARY, pieces);
    add_tensor(tape, DTYPE_I16, ROLE_TEMPORARY, (uint64_t)(rows * columns));
    tape->op_count = 1;
    tape->loss = TENSOR_NONE;
    tape->ops[0] = (struct op){.kind = OP_QUANTIZE,
                               .input_count = 1,
                               .output_count = 3,
                               .attribute_count = QUANTIZE_ATTRIBUTES,
                               .inputs = {0},
                               .outputs = {1, 2, 3}};
    memcpy(tape->ops[0].attributes, attributes, sizeof(attributes));
    tape->states[tape->state_count++] = (struct state_pair){.before = 0, .after = 0};
    return tape;
}

/* A whole dispute: what its transactions cost together, and the dearest. */
struct cost {
    const char *name;
    bool rows; /* each move has a row of its own */
    uint32_t by_claimant;
    uint64_t sum;
    uint64_t most;
};

static void count(struct court *court, struct cost *cost, int player, const char *what)
{
    char row[96];

    cost->by_claimant += player == COURT_CLAIMANT;
    cost->sum += court->twins.gas;
    cost->most = court->twins.gas > cost->most ? court->twins.gas : cost->most;
    if (cost->rows && what != NULL) {
        (void)snprintf(row, sizeof(row), "%s, %s", what, cost->name);
        check(court, row, court->twins.gas);
    }
}

static void measure(struct court *court, struct cost *cost, enum game_move_kind kind,
                    const struct buffer *payload, const char *what)
{
    struct game_move move = court_move(court, kind, payload->data, payload->size);
    const int player = kind == GAME_REPLY ? COURT_SOLVER : COURT_CLAIMANT;

    assert_true(payload->size <= GAME_PAYLOAD_MAX);
    court_done(court, &move, player);
    count(court, cost, player, what);
}

/* Question, answer and evidence of a false part. */
static void convict_by_part(struct court *court, struct cost *cost, const struct exhibit *exhibit,
                            const struct evidence_target *target)
{
    struct buffer bytes;
    struct buffer reply;
    uint64_t random = 1;
    uint32_t part;

    exhibit_query(&bytes, exhibit, target);
    measure(court, cost, GAME_QUERY, &bytes, "query for partial sums");
    buffer_release(&bytes);
    assert_true(forgery_of(&reply, &part, exhibit, target, &random));
    measure(court, cost, GAME_REPLY, &reply, "reply with partial sums");
    exhibit_part_evidence(&bytes, exhibit, target, part, &reply);
    measure(court, cost, GAME_CONVICT, &bytes, "convict by a partial sum");
    buffer_release(&bytes);
    buffer_release(&reply);
}

/* From the claim to the verdict, as fraud_proof.c would go about it. */
static void convict(struct court *court, struct cost *cost, struct tape *tape,
                    const struct evidence_target *target)
{
    enum dtype dtype = tape->tensors[tape->ops[0].outputs[target->output]].dtype;
    struct game_move claim;
    struct exhibit exhibit;
    struct buffer evidence;

    exhibit_of_op(&exhibit, tape, MOOD_TAME, 1);
    exhibit_set(&exhibit, target, element_cut(exhibit_rule(&exhibit, target) ^ 1, dtype));
    court_commit(court, &exhibit.context, 1, 1);
    claim = court_seal(court);
    count(court, cost, COURT_CLAIMANT, "seal claim");
    court_done(court, &claim, COURT_CLAIMANT);
    count(court, cost, COURT_CLAIMANT, "claim");
    court_answer(court);
    count(court, cost, COURT_SOLVER, "answer");
    exhibit_evidence(&evidence, &exhibit, target);
    if (evidence.size <= FRAUD_PROOF_WHOLE_MAX) {
        measure(court, cost, GAME_CONVICT, &evidence, "convict");
    } else {
        convict_by_part(court, cost, &exhibit, target);
    }
    assert_true(cost->most < MOST_TRANSACTION);
    assert_true(cost->sum < MOST);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
}

/* most: gas of it all; transactions: of the claimant, from its seal to the verdict. */
static void convict_in_rows(struct court *court, const char *name, struct tape *tape, uint64_t most,
                            uint32_t transactions)
{
    struct evidence_target target = {.element = 77 % tape->tensors[tape->ops[0].outputs[0]].count};
    struct cost cost = {.name = name, .rows = true};
    char row[96];

    convict(court, &cost, tape, &target);
    assert_true(cost.sum < most);
    assert_int_equal(cost.by_claimant, transactions);
    (void)snprintf(row, sizeof(row), "seal to verdict, %s", name);
    check(court, row, cost.sum);
    court_pay(court);
    (void)snprintf(row, sizeof(row), "pay, %s", name);
    check(court, row, court->twins.gas);
}

static void test_conviction_costs_what_it_may(void **state)
{
    struct court *court = calloc(1, sizeof(*court));

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    convict_in_rows(court, "K = 768", product(1024, 768, 768), MOST_768, 3);
    convict_in_rows(court, "K = 3072", product(1024, 768, 3072), MOST_3072, 3);
    convict_in_rows(court, "K = 50257", product(64, 64, 50257), MOST, 4);
    convict_in_rows(court, "K = 524288", product(2, 2, 524288), MOST, 4);
    convict_in_rows(court, "a peak down a column", column(1024, 768), MOST, 4);
    court_close(court);
    free(court);
}

/* ---- every rule ------------------------------------------------------------------- */

static struct tape *tape_of(const struct shown_case *shown)
{
    uint32_t count = shown->op.input_count + shown->op.output_count;
    struct tape *tape = calloc(1, sizeof(*tape));

    assert_non_null(tape);
    tape->tensors = calloc(count, sizeof(*tape->tensors));
    tape->states = calloc(count, sizeof(*tape->states));
    tape->ops = calloc(1, sizeof(*tape->ops));
    for (uint32_t i = 0; i < count; i++) {
        const struct shown_operand *operand = &shown->operands[i];
        bool input = i < shown->op.input_count;
        bool data = input && operand->role == ROLE_DATA;

        add_tensor(tape, operand->dtype,
                   data    ? ROLE_DATA
                   : input ? ROLE_STATE
                           : ROLE_TEMPORARY,
                   operand->count);
        if (input && !data) {
            tape->states[tape->state_count++] = (struct state_pair){.before = i, .after = i};
        }
    }
    tape->op_count = 1;
    tape->loss = TENSOR_NONE;
    tape->ops[0] = shown->op;
    return tape;
}

/* All rules take long: a share of them is taken in turn. */
struct measuring {
    struct court *court;
    uint64_t number;
    uint64_t each;
};

static void convict_rule(void *context, const char *name, const struct shown_case *shown,
                         const struct shown_target *shown_target)
{
    const struct evidence_target target = {.output = shown_target->output,
                                           .element = shown_target->element};
    struct measuring *measuring = context;
    struct court *court = measuring->court;
    struct cost cost = {.name = name};
    uint64_t documented[2];
    char row[96];

    if (measuring->number++ % measuring->each != 0) {
        return;
    }
    convict(court, &cost, tape_of(shown), &target);
    (void)snprintf(row, sizeof(row), "verdict on %s", name);
    if (getenv("LOCKSTEP_WRITE_GAS") != NULL) {
        print_message("| %s | %llu | %llu |\n", row, (unsigned long long)cost.sum,
                      (unsigned long long)cost.most);
        return;
    }
    gas_bill_documented(documented, 2, row);
    if (10 * cost.sum > 11 * documented[0] || 10 * cost.most > 11 * documented[1]) {
        fail_msg("%s costs %llu gas, %llu at once; docs/GAS.md says %llu and %llu", row,
                 (unsigned long long)cost.sum, (unsigned long long)cost.most,
                 (unsigned long long)documented[0], (unsigned long long)documented[1]);
    }
}

static void test_conviction_by_any_rule_costs_what_is_documented(void **state)
{
    struct court *court = calloc(1, sizeof(*court));
    const bool writing = getenv("LOCKSTEP_WRITE_GAS") != NULL;
    struct measuring measuring = {.court = court, .each = writing ? 1 : test_share(1, 5)};
    struct gas_shapes shapes = {.visit = convict_rule, .context = &measuring, .seed = 1};

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    gas_shapes_of_integers(&shapes);
    gas_shapes_of_floats(&shapes);
    court_close(court);
    free(court);
}

/* To the lie, and the conviction behind it. */
static void measure_walk(struct court *court, struct walk *walk, const char *where)
{
    struct buffer evidence;
    struct game_move move;
    char row[64];

    court_commit(court, &walk->context, 1, 1);
    court_claim(court);
    court_answer(court);
    for (uint32_t round = 1; walk_query(walk); round++) {
        move = court_move(court, GAME_QUERY, walk->question.data, walk->question.size);
        court_done(court, &move, COURT_CLAIMANT);
        (void)snprintf(row, sizeof(row), "query, round %u%s", round, where);
        check(court, row, court->twins.gas);
        walk_answer(walk, &court->queried.payload);
        move = court_move(court, GAME_REPLY, walk->reply, walk->reply_size);
        court_done(court, &move, COURT_SOLVER);
        (void)snprintf(row, sizeof(row), "reply, round %u%s", round, where);
        check(court, row, court->twins.gas);
        assert_int_equal(trace_walk_take(&walk->walk, walk->reply, walk->reply_size, NULL),
                         STATUS_OK);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, walk);
    move = court_move(court, GAME_CONVICT, evidence.data, evidence.size);
    court_done(court, &move, COURT_CLAIMANT);
    (void)snprintf(row, sizeof(row), "convict after the walk%s", where);
    check(court, row, court->twins.gas);
    buffer_release(&evidence);
}

static void test_each_round_of_a_walk_costs_what_is_documented(void **state)
{
    struct court *court = calloc(1, sizeof(*court));
    struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
    struct walk walk;

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    walk_open(&walk, &lie, OPPONENTS_WIDE);
    measure_walk(court, &walk, "");
    walk_close(&walk);
    court_close(court);
    free(court);
}

/* The last matmul of the sixth of eight. */
static uint32_t item_in_a_micro_batch(const struct tape *tape)
{
    uint32_t found = 0;

    for (uint32_t op = 0; op < tape->op_count; op++) {
        struct op_turn maker;

        if (tape->ops[op].kind == OP_CONTRACT && descriptor_runs_in(&maker, tape, op, 5) &&
            tape->origins[op].item < tape->brief->op_count) {
            found = trace_item_of_output(tape, maker, 0);
        }
    }
    assert_true(found > 0);
    return found;
}

static void test_each_round_in_a_micro_batch_costs_what_is_documented(void **state)
{
    struct court *court = calloc(1, sizeof(*court));
    struct lie lie = {.kind = LIE_ULP};
    struct walk walk;

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    walk_open_repeat(&walk, &lie, 8, 2); /* to see its tape */
    lie.item = item_in_a_micro_batch(walk.dispute.tape);
    walk_close(&walk);
    walk_open_repeat(&walk, &lie, 8, 2);
    measure_walk(court, &walk, ", in a micro-batch");
    assert_int_equal(walk.walk.item, lie.item);
    walk_close(&walk);
    court_close(court);
    free(court);
}

/* A matmul's output of so many leaves. */
static uint32_t item_of_leaves(uint32_t hidden, uint64_t leaves)
{
    struct opponents dispute;
    uint32_t found = 0;

    opponents_open_hidden(&dispute, hidden);
    for (uint32_t op = 0; op < dispute.tape->op_count; op++) {
        const struct op *at = &dispute.tape->ops[op];

        if (at->kind == OP_CONTRACT &&
            trace_query_tensor_count(&dispute.tape->tensors[at->outputs[0]]) == leaves) {
            found = trace_item_of_output(dispute.tape, (struct op_turn){op, 0}, 0);
        }
    }
    assert_true(found > 0);
    opponents_close(&dispute);
    return found;
}

/* A tensor of sixteen leaves is sent whole: no reply is longer. */
static void test_longest_reply_costs_what_is_documented(void **state)
{
    enum { HIDDEN = TRACE_QUERY_LEAVES_MAX * MERKLE_LEAF_SIZE / 4 };
    struct court *court = calloc(1, sizeof(*court));
    struct lie lie = {.kind = LIE_ULP};
    struct game_move move;
    struct walk walk;
    uint32_t longest = 0;

    (void)state;
    assert_non_null(court);
    lie.item = item_of_leaves(HIDDEN, TRACE_QUERY_LEAVES_MAX);
    court_open_direct(court);
    walk_open(&walk, &lie, HIDDEN);
    court_commit(court, &walk.context, 1, 1);
    court_claim(court);
    court_answer(court);
    while (walk_query(&walk)) {
        move = court_move(court, GAME_QUERY, walk.question.data, walk.question.size);
        court_done(court, &move, COURT_CLAIMANT);
        walk_answer(&walk, &court->queried.payload);
        move = court_move(court, GAME_REPLY, walk.reply, walk.reply_size);
        court_done(court, &move, COURT_SOLVER);
        if (walk.reply_size == TRACE_REPLY_BYTES_MAX) {
            check(court, "reply, 16 leaves", court->twins.gas);
            longest++;
        }
        assert_int_equal(trace_walk_take(&walk.walk, walk.reply, walk.reply_size, NULL), STATUS_OK);
    }
    assert_int_equal(longest, 1);
    walk_close(&walk);
    court_close(court);
    free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conviction_costs_what_it_may),
        cmocka_unit_test(test_conviction_by_any_rule_costs_what_is_documented),
        cmocka_unit_test(test_each_round_of_a_walk_costs_what_is_documented),
        cmocka_unit_test(test_each_round_in_a_micro_batch_costs_what_is_documented),
        cmocka_unit_test(test_longest_reply_costs_what_is_documented),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
