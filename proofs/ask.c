/* ask.c - see ask.h. */
#include "proofs/ask.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/endian.h"
#include "base/reader.h"
#include "engine/rule.h"
#include "proofs/commit.h"
#include "proofs/trace.h"

/* ---- how far an answer reaches ------------------------------------------- */

struct ask_span ask_span(uint64_t count)
{
    uint32_t height = merkle_height(count);
    uint32_t level = height > ASK_LEVELS ? height - ASK_LEVELS : 0;

    return (struct ask_span){
        .count = count, .level = level, .entries = (uint32_t)((count - 1) >> level) + 1};
}

uint64_t ask_node_count(uint64_t count, uint32_t level, uint64_t index)
{
    uint64_t first;

    if (count == 0 || level >= merkle_height(count) || index > (count - 1) >> level) {
        return 0;
    }
    first = index << level;
    return count - first < UINT64_C(1) << level ? count - first : UINT64_C(1) << level;
}

uint64_t ask_list_count(const struct tape *tape, enum ask_list list)
{
    return list == ASK_TRACE ? trace_item_count(tape) : tape->state_count;
}

uint64_t ask_tensor_count(const struct tensor *tensor)
{
    return (commit_tensor_size(tensor) + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
}

static uint32_t list_tells(uint64_t count)
{
    uint32_t tells = 1;

    for (struct ask_span span = ask_span(count); span.level > 0; tells++) {
        span = ask_span(UINT64_C(1) << span.level);
    }
    return tells;
}

static uint32_t tensor_tells(uint64_t count)
{
    uint32_t tells = 1;

    for (; count > ASK_LEAVES_MAX; tells++) {
        count = UINT64_C(1) << ask_span(count).level;
    }
    return tells;
}

uint32_t ask_tells_max(const struct tape *tape)
{
    uint32_t tells = 1;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (role_is_made(tape->tensors[id].role)) {
            uint32_t needed = tensor_tells(ask_tensor_count(&tape->tensors[id]));

            tells = needed > tells ? needed : tells;
        }
    }
    return tells + list_tells(trace_item_count(tape));
}

static enum status check_node(const struct ask *ask, uint64_t count, struct error *error)
{
    if (ask_node_count(count, ask->level, ask->index) == 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "a tree of %" PRIu64 " leaves has no node %" PRIu64
                         " on level %u below its root",
                         count, ask->index, ask->level);
    }
    return STATUS_OK;
}

static enum status check_parts(const struct ask *ask, const struct tape *tape, struct error *error)
{
    struct rule_axis axis = {.parts = 0};
    uint32_t output;
    uint32_t op;

    if (ask->item >= tape->state_count &&
        ask->index < tape->tensors[trace_tensor_at(tape, ask->item)].count) {
        trace_output_at(&op, &output, tape, ask->item);
        rule_axis_of(&axis, &tape->ops[op], output, ask->index);
    }
    return axis.parts > 1 ? STATUS_OK
                          : error_set(error, STATUS_NOT_FOUND,
                                      "element %" PRIu64 " of tensor %u of the trace has no parts",
                                      ask->index, ask->item);
}

enum status ask_check(const struct ask *ask, const struct tape *tape, struct error *error)
{
    switch (ask->kind) {
    case ASK_LIST:
    case ASK_DIVERGED:
        return STATUS_OK;
    case ASK_LIST_NODE:
        return check_node(ask, ask_list_count(tape, ask->list), error);
    case ASK_TENSOR:
    case ASK_TENSOR_NODE:
    case ASK_PARTS:
        break;
    }
    if (ask->item >= trace_item_count(tape)) {
        return error_set(error, STATUS_NOT_FOUND, "a trace of %u tensors has no tensor %u",
                         trace_item_count(tape), ask->item);
    }
    if (ask->kind == ASK_PARTS) {
        return check_parts(ask, tape, error);
    }
    return ask->kind == ASK_TENSOR
               ? STATUS_OK
               : check_node(ask, ask_tensor_count(&tape->tensors[trace_tensor_at(tape, ask->item)]),
                            error);
}

/* ---- all of them --------------------------------------------------------- */

/* The asks about nodes below one that was told of: `first` is its first leaf, count its leaves. */
static enum status visit_below(const struct ask_visitor *visitor, const struct ask *about,
                               uint64_t first, uint64_t count, struct error *error)
{
    bool of_list = about->kind == ASK_LIST || about->kind == ASK_LIST_NODE;
    struct ask_span span = ask_span(count);
    struct ask ask = *about;
    enum status status = STATUS_OK;

    if (of_list ? span.level == 0 : count <= ASK_LEAVES_MAX) {
        return STATUS_OK; /* the answer has shown the items, or the leaves */
    }
    ask.kind = of_list ? ASK_LIST_NODE : ASK_TENSOR_NODE;
    ask.level = span.level;
    for (uint32_t i = 0; i < span.entries && status == STATUS_OK; i++) {
        uint64_t covered = (uint64_t)i << span.level;
        uint64_t left = count - covered;

        ask.index = (first + covered) >> span.level;
        status = visitor->told(visitor->context, &ask, error);
        if (status == STATUS_OK) {
            status = visit_below(
                visitor, &ask, first + covered,
                left < UINT64_C(1) << span.level ? left : UINT64_C(1) << span.level, error);
        }
    }
    return status;
}

static enum status visit_tree(const struct ask_visitor *visitor, const struct ask *root,
                              uint64_t count, struct error *error)
{
    enum status status = visitor->told(visitor->context, root, error);

    return status == STATUS_OK ? visit_below(visitor, root, 0, count, error) : status;
}

enum status ask_visit(const struct tape *tape, const struct ask_visitor *visitor,
                      struct error *error)
{
    enum status status = STATUS_OK;

    for (int list = ASK_TRACE; list <= ASK_NEXT_STATE && status == STATUS_OK; list++) {
        const struct ask ask = {.kind = ASK_LIST, .list = (enum ask_list)list};

        status = visit_tree(visitor, &ask, ask_list_count(tape, ask.list), error);
    }
    for (uint32_t item = 0; item < trace_item_count(tape) && status == STATUS_OK; item++) {
        const struct ask ask = {.kind = ASK_TENSOR, .item = item};
        const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, item)];

        status = visit_tree(visitor, &ask, ask_tensor_count(tensor), error);
    }
    return status;
}

/* ---- as bytes ------------------------------------------------------------ */

/* Is what the kind does not use zero, and no level beyond any tree? */
static bool canonical(const struct ask *ask)
{
    bool node = ask->kind == ASK_LIST_NODE || ask->kind == ASK_TENSOR_NODE;
    bool list = ask->kind == ASK_LIST || ask->kind == ASK_LIST_NODE;
    bool parts = ask->kind == ASK_PARTS;
    bool tensor = ask->kind == ASK_TENSOR || ask->kind == ASK_TENSOR_NODE || parts;

    return (list ? ask->list <= ASK_NEXT_STATE : ask->list == 0) && (tensor || ask->item == 0) &&
           (node ? ask->level < MERKLE_DEPTH_MAX : ask->level == 0 && (parts || ask->index == 0)) &&
           ask->index <= MERKLE_LEAVES_MAX >> ask->level;
}

/* docs/FORMATS.md, ask: 0 kind (1), 1 list (1), 2 item (4), 6 level (1), 7 index (8). */
void ask_write(uint8_t bytes[ASK_SIZE], const struct ask *ask)
{
    assert(canonical(ask));
    bytes[0] = (uint8_t)ask->kind;
    bytes[1] = (uint8_t)ask->list;
    endian_store_be32(bytes + 2, ask->item);
    bytes[6] = (uint8_t)ask->level;
    endian_store_be64(bytes + 7, ask->index);
}

enum status ask_read(struct ask *ask, const uint8_t *bytes, size_t size)
{
    if (size != ASK_SIZE || bytes[0] < ASK_LIST || bytes[0] > ASK_PARTS ||
        bytes[1] > ASK_NEXT_STATE) {
        return STATUS_BAD_FORMAT;
    }
    *ask = (struct ask){.kind = (enum ask_kind)bytes[0],
                        .list = (enum ask_list)bytes[1],
                        .item = endian_load_be32(bytes + 2),
                        .level = bytes[6],
                        .index = endian_load_be64(bytes + 7)};
    return canonical(ask) ? STATUS_OK : STATUS_BAD_FORMAT;
}

/* ---- as text ------------------------------------------------------------- */

static const char *const list_names[2] = {[ASK_TRACE] = "trace", [ASK_NEXT_STATE] = "next"};

void ask_text(char text[ASK_TEXT_MAX], const struct ask *ask)
{
    assert(canonical(ask));
    switch (ask->kind) {
    case ASK_LIST:
        (void)snprintf(text, ASK_TEXT_MAX, "list/%s", list_names[ask->list]);
        return;
    case ASK_LIST_NODE:
        (void)snprintf(text, ASK_TEXT_MAX, "node/%s/%u/%" PRIu64, list_names[ask->list], ask->level,
                       ask->index);
        return;
    case ASK_TENSOR:
        (void)snprintf(text, ASK_TEXT_MAX, "tensor/%u", ask->item);
        return;
    case ASK_TENSOR_NODE:
        (void)snprintf(text, ASK_TEXT_MAX, "tensor-node/%u/%u/%" PRIu64, ask->item, ask->level,
                       ask->index);
        return;
    case ASK_DIVERGED:
        (void)snprintf(text, ASK_TEXT_MAX, "diverged");
        return;
    case ASK_PARTS:
        (void)snprintf(text, ASK_TEXT_MAX, "parts/%u/%" PRIu64, ask->item, ask->index);
        return;
    }
    assert(!"an ask of a known kind");
}

/* A number up to max at *at, which moves behind it and the slash that must follow but at the end.
 * What no ask_text() would write is found out by writing it again. */
static bool take_number(const char **at, uint64_t max, uint64_t *number)
{
    uint64_t value = 0;
    const char *start = *at;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');

        if (value > (max - digit) / 10) {
            return false;
        }
        value = 10 * value + digit;
    }
    *number = value;
    if (*at == start) {
        return false;
    }
    *at += **at == '/';
    return true;
}

static bool take_word(const char **at, const char *word)
{
    size_t size = strlen(word);

    if (strncmp(*at, word, size) != 0) {
        return false;
    }
    *at += size;
    return true;
}

static bool take_list(const char **at, struct ask *ask)
{
    for (int i = 0; i < 2; i++) {
        if (take_word(at, list_names[i])) {
            ask->list = (enum ask_list)i;
            *at += **at == '/';
            return true;
        }
    }
    return false;
}

static bool take_item(const char **at, struct ask *ask)
{
    uint64_t item = 0;
    bool taken = take_number(at, UINT32_MAX, &item);

    ask->item = (uint32_t)item;
    return taken;
}

static bool take_node(const char **at, struct ask *ask)
{
    uint64_t level = 0;
    bool taken =
        take_number(at, MERKLE_DEPTH_MAX, &level) && take_number(at, UINT64_MAX, &ask->index);

    ask->level = (uint32_t)level;
    return taken;
}

enum status ask_parse(struct ask *ask, const char *text)
{
    char again[ASK_TEXT_MAX];
    const char *at = text;
    bool taken = false;

    *ask = (struct ask){.kind = ASK_DIVERGED};
    if (take_word(&at, "list/")) {
        ask->kind = ASK_LIST;
        taken = take_list(&at, ask);
    } else if (take_word(&at, "node/")) {
        ask->kind = ASK_LIST_NODE;
        taken = take_list(&at, ask) && take_node(&at, ask);
    } else if (take_word(&at, "tensor/")) {
        ask->kind = ASK_TENSOR;
        taken = take_item(&at, ask);
    } else if (take_word(&at, "tensor-node/")) {
        ask->kind = ASK_TENSOR_NODE;
        taken = take_item(&at, ask) && take_node(&at, ask);
    } else if (take_word(&at, "parts/")) {
        ask->kind = ASK_PARTS;
        taken = take_item(&at, ask) && take_number(&at, UINT64_MAX, &ask->index);
    } else {
        taken = take_word(&at, "diverged");
    }
    if (!taken || !canonical(ask)) {
        return STATUS_BAD_FORMAT;
    }
    ask_text(again, ask);
    return strcmp(again, text) == 0 ? STATUS_OK : STATUS_BAD_FORMAT;
}
