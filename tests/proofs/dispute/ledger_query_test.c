/*
 * Goal: a ledger that knows nothing but the program root and the accused's roots learns from a
 * question exactly what the claimant asks and what the answer must hash to, and is not misled.
 * Method: the questions of whole walks, of every kind, against what the tape says; the answers
 * checked with nothing but `asked`; every bit of a question flipped, every length, other contexts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/descriptor.h"
#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/dispute/opponents.h"
#include "tests/support/test.h"

#define LIES_FULL  4000
#define LIES       80
#define FLIPS_FULL 200000
#define FLIPS      3200

static struct evidence_context context_of(const struct tape *tape,
                                          const struct trace_walk_case *accused)
{
    struct evidence_context context = {.trace = accused->trace_root, .after = accused->next_root};

    assert_int_equal(descriptor_program_root(&context.program, tape, NULL), STATUS_OK);
    return context;
}

/* Written and read again; every other size is refused. */
static void check_queried(const struct ledger_queried *queried)
{
    uint8_t bytes[LEDGER_QUERIED_SIZE_MAX + 1] = {0};
    uint8_t again[LEDGER_QUERIED_SIZE_MAX];
    size_t size = ledger_queried_write(bytes, queried);
    struct ledger_queried read;

    assert_int_equal(ledger_queried_read(&read, bytes, size), STATUS_OK);
    assert_int_equal(ledger_queried_write(again, &read), size);
    assert_memory_equal(again, bytes, size);
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        assert_int_equal(ledger_queried_read(&read, bytes, cut),
                         cut == size ? STATUS_OK : STATUS_BAD_FORMAT);
    }
}

static void check_query(const struct trace_walk *walk, const struct evidence_context *context,
                        const uint8_t *bytes, size_t size, const uint8_t *reply, size_t reply_size)
{
    struct trace_reply_target target;
    struct digest known;
    struct ledger_queried queried;
    struct trace_reply read;
    struct trace_query query;

    assert_true(trace_walk_next(&query, &known, walk));
    assert_int_equal(ledger_query_check(&queried, context, bytes, size), VERDICT_VALID);
    assert_memory_equal(&queried.query, &query, sizeof(query));
    assert_int_equal(trace_reply_target(&target, &query, walk->own->tape, &known, NULL), STATUS_OK);
    assert_memory_equal(&queried.target, &target, sizeof(target));
    assert_int_equal(trace_reply_check(&read, &queried.target, reply, reply_size), VERDICT_VALID);
    check_queried(&queried);
}

/* No flip may lead to a question about anything else than a list that may be asked for anyway. */
static void flip(const struct evidence_context *context, uint8_t *bytes, size_t size,
                 uint64_t *seed, uint64_t flips)
{
    for (uint64_t i = 0; i < flips; i++) {
        uint64_t bit = i < 120 ? i : test_random_below(seed, size * 8);
        struct ledger_queried queried;

        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (ledger_query_check(&queried, context, bytes, size) == VERDICT_VALID) {
            assert_int_equal(queried.query.kind, TRACE_QUERY_LIST);
            assert_int_equal(bit / 8, 1);
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut += 1 + cut % 7) {
        struct ledger_queried queried;

        assert_int_equal(ledger_query_check(&queried, context, bytes, cut), VERDICT_INVALID);
    }
}

static void refuse_other_contexts(const struct evidence_context *context, const uint8_t *bytes,
                                  size_t size)
{
    struct evidence_context other = *context;
    struct ledger_queried queried;

    other.program.bytes[3] ^= 1;
    assert_int_equal(ledger_query_check(&queried, &other, bytes, size), VERDICT_INVALID);
    other = *context;
    other.trace.bytes[31] ^= 1;
    other.after.bytes[0] ^= 0x80;
    if (bytes[0] != TRACE_QUERY_LIST) {
        assert_int_equal(ledger_query_check(&queried, &other, bytes, size), VERDICT_INVALID);
    }
}

/* Hunts to the end, and checks each question; returns how many there were. */
static uint32_t follow(struct opponents *dispute, struct trace_server *accused,
                       struct trace_walk_case *roots, uint64_t flips)
{
    static uint8_t reply[TRACE_REPLY_BYTES_MAX];
    struct evidence_context context = context_of(dispute->tape, roots);
    uint64_t seed = 11;
    uint32_t questions = 0;
    struct buffer bytes;
    struct digest known;
    struct trace_walk walk;
    struct trace_query query;

    buffer_init(&bytes, LEDGER_QUERY_SIZE_MAX + 1);
    assert_int_equal(trace_walk_open(&walk, &dispute->own, roots, NULL), STATUS_OK);
    for (; trace_walk_next(&query, &known, &walk); questions++) {
        struct trace_reply_tree tree;
        struct ledger_queried queried;
        size_t size;

        assert_int_equal(trace_server_tree(&tree, accused, &query, NULL), STATUS_OK);
        size = trace_reply_write(reply, &query, &tree);
        buffer_clear(&bytes);
        assert_int_equal(ledger_query_write(&bytes, &walk, NULL), STATUS_OK);
        assert_in_range(bytes.size, TRACE_QUERY_SIZE, LEDGER_QUERY_SIZE_MAX);
        check_query(&walk, &context, bytes.data, bytes.size, reply, size);
        refuse_other_contexts(&context, bytes.data, bytes.size);
        if (flips > 0) {
            flip(&context, bytes.data, bytes.size, &seed, flips);
        }
        buffer_add_u8(&bytes, 0);
        assert_int_equal(ledger_query_check(&queried, &context, bytes.data, bytes.size),
                         VERDICT_INVALID);
        assert_int_equal(trace_walk_take(&walk, reply, size, NULL), STATUS_OK);
    }
    assert_int_equal(ledger_query_write(&bytes, &walk, NULL), STATUS_USAGE);
    buffer_release(&bytes);
    trace_walk_close(&walk);
    return questions;
}

static uint32_t follow_lie(struct opponents *dispute, const struct lie *lie, uint64_t flips)
{
    struct trace_walk_case roots;
    struct trace_server accused;
    struct liar liar;
    uint32_t questions;

    liar_open(&liar, opponents_rewind(dispute), lie);
    assert_int_equal(trace_server_open(&accused, &liar.machine, NULL), STATUS_OK);
    roots = opponents_case(&accused, &dispute->own);
    questions = follow(dispute, &accused, &roots, flips);
    trace_server_close(&accused);
    liar_close(&liar);
    return questions;
}

static void test_queries_of_walks_say_what_is_queried(void **state)
{
    uint64_t lies = test_share(LIES_FULL, LIES) / MODEL_COUNT;
    uint64_t seed = 10;

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct opponents dispute;

        opponents_open_kind(&dispute, (enum model_kind)kind);
        for (uint64_t i = 0; i < lies; i++) {
            struct lie lie = opponents_random_lie(dispute.tape, &seed);

            (void)follow_lie(&dispute, &lie, 0);
        }
        opponents_close(&dispute);
    }
}

static void test_changed_queries_are_refused(void **state)
{
    uint64_t flips = test_share(FLIPS_FULL, FLIPS) / 8;

    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        struct opponents dispute;
        struct lie lie = {0, 0, LIE_ULP};

        if (wide == 1) {
            opponents_open_hidden(&dispute, OPPONENTS_WIDE);
        } else {
            opponents_open_kind(&dispute, MODEL_GPT2);
        }
        lie.item = dispute.tape->state_count;
        while (trace_query_tensor_count(
                   &dispute.tape->tensors[trace_tensor_at(dispute.tape, lie.item)]) <=
               (wide == 1 ? 4096 : 9)) {
            lie.item++;
        }
        assert_int_equal(follow_lie(&dispute, &lie, flips), wide == 1 ? 1 + 3 : 2 + 1);
        opponents_close(&dispute);
    }
}

static void test_queries_about_the_next_state_hold(void **state)
{
    struct opponents dispute;
    struct trace_walk_case roots;
    struct trace_server accused;
    uint32_t count;

    (void)state;
    opponents_open_kind(&dispute, MODEL_CONVNET);
    count = dispute.tape->state_count;
    assert_int_equal(trace_server_open(&accused, opponents_rewind(&dispute), NULL), STATUS_OK);
    roots = opponents_case(&accused, &dispute.own);
    accused.next[count - 1].bytes[0] ^= 1;
    merkle_leaf_hash(&accused.next[2 * count - 1], accused.next[count - 1].bytes, DIGEST_SIZE);
    commit_list_root(&roots.next_root, COMMIT_STATE, 0, accused.next, count);
    assert_int_equal(follow(&dispute, &accused, &roots, test_share(FLIPS_FULL, FLIPS) / 8), 1);
    trace_server_close(&accused);
    opponents_close(&dispute);
}

static void test_divergence_is_queried_only_where_it_is_claimed(void **state)
{
    struct opponents dispute;
    struct trace_walk_case roots;
    struct evidence_context context;
    struct buffer bytes;
    struct ledger_queried queried;

    (void)state;
    opponents_open_kind(&dispute, MODEL_MLP);
    roots = opponents_case(&dispute.own, &dispute.own);
    context = context_of(dispute.tape, &roots);
    buffer_init(&bytes, LEDGER_QUERY_SIZE_MAX);
    assert_int_equal(ledger_query_write_plain(&bytes, dispute.tape,
                                              &(struct trace_query){.kind = TRACE_QUERY_DIVERGED},
                                              NULL),
                     STATUS_OK);
    assert_int_equal(ledger_query_check(&queried, &context, bytes.data, bytes.size),
                     VERDICT_INVALID);
    context.diverged = true;
    assert_int_equal(ledger_query_check(&queried, &context, bytes.data, bytes.size), VERDICT_VALID);
    assert_int_equal(queried.query.kind, TRACE_QUERY_DIVERGED);
    assert_true(digest_equal(&queried.target.known, &context.after));
    assert_true(digest_equal(&queried.program, &context.program));
    check_queried(&queried);
    buffer_release(&bytes);
    opponents_close(&dispute);
}

/* ---- parts ---------------------------------------------------------------- */

static void open_long(struct exhibit *exhibit, struct evidence_target *target, enum op_kind kind)
{
    *target = (struct evidence_target){0};
    for (uint64_t seed = 0;; seed++) {
        exhibit_of_kind(exhibit, kind, MOOD_TAME, seed);
        if (exhibit_axis(exhibit, target).parts > 1) {
            return;
        }
        exhibit_close(exhibit);
    }
}

static void test_queries_for_parts_are_about_what_was_committed(void **state)
{
    static const enum op_kind kinds[] = {
        OP_CONTRACT,        OP_CONTRACT_ONES,        OP_CONTRACT_ONEHOT,
        OP_CONTRACT_CHOSEN, OP_CONTRACT_CHOSEN_ROWS, OP_QUANTIZE};
    uint64_t random = 5;

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct evidence_target target = {0};
        struct exhibit exhibit;
        struct buffer question;
        struct ledger_queried queried;

        open_long(&exhibit, &target, kinds[i]);
        exhibit_query(&question, &exhibit, &target);
        assert_int_equal(
            ledger_query_check(&queried, &exhibit.context, question.data, question.size),
            VERDICT_VALID);
        assert_int_equal(queried.query.kind, TRACE_QUERY_PARTS);
        assert_int_equal(
            queried.query.item,
            trace_item_of_output(exhibit.tape, evidence_maker(&target), target.output));
        assert_int_equal(queried.query.index, target.element);
        assert_int_equal(queried.parts.bits, exhibit_get(&exhibit, &target));
        assert_int_equal(queried.parts.fold, exhibit_axis(&exhibit, &target).fold);
        assert_int_equal(queried.parts.count, exhibit_axis(&exhibit, &target).parts);
        check_queried(&queried);
        flip(&exhibit.context, question.data, question.size, &random, 400);
        buffer_release(&question);
        exhibit_close(&exhibit);
    }
}

/* Seeds for ledger_query_fuzz.c: the roots that it must hold under, then a question. */
static void write_seed(const char *folder, const char *name, const struct evidence_context *context,
                       const struct buffer *question)
{
    struct buffer bytes;
    char path[512];
    FILE *file;

    buffer_init(&bytes, LEDGER_QUERY_SIZE_MAX + 100);
    buffer_add(&bytes, context->program.bytes, DIGEST_SIZE);
    buffer_add(&bytes, context->trace.bytes, DIGEST_SIZE);
    buffer_add(&bytes, context->after.bytes, DIGEST_SIZE);
    buffer_add_u8(&bytes, (uint8_t)(2 * context->diverged));
    buffer_add(&bytes, question->data, question->size);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    assert_int_equal(fclose(file), 0);
    buffer_release(&bytes);
}

static void write_parts(const char *folder)
{
    struct evidence_target target = {0};
    struct exhibit exhibit;
    struct buffer question;

    open_long(&exhibit, &target, OP_CONTRACT_ONES);
    exhibit_query(&question, &exhibit, &target);
    write_seed(folder, "parts", &exhibit.context, &question);
    buffer_release(&question);
    exhibit_close(&exhibit);
}

static void write_seeds(const char *folder)
{
    static uint8_t reply[TRACE_REPLY_BYTES_MAX];
    struct lie lie = {0, 0, LIE_ULP};
    struct evidence_context context;
    struct opponents dispute;
    struct trace_walk_case roots;
    struct trace_server accused;
    struct buffer bytes;
    struct digest known;
    struct liar liar;
    struct trace_walk walk;
    struct trace_query query;

    opponents_open_hidden(&dispute, OPPONENTS_WIDE);
    lie.item = dispute.tape->state_count;
    while (trace_query_tensor_count(
               &dispute.tape->tensors[trace_tensor_at(dispute.tape, lie.item)]) <= 4096) {
        lie.item++;
    }
    liar_open(&liar, opponents_rewind(&dispute), &lie);
    assert_int_equal(trace_server_open(&accused, &liar.machine, NULL), STATUS_OK);
    roots = opponents_case(&accused, &dispute.own);
    context = context_of(dispute.tape, &roots);
    buffer_init(&bytes, LEDGER_QUERY_SIZE_MAX);
    assert_int_equal(trace_walk_open(&walk, &dispute.own, &roots, NULL), STATUS_OK);
    while (trace_walk_next(&query, &known, &walk)) {
        size_t size;

        buffer_clear(&bytes);
        assert_int_equal(ledger_query_write(&bytes, &walk, NULL), STATUS_OK);
        write_seed(folder,
                   walk.reply_count == 0   ? "list"
                   : walk.reply_count == 1 ? "tensor"
                                           : "node",
                   &context, &bytes);
        assert_int_equal(trace_server_answer(reply, &size, &accused, &query, NULL), STATUS_OK);
        assert_int_equal(trace_walk_take(&walk, reply, size, NULL), STATUS_OK);
    }
    buffer_clear(&bytes);
    context.diverged = true;
    assert_int_equal(ledger_query_write_plain(&bytes, dispute.tape,
                                              &(struct trace_query){.kind = TRACE_QUERY_DIVERGED},
                                              NULL),
                     STATUS_OK);
    write_seed(folder, "diverged", &context, &bytes);
    trace_walk_close(&walk);
    buffer_release(&bytes);
    trace_server_close(&accused);
    liar_close(&liar);
    opponents_close(&dispute);
    write_parts(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queries_of_walks_say_what_is_queried),
        cmocka_unit_test(test_changed_queries_are_refused),
        cmocka_unit_test(test_queries_about_the_next_state_hold),
        cmocka_unit_test(test_divergence_is_queried_only_where_it_is_claimed),
        cmocka_unit_test(test_queries_for_parts_are_about_what_was_committed),
    };

    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        write_seeds(argv[2]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
