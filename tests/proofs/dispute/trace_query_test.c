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
#include "proofs/commit/trace.h"
#include "proofs/dispute/ledger_query.h"
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
        struct trace_query_span span = trace_query_span(known[i].count);

        assert_int_equal(span.level, known[i].level);
        assert_int_equal(span.entries, known[i].entries);
    }
    for (uint64_t count = 1; count < 100000; count++) {
        struct trace_query_span span = trace_query_span(count);
        uint32_t height = merkle_height(count);

        assert_true(UINT64_C(1) << height >= count);
        assert_true(height == 0 || UINT64_C(1) << (height - 1) < count);
        assert_in_range(span.entries, 1, TRACE_QUERY_ENTRIES_MAX);
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
    items = trace_query_list_count(model.tape, TRACE_QUERY_TRACE);
    assert_in_range(items, 257, 1 << 13);
    assert_in_range(trace_query_replies_max(model.tape), 2, TRACE_QUERY_TRACE_REPLIES);
    model_release(&model);
}

/* ---- all of them --------------------------------------------------------- */

#define VISITED_MAX 200000

struct visited {
    uint32_t count;
    char (*texts)[TRACE_QUERY_TEXT_MAX];
};

static void note_visit(struct visited *visited, const struct trace_query *query)
{
    assert_true(visited->count < VISITED_MAX);
    memset(visited->texts[visited->count], 0, TRACE_QUERY_TEXT_MAX);
    trace_query_text(visited->texts[visited->count++], query);
}

static enum status visit(void *context, const struct trace_query *query, struct error *error)
{
    (void)error;
    note_visit(context, query);
    return STATUS_OK;
}

/* The asks on the way to one leaf, as a claimant makes them: from each answer's frontier. */
static void walk_to(struct visited *visited, const struct trace_query *root, uint64_t count,
                    uint64_t leaf)
{
    bool list = root->kind == TRACE_QUERY_LIST;
    struct trace_query_span span = trace_query_span(count);
    struct trace_query query = *root;

    note_visit(visited, &query);
    query.kind = list ? TRACE_QUERY_LIST_NODE : TRACE_QUERY_TENSOR_NODE;
    for (uint64_t shown = count; list ? span.level > 0 : shown > TRACE_QUERY_LEAVES_MAX;) {
        query.level = span.level;
        query.index = leaf >> span.level;
        note_visit(visited, &query);
        shown = trace_query_node_count(count, query.level, query.index);
        span = trace_query_span(shown);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static uint32_t without_doubles(struct visited *visited)
{
    uint32_t left = 0;

    qsort(visited->texts, visited->count, TRACE_QUERY_TEXT_MAX, by_text);
    for (uint32_t i = 0; i < visited->count; i++) {
        if (i == 0 || strcmp(visited->texts[i], visited->texts[left - 1]) != 0) {
            memmove(visited->texts[left++], visited->texts[i], TRACE_QUERY_TEXT_MAX);
        }
    }
    return left;
}

static void test_a_visit_shows_what_walks_come_to_and_nothing_else(void **state)
{
    struct visited visited = {.texts = malloc((size_t)VISITED_MAX * TRACE_QUERY_TEXT_MAX)};
    struct visited walked = {.texts = malloc((size_t)VISITED_MAX * TRACE_QUERY_TEXT_MAX)};
    const struct trace_query_visitor visitor = {visit, &visited};
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
    assert_true(trace_query_list_count(model.tape, TRACE_QUERY_TRACE) > 256);
    assert_int_equal(trace_query_visit(model.tape, &visitor, &error), STATUS_OK);
    assert_int_equal(without_doubles(&visited), visited.count);
    for (int list = TRACE_QUERY_TRACE; list <= TRACE_QUERY_NEXT_STATE; list++) {
        const struct trace_query query = {.kind = TRACE_QUERY_LIST,
                                          .list = (enum trace_query_list)list};
        uint64_t count = trace_query_list_count(model.tape, query.list);

        for (uint64_t i = 0; i < count; i++) {
            walk_to(&walked, &query, count, i);
        }
    }
    for (uint32_t item = 0; item < trace_query_list_count(model.tape, TRACE_QUERY_TRACE); item++) {
        const struct trace_query query = {.kind = TRACE_QUERY_TENSOR, .item = item};
        uint64_t count =
            trace_query_tensor_count(&model.tape->tensors[trace_tensor_at(model.tape, item)]);

        for (uint64_t i = 0; i < count; i++) {
            walk_to(&walked, &query, count, i);
            if (walked.count > VISITED_MAX / 2) {
                walked.count = without_doubles(&walked);
            }
        }
    }
    walked.count = without_doubles(&walked);
    assert_int_equal(walked.count, visited.count);
    assert_memory_equal(walked.texts, visited.texts, (size_t)walked.count * TRACE_QUERY_TEXT_MAX);
    print_message("%u answers\n", visited.count);
    free(visited.texts);
    free(walked.texts);
    model_release(&model);
}

/* ---- trees ---------------------------------------------------------------- */

/* The answer about one node, or the root (level UINT32_MAX), of a list of items. */
static void check_list_answer(const struct trace_reply_tree *tree, uint32_t level, uint64_t index)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    bool root = level == UINT32_MAX;
    uint64_t count = tree->hashes.count;
    struct trace_query query = {.kind = root ? TRACE_QUERY_LIST : TRACE_QUERY_LIST_NODE,
                                .level = root ? 0 : level,
                                .index = index};
    struct trace_reply_target target = {.is_list = true, .last_size = DIGEST_SIZE};
    struct digest tree_root;
    struct trace_reply reply;
    size_t size;

    merkle_root(&tree_root, &tree->hashes);
    target.count = root ? count : trace_query_node_count(count, level, index);
    assert_true(target.count > 0);
    if (root) {
        static const struct digest none;

        commit_list_root(&target.known, COMMIT_TRACE, 0, tree->items, count);
        commit_list_header(target.header, COMMIT_TRACE, 0, count, &none);
        target.header_size = COMMIT_LIST_HEADER_SIZE;
    } else {
        merkle_node(&target.known, &tree->hashes, level, index);
    }
    size = trace_reply_write(bytes, &query, tree);
    assert_int_equal(size, trace_reply_size(&target));
    assert_int_equal(trace_reply_check(&reply, &target, bytes, size), VERDICT_VALID);
    assert_true(!root || digest_equal(&reply.tree_root, &tree_root));
    assert_true((reply.items != NULL) == (reply.level == 0));
    for (uint32_t i = 0; i < reply.entries; i++) {
        uint64_t first = root ? 0 : index << level >> reply.level;
        struct digest node;

        merkle_node(&node, &tree->hashes, reply.level, first + i);
        assert_true(digest_equal(&node, &reply.hashes[i]));
        if (reply.items != NULL) {
            assert_memory_equal(reply.items + (size_t)i * DIGEST_SIZE, &tree->items[first + i],
                                DIGEST_SIZE);
        }
    }
    bytes[test_random_below(&(uint64_t){count + index}, size)] ^= 1;
    assert_int_equal(trace_reply_check(&reply, &target, bytes, size), VERDICT_INVALID);
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
        struct trace_reply_tree tree = {.items = items};

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
            assert_int_equal(trace_query_node_count(count, level, last + 1), 0);
        }
        assert_int_equal(trace_query_node_count(count, merkle_height(count), 0), 0);
    }
}

static void check_tensor_answer(const struct trace_reply_tree *tree, const struct tensor *tensor,
                                uint32_t level, uint64_t index)
{
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX];
    static const struct digest none;
    bool root = level == UINT32_MAX;
    uint64_t leaves = tree->hashes.count;
    struct trace_query query = {.kind = root ? TRACE_QUERY_TENSOR : TRACE_QUERY_TENSOR_NODE,
                                .level = root ? 0 : level,
                                .index = index};
    struct trace_reply_target target = {.last_size = MERKLE_LEAF_SIZE};
    uint64_t first = root ? 0 : index << level;
    struct trace_reply reply;
    size_t size;

    target.count = root ? leaves : trace_query_node_count(leaves, level, index);
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
    size = trace_reply_write(bytes, &query, tree);
    assert_int_equal(size, trace_reply_size(&target));
    assert_int_equal(trace_reply_check(&reply, &target, bytes, size), VERDICT_VALID);
    assert_true((reply.leaves != NULL) == (target.count <= TRACE_QUERY_LEAVES_MAX));
    for (uint32_t i = 0; i < reply.entries; i++) {
        struct digest node;

        merkle_node(&node, &tree->hashes, reply.level, (first >> reply.level) + i);
        assert_true(digest_equal(&node, &reply.hashes[i]));
    }
    bytes[test_random_below(&(uint64_t){leaves + index}, size)] ^= 1;
    assert_int_equal(trace_reply_check(&reply, &target, bytes, size), VERDICT_INVALID);
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
        struct trace_reply_tree tree = {.bytes = bytes, .byte_count = size};
        struct merkle_leaves leaves;

        tensor.dims[0] = size;
        merkle_leaves_init_bytes(&leaves, bytes, size);
        merkle_leaf_hashes(hashes, &leaves);
        merkle_leaves_init_hashes(&tree.hashes, hashes, count);
        assert_int_equal(trace_query_tensor_count(&tensor), count);
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
    static const char *const names[] = {"reply-list1",  "reply-list5", "reply-list300",
                                        "reply-tensor", "reply-node",  "reply-hashes"};
    static uint8_t bytes[TRACE_REPLY_BYTES_MAX + 1024];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint8_t written[LEDGER_QUERIED_SIZE_MAX];
        char path[128];
        struct ledger_queried queried;
        struct trace_reply reply;
        size_t queried_size;
        size_t size;
        FILE *file;

        (void)snprintf(path, sizeof(path), "fixtures/corpus/trace_query/%s", names[i]);
        file = fopen(path, "rb");
        assert_non_null(file);
        size = fread(bytes, 1, sizeof(bytes), file);
        assert_int_equal(fclose(file), 0);
        assert_in_range(size, 3, sizeof(bytes) - 1);
        queried_size = (size_t)bytes[1] << 8 | bytes[2];
        assert_in_range(queried_size, 1, size - 3);
        assert_int_equal(ledger_queried_read(&queried, bytes + 3, queried_size), STATUS_OK);
        assert_int_equal(ledger_queried_write(written, &queried), queried_size);
        assert_memory_equal(written, bytes + 3, queried_size);
        assert_int_equal(trace_reply_check(&reply, &queried.target, bytes + 3 + queried_size,
                                           size - 3 - queried_size),
                         VERDICT_VALID);
    }
}

/* ---- bytes and text ------------------------------------------------------- */

static struct trace_query random_query(uint64_t *seed)
{
    struct trace_query query = {
        .kind = (enum trace_query_kind)(1 + test_random_below(seed, TRACE_QUERY_PARTS))};
    bool node = query.kind == TRACE_QUERY_LIST_NODE || query.kind == TRACE_QUERY_TENSOR_NODE;

    if (query.kind == TRACE_QUERY_LIST || query.kind == TRACE_QUERY_LIST_NODE) {
        query.list = (enum trace_query_list)test_random_below(seed, 2);
    } else if (query.kind != TRACE_QUERY_DIVERGED) {
        query.item = (uint32_t)(test_random(seed) >> (32 + test_random_below(seed, 32)));
    }
    if (node) {
        query.level = (uint32_t)test_random_below(seed, MERKLE_DEPTH_MAX);
        query.index = test_random_below(seed, (MERKLE_LEAVES_MAX >> query.level) + 1);
    } else if (query.kind == TRACE_QUERY_PARTS) {
        query.level = (uint32_t)test_random_below(seed, 2);
        query.index = test_random_below(seed, MERKLE_LEAVES_MAX + 1);
    }
    return query;
}

static void test_queries_are_read_as_they_were_written(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        struct trace_query query = random_query(&seed);
        uint8_t bytes[TRACE_QUERY_SIZE + 1] = {0};
        char text[TRACE_QUERY_TEXT_MAX];
        struct trace_query read;

        trace_query_write(bytes, &query);
        assert_int_equal(trace_query_read(&read, bytes, TRACE_QUERY_SIZE), STATUS_OK);
        assert_memory_equal(&read, &query, sizeof(query));
        assert_int_equal(trace_query_read(&read, bytes, TRACE_QUERY_SIZE - 1), STATUS_BAD_FORMAT);
        assert_int_equal(trace_query_read(&read, bytes, TRACE_QUERY_SIZE + 1), STATUS_BAD_FORMAT);
        trace_query_text(text, &query);
        assert_int_equal(trace_query_parse(&read, text), STATUS_OK);
        assert_memory_equal(&read, &query, sizeof(query));
    }
}

static void test_only_canonical_bytes_are_read(void **state)
{
    uint64_t seed = 4;
    uint32_t read_count = 0;

    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        struct trace_query query = random_query(&seed);
        uint8_t bytes[TRACE_QUERY_SIZE];
        uint8_t again[TRACE_QUERY_SIZE];
        struct trace_query read;

        trace_query_write(bytes, &query);
        bytes[test_random_below(&seed, TRACE_QUERY_SIZE)] ^=
            (uint8_t)(1 << test_random_below(&seed, 8));
        if (trace_query_read(&read, bytes, TRACE_QUERY_SIZE) == STATUS_OK) {
            trace_query_write(again, &read);
            assert_memory_equal(again, bytes, TRACE_QUERY_SIZE);
            read_count++;
        }
    }
    assert_in_range(read_count, 1, 199999);
}

static void test_texts_are_read_as_they_are_written(void **state)
{
    static const struct {
        const char *text;
        struct trace_query query;
    } known[] = {
        {"list/trace", {.kind = TRACE_QUERY_LIST}},
        {"list/next", {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_NEXT_STATE}},
        {"node/trace/5/31", {.kind = TRACE_QUERY_LIST_NODE, .level = 5, .index = 31}},
        {"node/next/0/0", {.kind = TRACE_QUERY_LIST_NODE, .list = TRACE_QUERY_NEXT_STATE}},
        {"list/batch/7", {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_BATCH, .item = 7}},
        {"node/batch/4294967295/39/1",
         {.kind = TRACE_QUERY_LIST_NODE,
          .list = TRACE_QUERY_BATCH,
          .item = UINT32_MAX,
          .level = 39,
          .index = 1}},
        {"tensor/4294967295", {.kind = TRACE_QUERY_TENSOR, .item = UINT32_MAX}},
        {"tensor-node/7/12/255",
         {.kind = TRACE_QUERY_TENSOR_NODE, .item = 7, .level = 12, .index = 255}},
        {"diverged", {.kind = TRACE_QUERY_DIVERGED}},
        {"parts/7/0", {.kind = TRACE_QUERY_PARTS, .item = 7}},
        {"parts/7/0/part", {.kind = TRACE_QUERY_PARTS, .item = 7, .level = 1}},
        {"parts/0/1099511627776", {.kind = TRACE_QUERY_PARTS, .index = UINT64_C(1) << 40}},
    };
    struct trace_query query;

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char text[TRACE_QUERY_TEXT_MAX];

        assert_int_equal(trace_query_parse(&query, known[i].text), STATUS_OK);
        assert_memory_equal(&query, &known[i].query, sizeof(query));
        trace_query_text(text, &query);
        assert_string_equal(text, known[i].text);
    }
}

static void test_only_canonical_texts_are_read(void **state)
{
    static const char *const wrong[] = {
        "",
        "list",
        "list/",
        "list/trace/",
        "list/batch",
        "list/batch/",
        "list/batch/07",
        "list/trace/7",
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
        "parts/7/0part",
        "parts/7/0/part/",
        "parts/7/0/parts",
        "parts/part",
        "divergedd",
        "../../etc/passwd",
    };
    struct trace_query query;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(trace_query_parse(&query, wrong[i]), STATUS_BAD_FORMAT);
    }
}

static void test_changed_texts_are_refused_or_canonical(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (uint64_t i = 0; i < test_share(TEXTS_FULL, TEXTS); i++) {
        static const char letters[] = "0123456789/-+ tracenxlisod";
        struct trace_query query = random_query(&seed);
        char text[TRACE_QUERY_TEXT_MAX];
        char again[TRACE_QUERY_TEXT_MAX];
        size_t at;

        trace_query_text(text, &query);
        at = test_random_below(&seed, strlen(text));
        if (i % 3 == 0) {
            memmove(text + at, text + at + 1, strlen(text + at));
        } else {
            text[at] = letters[test_random_below(&seed, sizeof(letters) - 1)];
        }
        if (trace_query_parse(&query, text) == STATUS_OK) {
            trace_query_text(again, &query);
            assert_string_equal(again, text);
        }
    }
}

static void test_what_a_step_has_not_is_not_found(void **state)
{
    struct model_options options;
    struct model model;
    struct trace_reply_target target;
    struct digest known = {{0}};
    uint64_t items;

    (void)state;
    model_options_default(&options, MODEL_MLP);
    options.data_count = 1000;
    options.data_dtype = DTYPE_U8;
    assert_int_equal(model_build(&model, &options, NULL), STATUS_OK);
    items = trace_query_list_count(model.tape, TRACE_QUERY_TRACE);

    const struct trace_query missing[] = {
        {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_BATCH}, /* a step of one micro-batch */
        {.kind = TRACE_QUERY_TENSOR, .item = (uint32_t)items},
        {.kind = TRACE_QUERY_TENSOR_NODE, .item = (uint32_t)items, .level = 1},
        {.kind = TRACE_QUERY_TENSOR_NODE, .item = 0, .level = 39},
        {.kind = TRACE_QUERY_LIST_NODE, .level = 0, .index = items},
        {.kind = TRACE_QUERY_LIST_NODE, .level = merkle_height(items)},
        {.kind = TRACE_QUERY_LIST_NODE,
         .list = TRACE_QUERY_NEXT_STATE,
         .level = 0,
         .index = items - 1},
    };

    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        assert_int_equal(trace_reply_target(&target, &missing[i], model.tape, &known, NULL),
                         STATUS_NOT_FOUND);
    }
    assert_int_equal(trace_reply_target(&target,
                                        &(struct trace_query){.kind = TRACE_QUERY_DIVERGED},
                                        model.tape, &known, NULL),
                     STATUS_USAGE);
    model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_are_those_of_the_format),
        cmocka_unit_test(test_gpt2_124m_is_walked_in_six_answers),
        cmocka_unit_test(test_a_visit_shows_what_walks_come_to_and_nothing_else),
        cmocka_unit_test(test_answers_about_lists_are_the_nodes_of_the_tree),
        cmocka_unit_test(test_answers_about_tensors_are_nodes_or_leaves),
        cmocka_unit_test(test_answers_by_a_second_writer_are_accepted),
        cmocka_unit_test(test_queries_are_read_as_they_were_written),
        cmocka_unit_test(test_only_canonical_bytes_are_read),
        cmocka_unit_test(test_texts_are_read_as_they_are_written),
        cmocka_unit_test(test_only_canonical_texts_are_read),
        cmocka_unit_test(test_changed_texts_are_refused_or_canonical),
        cmocka_unit_test(test_what_a_step_has_not_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
