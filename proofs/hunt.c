/* hunt.c - see hunt.h. */
#include "proofs/hunt.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "base/reader.h"

static const char saved_tag[32] = "lockstep.hunt.v1";

/* ---- trees that are told ------------------------------------------------- */

/* A node of a told tree; false: no answer shows it. The deepest row that reaches it serves. */
static bool tree_node(struct digest *node, const struct hunt_tree *tree, uint32_t level,
                      uint64_t index)
{
    for (uint32_t at = tree->row_count; at > 0; at--) {
        const struct hunt_row *row = &tree->rows[at - 1];
        struct merkle_leaves entries;

        if (level < row->level || level > row->top ||
            index >> (row->top - level) != row->first >> (row->top - row->level)) {
            continue;
        }
        merkle_leaves_init_hashes(&entries, row->hashes, row->count);
        merkle_node(node, &entries, level - row->level,
                    index - (row->first >> (level - row->level)));
        return true;
    }
    return false;
}

/* What is left of what differs is as our own, and so is all of a list that does not differ. */
bool hunt_list_node(struct digest *node, const struct hunt *hunt, enum ask_list list,
                    uint32_t level, uint64_t index)
{
    const struct teller *own = hunt->own;
    bool differs = hunt->list == list && hunt->end != HUNT_NO_LIE;
    bool left = hunt->item_known && (index + 1) << level <= hunt->item;
    struct merkle_leaves leaves;

    if (hunt->list == ASK_TRACE && list == ASK_NEXT_STATE) {
        return false; /* nothing was told of it */
    }
    if (differs && !left) {
        return tree_node(node, &hunt->items, level, index);
    }
    merkle_leaves_init_hashes(
        &leaves, list == ASK_TRACE ? own->trace.hashes : own->next + own->tape->state_count,
        ask_list_count(own->tape, list));
    merkle_node(node, &leaves, level, index);
    return true;
}

bool hunt_tensor_node(struct digest *node, const struct hunt *hunt, uint32_t level, uint64_t index)
{
    return tree_node(node, &hunt->tensor, level, index);
}

/* In the tree of the trace. */
static void find_path(struct merkle_path *path, const struct hunt *hunt, uint64_t count,
                      uint64_t index)
{
    uint64_t at = index;
    uint32_t level = 0;

    *path = (struct merkle_path){.leaf_index = index, .leaf_count = count};
    for (uint64_t last = count - 1; last > 0; last >>= 1) {
        if ((at & 1) == 1 || at < last) {
            bool known = hunt_list_node(&path->siblings[path->sibling_count++], hunt, ASK_TRACE,
                                        level, at ^ 1);

            assert(known);
        }
        at >>= 1;
        level++;
    }
}

void hunt_trace_tree(struct digest *root, const struct hunt *hunt)
{
    struct merkle_leaves own;

    merkle_leaves_init_hashes(&own, hunt->own->trace.hashes, hunt->own->trace.item_count);
    if (hunt->list == ASK_TRACE) {
        assert(hunt->items.row_count > 0);
        *root = hunt->items.root;
    } else {
        merkle_root(root, &own);
    }
}

void hunt_item(struct digest *root, struct merkle_path *path, const struct hunt *hunt,
               uint32_t item)
{
    bool lies = hunt->list == ASK_TRACE;

    assert(!lies || (hunt->item_known && item <= hunt->item));
    *root = lies && item == hunt->item ? hunt->item_root : hunt->own->trace.items[item];
    find_path(path, hunt, hunt->own->trace.item_count, item);
}

void hunt_node_path(struct merkle_path *path, const struct hunt *hunt, const struct ask *ask)
{
    const struct hunt_tree *tree = ask->kind == ASK_LIST_NODE ? &hunt->items : &hunt->tensor;
    uint64_t at = ask->index;
    uint32_t level = ask->level;

    *path = (struct merkle_path){.leaf_index = at, .leaf_count = ((tree->count - 1) >> level) + 1};
    for (uint64_t last = path->leaf_count - 1; last > 0; last >>= 1) {
        if ((at & 1) == 1 || at < last) {
            bool known = tree_node(&path->siblings[path->sibling_count++], tree, level, at ^ 1);

            assert(known);
        }
        at >>= 1;
        level++;
    }
}

/* ---- the next ask -------------------------------------------------------- */

static const struct hunt_row *last_row(const struct hunt_tree *tree)
{
    return &tree->rows[tree->row_count - 1];
}

bool hunt_ask(struct ask *ask, struct digest *known, const struct hunt *hunt)
{
    const struct hunt_tree *tree = &hunt->items;
    bool lists = !hunt->item_known;

    if (hunt->end != HUNT_GOES_ON) {
        return false;
    }
    *ask = (struct ask){.kind = lists ? ASK_LIST : ASK_TENSOR};
    if (lists) {
        ask->list = hunt->list;
        *known = hunt->list == ASK_TRACE ? hunt->accused.trace_root : hunt->accused.next_root;
    } else {
        tree = &hunt->tensor;
        ask->item = hunt->item;
        *known = hunt->item_root;
    }
    if (tree->row_count > 0) {
        const struct hunt_row *row = last_row(tree);

        ask->kind = lists ? ASK_LIST_NODE : ASK_TENSOR_NODE;
        ask->level = row->level;
        ask->index = tree->index;
        *known = row->hashes[tree->index - row->first];
    }
    return true;
}

/* ---- taking answers ------------------------------------------------------ */

/* Adds a row and finds the leftmost of its nodes that is not as our own. */
static void descend(struct hunt_tree *tree, const struct told *told, const struct ask *ask,
                    const struct tell_tree *own)
{
    struct hunt_row *row = &tree->rows[tree->row_count];
    uint32_t at = 0;

    assert(tree->row_count < HUNT_ROWS_MAX);
    if (tree->row_count++ == 0) {
        tree->root = told->tree_root;
        tree->count = own->hashes.count;
    }
    row->top = tree->row_count == 1 ? merkle_height(tree->count) : ask->level;
    row->level = told->level;
    row->first = ask->index << ask->level >> told->level;
    row->count = told->entries;
    memcpy(row->hashes, told->hashes, told->entries * sizeof(row->hashes[0]));
    for (; at < row->count; at++) {
        struct digest node;

        merkle_node(&node, &own->hashes, row->level, row->first + at);
        if (!digest_equal(&node, &row->hashes[at])) {
            break;
        }
    }
    /* What is above them differs, and they fold to it. */
    assert(at < row->count);
    tree->index = row->first + at;
}

static void arrive_at_item(struct hunt *hunt, const struct told *told)
{
    uint64_t at = hunt->items.index - last_row(&hunt->items)->first;

    hunt->item = (uint32_t)hunt->items.index;
    hunt->item_known = true;
    memcpy(hunt->item_root.bytes, told->items + at * DIGEST_SIZE, DIGEST_SIZE);
    if (hunt->list == ASK_NEXT_STATE) {
        hunt->end = HUNT_NEXT_STATE;
    } else if (hunt->item < hunt->own->trace.state_count) {
        hunt->end = HUNT_FIRST_STATE;
    }
}

static void arrive_at_leaf(struct hunt *hunt, const struct told *told)
{
    uint64_t at = hunt->tensor.index - last_row(&hunt->tensor)->first;

    hunt->leaf = hunt->tensor.index;
    memcpy(hunt->leaf_bytes, told->leaves + at * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
    hunt->end = HUNT_ELEMENT;
}

static enum status keep_told(struct hunt *hunt, const uint8_t *bytes, size_t size,
                             struct error *error)
{
    assert(hunt->told_count < HUNT_TELLS_MAX);
    buffer_add_u16(&hunt->told, (uint16_t)size);
    buffer_add(&hunt->told, bytes, size);
    hunt->told_count++;
    return buffer_check(&hunt->told, error, "what was told");
}

enum status hunt_take(struct hunt *hunt, const uint8_t *bytes, size_t size, struct error *error)
{
    struct tell_target target;
    struct tell_tree own;
    struct digest known;
    struct told told;
    struct ask ask;
    enum status status;

    if (!hunt_ask(&ask, &known, hunt)) {
        return error_set(error, STATUS_BAD_FORMAT, "nothing is asked any more");
    }
    status = tell_target(&target, &ask, hunt->own->tape, &known, error);
    if (status == STATUS_OK && tell_check(&told, &target, bytes, size) != VERDICT_VALID) {
        char text[ASK_TEXT_MAX];

        ask_text(text, &ask);
        return error_set(error, STATUS_BAD_FORMAT, "what is told is no answer to '%s'", text);
    }
    if (status == STATUS_OK) {
        status = teller_tree(&own, hunt->own, &ask, error);
    }
    if (status == STATUS_OK) {
        status = keep_told(hunt, bytes, size, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (target.is_list) {
        descend(&hunt->items, &told, &ask, &own);
        if (told.items != NULL) {
            arrive_at_item(hunt, &told);
        }
    } else {
        descend(&hunt->tensor, &told, &ask, &own);
        if (told.leaves != NULL) {
            arrive_at_leaf(hunt, &told);
        }
    }
    return STATUS_OK;
}

/* ---- opening, saving, loading -------------------------------------------- */

enum status hunt_open(struct hunt *hunt, struct teller *own, const struct hunt_case *accused,
                      struct error *error)
{
    const struct trace *trace = &own->trace;

    memset(hunt, 0, sizeof(*hunt));
    hunt->own = own;
    hunt->accused = *accused;
    buffer_init(&hunt->told, HUNT_BYTES_MAX);
    if (!digest_equal(&trace->state_root, &accused->state_root)) {
        (void)error_set(error, STATUS_REFUSED,
                        "the step was run here from another state than the accused committed to");
        error_advise(error, "a step can be disputed only when the state before it is agreed on");
        return STATUS_REFUSED;
    }
    if (digest_equal(&trace->root, &accused->trace_root)) {
        bool ends = accused->is_attestor || digest_equal(&trace->next_root, &accused->next_root);

        hunt->list = ASK_NEXT_STATE;
        hunt->end = ends ? HUNT_NO_LIE : HUNT_GOES_ON;
    }
    return STATUS_OK;
}

void hunt_close(struct hunt *hunt)
{
    buffer_release(&hunt->told);
    memset(hunt, 0, sizeof(*hunt));
}

/*
 * Saved: 0 tag (32), 32 trace root (32), 64 state root (32), 96 next root (32), 128 attestor (1),
 * 129 answers (1), then each: size (2), bytes.
 */
enum status hunt_save(struct buffer *bytes, const struct hunt *hunt, struct error *error)
{
    buffer_add(bytes, saved_tag, sizeof(saved_tag));
    buffer_add(bytes, hunt->accused.trace_root.bytes, DIGEST_SIZE);
    buffer_add(bytes, hunt->accused.state_root.bytes, DIGEST_SIZE);
    buffer_add(bytes, hunt->accused.next_root.bytes, DIGEST_SIZE);
    buffer_add_u8(bytes, hunt->accused.is_attestor);
    buffer_add_u8(bytes, (uint8_t)hunt->told_count);
    buffer_add(bytes, hunt->told.data, hunt->told.size);
    return buffer_check(bytes, error, "a saved hunt");
}

static enum status load_told(struct hunt *hunt, struct reader *reader, struct error *error)
{
    uint32_t count = reader_u8(reader);
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t size = reader_u16(reader);
        const uint8_t *bytes = reader_take(reader, size);

        status = bytes == NULL ? error_set(error, STATUS_BAD_FORMAT, "a saved hunt is cut off")
                               : hunt_take(hunt, bytes, size, error);
    }
    return status == STATUS_OK ? reader_end(reader, error, "saved hunt") : status;
}

enum status hunt_load(struct hunt *hunt, struct teller *own, const uint8_t *bytes, size_t size,
                      struct error *error)
{
    uint8_t tag[sizeof(saved_tag)];
    struct hunt_case accused;
    struct reader reader;
    uint8_t attestor;
    enum status status;

    memset(hunt, 0, sizeof(*hunt));
    reader_init(&reader, bytes, size);
    reader_copy(&reader, tag, sizeof(tag));
    reader_copy(&reader, accused.trace_root.bytes, DIGEST_SIZE);
    reader_copy(&reader, accused.state_root.bytes, DIGEST_SIZE);
    reader_copy(&reader, accused.next_root.bytes, DIGEST_SIZE);
    attestor = reader_u8(&reader);
    accused.is_attestor = attestor == 1;
    if (reader.failed || memcmp(tag, saved_tag, sizeof(tag)) != 0 || attestor > 1) {
        return error_set(error, STATUS_BAD_FORMAT, "these bytes are no saved hunt");
    }
    status = hunt_open(hunt, own, &accused, error);
    if (status == STATUS_OK) {
        status = load_told(hunt, &reader, error);
    }
    if (status != STATUS_OK) {
        hunt_close(hunt);
    }
    return status;
}
