/*
 * Goal: an ask has one form as bytes and one as text; an answer shows what the tree has below the
 * node that was asked for; and the shapes say how many answers a walk takes.
 * Method: all nodes of all trees of 1 to 600 leaves against merkle_node(), answers for lists and
 * for tensors of ragged sizes; walks through trees of up to 2^32 leaves counted by hand; the tape
 * of GPT-2 124M, which is not run; canonical bytes and text, and everything near them refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/model.h"
#include "proofs/question.h"
#include "proofs/trace.h"
#include "tests/support/test.h"

#define TREES_MAX  600
#define TEXTS_FULL 2000000
#define TEXTS      100000

/* ---- how far answers reach ------------------------------------------------ */

static void test_spans_are_those_of_the_format(void **state)
{
    static const struct {
        uint64_t count;
        uint32_t level;
        uint32_t entries;
    } known[] = {
        {1, 0, 1},
        {2, 0, 2},
        {255, 0, 255},
        {256, 0, 256},
        {257, 1, 129},
        {512, 1, 256},
        {513, 2, 129},
        {4096, 4, 256},
        {4097, 5, 129},
        {UINT64_C(1) << 20, 12, 256},
        {(UINT64_C(1) << 20) + 1, 13, 129},
        {UINT64_C(1) << 40, 32, 256},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct ask_span span = ask_span(known[i].count);

        assert_int_equal(span.level, known[i].level);
        assert_int_equal(span.entries, known[i].entries);
    }
    for (uint64_t count = 1; count < 100000; count++) {
        struct ask_span span = ask_span(count);
        uint32_t height = merkle_height(count);

        assert_true(UINT64_C(1) << height >= count);
        assert_true(height == 0 || UINT64_C(1) << (height - 1) < count);
        assert_in_range(span.entries, 1, ASK_ENTRIES_MAX);
        assert_true(((uint64_t)span.entries << span.level) >= count);
        assert_true(((uint64_t)(span.entries - 1) << span.level) < count);
    }
}

static void test_gpt2_124m_is_walked_in_six_answers(void **state)
{
    struct model_options options;
    struct model model;
    uint64_t items;

    (void)state;
    /* Radford and others, 2019: 12 layers, 12 heads, width 768, 1,024 positions, 50,257 words. */
    model_options_default(&options, MODEL_GPT2);
    options.batch = 8;
    options.length = 1024;
    options.positions = 1024;
    options.vocabulary = 50257;
    options.layers = 12;
    options.heads = 12;
    options.width = 768;
    options.hidden = 0;
    options.data_count = 1000000;
    options.data_dtype = DTYPE_U16;
    assert_int_equal(model_build(&model, &options, NULL), STATUS_OK);
    items = ask_list_count(model.tape, ASK_TRACE);
    assert_in_range(items, 257, 1 << 13);
    assert_in_range(ask_tells_max(model.tape), 2, ASK_TRACE_TELLS);
    model_release(&model);
}

/* ---- all of them --------------------------------------------------------- */

#define VISITED_MAX 200000

struct visited {
    uint32_t count;
    char (*texts)[ASK_TEXT_MAX];
};

static void note_visit(struct visited *visited, const struct ask *ask)
{
    assert_true(visited->count < VISITED_MAX);
    memset(visited->texts[visited->count], 0, ASK_TEXT_MAX);
    ask_text(visited->texts[visited->count++], ask);
}

static enum status visit(void *context, const struct ask *ask, struct error *error)
{
    (void)error;
    note_visit(context, ask);
    return STATUS_OK;
}

/* The asks on the way to one leaf, as a claimant makes them: from each answer's frontier. */
static void walk_to(struct visited *visited, const struct ask *root, uint64_t count, uint64_t leaf)
{
    bool list = root->kind == ASK_LIST;
    struct ask_span span = ask_span(count);
    struct ask ask = *root;

    note_visit(visited, &ask);
    ask.kind = list ? ASK_LIST_NODE : ASK_TENSOR_NODE;
    for (uint64_t shown = count; list ? span.level > 0 : shown > ASK_LEAVES_MAX;) {
        ask.level = span.level;
        ask.index = leaf >> span.level;
        note_visit(visited, &ask);
        shown = ask_node_count(count, ask.level, ask.index);
        span = ask_span(shown);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static uint32_t without_doubles(struct visited *visited)
{
    uint32_t left = 0;

    qsort(visited->texts, visited->count, ASK_TEXT_MAX, by_text);
    for (uint32_t i = 0; i < visited->count; i++) {
        if (i == 0 || strcmp(visited->texts[i], visited->texts[left - 1]) != 0) {
            memmove(visited->texts[left++], visited->texts[i], ASK_TEXT_MAX);
        }
    }
    return left;
}

static void test_a_visit_tells_what_walks_come_to_and_nothing_else(void **state)
{
    struct visited visited = {.texts = malloc((size_t)VISITED_MAX * ASK_TEXT_MAX)};
    struct visited walked = {.texts = malloc((size_t)VISITED_MAX * ASK_TEXT_MAX)};
    const struct ask_visitor visitor = {visit, &visited};
    struct model_options options;
    struct model model;
    struct error error;

    (void)state;
    /* Tensors of one leaf, of 16 and 17, of hundreds, of more than 4,096; more than 256 items. */
    model_options_default(&options, MODEL_GPT2);
    options.layers = 2;
    options.heads = 2;
    options.width = 64;
    options.length = options.positions = 64;
    options.batch = 1;
    options.vocabulary = 17000;
    options.data_count = 5000;
    options.data_dtype = DTYPE_U16;
    assert_int_equal(model_build(&model, &options, NULL), STATUS_OK);
    assert_true(ask_list_count(model.tape, ASK_TRACE) > 256);
    assert_int_equal(ask_visit(model.tape, &visitor, &error), STATUS_OK);
    assert_int_equal(without_doubles(&visited), visited.count);
    for (int list = ASK_TRACE; list <= ASK_NEXT_STATE; list++) {
        const struct ask ask = {.kind = ASK_LIST, .list = (enum ask_list)list};
        uint64_t count = ask_list_count(model.tape, ask.list);

        for (uint64_t i = 0; i < count; i++) {
            walk_to(&walked, &ask, count, i);
        }
    }
    for (uint32_t item = 0; item < ask_list_count(model.tape, ASK_TRACE); item++) {
        const struct ask ask = {.kind = ASK_TENSOR, .item = item};
        uint64_t count = ask_tensor_count(&model.tape->tensors[trace_tensor_at(model.tape, item)]);

        for (uint64_t i = 0; i < count; i++) {
            walk_to(&walked, &ask, count, i);
            if (walked.count > VISITED_MAX / 2) {
                walked.count = without_doubles(&walked);
            }
        }
    }
    walked.count = without_doubles(&walked);
    assert_int_equal(walked.count, visited.count);
    assert_memory_equal(walked.texts, visited.texts, (size_t)walked.count * ASK_TEXT_MAX);
    print_message("%u answers\n", visited.count);
    free(visited.texts);
    free(walked.texts);
    model_release(&model);
}

/* ---- trees ---------------------------------------------------------------- */

/* The answer about one node, or the root (level UINT32_MAX), of a list of items. */
static void check_list_answer(const struct tell_tree *tree, uint32_t level, uint64_t index)
{
    static uint8_t bytes[TELL_BYTES_MAX];
    bool root = level == UINT32_MAX;
    uint64_t count = tree->hashes.count;
    struct ask ask = {
        .kind = root ? ASK_LIST : ASK_LIST_NODE, .level = root ? 0 : level, .index = index};
    struct tell_target target = {.is_list = true, .last_size = DIGEST_SIZE};
    struct digest tree_root;
    struct told told;
    size_t size;

    merkle_root(&tree_root, &tree->hashes);
    target.count = root ? count : ask_node_count(count, level, index);
    assert_true(target.count > 0);
    if (root) {
        static const struct digest none;

        commit_list_root(&target.known, COMMIT_TRACE, 0, tree->items, count);
        commit_list_header(target.header, COMMIT_TRACE, 0, count, &none);
        target.header_size = COMMIT_LIST_HEADER_SIZE;
    } else {
        merkle_node(&target.known, &tree->hashes, level, index);
    }
    size = tell_write(bytes, &ask, tree);
    assert_int_equal(size, tell_size(&target));
    assert_int_equal(tell_check(&told, &target, bytes, size), VERDICT_VALID);
    assert_true(!root || digest_equal(&told.tree_root, &tree_root));
    assert_true((told.items != NULL) == (told.level == 0));
    for (uint32_t i = 0; i < told.entries; i++) {
        uint64_t first = root ? 0 : index << level >> told.level;
        struct digest node;

        merkle_node(&node, &tree->hashes, told.level, first + i);
        assert_true(digest_equal(&node, &told.hashes[i]));
        if (told.items != NULL) {
            assert_memory_equal(told.items + (size_t)i * DIGEST_SIZE, &tree->items[first + i],
                                DIGEST_SIZE);
        }
    }
    bytes[test_random_below(&(uint64_t){count + index}, size)] ^= 1;
    assert_int_equal(tell_check(&told, &target, bytes, size), VERDICT_INVALID);
}

static void test_answers_about_lists_are_the_nodes_of_the_tree(void **state)
{
    struct digest items[TREES_MAX];
    struct digest hashes[TREES_MAX];
    uint64_t seed = 1;

    (void)state;
    test_random_fill(&seed, items, sizeof(items));
    for (uint32_t i = 0; i < TREES_MAX; i++) {
        merkle_leaf_hash(&hashes[i], items[i].bytes, DIGEST_SIZE);
    }
    for (uint64_t count = 1; count <= TREES_MAX; count++) {
        struct tell_tree tree = {.items = items};

        merkle_leaves_init_hashes(&tree.hashes, hashes, count);
        check_list_answer(&tree, UINT32_MAX, 0);
        for (uint32_t level = 0; level < merkle_height(count); level++) {
            uint64_t last = (count - 1) >> level;

            /* All nodes of a few sizes; of the others the ends, where trees are ragged. */
            for (uint64_t index = 0; index <= last; index++) {
                if (count % 61 == 0 || index == 0 || index >= last - (last > 0)) {
                    check_list_answer(&tree, level, index);
                }
            }
            assert_int_equal(ask_node_count(count, level, last + 1), 0);
        }
        assert_int_equal(ask_node_count(count, merkle_height(count), 0), 0);
    }
}

static void check_tensor_answer(const struct tell_tree *tree, const struct tensor *tensor,
                                uint32_t level, uint64_t index)
{
    static uint8_t bytes[TELL_BYTES_MAX];
    static const struct digest none;
    bool root = level == UINT32_MAX;
    uint64_t leaves = tree->hashes.count;
    struct ask ask = {
        .kind = root ? ASK_TENSOR : ASK_TENSOR_NODE, .level = root ? 0 : level, .index = index};
    struct tell_target target = {.last_size = MERKLE_LEAF_SIZE};
    uint64_t first = root ? 0 : index << level;
    struct told told;
    size_t size;

    target.count = root ? leaves : ask_node_count(leaves, level, index);
    if (first + target.count == leaves) {
        target.last_size = (uint32_t)(tree->byte_count - (leaves - 1) * MERKLE_LEAF_SIZE);
    }
    if (root) {
        commit_tensor_root(&target.known, COMMIT_TENSOR, tensor, tree->bytes, 1);
        target.header_size =
            (uint32_t)commit_tensor_header(target.header, COMMIT_TENSOR, tensor, &none);
    } else {
        merkle_node(&target.known, &tree->hashes, level, index);
    }
    size = tell_write(bytes, &ask, tree);
    assert_int_equal(size, tell_size(&target));
    assert_int_equal(tell_check(&told, &target, bytes, size), VERDICT_VALID);
    assert_true((told.leaves != NULL) == (target.count <= ASK_LEAVES_MAX));
    for (uint32_t i = 0; i < told.entries; i++) {
        struct digest node;

        merkle_node(&node, &tree->hashes, told.level, (first >> told.level) + i);
        assert_true(digest_equal(&node, &told.hashes[i]));
    }
    bytes[test_random_below(&(uint64_t){leaves + index}, size)] ^= 1;
    assert_int_equal(tell_check(&told, &target, bytes, size), VERDICT_INVALID);
}

static void test_answers_about_tensors_are_nodes_or_leaves(void **state)
{
    static uint8_t bytes[TREES_MAX * MERKLE_LEAF_SIZE];
    static struct digest hashes[TREES_MAX];
    uint64_t seed = 2;

    (void)state;
    test_random_fill(&seed, bytes, sizeof(bytes));
    for (uint64_t count = 1; count <= TREES_MAX; count += count < 40 ? 1 : 1 + count % 13) {
        uint64_t size = count * MERKLE_LEAF_SIZE - test_random_below(&seed, MERKLE_LEAF_SIZE);
        struct tensor tensor = {.name = "t", .dtype = DTYPE_U8, .rank = 1, .count = size};
        struct tell_tree tree = {.bytes = bytes, .byte_count = size};
        struct merkle_leaves leaves;

        tensor.dims[0] = size;
        merkle_leaves_init_bytes(&leaves, bytes, size);
        merkle_leaf_hashes(hashes, &leaves);
        merkle_leaves_init_hashes(&tree.hashes, hashes, count);
        assert_int_equal(ask_tensor_count(&tensor), count);
        check_tensor_answer(&tree, &tensor, UINT32_MAX, 0);
        for (uint32_t level = 0; level < merkle_height(count); level++) {
            uint64_t last = (count - 1) >> level;

            check_tensor_answer(&tree, &tensor, level, 0);
            check_tensor_answer(&tree, &tensor, level, last);
            check_tensor_answer(&tree, &tensor, level, test_random_below(&seed, last + 1));
        }
    }
}

/* What make_proofs.py wrote from the text of docs/FORMATS.md. */
static void test_answers_by_a_second_writer_are_accepted(void **state)
{
    static const char *const names[] = {"told-list1",  "told-list5", "told-list300",
                                        "told-tensor", "told-node",  "told-hashes"};
    static uint8_t bytes[TELL_BYTES_MAX + 1024];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint8_t written[ASKED_SIZE_MAX];
        char path[128];
        struct asked asked;
        struct told told;
        size_t asked_size;
        size_t size;
        FILE *file;

        (void)snprintf(path, sizeof(path), "fixtures/corpus/ask/%s", names[i]);
        file = fopen(path, "rb");
        assert_non_null(file);
        size = fread(bytes, 1, sizeof(bytes), file);
        assert_int_equal(fclose(file), 0);
        assert_in_range(size, 3, sizeof(bytes) - 1);
        asked_size = (size_t)bytes[1] << 8 | bytes[2];
        assert_in_range(asked_size, 1, size - 3);
        assert_int_equal(asked_read(&asked, bytes + 3, asked_size), STATUS_OK);
        assert_int_equal(asked_write(written, &asked), asked_size);
        assert_memory_equal(written, bytes + 3, asked_size);
        assert_int_equal(
            tell_check(&told, &asked.target, bytes + 3 + asked_size, size - 3 - asked_size),
            VERDICT_VALID);
    }
}

/* ---- bytes and text ------------------------------------------------------- */

static struct ask random_ask(uint64_t *seed)
{
    struct ask ask = {.kind = (enum ask_kind)(1 + test_random_below(seed, ASK_PARTS))};
    bool node = ask.kind == ASK_LIST_NODE || ask.kind == ASK_TENSOR_NODE;

    if (ask.kind == ASK_LIST || ask.kind == ASK_LIST_NODE) {
        ask.list = (enum ask_list)test_random_below(seed, 2);
    } else if (ask.kind != ASK_DIVERGED) {
        ask.item = (uint32_t)(test_random(seed) >> (32 + test_random_below(seed, 32)));
    }
    if (node) {
        ask.level = (uint32_t)test_random_below(seed, MERKLE_DEPTH_MAX);
        ask.index = test_random_below(seed, (MERKLE_LEAVES_MAX >> ask.level) + 1);
    } else if (ask.kind == ASK_PARTS) {
        ask.index = test_random_below(seed, MERKLE_LEAVES_MAX + 1);
    }
    return ask;
}

static void test_asks_are_read_as_they_were_written(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        struct ask ask = random_ask(&seed);
        uint8_t bytes[ASK_SIZE + 1] = {0};
        char text[ASK_TEXT_MAX];
        struct ask read;

        ask_write(bytes, &ask);
        assert_int_equal(ask_read(&read, bytes, ASK_SIZE), STATUS_OK);
        assert_memory_equal(&read, &ask, sizeof(ask));
        assert_int_equal(ask_read(&read, bytes, ASK_SIZE - 1), STATUS_BAD_FORMAT);
        assert_int_equal(ask_read(&read, bytes, ASK_SIZE + 1), STATUS_BAD_FORMAT);
        ask_text(text, &ask);
        assert_int_equal(ask_parse(&read, text), STATUS_OK);
        assert_memory_equal(&read, &ask, sizeof(ask));
    }
}

static void test_only_canonical_bytes_are_read(void **state)
{
    uint64_t seed = 4;
    uint32_t read_count = 0;

    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        struct ask ask = random_ask(&seed);
        uint8_t bytes[ASK_SIZE];
        uint8_t again[ASK_SIZE];
        struct ask read;

        ask_write(bytes, &ask);
        bytes[test_random_below(&seed, ASK_SIZE)] ^= (uint8_t)(1 << test_random_below(&seed, 8));
        if (ask_read(&read, bytes, ASK_SIZE) == STATUS_OK) {
            ask_write(again, &read);
            assert_memory_equal(again, bytes, ASK_SIZE);
            read_count++;
        }
    }
    assert_in_range(read_count, 1, 199999);
}

static void test_only_canonical_texts_are_read(void **state)
{
    static const struct {
        const char *text;
        struct ask ask;
    } known[] = {
        {"list/trace", {.kind = ASK_LIST}},
        {"list/next", {.kind = ASK_LIST, .list = ASK_NEXT_STATE}},
        {"node/trace/5/31", {.kind = ASK_LIST_NODE, .level = 5, .index = 31}},
        {"node/next/0/0", {.kind = ASK_LIST_NODE, .list = ASK_NEXT_STATE}},
        {"tensor/4294967295", {.kind = ASK_TENSOR, .item = UINT32_MAX}},
        {"tensor-node/7/12/255", {.kind = ASK_TENSOR_NODE, .item = 7, .level = 12, .index = 255}},
        {"diverged", {.kind = ASK_DIVERGED}},
        {"parts/7/0", {.kind = ASK_PARTS, .item = 7}},
        {"parts/0/1099511627776", {.kind = ASK_PARTS, .index = UINT64_C(1) << 40}},
    };
    static const char *const wrong[] = {
        "",
        "list",
        "list/",
        "list/trace/",
        "list/trace/0/0",
        "list/other",
        "List/trace",
        " list/trace",
        "list/trace ",
        "node/trace",
        "node/trace/5",
        "node/trace/5/",
        "node/trace/5/31/",
        "node/trace/05/31",
        "node/trace/+5/31",
        "node/trace/40/0",
        "node/trace/-1/0",
        "node/trace/5/34359738369",
        "node/trace/5/18446744073709551616",
        "tensor",
        "tensor/",
        "tensor/4294967296",
        "tensor/1/2",
        "tensor/0x1",
        "tensor-node/1/2",
        "tensor-node/1/2/3/4",
        "diverged/",
        "parts",
        "parts/7",
        "parts/7/",
        "parts/7/0/",
        "parts/7/00",
        "parts/7/1099511627777",
        "divergedd",
        "../../etc/passwd",
    };
    struct ask ask;

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char text[ASK_TEXT_MAX];

        assert_int_equal(ask_parse(&ask, known[i].text), STATUS_OK);
        assert_memory_equal(&ask, &known[i].ask, sizeof(ask));
        ask_text(text, &ask);
        assert_string_equal(text, known[i].text);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ask_parse(&ask, wrong[i]), STATUS_BAD_FORMAT);
    }
}

static void test_changed_texts_are_refused_or_canonical(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (uint64_t i = 0; i < test_share(TEXTS_FULL, TEXTS); i++) {
        static const char letters[] = "0123456789/-+ tracenxlisod";
        struct ask ask = random_ask(&seed);
        char text[ASK_TEXT_MAX];
        char again[ASK_TEXT_MAX];
        size_t at;

        ask_text(text, &ask);
        at = test_random_below(&seed, strlen(text));
        if (i % 3 == 0) {
            memmove(text + at, text + at + 1, strlen(text + at));
        } else {
            text[at] = letters[test_random_below(&seed, sizeof(letters) - 1)];
        }
        if (ask_parse(&ask, text) == STATUS_OK) {
            ask_text(again, &ask);
            assert_string_equal(again, text);
        }
    }
}

static void test_what_a_step_has_not_is_not_found(void **state)
{
    struct model_options options;
    struct model model;
    struct tell_target target;
    struct digest known = {{0}};
    uint64_t items;

    (void)state;
    model_options_default(&options, MODEL_MLP);
    options.data_count = 1000;
    options.data_dtype = DTYPE_U8;
    assert_int_equal(model_build(&model, &options, NULL), STATUS_OK);
    items = ask_list_count(model.tape, ASK_TRACE);

    const struct ask missing[] = {
        {.kind = ASK_TENSOR, .item = (uint32_t)items},
        {.kind = ASK_TENSOR_NODE, .item = (uint32_t)items, .level = 1},
        {.kind = ASK_TENSOR_NODE, .item = 0, .level = 39},
        {.kind = ASK_LIST_NODE, .level = 0, .index = items},
        {.kind = ASK_LIST_NODE, .level = merkle_height(items)},
        {.kind = ASK_LIST_NODE, .list = ASK_NEXT_STATE, .level = 0, .index = items - 1},
    };

    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        assert_int_equal(tell_target(&target, &missing[i], model.tape, &known, NULL),
                         STATUS_NOT_FOUND);
    }
    assert_int_equal(
        tell_target(&target, &(struct ask){.kind = ASK_DIVERGED}, model.tape, &known, NULL),
        STATUS_USAGE);
    model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_are_those_of_the_format),
        cmocka_unit_test(test_gpt2_124m_is_walked_in_six_answers),
        cmocka_unit_test(test_a_visit_tells_what_walks_come_to_and_nothing_else),
        cmocka_unit_test(test_answers_about_lists_are_the_nodes_of_the_tree),
        cmocka_unit_test(test_answers_about_tensors_are_nodes_or_leaves),
        cmocka_unit_test(test_answers_by_a_second_writer_are_accepted),
        cmocka_unit_test(test_asks_are_read_as_they_were_written),
        cmocka_unit_test(test_only_canonical_bytes_are_read),
        cmocka_unit_test(test_only_canonical_texts_are_read),
        cmocka_unit_test(test_changed_texts_are_refused_or_canonical),
        cmocka_unit_test(test_what_a_step_has_not_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
