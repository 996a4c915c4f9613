/*
 * Goal: a walk ends at the leftmost thing that the accused made differently from what the step
 * makes, within the rounds that the shapes promise, and no answer but a true one moves it.
 * Method: machines that lie in one random tensor of the trace (liar.h), in the state before the
 * step, or in the state after it alone, for each small model and a wide one whose tensors take
 * several answers; every walk saved and loaded between any two answers; each answer flipped, cut
 * and lengthened; trees of 1 to 600 leaves against merkle_node(); the rounds of GPT-2 124M.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/dispute/trace_walk.h"
#include "proofs/hash/sha256.h"
#include "tests/support/dispute/opponents.h"
#include "tests/support/test.h"

#define LIES_FULL  40000
#define LIES       600
#define LIES_WIDE  4
#define TREES_MAX  600
#define FLIPS_FULL 200000
#define FLIPS      4000

/* ---- walks ---------------------------------------------------------------- */

/* Saves the walk and goes on with what was loaded. */
static void reload(struct trace_walk *trace_walk)
{
    struct trace_server *own = trace_walk->own;
    struct buffer bytes;
    struct buffer again;

    buffer_init(&bytes, TRACE_WALK_BYTES_MAX);
    buffer_init(&again, TRACE_WALK_BYTES_MAX);
    assert_int_equal(trace_walk_save(&bytes, trace_walk, NULL), STATUS_OK);
    trace_walk_close(trace_walk);
    assert_int_equal(trace_walk_load(trace_walk, own, bytes.data, bytes.size, NULL), STATUS_OK);
    assert_int_equal(trace_walk_save(&again, trace_walk, NULL), STATUS_OK);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    buffer_release(&bytes);
    buffer_release(&again);
}

/* Asks and tells to the end; returns how many answers it took. */
static uint32_t walk(struct trace_walk *trace_walk, struct trace_server *accused, bool reloads)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    struct digest known;
    uint32_t tells = 0;
    struct trace_query query;

    while (trace_walk_next(&query, &known, trace_walk)) {
        uint8_t written[TRACE_QUERY_SIZE];
        struct trace_query read;
        size_t size;

        trace_query_write(written, &query);
        assert_int_equal(trace_query_read(&read, written, sizeof(written)), STATUS_OK);
        assert_int_equal(trace_server_answer(bytes, &size, accused, &read, NULL), STATUS_OK);
        assert_int_equal(trace_walk_take(trace_walk, bytes, size, NULL), STATUS_OK);
        tells++;
        if (reloads) {
            reload(trace_walk);
        }
    }
    return tells;
}

/* ---- what a walk that has ended knows ------------------------------------- */

static void check_items(const struct trace_walk *trace_walk, const struct trace_server *accused,
                        uint32_t count)
{
    struct digest tree;

    trace_walk_trace_tree(&tree, trace_walk);
    /* The last ones are nearest the lie; of the others a few. */
    for (uint32_t item = 0; item < count; item += item + 8 < count ? 1 + item / 4 : 1) {
        struct merkle_path path;
        struct digest root;
        struct digest top;

        trace_walk_item(&root, &path, trace_walk, item);
        assert_true(digest_equal(&root, &accused->trace.items[item]));
        assert_int_equal(commit_item_check(&accused->trace.root, COMMIT_TRACE, 0, root.bytes,
                                           DIGEST_SIZE, &path),
                         VERDICT_VALID);
        merkle_leaf_hash(&top, root.bytes, DIGEST_SIZE);
        assert_int_equal(merkle_path_check(&path, &top, &tree), VERDICT_VALID);
    }
}

/* The path of a leaf, in the accused's tensor that differs (list NULL) or in one of its lists. */
static struct merkle_path path_of(const struct trace_walk *trace_walk,
                                  const enum trace_query_list *list, uint64_t count, uint64_t leaf)
{
    struct merkle_path path = {.leaf_index = leaf, .leaf_count = count};
    uint32_t level = 0;

    for (uint64_t last = count - 1; last > 0; last >>= 1, leaf >>= 1, level++) {
        if ((leaf & 1) == 1 || leaf < last) {
            struct digest *node = &path.siblings[path.sibling_count++];

            assert_true(list == NULL
                            ? trace_walk_tensor_node(node, trace_walk, level, leaf ^ 1)
                            : trace_walk_list_node(node, trace_walk, *list, level, leaf ^ 1));
        }
    }
    return path;
}

static void check_leaf(const struct trace_walk *trace_walk, const struct liar *liar)
{
    const struct tape *tape = trace_walk->own->tape;
    const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, trace_walk->item)];
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    struct merkle_path path;
    size_t size = commit_tensor_header(header, COMMIT_TENSOR, tensor, &trace_walk->tensor.root);

    path = path_of(trace_walk, NULL, trace_walk->tensor.count, trace_walk->leaf);
    assert_int_equal(
        commit_leaf_check(&trace_walk->item_root, header, size, trace_walk->leaf_bytes, &path),
        VERDICT_VALID);
    assert_int_equal(trace_walk->leaf, liar->changed / MERKLE_LEAF_SIZE);
}

static void trace_walk_lie(struct opponents *dispute, const struct lie *lie, bool reloads)
{
    const struct tape *tape = dispute->tape;
    uint64_t runs = dispute->own.runs;
    struct trace_walk_case accused;
    struct trace_server server;
    struct liar liar;
    struct trace_walk trace_walk;

    liar_open(&liar, opponents_rewind(dispute), lie);
    assert_int_equal(trace_server_open(&server, &liar.machine, NULL), STATUS_OK);
    accused = opponents_case(&server, &dispute->own);
    assert_int_equal(trace_walk_open(&trace_walk, &dispute->own, &accused, NULL), STATUS_OK);
    assert_in_range(walk(&trace_walk, &server, reloads), 1, trace_query_replies_max(tape));
    assert_int_equal(trace_walk.item, lie->item);
    assert_int_equal(trace_walk.end,
                     lie->item < tape->state_count ? TRACE_WALK_FIRST_STATE : TRACE_WALK_ELEMENT);
    if (trace_walk.end == TRACE_WALK_ELEMENT) {
        check_leaf(&trace_walk, &liar);
    }
    check_items(&trace_walk, &server, lie->item + 1);
    /* However many answers: one run to trace, and one for the tensor in question. */
    assert_in_range(server.runs, 1, 2);
    assert_in_range(dispute->own.runs, runs, runs + 1);
    trace_walk_close(&trace_walk);
    trace_server_close(&server);
    liar_close(&liar);
}

/* ---- the tests ------------------------------------------------------------ */

static void test_random_lies_are_found_where_they_are(void **state)
{
    uint64_t lies = test_share(LIES_FULL, LIES);
    uint64_t seed = 1;

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct opponents dispute;

        opponents_open_kind(&dispute, (enum model_kind)kind);
        for (uint64_t i = 0; i < lies / MODEL_COUNT; i++) {
            struct lie lie = opponents_random_lie(dispute.tape, &seed);

            trace_walk_lie(&dispute, &lie, i % 4 == 0);
        }
        opponents_close(&dispute);
    }
}

static void test_lies_in_large_tensors_take_several_answers(void **state)
{
    struct opponents dispute;
    const struct tape *tape;
    uint64_t seed = 2;

    (void)state;
    opponents_open_hidden(&dispute, OPPONENTS_WIDE);
    tape = dispute.tape;
    assert_int_equal(trace_query_replies_max(tape), 1 + 3);
    for (uint64_t i = 0, item = 0; i < LIES_WIDE; item++) {
        uint32_t at =
            tape->state_count + (uint32_t)(item * 7 % (trace_item_count(tape) - tape->state_count));
        const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, at)];
        struct lie lie = {at, test_random_below(&seed, tensor->count), LIE_ULP};

        if (trace_query_tensor_count(tensor) > 4096) {
            lie.element = i == 0 ? tensor->count - 1 : lie.element;
            trace_walk_lie(&dispute, &lie, i % 2 == 0);
            i++;
        }
    }
    opponents_close(&dispute);
}

static void test_every_tensor_of_a_small_trace_can_be_lied_about(void **state)
{
    struct opponents dispute;
    uint64_t seed = 3;

    (void)state;
    opponents_open_kind(&dispute, MODEL_MLP);
    for (uint32_t item = 0; item < trace_item_count(dispute.tape); item++) {
        struct lie lie = opponents_random_lie(dispute.tape, &seed);

        lie.item = item;
        lie.element = 0;
        trace_walk_lie(&dispute, &lie, true);
    }
    opponents_close(&dispute);
}

/* Who really trains from another state makes everything differ; the state is to the left of all. */
static void test_step_from_another_state_is_found_in_the_state(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct opponents dispute;
        struct trace_walk_case accused;
        struct machine *machine;
        const struct tape *tape;
        struct trace_server server;
        struct trace_walk trace_walk;
        struct lie lie = {0, 0, LIE_ULP};
        uint64_t seed = 4;

        opponents_open_kind(&dispute, (enum model_kind)kind);
        tape = dispute.tape;
        machine = opponents_rewind(&dispute);
        for (uint32_t item = tape->state_count; item-- > tape->state_count / 2;) {
            uint32_t id = tape->states[item].before;
            uint8_t *bytes = malloc(commit_tensor_size(&tape->tensors[id]));

            memcpy(bytes, dispute.states[item], commit_tensor_size(&tape->tensors[id]));
            lie.element = test_random_below(&seed, tape->tensors[id].count);
            liar_lie(bytes, &tape->tensors[id], &lie);
            assert_int_equal(machine->backend->write(machine, id, bytes, NULL), STATUS_OK);
            free(bytes);
        }
        assert_int_equal(trace_server_open(&server, machine, NULL), STATUS_OK);
        accused = opponents_case(&server, &dispute.own);
        assert_int_equal(trace_walk_open(&trace_walk, &dispute.own, &accused, NULL), STATUS_OK);
        (void)walk(&trace_walk, &server, false);
        assert_int_equal(trace_walk.end, TRACE_WALK_FIRST_STATE);
        assert_int_equal(trace_walk.item, tape->state_count / 2);
        check_items(&trace_walk, &server, trace_walk.item + 1);
        trace_walk_close(&trace_walk);
        /* Who committed to that other state before the step cannot be hunted in this one. */
        accused.state_root = server.trace.state_root;
        assert_int_equal(trace_walk_open(&trace_walk, &dispute.own, &accused, NULL),
                         STATUS_REFUSED);
        trace_walk_close(&trace_walk);
        trace_server_close(&server);
        opponents_close(&dispute);
    }
}

static void test_honest_accused_is_found_to_be_right(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct opponents dispute;
        struct trace_walk_case accused;
        struct trace_server server;
        struct trace_walk trace_walk;

        opponents_open_kind(&dispute, (enum model_kind)kind);
        assert_int_equal(trace_server_open(&server, opponents_rewind(&dispute), NULL), STATUS_OK);
        accused = opponents_case(&server, &dispute.own);
        assert_int_equal(trace_walk_open(&trace_walk, &dispute.own, &accused, NULL), STATUS_OK);
        assert_int_equal(walk(&trace_walk, &server, false), 0);
        assert_int_equal(trace_walk.end, TRACE_WALK_NO_LIE);
        reload(&trace_walk);
        assert_int_equal(trace_walk.end, TRACE_WALK_NO_LIE);
        check_items(&trace_walk, &server, server.trace.item_count);
        trace_walk_close(&trace_walk);
        trace_server_close(&server);
        opponents_close(&dispute);
    }
}

/* The trace is honest, and the state that was committed to after it has one tensor's root wrong. */
static void trace_walk_next_lie(struct opponents *dispute, struct trace_server *server,
                                uint32_t wrong)
{
    static const enum trace_query_list next_state = TRACE_QUERY_NEXT_STATE;
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    uint32_t count = server->tape->state_count;
    struct trace_walk_case accused = opponents_case(server, &dispute->own);
    struct merkle_path path;
    struct trace_reply_tree tree;
    struct digest known;
    struct digest root;
    struct trace_walk trace_walk;
    struct trace_query query;

    server->next[wrong].bytes[wrong % DIGEST_SIZE] ^= 1;
    merkle_leaf_hash(&server->next[count + wrong], server->next[wrong].bytes, DIGEST_SIZE);
    commit_list_root(&accused.next_root, COMMIT_STATE, 0, server->next, count);
    assert_int_equal(trace_walk_open(&trace_walk, &dispute->own, &accused, NULL), STATUS_OK);
    while (trace_walk_next(&query, &known, &trace_walk)) {
        assert_int_equal(query.list, TRACE_QUERY_NEXT_STATE);
        assert_int_equal(trace_server_tree(&tree, server, &query, NULL), STATUS_OK);
        assert_int_equal(
            trace_walk_take(&trace_walk, bytes, trace_reply_write(bytes, &query, &tree), NULL),
            STATUS_OK);
        reload(&trace_walk);
    }
    assert_int_equal(trace_walk.end, TRACE_WALK_NEXT_STATE);
    assert_int_equal(trace_walk.item, wrong);
    root = trace_walk.item_root;
    path = path_of(&trace_walk, &next_state, trace_walk.items.count, trace_walk.item);
    assert_true(digest_equal(&root, &server->next[wrong]));
    assert_int_equal(
        commit_item_check(&accused.next_root, COMMIT_STATE, 0, root.bytes, DIGEST_SIZE, &path),
        VERDICT_VALID);
    merkle_leaf_hash(&known, root.bytes, DIGEST_SIZE);
    assert_int_equal(merkle_path_check(&path, &known, &trace_walk.items.root), VERDICT_VALID);
    check_items(&trace_walk, server, server->trace.item_count);
    trace_walk_close(&trace_walk);
    server->next[wrong] = server->trace.items[server->next_items[wrong]];
    merkle_leaf_hash(&server->next[count + wrong], server->next[wrong].bytes, DIGEST_SIZE);
}

static void test_next_state_that_no_trace_ends_in_is_found(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct opponents dispute;
        struct trace_server server;

        opponents_open_kind(&dispute, (enum model_kind)kind);
        assert_int_equal(trace_server_open(&server, opponents_rewind(&dispute), NULL), STATUS_OK);
        for (uint32_t wrong = 0; wrong < server.tape->state_count; wrong += 1 + wrong % 5) {
            trace_walk_next_lie(&dispute, &server, wrong);
        }
        trace_server_close(&server);
        opponents_close(&dispute);
    }
}

/* ---- what cannot be told -------------------------------------------------- */

/* A trace root that is the hash of nothing, or of another number of items, is told by no bytes. */
static void test_roots_without_such_a_list_have_no_reply(void **state)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    struct opponents dispute;
    struct trace_walk_case accused;
    struct digest tree;
    struct trace_walk trace_walk;
    struct trace_query query = {.kind = TRACE_QUERY_LIST};
    uint64_t seed = 5;
    size_t size;

    (void)state;
    opponents_open_kind(&dispute, MODEL_MLP);
    assert_int_equal(trace_server_answer(bytes, &size, &dispute.own, &query, NULL), STATUS_OK);
    memcpy(tree.bytes, bytes, DIGEST_SIZE);
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t header[COMMIT_LIST_HEADER_SIZE];

        accused = opponents_case(&dispute.own, &dispute.own);
        if (i == 0) {
            test_random_fill(&seed, accused.trace_root.bytes, DIGEST_SIZE);
        } else {
            commit_list_header(header, i == 3 ? COMMIT_STATE : COMMIT_TRACE, 0,
                               dispute.own.trace.item_count + (i == 1) - (i == 2), &tree);
            sha256(&accused.trace_root, header, sizeof(header));
        }
        assert_int_equal(trace_walk_open(&trace_walk, &dispute.own, &accused, NULL), STATUS_OK);
        assert_int_equal(trace_walk_take(&trace_walk, bytes, size, NULL), STATUS_BAD_FORMAT);
        assert_int_equal(trace_walk_take(&trace_walk, bytes, size + DIGEST_SIZE, NULL),
                         STATUS_BAD_FORMAT);
        assert_int_equal(trace_walk.reply_count, 0);
        trace_walk_close(&trace_walk);
    }
    opponents_close(&dispute);
}

/* One answer, changed in every way; the walk must stay where it is. */
static void refuse_changes(struct trace_walk *trace_walk, const uint8_t *bytes, size_t size,
                           uint64_t *seed, uint64_t flips)
{
    static uint8_t changed[TRACE_REPLY_BYTES_MAX + 1];
    struct trace_query before;
    struct trace_query after;
    struct digest known;

    assert_true(trace_walk_next(&before, &known, trace_walk));
    memset(changed, 0, sizeof(changed));
    memcpy(changed, bytes, size);
    for (uint64_t i = 0; i < flips; i++) {
        uint64_t bit = test_random_below(seed, size * 8);

        changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(trace_walk_take(trace_walk, changed, size, NULL), STATUS_BAD_FORMAT);
        changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut <= sizeof(changed); cut += cut < size + 40 ? 1 : 997) {
        if (cut != size && (cut % 37 == 0 || cut + 40 > size)) {
            assert_int_equal(trace_walk_take(trace_walk, changed, cut, NULL), STATUS_BAD_FORMAT);
        }
    }
    assert_true(trace_walk_next(&after, &known, trace_walk));
    assert_memory_equal(&before, &after, sizeof(before));
}

static void test_changed_answers_are_refused(void **state)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    uint64_t flips = test_share(FLIPS_FULL, FLIPS) / 8;
    uint64_t seed = 6;

    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        const struct tape *tape;
        struct opponents dispute;
        struct trace_walk_case accused;
        struct digest known;
        struct trace_server server;
        struct liar liar;
        struct trace_walk trace_walk;
        struct lie lie = {0, 0, LIE_ULP};
        struct trace_query query;

        if (wide == 1) {
            opponents_open_hidden(&dispute, OPPONENTS_WIDE);
        } else {
            opponents_open_kind(&dispute, MODEL_GPT2);
        }
        tape = dispute.tape;
        for (lie.item = tape->state_count;
             trace_query_tensor_count(&tape->tensors[trace_tensor_at(tape, lie.item)]) <
             (wide == 1 ? 4097 : 10);
             lie.item++) {
        }
        liar_open(&liar, opponents_rewind(&dispute), &lie);
        assert_int_equal(trace_server_open(&server, &liar.machine, NULL), STATUS_OK);
        accused = opponents_case(&server, &dispute.own);
        assert_int_equal(trace_walk_open(&trace_walk, &dispute.own, &accused, NULL), STATUS_OK);
        while (trace_walk_next(&query, &known, &trace_walk)) {
            size_t size;

            assert_int_equal(trace_server_answer(bytes, &size, &server, &query, NULL), STATUS_OK);
            refuse_changes(&trace_walk, bytes, size, &seed, flips);
            assert_int_equal(trace_walk_take(&trace_walk, bytes, size, NULL), STATUS_OK);
        }
        assert_int_equal(trace_walk_take(&trace_walk, bytes, 0, NULL), STATUS_BAD_FORMAT);
        trace_walk_close(&trace_walk);
        trace_server_close(&server);
        liar_close(&liar);
        opponents_close(&dispute);
    }
}

/* A root over a leaf that is not zero behind the tensor's end has no answer. */
static void test_leaves_with_bytes_behind_their_tensor_are_refused(void **state)
{
    static uint8_t bytes[2 * MERKLE_LEAF_SIZE];
    struct digest hashes[2];
    struct merkle_leaves leaves;
    struct trace_reply_target target = {.count = 2, .last_size = 100};
    struct trace_reply reply;

    (void)state;
    for (size_t at = 0; at < sizeof(bytes); at += 13) {
        memset(bytes, 0, sizeof(bytes));
        bytes[at] = 1;
        for (int i = 0; i < 2; i++) {
            merkle_leaf_hash(&hashes[i], bytes + (size_t)i * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
        }
        merkle_leaves_init_hashes(&leaves, hashes, 2);
        merkle_root(&target.known, &leaves);
        assert_int_equal(trace_reply_check(&reply, &target, bytes, sizeof(bytes)),
                         at < MERKLE_LEAF_SIZE + 100 ? VERDICT_VALID : VERDICT_INVALID);
    }
}

static void test_broken_saved_walks_are_refused(void **state)
{
    struct opponents dispute;
    struct trace_walk_case accused;
    struct trace_server server;
    struct buffer bytes;
    struct liar liar;
    struct trace_walk trace_walk;
    struct lie lie = {0, 0, LIE_SIGN};
    uint64_t seed = 7;

    (void)state;
    opponents_open_kind(&dispute, MODEL_MLP);
    lie.item = dispute.tape->state_count + 5;
    liar_open(&liar, opponents_rewind(&dispute), &lie);
    assert_int_equal(trace_server_open(&server, &liar.machine, NULL), STATUS_OK);
    accused = opponents_case(&server, &dispute.own);
    assert_int_equal(trace_walk_open(&trace_walk, &dispute.own, &accused, NULL), STATUS_OK);
    (void)walk(&trace_walk, &server, false);
    buffer_init(&bytes, TRACE_WALK_BYTES_MAX + 1);
    assert_int_equal(trace_walk_save(&bytes, &trace_walk, NULL), STATUS_OK);
    trace_walk_close(&trace_walk);
    for (uint32_t i = 0; i < 600; i++) {
        size_t at = i < 172 ? i : (size_t)test_random_below(&seed, bytes.size);
        uint8_t bit = (uint8_t)(1u << test_random_below(&seed, 8));

        bytes.data[at] ^= bit;
        /* The next root is not looked at where the traces differ, nor that of a micro-batch where
         * there is none, nor who is accused. */
        if (trace_walk_load(&trace_walk, &dispute.own, bytes.data, bytes.size, NULL) == STATUS_OK) {
            assert_in_range(at, 96, 160);
            assert_int_equal(trace_walk.item, lie.item);
        }
        trace_walk_close(&trace_walk);
        bytes.data[at] ^= bit;
        assert_int_equal(trace_walk_load(&trace_walk, &dispute.own, bytes.data,
                                         i < 300 ? i : bytes.size - 1 - i % 100, NULL),
                         STATUS_BAD_FORMAT);
        trace_walk_close(&trace_walk);
    }
    buffer_add_u8(&bytes, 0);
    assert_int_equal(trace_walk_load(&trace_walk, &dispute.own, bytes.data, bytes.size, NULL),
                     STATUS_BAD_FORMAT);
    trace_walk_close(&trace_walk);
    buffer_release(&bytes);
    trace_server_close(&server);
    liar_close(&liar);
    opponents_close(&dispute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lies_are_found_where_they_are),
        cmocka_unit_test(test_lies_in_large_tensors_take_several_answers),
        cmocka_unit_test(test_every_tensor_of_a_small_trace_can_be_lied_about),
        cmocka_unit_test(test_step_from_another_state_is_found_in_the_state),
        cmocka_unit_test(test_honest_accused_is_found_to_be_right),
        cmocka_unit_test(test_next_state_that_no_trace_ends_in_is_found),
        cmocka_unit_test(test_roots_without_such_a_list_have_no_reply),
        cmocka_unit_test(test_changed_answers_are_refused),
        cmocka_unit_test(test_leaves_with_bytes_behind_their_tensor_are_refused),
        cmocka_unit_test(test_broken_saved_walks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
