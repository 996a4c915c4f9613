/* trace_walk.c - see trace_walk.h. */
#include "proofs/dispute/trace_walk.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "base/reader.h"

static const char saved_tag[32] = "lockstep.walk.v3";

/* ---- the accused's trees -------------------------------------------------- */

/* A node of an accused's tree; false: no reply shows it. The deepest row that reaches it serves. */
static bool tree_node(struct digest *node, const struct trace_walk_tree *tree, uint32_t level,
                      uint64_t index)
{
    for (uint32_t at = tree->row_count; at > 0; at--) {
        const struct trace_walk_row *row = &tree->rows[at - 1];
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

/* Our own list; of a micro-batch the one that the walk is about. */
static void own_list(struct merkle_leaves *leaves, const struct trace_walk *walk,
                     enum trace_query_list list)
{
    const struct trace *trace = &walk->own->trace;
    const struct digest *hashes = trace->hashes;

    if (list == TRACE_QUERY_NEXT_STATE) {
        hashes = walk->own->next + trace->state_count;
    } else if (list == TRACE_QUERY_BATCH) {
        hashes += trace->list_count + (uint64_t)walk->batch * trace->layout.inner;
    }
    merkle_leaves_init_hashes(leaves, hashes, trace_query_list_count(trace->tape, list));
}

/* What is left of what differs is as our own, and so is all of a list that does not differ. */
bool trace_walk_list_node(struct digest *node, const struct trace_walk *walk,
                          enum trace_query_list list, uint32_t level, uint64_t index)
{
    bool inner = list == TRACE_QUERY_BATCH;
    const struct trace_walk_found *found = inner ? &walk->within : &walk->listed;
    bool differs =
        inner ? walk->inner.row_count > 0 : walk->list == list && walk->end != TRACE_WALK_NO_LIE;
    bool left = found->known && (index + 1) << level <= found->index;
    struct merkle_leaves leaves;

    if ((walk->list == TRACE_QUERY_TRACE && list == TRACE_QUERY_NEXT_STATE) ||
        (inner && !walk->batch_known)) {
        return false; /* no reply was about it */
    }
    if (differs && !left) {
        return tree_node(node, inner ? &walk->inner : &walk->items, level, index);
    }
    own_list(&leaves, walk, list);
    merkle_node(node, &leaves, level, index);
    return true;
}

bool trace_walk_tensor_node(struct digest *node, const struct trace_walk *walk, uint32_t level,
                            uint64_t index)
{
    return tree_node(node, &walk->tensor, level, index);
}

static void find_path(struct merkle_path *path, const struct trace_walk *walk,
                      enum trace_query_list list, uint64_t count, uint64_t index)
{
    uint64_t at = index;
    uint32_t level = 0;

    *path = (struct merkle_path){.leaf_index = index, .leaf_count = count};
    for (uint64_t last = count - 1; last > 0; last >>= 1) {
        if ((at & 1) == 1 || at < last) {
            bool known = trace_walk_list_node(&path->siblings[path->sibling_count++], walk, list,
                                              level, at ^ 1);

            assert(known);
        }
        at >>= 1;
        level++;
    }
}

void trace_walk_trace_tree(struct digest *root, const struct trace_walk *walk)
{
    struct merkle_leaves own;

    own_list(&own, walk, TRACE_QUERY_TRACE);
    if (walk->list == TRACE_QUERY_TRACE) {
        assert(walk->items.row_count > 0);
        *root = walk->items.root;
    } else {
        merkle_root(root, &own);
    }
}

void trace_walk_batch_tree(struct digest *root, const struct trace_walk *walk)
{
    struct merkle_leaves own;

    assert(walk->batch_known);
    own_list(&own, walk, TRACE_QUERY_BATCH);
    if (walk->inner.row_count > 0) {
        *root = walk->inner.root;
    } else {
        merkle_root(root, &own);
    }
}

static void find_place(struct trace_place *place, const struct trace_walk *walk, uint32_t item)
{
    const struct trace *trace = &walk->own->trace;

    trace_place_of(place, &trace->layout, item, trace->list_count);
}

bool trace_walk_knows(const struct trace_walk *walk, uint32_t item)
{
    struct trace_place place;

    find_place(&place, walk, item);
    if (place.batch == TENSOR_NONE) {
        return walk->list != TRACE_QUERY_TRACE ||
               (walk->listed.known && place.index <= walk->listed.index);
    }
    return walk->batch_known && place.batch == walk->batch &&
           (walk->inner.row_count == 0 ||
            (walk->within.known && place.index <= walk->within.index));
}

void trace_walk_item(struct digest *root, struct merkle_path *path, const struct trace_walk *walk,
                     uint32_t item)
{
    const struct trace_walk_found *found = &walk->within;
    enum trace_query_list list = TRACE_QUERY_BATCH;
    struct trace_place place;

    assert(trace_walk_knows(walk, item));
    find_place(&place, walk, item);
    if (place.batch == TENSOR_NONE) {
        list = TRACE_QUERY_TRACE;
        found = &walk->listed;
    }
    *root = found->known && (list == TRACE_QUERY_BATCH || walk->list == list) &&
                    place.index == found->index
                ? found->root
                : walk->own->trace.items[item];
    find_path(path, walk, list, place.count, place.index);
}

void trace_walk_node_path(struct merkle_path *path, const struct trace_walk *walk,
                          const struct trace_query *query)
{
    const struct trace_walk_tree *tree = query->kind != TRACE_QUERY_LIST_NODE ? &walk->tensor
                                         : query->list == TRACE_QUERY_BATCH   ? &walk->inner
                                                                              : &walk->items;
    uint64_t at = query->index;
    uint32_t level = query->level;

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

/* ---- the next query ------------------------------------------------------ */

static const struct trace_walk_row *last_row(const struct trace_walk_tree *tree)
{
    return &tree->rows[tree->row_count - 1];
}

bool trace_walk_next(struct trace_query *query, struct digest *known, const struct trace_walk *walk)
{
    const struct trace_walk_tree *tree = &walk->items;
    bool lists = !walk->item_known;

    if (walk->end != TRACE_WALK_GOES_ON) {
        return false;
    }
    *query = (struct trace_query){.kind = lists ? TRACE_QUERY_LIST : TRACE_QUERY_TENSOR};
    /* Three trees, one below the other: the trace's items, those of a micro-batch, the leaves of a
     * tensor. */
    if (lists && walk->listed.known) {
        tree = &walk->inner;
        query->list = TRACE_QUERY_BATCH;
        query->item = walk->batch;
        *known = walk->accused.batch_root;
    } else if (lists) {
        query->list = walk->list;
        *known =
            walk->list == TRACE_QUERY_TRACE ? walk->accused.trace_root : walk->accused.next_root;
    } else {
        tree = &walk->tensor;
        query->item = walk->item;
        *known = walk->item_root;
    }
    /* Below the first row the known hash is that of the node that differed. */
    if (tree->row_count > 0) {
        const struct trace_walk_row *row = last_row(tree);

        query->kind = lists ? TRACE_QUERY_LIST_NODE : TRACE_QUERY_TENSOR_NODE;
        query->level = row->level;
        query->index = tree->index;
        *known = row->hashes[tree->index - row->first];
    }
    return true;
}

/* ---- taking replies ------------------------------------------------------ */

/* Adds a row and finds the leftmost of its nodes that is not as our own. */
static void descend_row(struct trace_walk_tree *tree, const struct trace_reply *reply,
                        const struct trace_query *query, const struct trace_reply_tree *own)
{
    struct trace_walk_row *row = &tree->rows[tree->row_count];
    uint32_t at = 0;

    assert(tree->row_count < TRACE_WALK_ROWS_MAX);
    if (tree->row_count++ == 0) {
        tree->root = reply->tree_root;
        tree->count = own->hashes.count;
    }
    row->top = tree->row_count == 1 ? merkle_height(tree->count) : query->level;
    row->level = reply->level;
    row->first = query->index << query->level >> reply->level;
    row->count = reply->entries;
    memcpy(row->hashes, reply->hashes, reply->entries * sizeof(row->hashes[0]));
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

static void take_found(struct trace_walk_found *found, const struct trace_walk_tree *tree,
                       const struct trace_reply *reply)
{
    uint64_t at = tree->index - last_row(tree)->first;

    found->known = true;
    found->index = (uint32_t)tree->index;
    memcpy(found->root.bytes, reply->items + at * DIGEST_SIZE, DIGEST_SIZE);
}

static void accuse_item(struct trace_walk *walk, const struct trace_walk_found *found,
                        uint32_t first)
{
    walk->item_known = true;
    walk->item = first + found->index;
    walk->item_root = found->root;
}

/* What a micro-batch handed on may be false because something in its own list is. */
static void arrive_in_list(struct trace_walk *walk, const struct trace_reply *reply)
{
    const struct trace *trace = &walk->own->trace;

    take_found(&walk->listed, &walk->items, reply);
    walk->batch = TENSOR_NONE;
    if (walk->list == TRACE_QUERY_TRACE && trace->layout.inner > 0 &&
        repeat_holds(&walk->batch, &trace->layout, walk->listed.index) &&
        walk->batch != TENSOR_NONE) {
        return;
    }
    accuse_item(walk, &walk->listed, 0);
    if (walk->list == TRACE_QUERY_NEXT_STATE) {
        walk->end = TRACE_WALK_NEXT_STATE;
    } else if (walk->item < trace->state_count) {
        walk->end = TRACE_WALK_FIRST_STATE;
    }
}

/* The lie is what the step makes first: all that it reads is then as our own. */
static void arrive_in_batch(struct trace_walk *walk, const struct trace_reply *reply)
{
    const struct trace *trace = &walk->own->trace;
    uint32_t first = trace->list_count + walk->batch * trace->layout.inner;

    take_found(&walk->within, &walk->inner, reply);
    if (trace_is_before(trace->tape, first + walk->within.index, walk->listed.index)) {
        accuse_item(walk, &walk->within, first);
    } else {
        accuse_item(walk, &walk->listed, 0);
    }
}

static void take_of_list(struct trace_walk *walk, const struct trace_reply *reply,
                         const struct trace_query *query, const struct trace_reply_tree *own)
{
    bool inner = query->list == TRACE_QUERY_BATCH;
    struct trace_walk_tree *tree = inner ? &walk->inner : &walk->items;

    if (inner && !walk->batch_known) {
        struct digest root;

        walk->batch_known = true;
        merkle_root(&root, &own->hashes);
        if (digest_equal(&root, &reply->tree_root)) {
            accuse_item(walk, &walk->listed, 0);
            return;
        }
    }
    descend_row(tree, reply, query, own);
    if (reply->items != NULL && inner) {
        arrive_in_batch(walk, reply);
    } else if (reply->items != NULL) {
        arrive_in_list(walk, reply);
    }
}

static void arrive_at_leaf(struct trace_walk *walk, const struct trace_reply *reply)
{
    uint64_t at = walk->tensor.index - last_row(&walk->tensor)->first;

    walk->leaf = walk->tensor.index;
    memcpy(walk->leaf_bytes, reply->leaves + at * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
    walk->end = TRACE_WALK_ELEMENT;
}

static enum status keep_reply(struct trace_walk *walk, const uint8_t *bytes, size_t size,
                              struct error *error)
{
    assert(walk->reply_count < TRACE_WALK_REPLIES_MAX);
    buffer_add_u16(&walk->reply, (uint16_t)size);
    buffer_add(&walk->reply, bytes, size);
    walk->reply_count++;
    return buffer_check(&walk->reply, error, "the replies");
}

enum status trace_walk_take(struct trace_walk *walk, const uint8_t *bytes, size_t size,
                            struct error *error)
{
    struct trace_reply_target target;
    struct trace_reply_tree own;
    struct digest known;
    struct trace_reply reply;
    struct trace_query query;
    enum status status;

    if (!trace_walk_next(&query, &known, walk)) {
        return error_set(error, STATUS_BAD_FORMAT, "the walk has ended and wants no reply");
    }
    status = trace_reply_target(&target, &query, walk->own->tape, &known, error);
    if (status == STATUS_OK && target.is_unknown) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the accused has not committed to micro-batch %u yet", query.item);
    }
    /* Before anything is taken from the bytes: a reply that does not fold to what is known says
     * nothing. */
    if (status == STATUS_OK && trace_reply_check(&reply, &target, bytes, size) != VERDICT_VALID) {
        char text[TRACE_QUERY_TEXT_MAX];

        trace_query_text(text, &query);
        return error_set(error, STATUS_BAD_FORMAT, "this is no reply to '%s'", text);
    }
    if (status == STATUS_OK) {
        status = trace_server_tree(&own, walk->own, &query, error);
    }
    if (status == STATUS_OK) {
        /* Only now is the reply kept, so that a saved walk holds no reply that another reader would
         * refuse. */
        status = keep_reply(walk, bytes, size, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (target.is_list) {
        take_of_list(walk, &reply, &query, &own);
    } else {
        descend_row(&walk->tensor, &reply, &query, &own);
        if (reply.leaves != NULL) {
            arrive_at_leaf(walk, &reply);
        }
    }
    return STATUS_OK;
}

/* ---- opening, saving, loading -------------------------------------------- */

enum status trace_walk_open(struct trace_walk *walk, struct trace_server *own,
                            const struct trace_walk_case *accused, struct error *error)
{
    const struct trace *trace = &own->trace;

    memset(walk, 0, sizeof(*walk));
    walk->own = own;
    walk->accused = *accused;
    walk->batch = TENSOR_NONE;
    buffer_init(&walk->reply, TRACE_WALK_BYTES_MAX);
    if (!digest_equal(&trace->state_root, &accused->state_root)) {
        (void)error_set(error, STATUS_REFUSED,
                        "the step was run here from another state than the accused committed to");
        error_advise(error, "a step can be disputed only when the state before it is agreed on");
        return STATUS_REFUSED;
    }
    if (digest_equal(&trace->root, &accused->trace_root)) {
        bool ends = digest_equal(&trace->next_root, &accused->next_root);

        walk->list = TRACE_QUERY_NEXT_STATE;
        walk->end = ends ? TRACE_WALK_NO_LIE : TRACE_WALK_GOES_ON;
    }
    return STATUS_OK;
}

void trace_walk_close(struct trace_walk *walk)
{
    buffer_release(&walk->reply);
    memset(walk, 0, sizeof(*walk));
}

/*
 * Saved: 0 tag (32), 32 trace root (32), 64 state root (32), 96 next root (32), 128 batch root
 * (32), 160 replies (1), then each: size (2), bytes.
 */
enum status trace_walk_save(struct buffer *bytes, const struct trace_walk *walk,
                            struct error *error)
{
    buffer_add(bytes, saved_tag, sizeof(saved_tag));
    buffer_add(bytes, walk->accused.trace_root.bytes, DIGEST_SIZE);
    buffer_add(bytes, walk->accused.state_root.bytes, DIGEST_SIZE);
    buffer_add(bytes, walk->accused.next_root.bytes, DIGEST_SIZE);
    buffer_add(bytes, walk->accused.batch_root.bytes, DIGEST_SIZE);
    buffer_add_u8(bytes, (uint8_t)walk->reply_count);
    buffer_add(bytes, walk->reply.data, walk->reply.size);
    return buffer_check(bytes, error, "a saved walk");
}

static enum status load_replies(struct trace_walk *walk, struct reader *reader, struct error *error)
{
    uint32_t count = reader_u8(reader);
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t size = reader_u16(reader);
        const uint8_t *bytes = reader_take(reader, size);

        status = bytes == NULL ? error_set(error, STATUS_BAD_FORMAT, "a saved walk is cut off")
                               : trace_walk_take(walk, bytes, size, error);
    }
    return status == STATUS_OK ? reader_end(reader, error, "saved walk") : status;
}

enum status trace_walk_load(struct trace_walk *walk, struct trace_server *own, const uint8_t *bytes,
                            size_t size, struct error *error)
{
    uint8_t tag[sizeof(saved_tag)];
    struct trace_walk_case accused;
    struct reader reader;
    enum status status;

    memset(walk, 0, sizeof(*walk));
    reader_init(&reader, bytes, size);
    reader_copy(&reader, tag, sizeof(tag));
    reader_copy(&reader, accused.trace_root.bytes, DIGEST_SIZE);
    reader_copy(&reader, accused.state_root.bytes, DIGEST_SIZE);
    reader_copy(&reader, accused.next_root.bytes, DIGEST_SIZE);
    reader_copy(&reader, accused.batch_root.bytes, DIGEST_SIZE);
    if (reader.failed || memcmp(tag, saved_tag, sizeof(tag)) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "these bytes are no saved walk");
    }
    status = trace_walk_open(walk, own, &accused, error);
    if (status == STATUS_OK) {
        status = load_replies(walk, &reader, error);
    }
    if (status != STATUS_OK) {
        trace_walk_close(walk);
    }
    return status;
}
