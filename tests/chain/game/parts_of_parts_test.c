/*
 * Goal: where a part of an axis is too long to show, it is queried for its own parts: an honest
 * accused replies to every such query and is convicted by none; a liar is convicted; both ledgers
 * agree on every query, reply and piece of evidence.
 * Method: on both ledgers at once (court.h), sums and rows of 2^22 (tests/support/dispute/giant.h),
 * whose parts have parts: right elements, false ones, NaNs that are right, false or missing; a
 * query into a part of which the reply says nothing; evidence of a reply that is not the last;
 * mutants of every query, reply and piece of evidence.
 */
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/giant.h"
#include "tests/support/game/court.h"
#include "tests/support/mutant.h"
#include "tests/support/test.h"

enum {
    LONG = 1 << 22,     /* terms: two parts of a part */
    MUTANTS_SHARE = 40, /* of a query, of a reply, of evidence */
    MUTANTS_FULL = 2000,
    TAKEN_MOST = 8, /* of replies, before the claimant has no queries left */
    POISON = 129,
};

static const uint32_t one = 0x3f800000;

struct reading {
    struct court *court;
    struct giant giant;
    struct evidence_target target;
    struct buffer reply[2]; /* about the whole, about the part */
    struct buffer bytes;
    struct partial_sums_range range; /* the part */
    uint32_t part;                   /* its number */
};

static void reading_open(struct reading *reading, struct court *court, enum op_kind kind,
                         int exponent, uint32_t found)
{
    memset(reading, 0, sizeof(*reading));
    reading->court = court;
    reading->target.output = kind == OP_QUANTIZE;
    reading->target.element = 1;
    giant_open_long(&reading->giant, kind, kind == OP_QUANTIZE ? 16 * (int64_t)LONG : LONG, 16,
                    exponent, found);
    for (int i = 0; i < 2; i++) {
        buffer_init(&reading->reply[i], PARTIAL_SUMS_REPLY_MAX);
    }
    buffer_init(&reading->bytes, EVIDENCE_SIZE_MAX);
}

static void reading_close(struct reading *reading)
{
    for (int i = 0; i < 2; i++) {
        buffer_release(&reading->reply[i]);
    }
    buffer_release(&reading->bytes);
    giant_close(&reading->giant);
}

static void begin(struct reading *reading)
{
    court_commit(reading->court, &reading->giant.context, 1, 1);
    court_claim(reading->court);
    court_answer(reading->court);
}

static void play(struct reading *reading, enum game_move_kind kind, const struct buffer *payload,
                 enum game_refusal_kind refusal)
{
    const struct game_move move = court_move(reading->court, kind, payload->data, payload->size);
    const uint32_t player = kind == GAME_REPLY ? COURT_SOLVER : COURT_CLAIMANT;

    if (refusal == GAME_REFUSED_NOT) {
        court_done(reading->court, &move, player);
    } else {
        court_refused(reading->court, &move, player, refusal);
    }
}

/* Part `number` of what was replied about the whole (level 0) or about the part. */
static struct evidence_part part_of(const struct reading *reading, int level, uint32_t number)
{
    struct evidence_part part = {.reply = reading->reply[level].data,
                                 .reply_size = reading->reply[level].size,
                                 .number = number};

    if (level == 1) {
        part.range = reading->range;
    }
    return part;
}

static void write_query(struct reading *reading, const struct evidence_part *part)
{
    buffer_clear(&reading->bytes);
    assert_int_equal(ledger_query_write_parts(&reading->bytes, reading->giant.tape,
                                              &reading->giant.source, &reading->target, part, NULL),
                     STATUS_OK);
}

static void query(struct reading *reading, const struct evidence_part *part,
                  enum game_refusal_kind refusal)
{
    write_query(reading, part);
    play(reading, GAME_QUERY, &reading->bytes, refusal);
}

static void write_evidence(struct reading *reading, int level, uint32_t number)
{
    const struct evidence_part part = part_of(reading, level, number);

    buffer_clear(&reading->bytes);
    assert_int_equal(evidence_write_part(&reading->bytes, reading->giant.tape,
                                         &reading->giant.source, &reading->target, &part,
                                         GAME_PAYLOAD_MAX, NULL),
                     STATUS_OK);
}

static void show(struct reading *reading, int level, uint32_t number,
                 enum game_refusal_kind refusal)
{
    write_evidence(reading, level, number);
    play(reading, GAME_CONVICT, &reading->bytes, refusal);
}

/* Goes into a part of the first reply. */
static void query_part(struct reading *reading, uint32_t number, enum game_refusal_kind refusal)
{
    const struct evidence_part part = part_of(reading, 0, number);
    const struct rule_axis none = {0};
    struct rule_axis axis = none;

    query(reading, &part, refusal);
    if (refusal == GAME_REFUSED_NOT) {
        struct partial_sums_reply read = {.none = part.reply_size == 4,
                                          .poisoned = number,
                                          .exponent = (int32_t)endian_load_be32(part.reply),
                                          .values = part.reply + 4};

        rule_axis_of(&axis, &reading->giant.tape->ops[0], reading->target.output,
                     reading->target.element);
        assert_true(partial_sums_enter(&reading->range, &axis, &read, number));
        reading->part = number;
    }
}

/* ---- an honest accused ------------------------------------------------------------ */

static void reply_honestly(struct reading *reading, int level)
{
    const struct partial_sums_range whole = {.is_part = false};

    buffer_clear(&reading->reply[level]);
    assert_int_equal(evidence_parts(&reading->reply[level], reading->giant.tape,
                                    &reading->giant.source, &reading->target,
                                    level == 0 ? &whole : &reading->range, NULL),
                     STATUS_OK);
    play(reading, GAME_REPLY, &reading->reply[level], GAME_REFUSED_NOT);
}

/* Every query is answered, and no part convicts. */
static void acquit(struct reading *reading, uint32_t part)
{
    wei owed;

    begin(reading);
    query(reading, NULL, GAME_REFUSED_NOT);
    reply_honestly(reading, 0);
    show(reading, 0, part, GAME_NOT_GUILTY);
    query_part(reading, part, GAME_REFUSED_NOT);
    reply_honestly(reading, 1);
    show(reading, 0, part, GAME_BAD_EVIDENCE); /* not the last reply */
    show(reading, 1, 0, GAME_NOT_GUILTY);
    show(reading, 1, 1, GAME_NOT_GUILTY);
    owed = court_owed(reading->court, COURT_SOLVER);
    court_timeout(reading->court);
    assert_true(court_owed(reading->court, COURT_SOLVER) > owed);
    court_compare(reading->court);
    reading_close(reading);
}

static void test_an_honest_accused_is_not_convicted_at_any_depth(void **state)
{
    static const enum op_kind sums[] = {OP_CONTRACT, OP_CONTRACT_ONES, OP_CONTRACT_ONEHOT,
                                        OP_CONTRACT_CHOSEN, OP_CONTRACT_CHOSEN_ROWS};
    const uint32_t right = 0x4a800000; /* 2^22 */
    struct court *court = court_new();
    struct reading reading;

    (void)state;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        reading_open(&reading, court, sums[i], 13, right);
        acquit(&reading, (uint32_t)(2047 - 500 * i));
        /* Poison in every block: the last of them is named. */
        reading_open(&reading, court, sums[i], POISON, FLOAT_NAN_BITS);
        acquit(&reading, 2047);
    }
    reading_open(&reading, court, OP_QUANTIZE, 5, 5);
    acquit(&reading, 1000);
    court_free(court);
}

/* Behind the causal edge stands +0, and no sum is looked at. */
static void test_an_edge_is_not_convicted_at_any_depth(void **state)
{
    struct court *court = court_new();
    struct reading reading;
    struct op op;
    struct giant_tensor tensors[5];

    (void)state;
    reading_open(&reading, court, OP_CONTRACT, 13, 0);
    op = reading.giant.tape->ops[0];
    op.attributes[CONTRACT_CAUSAL] = 2;
    for (uint32_t i = 0; i < 5; i++) {
        const struct tensor *tensor =
            &reading.giant.tape->tensors[i < 4 ? op.inputs[i] : op.outputs[0]];

        tensors[i] =
            (struct giant_tensor){tensor->dtype, tensor->count,
                                  reading.giant.values[tensor - reading.giant.tape->tensors]};
    }
    giant_close(&reading.giant);
    giant_open(&reading.giant, &op, tensors);
    acquit(&reading, 77);
    court_free(court);
}

/* ---- liars -------------------------------------------------------------------------- */

/* A reply whose parts say `each`, but number `odd` says `other`. */
static void invent(struct buffer *reply, uint32_t count, int64_t each, uint32_t odd, int64_t other)
{
    buffer_clear(reply);
    buffer_add_u32(reply, 0);
    for (uint32_t i = 0; i < count; i++) {
        buffer_add_u64(reply, (uint64_t)(i == odd ? other : each));
    }
}

static void convicted(struct reading *reading)
{
    court_pay(reading->court);
    court_compare(reading->court);
    reading_close(reading);
}

static void test_a_part_that_is_false_deep_down_convicts(void **state)
{
    static const enum op_kind sums[] = {OP_CONTRACT, OP_CONTRACT_ONES, OP_CONTRACT_ONEHOT,
                                        OP_CONTRACT_CHOSEN, OP_CONTRACT_CHOSEN_ROWS};
    struct court *court = court_new();
    struct reading reading;

    (void)state;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        const uint32_t part = (uint32_t)(5 + 500 * i);

        reading_open(&reading, court, sums[i], 13, one); /* it is 2^22 */
        begin(&reading);
        query(&reading, NULL, GAME_REFUSED_NOT);
        invent(&reading.reply[0], 2048, 2048, part, 2048 - LONG + 1);
        play(&reading, GAME_REPLY, &reading.reply[0], GAME_REFUSED_NOT);
        query_part(&reading, part, GAME_REFUSED_NOT);
        invent(&reading.reply[1], 2, 1024, 1, 1024 - LONG); /* one too few */
        play(&reading, GAME_REPLY, &reading.reply[1], GAME_BAD_REPLY);
        invent(&reading.reply[1], 3, 1024, 1, -LONG + 1); /* too many parts */
        play(&reading, GAME_REPLY, &reading.reply[1], GAME_BAD_REPLY);
        invent(&reading.reply[1], 2, 1024, 1, 1024 - LONG + 1);
        play(&reading, GAME_REPLY, &reading.reply[1], GAME_REFUSED_NOT);
        show(&reading, 1, 0, GAME_NOT_GUILTY);
        show(&reading, 1, 1, GAME_REFUSED_NOT);
        convicted(&reading);
    }
    reading_open(&reading, court, OP_QUANTIZE, 5, 4);
    begin(&reading);
    query(&reading, NULL, GAME_REFUSED_NOT);
    invent(&reading.reply[0], 2048, 4, 0, 4);
    play(&reading, GAME_REPLY, &reading.reply[0], GAME_REFUSED_NOT);
    query_part(&reading, 0, GAME_REFUSED_NOT);
    invent(&reading.reply[1], 2, 3, 1, 5);
    play(&reading, GAME_REPLY, &reading.reply[1], GAME_BAD_REPLY);
    invent(&reading.reply[1], 2, 3, 1, 4);
    play(&reading, GAME_REPLY, &reading.reply[1], GAME_REFUSED_NOT);
    show(&reading, 1, 0, GAME_REFUSED_NOT);
    convicted(&reading);
    court_free(court);
}

static void add_number(struct buffer *reply, uint32_t number)
{
    buffer_clear(reply);
    buffer_add_u32(reply, number);
}

static void test_a_nan_that_is_false_convicts(void **state)
{
    struct court *court = court_new();
    struct reading reading;

    (void)state;
    reading_open(&reading, court, OP_CONTRACT, 13, FLOAT_NAN_BITS);
    begin(&reading);
    query(&reading, NULL, GAME_REFUSED_NOT);
    add_number(&reading.reply[0], 9);
    play(&reading, GAME_REPLY, &reading.reply[0], GAME_REFUSED_NOT);
    query_part(&reading, 8, GAME_BAD_QUERY); /* of which it says nothing */
    query_part(&reading, 9, GAME_REFUSED_NOT);
    add_number(&reading.reply[1], 2);
    play(&reading, GAME_REPLY, &reading.reply[1], GAME_BAD_REPLY);
    add_number(&reading.reply[1], 1);
    play(&reading, GAME_REPLY, &reading.reply[1], GAME_REFUSED_NOT);
    show(&reading, 1, 0, GAME_NOT_GUILTY);
    show(&reading, 1, 1, GAME_REFUSED_NOT);
    convicted(&reading);
    court_free(court);
}

static void test_a_nan_that_is_missing_convicts(void **state)
{
    struct court *court = court_new();
    struct reading reading;

    (void)state;
    reading_open(&reading, court, OP_CONTRACT_ONES, POISON, one);
    begin(&reading);
    query(&reading, NULL, GAME_REFUSED_NOT);
    invent(&reading.reply[0], 2048, 0, 3, 1);
    play(&reading, GAME_REPLY, &reading.reply[0], GAME_REFUSED_NOT);
    query_part(&reading, 7, GAME_REFUSED_NOT);
    invent(&reading.reply[1], 2, 0, 0, 0);
    play(&reading, GAME_REPLY, &reading.reply[1], GAME_REFUSED_NOT);
    show(&reading, 1, 1, GAME_REFUSED_NOT);
    convicted(&reading);
    court_free(court);
}

/* ---- mutants ---------------------------------------------------------------------- */

/* In a lie's dispute, up to the reply about the part, or without it. */
static void reach(struct reading *reading, bool replied)
{
    begin(reading);
    query(reading, NULL, GAME_REFUSED_NOT);
    invent(&reading->reply[0], 2048, 2048, 5, 2048 - LONG + 1);
    play(reading, GAME_REPLY, &reading->reply[0], GAME_REFUSED_NOT);
    query_part(reading, 5, GAME_REFUSED_NOT);
    invent(&reading->reply[1], 2, 1024, 1, 1024 - LONG + 1);
    if (replied) {
        play(reading, GAME_REPLY, &reading->reply[1], GAME_REFUSED_NOT);
    }
}

/* Mostly in what stands before the reply: the part and its range. */
static void make_mutant(struct buffer *mutant, const struct buffer *payload, size_t heading,
                        uint64_t *random)
{
    if (heading == 0 || test_random_below(random, 3) == 0) {
        mutant_make(mutant, payload, random);
        return;
    }
    buffer_clear(mutant);
    buffer_add(mutant, payload->data, payload->size);
    mutant->data[heading + test_random_below(random, 50)] ^=
        (uint8_t)(1u << test_random_below(random, 8));
}

/* Until one is taken; a reply that is taken is queried again. */
static uint32_t try_mutants(struct reading *reading, enum game_move_kind kind,
                            const struct buffer *payload, size_t heading, uint64_t *random)
{
    const uint32_t player = kind == GAME_REPLY ? COURT_SOLVER : COURT_CLAIMANT;
    struct buffer mutant;
    uint32_t taken = 0;

    buffer_init(&mutant, 2 * payload->size + 64);
    for (uint64_t i = 0; i < test_share(MUTANTS_FULL, MUTANTS_SHARE) && taken < TAKEN_MOST; i++) {
        struct game_move move;

        make_mutant(&mutant, payload, heading, random);
        move = court_move(reading->court, kind, mutant.data, mutant.size);
        if (twins_play(&reading->court->twins, &move, player).done) {
            taken++;
            if (kind != GAME_REPLY) {
                break;
            }
            reach(reading, false);
        }
    }
    court_compare(reading->court);
    buffer_release(&mutant);
    return taken;
}

/* Where evidence of kind 5 has its part, of an element of the giant. */
static size_t heading_of(const struct buffer *evidence, size_t from)
{
    size_t path = 32 * (size_t)evidence->data[from + 13];

    return from + 14 + path + 2 + endian_load_be16(evidence->data + from + 14 + path) + 32 + 9;
}

static void test_mutants_are_judged_alike_by_both(void **state)
{
    struct court *court = court_new();
    struct evidence_part part;
    struct reading reading;
    struct buffer payload;
    uint64_t random = 29;

    (void)state;
    reading_open(&reading, court, OP_CONTRACT, 13, one);
    reach(&reading, false);
    (void)try_mutants(&reading, GAME_REPLY, &reading.reply[1], 0, &random);

    begin(&reading);
    query(&reading, NULL, GAME_REFUSED_NOT);
    play(&reading, GAME_REPLY, &reading.reply[0], GAME_REFUSED_NOT);
    part = part_of(&reading, 0, 5);
    write_query(&reading, &part);
    buffer_init(&payload, EVIDENCE_SIZE_MAX);
    buffer_add(&payload, reading.bytes.data, reading.bytes.size);
    (void)try_mutants(&reading, GAME_QUERY, &payload, heading_of(&payload, TRACE_QUERY_SIZE),
                      &random);

    reach(&reading, true);
    write_evidence(&reading, 1, 1);
    buffer_clear(&payload);
    buffer_add(&payload, reading.bytes.data, reading.bytes.size);
    assert_int_equal(
        try_mutants(&reading, GAME_CONVICT, &payload, heading_of(&payload, 0), &random), 0);
    buffer_release(&payload);
    reading_close(&reading);
    court_tell_refused(court);
    court_free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_accused_is_not_convicted_at_any_depth),
        cmocka_unit_test(test_an_edge_is_not_convicted_at_any_depth),
        cmocka_unit_test(test_a_part_that_is_false_deep_down_convicts),
        cmocka_unit_test(test_a_nan_that_is_false_convicts),
        cmocka_unit_test(test_a_nan_that_is_missing_convicts),
        cmocka_unit_test(test_mutants_are_judged_alike_by_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
