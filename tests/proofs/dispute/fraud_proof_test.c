/*
 * Goal: an accused that lies about one element of any output of any kind of operation is convicted,
 * from the walk to the judge's ruling; an honest one is not. Method: an accused machine that lies
 * (liar.h) and a claimant's honest one; every output of every operation of random tapes until all
 * outputs of all kinds were lied about, and of the small models; states before and after the step;
 * sums that are asked for in parts, and told falsely; one of 2^23 terms whose parts are asked for
 * theirs; a state that is not finite. No ledger: the judge is asked directly.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/element.h"
#include "proofs/dispute/fraud_proof.h"
#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/forgery.h"
#include "tests/support/dispute/giant.h"
#include "tests/support/dispute/opponents.h"
#include "tests/support/test.h"

#define TAPES_FULL  400
#define TAPES       24
#define TAPE_OPS    40
#define MODELS_FULL 20000
#define MODELS      240
#define SEEN_ENOUGH 3 /* lies about one output of one kind, but in the long run */
#define LIES_EVER   10000000

/* The walk, with everything told. */
static void walk(struct trace_walk *trace_walk, struct trace_server *accused)
{
    static uint8_t reply[TRACE_REPLY_BYTES_MAX];
    struct digest known;
    struct trace_query query;

    while (trace_walk_next(&query, &known, trace_walk)) {
        struct trace_reply_tree tree;

        assert_int_equal(trace_server_tree(&tree, accused, &query, NULL), STATUS_OK);
        assert_int_equal(
            trace_walk_take(trace_walk, reply, trace_reply_write(reply, &query, &tree), NULL),
            STATUS_OK);
    }
}

struct told {
    uint8_t queried[LEDGER_QUERIED_SIZE_MAX];
    struct buffer reply;
    struct fraud_proof_said said; /* both */
};

/* What the liar tells who is asked for parts; false: nothing comes to what it committed to. */
static bool tell_parts(struct evidence_context *context, struct told *told,
                       const struct fraud_proof *proof, const struct buffer *question)
{
    struct buffer *reply = &told->reply;
    const struct trace_walk *trace_walk = proof->walk;
    const struct tensor *tensor =
        &trace_walk->own->tape->tensors[trace_tensor_at(trace_walk->own->tape, trace_walk->item)];
    size_t at = proof->target.element * dtype_size(tensor->dtype) % MERKLE_LEAF_SIZE;
    const struct forgery_case made = {.tape = trace_walk->own->tape,
                                      .source = &proof->source,
                                      .target = &proof->target,
                                      .bits =
                                          element_bits(trace_walk->leaf_bytes + at, tensor->dtype)};
    uint64_t random = 3;
    struct partial_sums_reply read;
    struct ledger_queried queried;
    uint32_t part;

    assert_int_equal(ledger_query_check(&queried, context, question->data, question->size),
                     VERDICT_VALID);
    assert_int_equal(queried.query.kind, TRACE_QUERY_PARTS);
    assert_int_equal(queried.parts.bits, made.bits);
    buffer_release(reply);
    if (!forgery_make(reply, &part, &made, &random)) {
        return false;
    }
    assert_int_equal(partial_sums_check(&read, &queried.parts, reply->data, reply->size),
                     VERDICT_VALID);
    told->said = (struct fraud_proof_said){
        told->queried, ledger_queried_write(told->queried, &queried), reply->data, reply->size};
    partial_sums_reply_hash(&context->reply, told->queried, told->said.queried_size, reply->data,
                            reply->size);
    return true;
}

/* Makes the moves that convict, of at most size_max; returns how many, or 0: the liar cannot tell
 * what it is asked for. */
static uint32_t convict(struct opponents *dispute, struct trace_walk *trace_walk, size_t size_max)
{
    struct evidence_context context = opponents_context(dispute, &trace_walk->accused);
    struct evidence_ruling ruling;
    struct fraud_proof proof;
    struct told told = {.reply = {0}};
    struct buffer bytes;
    uint32_t moves = 1;
    bool asks = false;

    buffer_init(&bytes, EVIDENCE_SIZE_MAX);
    assert_int_equal(fraud_proof_open(&proof, trace_walk, &dispute->given, NULL), STATUS_OK);
    assert_int_equal(
        fraud_proof_write(&bytes, &asks, &proof, &(struct fraud_proof_said){0}, size_max, NULL),
        STATUS_OK);
    assert_in_range(bytes.size, 1, size_max);
    if (asks) {
        moves = tell_parts(&context, &told, &proof, &bytes) ? 2 : 0;
        buffer_clear(&bytes);
    }
    if (moves == 2) {
        assert_int_equal(fraud_proof_write(&bytes, &asks, &proof, &told.said, size_max, NULL),
                         STATUS_OK);
        assert_false(asks);
        assert_in_range(bytes.size, 1, size_max);
    }
    if (moves > 0) {
        assert_int_equal(evidence_judge(&ruling, &context, bytes.data, bytes.size, NULL),
                         STATUS_OK);
        assert_int_equal(ruling.reason, EVIDENCE_FINE);
        assert_int_equal(ruling.answer, EVIDENCE_UPHELD);
        /* It convicts nobody else. */
        context.trace.bytes[7] ^= 1;
        assert_int_equal(evidence_judge(&ruling, &context, bytes.data, bytes.size, NULL),
                         STATUS_OK);
        assert_int_equal(ruling.answer, EVIDENCE_REFUSED);
    }
    fraud_proof_close(&proof);
    buffer_release(&told.reply);
    buffer_release(&bytes);
    return moves;
}

static uint32_t try_lie(struct opponents *dispute, const struct lie *lie, size_t size_max)
{
    struct trace_walk_case roots;
    struct trace_server accused;
    struct liar liar;
    struct trace_walk trace_walk;
    uint32_t moves;

    liar_open(&liar, opponents_rewind(dispute), lie);
    assert_int_equal(trace_server_open(&accused, &liar.machine, NULL), STATUS_OK);
    roots = opponents_case(&accused, &dispute->own);
    assert_int_equal(trace_walk_open(&trace_walk, &dispute->own, &roots, NULL), STATUS_OK);
    walk(&trace_walk, &accused);
    assert_int_equal(trace_walk.item, lie->item);
    moves = convict(dispute, &trace_walk, size_max);
    trace_walk_close(&trace_walk);
    trace_server_close(&accused);
    liar_close(&liar);
    return moves;
}

/* How often an output of a kind was lied about. */
static uint32_t seen[OP_KIND_COUNT][OP_OUTPUTS_MAX];

static bool all_kinds_seen(void)
{
    for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
        if (seen[kind][0] == 0) {
            return false;
        }
    }
    return true;
}

static void lie_about_all_outputs(struct opponents *dispute, uint64_t *seed, uint32_t enough)
{
    uint32_t item = dispute->tape->state_count;

    for (uint32_t op = 0; op < dispute->tape->op_count; op++) {
        const struct op *at = &dispute->tape->ops[op];

        for (uint32_t output = 0; output < at->output_count; output++, item++) {
            struct lie lie = opponents_random_lie(dispute->tape, seed);

            if (seen[at->kind][output] >= enough) {
                continue;
            }
            lie.item = item;
            lie.element =
                test_random_below(seed, dispute->tape->tensors[at->outputs[output]].count);
            (void)try_lie(dispute, &lie, EVIDENCE_SIZE_MAX);
            seen[at->kind][output]++;
        }
    }
}

static void test_liar_about_any_output_of_any_kind_is_convicted(void **state)
{
    uint64_t tapes = test_share(TAPES_FULL, TAPES);
    uint32_t enough = tapes == TAPES_FULL ? LIES_EVER : SEEN_ENOUGH;
    uint64_t seed = 1;

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct opponents dispute;

        opponents_open_kind(&dispute, (enum model_kind)kind);
        lie_about_all_outputs(&dispute, &seed, enough);
        opponents_close(&dispute);
    }
    for (uint64_t tape = 0; tape < tapes || (tape < TAPES_FULL && !all_kinds_seen()); tape++) {
        struct opponents dispute;

        opponents_open_random(&dispute, 100 + tape, TAPE_OPS);
        lie_about_all_outputs(&dispute, &seed, enough);
        opponents_close(&dispute);
    }
    assert_true(all_kinds_seen());
}

static void test_liar_in_a_model_is_convicted(void **state)
{
    uint64_t lies = test_share(MODELS_FULL, MODELS) / MODEL_COUNT;
    uint64_t seed = 2;

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct opponents dispute;

        opponents_open_kind(&dispute, (enum model_kind)kind);
        for (uint64_t i = 0; i < lies; i++) {
            struct lie lie = opponents_random_lie(dispute.tape, &seed);

            assert_int_equal(try_lie(&dispute, &lie, EVIDENCE_SIZE_MAX), 1);
        }
        opponents_close(&dispute);
    }
}

/* In what a micro-batch keeps to itself, in what it hands on, in joins, and outside of them. */
static void test_liar_in_any_micro_batch_is_convicted(void **state)
{
    struct model_options options;
    struct opponents dispute;

    (void)state;
    small_model_options(&options, MODEL_MLP);
    options.accumulate = 4;
    options.group = 2;
    opponents_open(&dispute, &options);
    for (uint32_t item = 0; item < trace_item_count(dispute.tape); item++) {
        struct lie lie = {item, 0, LIE_ULP};

        assert_int_equal(try_lie(&dispute, &lie, EVIDENCE_SIZE_MAX), 1);
    }
    opponents_close(&dispute);
}

static void test_every_state_before_the_step_can_convict(void **state)
{
    struct opponents dispute;

    (void)state;
    opponents_open_kind(&dispute, MODEL_CONVNET);
    for (uint32_t item = 0; item < dispute.tape->state_count; item++) {
        struct lie lie = {item, 0, LIE_ULP};

        assert_int_equal(try_lie(&dispute, &lie, 65536), 1);
    }
    opponents_close(&dispute);
}

static void test_every_state_after_the_step_can_convict(void **state)
{
    struct opponents dispute;
    struct trace_server accused;
    uint32_t count;

    (void)state;
    opponents_open_kind(&dispute, MODEL_LLAMA);
    count = dispute.tape->state_count;
    assert_int_equal(trace_server_open(&accused, opponents_rewind(&dispute), NULL), STATUS_OK);
    for (uint32_t wrong = 0; wrong < count; wrong++) {
        struct trace_walk_case roots = opponents_case(&accused, &dispute.own);
        struct digest right = accused.next[wrong];
        struct trace_walk trace_walk;

        accused.next[wrong].bytes[0] ^= 1;
        merkle_leaf_hash(&accused.next[count + wrong], accused.next[wrong].bytes, DIGEST_SIZE);
        commit_list_root(&roots.next_root, COMMIT_STATE, 0, accused.next, count);
        assert_int_equal(trace_walk_open(&trace_walk, &dispute.own, &roots, NULL), STATUS_OK);
        walk(&trace_walk, &accused);
        assert_int_equal(trace_walk.end, TRACE_WALK_NEXT_STATE);
        assert_int_equal(trace_walk.item, wrong);
        assert_int_equal(convict(&dispute, &trace_walk, 65536), 1);
        trace_walk_close(&trace_walk);
        accused.next[wrong] = right;
        merkle_leaf_hash(&accused.next[count + wrong], right.bytes, DIGEST_SIZE);
    }
    trace_server_close(&accused);
    opponents_close(&dispute);
}

/* The item of the first output of the operation that contracts over at least k elements. */
static uint32_t long_contraction(const struct tape *tape, int64_t k)
{
    uint32_t item = tape->state_count;

    for (uint32_t op = 0; op < tape->op_count; op++) {
        if (tape->ops[op].kind == OP_CONTRACT && tape->ops[op].attributes[CONTRACT_K] >= k) {
            return item;
        }
        item += tape->ops[op].output_count;
    }
    fail_msg("there is no such contraction");
    return 0;
}

static void test_long_sums_are_queried_in_parts(void **state)
{
    struct model_options options;
    struct opponents dispute;
    struct lie lie = {.element = 3, .kind = LIE_ULP};

    (void)state;
    small_model_options(&options, MODEL_MLP);
    options.batch = 1;
    options.hidden = 2100;
    opponents_open(&dispute, &options);
    lie.item = long_contraction(dispute.tape, options.hidden);
    assert_int_equal(try_lie(&dispute, &lie, 14000), 2);
    lie.kind = LIE_NAN; /* no NaN of rules: nothing comes to it */
    assert_int_equal(try_lie(&dispute, &lie, 14000), 0);
    opponents_close(&dispute);
}

/* An accused is asked for the parts of each kind of element, and tells what they come to. */
static void test_honest_accused_replies_the_parts(void **state)
{
    struct model_options options;
    struct opponents dispute;
    struct buffer reply;
    uint32_t queried = 0;

    (void)state;
    small_model_options(&options, MODEL_MLP);
    options.batch = 1;
    options.hidden = 1200;
    opponents_open(&dispute, &options);
    buffer_init(&reply, PARTIAL_SUMS_REPLY_MAX);
    for (uint32_t item = 0; item < trace_item_count(dispute.tape); item++) {
        struct trace_query query = {.kind = TRACE_QUERY_PARTS, .item = item};
        const struct tensor *tensor = &dispute.tape->tensors[trace_tensor_at(dispute.tape, item)];
        struct rule_axis axis = {.parts = 0};
        struct partial_sums_target target;
        struct partial_sums_reply read;
        struct op_turn maker;
        uint32_t output;

        if (item >= dispute.tape->state_count) {
            trace_output_at(&maker, &output, dispute.tape, item);
            rule_axis_of(&axis, &dispute.tape->ops[maker.op], output, 0);
        }
        buffer_clear(&reply);
        assert_int_equal(
            fraud_proof_reply(&reply, &dispute.own, &dispute.given, &query, NULL, NULL),
            axis.parts > 1 ? STATUS_OK : STATUS_NOT_FOUND);
        if (axis.parts > 1) {
            assert_int_equal(trace_server_keep(&dispute.own, &item, 1, NULL), STATUS_OK);
            target = (struct partial_sums_target){
                .bits = element_bits(trace_server_tensor(&dispute.own, item)->bytes, tensor->dtype),
                .fold = axis.fold,
                .count = axis.parts};
            assert_int_equal(partial_sums_check(&read, &target, reply.data, reply.size),
                             VERDICT_VALID);
            queried++;
            query.level = 1; /* of a part that nobody names */
            assert_int_equal(
                fraud_proof_reply(&reply, &dispute.own, &dispute.given, &query, NULL, NULL),
                STATUS_NOT_FOUND);
        }
    }
    assert_in_range(queried, 10, 100);
    buffer_release(&reply);
    opponents_close(&dispute);
}

/* The accused's word about what was queried last: sums that are right but for one part. */
static void tell_long(struct told *told, struct evidence_context *context,
                      const struct buffer *question, uint32_t lie, int64_t terms)
{
    struct partial_sums_reply read;
    struct ledger_queried queried;

    assert_int_equal(ledger_query_check(&queried, context, question->data, question->size),
                     VERDICT_VALID);
    buffer_clear(&told->reply);
    buffer_add_u32(&told->reply, 0);
    for (uint32_t i = 0; i < queried.parts.count; i++) {
        const uint64_t length =
            queried.parts.range.is_part ? RULE_PART_OF_SUM : (uint64_t)terms / queried.parts.count;

        buffer_add_u64(&told->reply, length - (i == lie ? (uint64_t)terms : 0));
    }
    assert_int_equal(partial_sums_check(&read, &queried.parts, told->reply.data, told->reply.size),
                     VERDICT_VALID);
    told->said =
        (struct fraud_proof_said){told->queried, ledger_queried_write(told->queried, &queried),
                                  told->reply.data, told->reply.size};
    partial_sums_reply_hash(&context->reply, told->queried, told->said.queried_size,
                            told->reply.data, told->reply.size);
}

/* A part that does not fit is queried for its own parts; a reply about another element, or about
 * nothing that has parts, begins the descent again. */
static void test_a_part_that_is_too_long_is_queried_for_its_parts(void **state)
{
    const int64_t terms = 1 << 23;
    struct evidence_ruling ruling;
    struct trace_server own = {0};
    struct trace_walk trace_walk = {.own = &own, .end = TRACE_WALK_ELEMENT};
    struct fraud_proof proof = {.walk = &trace_walk, .target = {.element = 1}};
    struct told told;
    struct giant giant;
    struct buffer bytes;
    bool asks;

    (void)state;
    giant_open_long(&giant, OP_CONTRACT, terms, 128, 13, 0); /* the lie: a zero */
    own.tape = giant.tape;
    proof.source = giant.source;
    told.said = (struct fraud_proof_said){0};
    buffer_init(&told.reply, PARTIAL_SUMS_REPLY_MAX);
    buffer_init(&bytes, EVIDENCE_SIZE_MAX);
    for (uint32_t move = 0; move < 3; move++) {
        buffer_clear(&bytes);
        assert_int_equal(
            fraud_proof_write(&bytes, &asks, &proof, &told.said, EVIDENCE_SIZE_MAX, NULL),
            STATUS_OK);
        assert_in_range(bytes.size, 1, FRAUD_PROOF_WHOLE_MAX);
        assert_int_equal(asks, move < 2);
        if (asks) {
            tell_long(&told, &giant.context, &bytes, move == 0 ? 1700 : 3, terms);
        }
    }
    assert_int_equal(fraud_proof_judge(&ruling, &proof, &giant.context, &told.said, &bytes, NULL),
                     STATUS_OK);
    assert_int_equal(ruling.answer, EVIDENCE_UPHELD);
    proof.target.element = 2;
    buffer_clear(&bytes);
    assert_int_equal(fraud_proof_write(&bytes, &asks, &proof, &told.said, EVIDENCE_SIZE_MAX, NULL),
                     STATUS_OK);
    assert_true(asks);
    assert_int_equal(bytes.data[6], 0); /* of the whole axis */
    buffer_release(&told.reply);
    buffer_release(&bytes);
    giant_close(&giant);
}

/* A solver who went on with a state that ends the job; and one who says that it did. */
static void test_states_that_are_not_finite_convict(void **state)
{
    struct opponents dispute;
    struct trace_walk_case roots;
    struct evidence_context context;
    struct evidence_ruling ruling;
    struct buffer bytes;

    (void)state;
    opponents_open_diverging(&dispute);
    buffer_init(&bytes, EVIDENCE_SIZE_MAX);
    assert_int_equal(fraud_proof_not_finite(&bytes, &dispute.own, NULL), STATUS_OK);
    assert_in_range(bytes.size, MERKLE_LEAF_SIZE, TRACE_REPLY_BYTES_MAX);
    roots = opponents_case(&dispute.own, &dispute.own);
    context = opponents_context(&dispute, &roots);
    assert_int_equal(evidence_judge(&ruling, &context, bytes.data, bytes.size, NULL), STATUS_OK);
    assert_int_equal(ruling.answer, EVIDENCE_UPHELD);
    context.diverged = true;
    assert_int_equal(evidence_judge(&ruling, &context, bytes.data, bytes.size, NULL), STATUS_OK);
    assert_int_not_equal(ruling.answer, EVIDENCE_UPHELD);
    opponents_close(&dispute);

    opponents_open_kind(&dispute, MODEL_GPT2);
    assert_int_equal(fraud_proof_not_finite(&bytes, &dispute.own, NULL), STATUS_NOT_FOUND);
    opponents_close(&dispute);
    buffer_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_liar_about_any_output_of_any_kind_is_convicted),
        cmocka_unit_test(test_liar_in_a_model_is_convicted),
        cmocka_unit_test(test_liar_in_any_micro_batch_is_convicted),
        cmocka_unit_test(test_every_state_before_the_step_can_convict),
        cmocka_unit_test(test_every_state_after_the_step_can_convict),
        cmocka_unit_test(test_long_sums_are_queried_in_parts),
        cmocka_unit_test(test_honest_accused_replies_the_parts),
        cmocka_unit_test(test_a_part_that_is_too_long_is_queried_for_its_parts),
        cmocka_unit_test(test_states_that_are_not_finite_convict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
