/*
 * Goal: before the referee a step of many micro-batches is as one of one: a lie in any of them, in
 * an accumulator or in a join of groups convicts, and nothing that is right does.
 * Method: on both ledgers at once (court.h): evidence about operations inside of the body in the
 * first, a middle and the last micro-batch, about sums, joins and what follows them, honest and
 * changed by a bit; evidence whose instance is another or does not exist; whole walks by queries of
 * the ledger to lies in a micro-batch and in a join.
 */
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/commit/trace.h"
#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/dispute/walk.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

#define TIMES 16
#define GROUP 4

/* The solver commits to the micro-batch whose list the operation reads. */
static void commit_batch(struct court *court, const struct exhibit *exhibit, struct op_turn maker)
{
    const struct trace *trace = &exhibit->record.trace;
    const struct trace_query query = {
        .kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_BATCH, .item = exhibit_batch(exhibit, maker)};
    uint32_t first = trace->list_count + query.item * trace->layout.inner;
    struct trace_reply_tree tree = {.items = trace->items + first};
    uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    struct buffer question;
    struct game_move move;

    if (query.item == TENSOR_NONE) {
        return;
    }
    merkle_leaves_init_hashes(&tree.hashes, trace->hashes + first, trace->layout.inner);
    buffer_init(&question, LEDGER_QUERY_SIZE_MAX);
    assert_int_equal(ledger_query_write_plain(&question, exhibit->tape, &query, NULL), STATUS_OK);
    move = court_move(court, GAME_QUERY, question.data, question.size);
    court_done(court, &move, COURT_CLAIMANT);
    move = court_move(court, GAME_REPLY, bytes, trace_reply_write(bytes, &query, &tree));
    court_done(court, &move, COURT_SOLVER);
    buffer_release(&question);
}

/* The first operation that runs in a micro-batch (or joins for a node): of a kind, a BINARY of a
 * function. */
static struct op_turn find(const struct tape *tape, enum op_kind kind, int64_t function,
                           uint32_t instance, bool join)
{
    struct op_turn maker = {0, 0};

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        bool joins = tape->origins[at].item >= tape->brief->op_count;

        if (op->kind == kind && joins == join &&
            (kind != OP_BINARY || op->attributes[BINARY_FUNCTION] == function) &&
            tape->origins[at].item >= tape->brief->repeat.first &&
            descriptor_runs_in(&maker, tape, at, instance)) {
            return maker;
        }
    }
    fail();
    return maker;
}

static struct op_turn find_op(const struct tape *tape, enum op_kind kind, uint32_t instance,
                              bool join)
{
    return find(tape, kind, 0, instance, join);
}

static struct op_turn find_sum(const struct tape *tape, uint32_t instance, bool join)
{
    return find(tape, OP_BINARY, BINARY_ADD, instance, join);
}

static struct evidence_target target_of(struct op_turn maker)
{
    return (struct evidence_target){.op = maker.op, .turn = maker.turn};
}

static void try_op(struct court *court, struct exhibit *exhibit, struct op_turn maker)
{
    struct evidence_target target = target_of(maker);
    struct buffer evidence;
    uint32_t right;

    target.output = exhibit->tape->ops[maker.op].output_count - 1;
    target.element =
        exhibit->tape->tensors[exhibit->tape->ops[maker.op].outputs[target.output]].count - 1;
    right = exhibit_get(exhibit, &target);
    court_bring(court, &exhibit->context, 1, 2);
    exhibit_evidence(&evidence, exhibit, &target);
    if (exhibit_batch(exhibit, maker) != TENSOR_NONE) {
        court_convict(court, &evidence,
                      GAME_BAD_EVIDENCE); /* to that micro-batch nobody has committed */
    }
    commit_batch(court, exhibit, maker);
    court_convict(court, &evidence, GAME_NOT_GUILTY);
    buffer_release(&evidence);

    exhibit_set(exhibit, &target, right ^ 1);
    court_bring(court, &exhibit->context, 1, 2);
    exhibit_evidence(&evidence, exhibit, &target);
    commit_batch(court, exhibit, maker);
    court_convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    exhibit_set(exhibit, &target, right);
    court_compare(court);
}

static void test_lies_in_a_repeat_convict(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    const struct tape *tape;

    (void)state;
    exhibit_of_repeat(&exhibit, MODEL_MLP, TIMES, GROUP, 1);
    tape = exhibit.tape;
    try_op(court, &exhibit, find_op(tape, OP_STEP_NEXT, 0, false)); /* of the state */
    try_op(court, &exhibit, find_op(tape, OP_STEP_NEXT, 5, false)); /* of the one before */
    try_op(court, &exhibit, find_op(tape, OP_BATCH_SAMPLES, TIMES - 1, false));
    try_op(court, &exhibit, find_op(tape, OP_QUANTIZE, 3, false));
    try_op(court, &exhibit, find_op(tape, OP_CONTRACT, 4, false));
    try_op(court, &exhibit, find_sum(tape, 8, false));  /* a group's first sum */
    try_op(court, &exhibit, find_sum(tape, 9, false));  /* its second */
    try_op(court, &exhibit, find_sum(tape, 11, false)); /* its last */
    for (uint32_t node = 1; node < TIMES / GROUP; node++) {
        try_op(court, &exhibit, find_sum(tape, node, true));
    }
    try_op(court, &exhibit, (struct op_turn){tape->op_count - 1, 0}); /* the update */
    exhibit_close(&exhibit);
    court_free(court);
}

/* Any operation of steps of other shapes: every operand that is shown is found in its place. */
static void test_any_operation_of_any_shape_is_found(void **state)
{
    static const uint32_t shapes[][2] = {{2, 1}, {3, 3}, {4, 1}, {12, 3}, {16, 1}, {24, 6}};
    struct court *court = court_new();
    uint64_t random = 5;

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct exhibit exhibit;

        exhibit_of_repeat(&exhibit, i % 2 == 0 ? MODEL_MLP : MODEL_LLAMA, shapes[i][0],
                          shapes[i][1], 1);
        for (uint64_t round = 0; round < test_share(200, 6); round++) {
            const uint32_t op = (uint32_t)test_random_below(&random, exhibit.tape->op_count);
            const uint32_t turns = tape_turns(exhibit.tape, op);

            try_op(court, &exhibit,
                   (struct op_turn){op, (uint32_t)test_random_below(&random, turns)});
        }
        if (shapes[i][0] > shapes[i][1]) {
            try_op(court, &exhibit, find_sum(exhibit.tape, 1, true));
        }
        exhibit_close(&exhibit);
    }
    court_free(court);
}

/* The instance stands behind the descriptor: 14 bytes, the path, the descriptor's size. */
static uint8_t *instance_of(struct buffer *evidence)
{
    uint8_t *size = evidence->data + 14 + (size_t)32 * evidence->data[13];

    return size + 2 + endian_load_be16(size);
}

static void test_another_instance_proves_nothing(void **state)
{
    static const uint32_t instances[] = {0, 2, 4, TIMES - 1, TIMES, UINT32_MAX};
    struct court *court = court_new();
    struct exhibit exhibit;
    struct evidence_target target = {0};

    (void)state;
    exhibit_of_repeat(&exhibit, MODEL_MLP, TIMES, GROUP, 1);
    for (int join = 0; join < 2; join++) {
        struct buffer evidence;

        target = target_of(find_sum(exhibit.tape, 3, join == 1));
        court_bring(court, &exhibit.context, 1, 2);
        commit_batch(court, &exhibit, evidence_maker(&target));
        exhibit_evidence(&evidence, &exhibit, &target);
        assert_int_equal(endian_load_be32(instance_of(&evidence)), 3);
        for (size_t i = 0; i < sizeof(instances) / sizeof(instances[0]); i++) {
            endian_store_be32(instance_of(&evidence), instances[i]);
            court_convict(court, &evidence, GAME_BAD_EVIDENCE);
        }
        endian_store_be32(instance_of(&evidence), 3);
        court_convict(court, &evidence, GAME_NOT_GUILTY);
        court_timeout(court);
        court_compare(court);
        buffer_release(&evidence);
    }
    exhibit_close(&exhibit);
    court_free(court);
}

/* ---- walks ------------------------------------------------------------------------- */

static void play_walk(struct court *court, struct walk *walk)
{
    struct buffer evidence;
    struct game_move move;

    court_bring(court, &walk->context, 1, 2);
    while (walk_query(walk)) {
        move = court_move(court, GAME_QUERY, walk->question.data, walk->question.size);
        court_done(court, &move, COURT_CLAIMANT);
        walk_answer(walk, &court->queried.payload);
        move = court_move(court, GAME_REPLY, walk->reply, walk->reply_size);
        court_done(court, &move, COURT_SOLVER);
        assert_int_equal(trace_walk_take(&walk->walk, walk->reply, walk->reply_size, NULL),
                         STATUS_OK);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, walk);
    court_convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    court_compare(court);
}

/* Evidence stands under the micro-batch that the solver committed to last, and no other. */
static void test_a_micro_batch_counts_until_another_is_committed_to(void **state)
{
    struct court *court = court_new();
    struct evidence_target target = {0};
    struct exhibit exhibit;
    struct buffer evidence;
    struct op_turn other;

    (void)state;
    exhibit_of_repeat(&exhibit, MODEL_MLP, TIMES, GROUP, 1);
    target = target_of(find_op(exhibit.tape, OP_CONTRACT, 3, false));
    other = find_op(exhibit.tape, OP_CONTRACT, 4, false);
    exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) ^ 1);
    court_bring(court, &exhibit.context, 1, 2);
    exhibit_evidence(&evidence, &exhibit, &target);
    commit_batch(court, &exhibit, evidence_maker(&target));
    commit_batch(court, &exhibit, other);
    court_convict(court, &evidence, GAME_BAD_EVIDENCE);
    commit_batch(court, &exhibit, evidence_maker(&target));
    court_convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
    court_free(court);
}

static void test_walk_leads_into_a_micro_batch_and_to_a_join(void **state)
{
    struct court *court = court_new();

    (void)state;
    for (int join = 0; join < 2; join++) {
        struct lie lie = {.kind = LIE_ULP};
        struct walk walk;
        struct op_turn op;

        walk_open_repeat(&walk, &lie, TIMES, GROUP); /* to see its tape */
        op = join == 1 ? find_sum(walk.dispute.tape, 2, true)
                       : find_op(walk.dispute.tape, OP_CONTRACT, 6, false);
        lie.item = trace_item_of_output(walk.dispute.tape, op, 0);
        walk_close(&walk);
        walk_open_repeat(&walk, &lie, TIMES, GROUP);
        play_walk(court, &walk);
        assert_int_equal(walk.walk.item, lie.item);
        walk_close(&walk);
    }
    court_free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lies_in_a_repeat_convict),
        cmocka_unit_test(test_any_operation_of_any_shape_is_found),
        cmocka_unit_test(test_another_instance_proves_nothing),
        cmocka_unit_test(test_a_micro_batch_counts_until_another_is_committed_to),
        cmocka_unit_test(test_walk_leads_into_a_micro_batch_and_to_a_join),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
