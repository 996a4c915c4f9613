/* trace_query.c - see trace_query.h. */
#include "proofs/dispute/trace_query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/endian.h"
#include "base/reader.h"
#include "base/text.h"
#include "engine/rules/rule.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/trace.h"

/* ---- how far a reply reaches --------------------------------------------- */

struct trace_query_span trace_query_span(uint64_t count)
{
    uint32_t height = merkle_height(count);
    uint32_t level = height > TRACE_QUERY_LEVELS ? height - TRACE_QUERY_LEVELS : 0;

    return (struct trace_query_span){
        .count = count, .level = level, .entries = (uint32_t)((count - 1) >> level) + 1};
}

uint64_t trace_query_node_count(uint64_t count, uint32_t level, uint64_t index)
{
    uint64_t first;

    if (count == 0 || level >= merkle_height(count) || index > (count - 1) >> level) {
        return 0;
    }
    first = index << level;
    return count - first < UINT64_C(1) << level ? count - first : UINT64_C(1) << level;
}

uint64_t trace_query_list_count(const struct tape *tape, enum trace_query_list list)
{
    struct repeat_layout layout;

    repeat_layout_of(&layout, tape);
    return list == TRACE_QUERY_TRACE   ? trace_list_count(tape)
           : list == TRACE_QUERY_BATCH ? layout.inner
                                       : tape->state_count;
}

uint64_t trace_query_tensor_count(const struct tensor *tensor)
{
    return (commit_tensor_size(tensor) + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
}

static uint32_t list_replies(uint64_t count)
{
    uint32_t replies = 1;

    for (struct trace_query_span span = trace_query_span(count); span.level > 0; replies++) {
        span = trace_query_span(UINT64_C(1) << span.level);
    }
    return replies;
}

static uint32_t tensor_replies(uint64_t count)
{
    uint32_t replies = 1;

    for (; count > TRACE_QUERY_LEAVES_MAX; replies++) {
        count = UINT64_C(1) << trace_query_span(count).level;
    }
    return replies;
}

uint32_t trace_query_replies_max(const struct tape *tape)
{
    uint32_t replies = 1;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (role_is_made(tape->tensors[id].role)) {
            uint32_t needed = tensor_replies(trace_query_tensor_count(&tape->tensors[id]));

            replies = needed > replies ? needed : replies;
        }
    }
    if (trace_query_list_count(tape, TRACE_QUERY_BATCH) > 0) {
        replies += list_replies(trace_query_list_count(tape, TRACE_QUERY_BATCH));
    }
    return replies + list_replies(trace_list_count(tape));
}

static enum status check_node(const struct trace_query *query, uint64_t count, struct error *error)
{
    if (trace_query_node_count(count, query->level, query->index) == 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "a tree of %" PRIu64 " leaves has no node %" PRIu64
                         " on level %u below its root",
                         count, query->index, query->level);
    }
    return STATUS_OK;
}

static enum status check_list(const struct trace_query *query, const struct tape *tape,
                              struct error *error)
{
    uint64_t count = trace_query_list_count(tape, query->list);

    if (query->list == TRACE_QUERY_BATCH &&
        (count == 0 || query->item >= tape->brief->repeat.times)) {
        return error_set(error, STATUS_NOT_FOUND, "a step has no list of micro-batch %u",
                         query->item);
    }
    return query->kind == TRACE_QUERY_LIST ? STATUS_OK : check_node(query, count, error);
}

static enum status check_parts(const struct trace_query *query, const struct tape *tape,
                               struct error *error)
{
    struct rule_axis axis = {.parts = 0};
    struct op_turn maker;
    uint32_t output;

    if (query->item >= tape->state_count &&
        query->index < tape->tensors[trace_tensor_at(tape, query->item)].count) {
        trace_output_at(&maker, &output, tape, query->item);
        rule_axis_of(&axis, &tape->ops[maker.op], output, query->index);
    }
    return axis.parts > 1 ? STATUS_OK
                          : error_set(error, STATUS_NOT_FOUND,
                                      "element %" PRIu64 " of tensor %u of the trace has no parts",
                                      query->index, query->item);
}

enum status trace_query_check(const struct trace_query *query, const struct tape *tape,
                              struct error *error)
{
    switch (query->kind) {
    case TRACE_QUERY_DIVERGED:
        return STATUS_OK;
    case TRACE_QUERY_LIST:
    case TRACE_QUERY_LIST_NODE:
        return check_list(query, tape, error);
    case TRACE_QUERY_TENSOR:
    case TRACE_QUERY_TENSOR_NODE:
    case TRACE_QUERY_PARTS:
        break;
    }
    if (query->item >= trace_item_count(tape)) {
        return error_set(error, STATUS_NOT_FOUND, "a trace of %u tensors has no tensor %u",
                         trace_item_count(tape), query->item);
    }
    if (query->kind == TRACE_QUERY_PARTS) {
        return check_parts(query, tape, error);
    }
    return query->kind == TRACE_QUERY_TENSOR
               ? STATUS_OK
               : check_node(
                     query,
                     trace_query_tensor_count(&tape->tensors[trace_tensor_at(tape, query->item)]),
                     error);
}

/* ---- all of them --------------------------------------------------------- */

/* The queries about nodes below one that a reply has shown: `first` is its first leaf, count its
 * leaves. */
static enum status visit_below(const struct trace_query_visitor *visitor,
                               const struct trace_query *about, uint64_t first, uint64_t count,
                               struct error *error)
{
    bool of_list = about->kind == TRACE_QUERY_LIST || about->kind == TRACE_QUERY_LIST_NODE;
    struct trace_query_span span = trace_query_span(count);
    struct trace_query query = *about;
    enum status status = STATUS_OK;

    if (of_list ? span.level == 0 : count <= TRACE_QUERY_LEAVES_MAX) {
        return STATUS_OK; /* the reply has shown the items, or the leaves */
    }
    query.kind = of_list ? TRACE_QUERY_LIST_NODE : TRACE_QUERY_TENSOR_NODE;
    query.level = span.level;
    for (uint32_t i = 0; i < span.entries && status == STATUS_OK; i++) {
        uint64_t covered = (uint64_t)i << span.level;
        uint64_t left = count - covered;

        query.index = (first + covered) >> span.level;
        status = visitor->visit(visitor->context, &query, error);
        if (status == STATUS_OK) {
            status = visit_below(
                visitor, &query, first + covered,
                left < UINT64_C(1) << span.level ? left : UINT64_C(1) << span.level, error);
        }
    }
    return status;
}

static enum status visit_tree(const struct trace_query_visitor *visitor,
                              const struct trace_query *root, uint64_t count, struct error *error)
{
    enum status status = visitor->visit(visitor->context, root, error);

    return status == STATUS_OK ? visit_below(visitor, root, 0, count, error) : status;
}

enum status trace_query_visit(const struct tape *tape, const struct trace_query_visitor *visitor,
                              struct error *error)
{
    enum status status = STATUS_OK;

    for (int list = TRACE_QUERY_TRACE; list <= TRACE_QUERY_BATCH && status == STATUS_OK; list++) {
        uint32_t lists = list == TRACE_QUERY_BATCH && tape->brief != NULL
                             ? tape->brief->repeat.times
                         : list == TRACE_QUERY_BATCH ? 0
                                                     : 1;
        struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = (enum trace_query_list)list};
        uint64_t count = trace_query_list_count(tape, query.list);

        for (; query.item < lists && count > 0 && status == STATUS_OK; query.item++) {
            status = visit_tree(visitor, &query, count, error);
        }
    }
    for (uint32_t item = 0; item < trace_item_count(tape) && status == STATUS_OK; item++) {
        const struct trace_query query = {.kind = TRACE_QUERY_TENSOR, .item = item};
        const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, item)];

        status = visit_tree(visitor, &query, trace_query_tensor_count(tensor), error);
    }
    return status;
}

/* ---- as bytes ------------------------------------------------------------ */

/* Is what the kind does not use zero, and no level beyond any tree? */
static bool is_canonical(const struct trace_query *query)
{
    bool node = query->kind == TRACE_QUERY_LIST_NODE || query->kind == TRACE_QUERY_TENSOR_NODE;
    bool list = query->kind == TRACE_QUERY_LIST || query->kind == TRACE_QUERY_LIST_NODE;
    bool parts = query->kind == TRACE_QUERY_PARTS;
    bool tensor =
        query->kind == TRACE_QUERY_TENSOR || query->kind == TRACE_QUERY_TENSOR_NODE || parts;

    return (list ? query->list <= TRACE_QUERY_BATCH : query->list == 0) &&
           (tensor || query->list == TRACE_QUERY_BATCH || query->item == 0) &&
           (node ? query->level < MERKLE_DEPTH_MAX
                 : query->level <= parts && (parts || query->index == 0)) &&
           query->index <= MERKLE_LEAVES_MAX >> (node ? query->level : 0);
}

/* docs/FORMATS.md, query. */
enum { QUERY_KIND = 0, QUERY_LIST = 1, QUERY_ITEM = 2, QUERY_LEVEL = 6, QUERY_INDEX = 7 };

void trace_query_write(uint8_t bytes[TRACE_QUERY_SIZE], const struct trace_query *query)
{
    assert(is_canonical(query));
    bytes[QUERY_KIND] = (uint8_t)query->kind;
    bytes[QUERY_LIST] = (uint8_t)query->list;
    endian_store_be32(bytes + QUERY_ITEM, query->item);
    bytes[QUERY_LEVEL] = (uint8_t)query->level;
    endian_store_be64(bytes + QUERY_INDEX, query->index);
}

enum status trace_query_read(struct trace_query *query, const uint8_t *bytes, size_t size)
{
    if (size != TRACE_QUERY_SIZE || bytes[QUERY_KIND] < TRACE_QUERY_LIST ||
        bytes[QUERY_KIND] > TRACE_QUERY_PARTS || bytes[QUERY_LIST] > TRACE_QUERY_BATCH) {
        return STATUS_BAD_FORMAT;
    }
    *query = (struct trace_query){.kind = (enum trace_query_kind)bytes[QUERY_KIND],
                                  .list = (enum trace_query_list)bytes[QUERY_LIST],
                                  .item = endian_load_be32(bytes + QUERY_ITEM),
                                  .level = bytes[QUERY_LEVEL],
                                  .index = endian_load_be64(bytes + QUERY_INDEX)};
    return is_canonical(query) ? STATUS_OK : STATUS_BAD_FORMAT;
}

/* ---- as text ------------------------------------------------------------- */

static const char *const list_names[TRACE_QUERY_BATCH + 1] = {[TRACE_QUERY_TRACE] = "trace",
                                                              [TRACE_QUERY_NEXT_STATE] = "next",
                                                              [TRACE_QUERY_BATCH] = "batch"};

/* "trace", or "batch/7". */
static void list_text(char text[TRACE_QUERY_TEXT_MAX], const struct trace_query *query)
{
    int size = snprintf(text, TRACE_QUERY_TEXT_MAX, "%s", list_names[query->list]);

    if (query->list == TRACE_QUERY_BATCH) {
        (void)snprintf(text + size, (size_t)(TRACE_QUERY_TEXT_MAX - size), "/%u", query->item);
    }
}

void trace_query_text(char text[TRACE_QUERY_TEXT_MAX], const struct trace_query *query)
{
    char list[TRACE_QUERY_TEXT_MAX];

    assert(is_canonical(query));
    list_text(list, query);
    switch (query->kind) {
    case TRACE_QUERY_LIST:
        (void)snprintf(text, TRACE_QUERY_TEXT_MAX, "list/%.24s", list);
        return;
    case TRACE_QUERY_LIST_NODE:
        (void)snprintf(text, TRACE_QUERY_TEXT_MAX, "node/%.24s/%u/%" PRIu64, list, query->level,
                       query->index);
        return;
    case TRACE_QUERY_TENSOR:
        (void)snprintf(text, TRACE_QUERY_TEXT_MAX, "tensor/%u", query->item);
        return;
    case TRACE_QUERY_TENSOR_NODE:
        (void)snprintf(text, TRACE_QUERY_TEXT_MAX, "tensor-node/%u/%u/%" PRIu64, query->item,
                       query->level, query->index);
        return;
    case TRACE_QUERY_DIVERGED:
        (void)snprintf(text, TRACE_QUERY_TEXT_MAX, "diverged");
        return;
    case TRACE_QUERY_PARTS:
        (void)snprintf(text, TRACE_QUERY_TEXT_MAX, "parts/%u/%" PRIu64 "%s", query->item,
                       query->index, query->level == 0 ? "" : "/part");
        return;
    }
    assert(!"a query of a known kind");
}

/* A number up to max at *at, which moves behind it and the slash that must follow but at the end.
 * What no trace_query_text() would write is found out by writing it again. */
static bool take_number(const char **at, uint64_t max, uint64_t *number)
{
    if (!text_take_number(number, at, max)) {
        return false;
    }
    *at += **at == '/';
    return true;
}

static bool take_item(const char **at, struct trace_query *query)
{
    uint64_t item = 0;
    bool taken = take_number(at, UINT32_MAX, &item);

    query->item = (uint32_t)item;
    return taken;
}

static bool take_list(const char **at, struct trace_query *query)
{
    for (int i = 0; i <= TRACE_QUERY_BATCH; i++) {
        if (text_take_word(at, list_names[i])) {
            query->list = (enum trace_query_list)i;
            *at += **at == '/';
            return i != TRACE_QUERY_BATCH || take_item(at, query);
        }
    }
    return false;
}

static bool take_node(const char **at, struct trace_query *query)
{
    uint64_t level = 0;
    bool taken =
        take_number(at, MERKLE_DEPTH_MAX, &level) && take_number(at, UINT64_MAX, &query->index);

    query->level = (uint32_t)level;
    return taken;
}

enum status trace_query_parse(struct trace_query *query, const char *text)
{
    char again[TRACE_QUERY_TEXT_MAX];
    const char *at = text;
    bool taken = false;

    *query = (struct trace_query){.kind = TRACE_QUERY_DIVERGED};
    if (text_take_word(&at, "list/")) {
        query->kind = TRACE_QUERY_LIST;
        taken = take_list(&at, query);
    } else if (text_take_word(&at, "node/")) {
        query->kind = TRACE_QUERY_LIST_NODE;
        taken = take_list(&at, query) && take_node(&at, query);
    } else if (text_take_word(&at, "tensor/")) {
        query->kind = TRACE_QUERY_TENSOR;
        taken = take_item(&at, query);
    } else if (text_take_word(&at, "tensor-node/")) {
        query->kind = TRACE_QUERY_TENSOR_NODE;
        taken = take_item(&at, query) && take_node(&at, query);
    } else if (text_take_word(&at, "parts/")) {
        query->kind = TRACE_QUERY_PARTS;
        taken = take_item(&at, query) && take_number(&at, UINT64_MAX, &query->index);
        query->level = taken && text_take_word(&at, "part");
    } else {
        taken = text_take_word(&at, "diverged");
    }
    if (!taken || !is_canonical(query)) {
        return STATUS_BAD_FORMAT;
    }
    trace_query_text(again, query);
    return strcmp(again, text) == 0 ? STATUS_OK : STATUS_BAD_FORMAT;
}
