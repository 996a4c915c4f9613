/* trace_reply.c - see trace_reply.h. */
#include "proofs/dispute/trace_reply.h"

#include <assert.h>
#include <string.h>

#include "proofs/commit/trace.h"
#include "proofs/hash/sha256.h"

#define HEADER_TREE_ROOT 32 /* where every header has the root of its tree */

/* ---- what a query is about ----------------------------------------------- */

static void target_list(struct trace_reply_target *target, const struct trace_query *query,
                        const struct tape *tape)
{
    static const struct digest no_root;
    static const enum commit_list kinds[TRACE_QUERY_BATCH + 1] = {
        [TRACE_QUERY_TRACE] = COMMIT_TRACE,
        [TRACE_QUERY_NEXT_STATE] = COMMIT_STATE,
        [TRACE_QUERY_BATCH] = COMMIT_BATCH};
    uint64_t count = trace_query_list_count(tape, query->list);

    target->is_list = true;
    target->last_size = DIGEST_SIZE;
    target->count = count;
    if (query->kind == TRACE_QUERY_LIST_NODE) {
        target->count = trace_query_node_count(count, query->level, query->index);
        return;
    }
    target->is_unknown = query->list == TRACE_QUERY_BATCH && digest_equal(&target->known, &no_root);
    commit_list_header(target->header, kinds[query->list], query->item, count, &no_root);
    target->header_size = COMMIT_LIST_HEADER_SIZE;
}

static void target_tensor(struct trace_reply_target *target, const struct trace_query *query,
                          const struct tape *tape)
{
    static const struct digest no_root;
    const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, query->item)];
    uint64_t count = trace_query_tensor_count(tensor);
    uint64_t first = 0;

    target->count = count;
    if (query->kind == TRACE_QUERY_TENSOR_NODE) {
        target->count = trace_query_node_count(count, query->level, query->index);
        first = query->index << query->level;
    } else {
        target->header_size =
            (uint32_t)commit_tensor_header(target->header, COMMIT_TENSOR, tensor, &no_root);
    }
    target->last_size = MERKLE_LEAF_SIZE;
    if (first + target->count == count) {
        target->last_size = (uint32_t)(commit_tensor_size(tensor) - (count - 1) * MERKLE_LEAF_SIZE);
    }
}

enum status trace_reply_target(struct trace_reply_target *target, const struct trace_query *query,
                               const struct tape *tape, const struct digest *known,
                               struct error *error)
{
    enum status status = trace_query_check(query, tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (query->kind == TRACE_QUERY_DIVERGED || query->kind == TRACE_QUERY_PARTS) {
        return error_set(error, STATUS_USAGE, "the reply about that is no tree");
    }
    *target = (struct trace_reply_target){.known = *known};
    if (query->kind == TRACE_QUERY_LIST || query->kind == TRACE_QUERY_LIST_NODE) {
        target_list(target, query, tape);
    } else {
        target_tensor(target, query, tape);
    }
    return STATUS_OK;
}

static bool shows_leaves(const struct trace_reply_target *target)
{
    return !target->is_list && target->count <= TRACE_QUERY_LEAVES_MAX;
}

size_t trace_reply_size(const struct trace_reply_target *target)
{
    size_t head = target->header_size > 0 ? DIGEST_SIZE : 0;

    return head + (shows_leaves(target)
                       ? (size_t)target->count * MERKLE_LEAF_SIZE
                       : (size_t)trace_query_span(target->count).entries * DIGEST_SIZE);
}

/* ---- checking ------------------------------------------------------------ */

/* Does the known hash belong to the root that the reply begins with? */
static bool header_fits(struct trace_reply *reply, const struct trace_reply_target *target,
                        const uint8_t *root)
{
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];

    memcpy(header, target->header, target->header_size);
    memcpy(header + HEADER_TREE_ROOT, root, DIGEST_SIZE);
    memcpy(reply->tree_root.bytes, root, DIGEST_SIZE);
    sha256(&reply->root, header, target->header_size);
    return target->is_unknown || digest_equal(&reply->root, &target->known);
}

/* The leaves of a tensor, the last one zero behind its bytes. */
static bool take_leaves(struct trace_reply *reply, const struct trace_reply_target *target,
                        const uint8_t *bytes)
{
    const uint8_t *last = bytes + (target->count - 1) * MERKLE_LEAF_SIZE;

    for (uint32_t i = target->last_size; i < MERKLE_LEAF_SIZE; i++) {
        if (last[i] != 0) {
            return false;
        }
    }
    reply->leaves = bytes;
    reply->level = 0;
    reply->entries = (uint32_t)target->count;
    for (uint32_t i = 0; i < reply->entries; i++) {
        merkle_leaf_hash(&reply->hashes[i], bytes + (size_t)i * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
    }
    return true;
}

static void take_entries(struct trace_reply *reply, const struct trace_reply_target *target,
                         const uint8_t *bytes)
{
    struct trace_query_span span = trace_query_span(target->count);

    reply->level = span.level;
    reply->entries = span.entries;
    if (target->is_list && span.level == 0) {
        reply->items = bytes;
        for (uint32_t i = 0; i < span.entries; i++) {
            merkle_leaf_hash(&reply->hashes[i], bytes + (size_t)i * DIGEST_SIZE, DIGEST_SIZE);
        }
    } else {
        memcpy(reply->hashes, bytes, (size_t)span.entries * DIGEST_SIZE);
    }
}

enum verdict trace_reply_check(struct trace_reply *reply, const struct trace_reply_target *target,
                               const uint8_t *bytes, size_t size)
{
    struct merkle_leaves entries;
    struct digest folded;

    reply->items = NULL;
    reply->leaves = NULL;
    reply->root = target->known;
    reply->tree_root = target->known;
    if (size != trace_reply_size(target)) {
        return VERDICT_INVALID;
    }
    if (target->header_size > 0) {
        if (!header_fits(reply, target, bytes)) {
            return VERDICT_INVALID;
        }
        bytes += DIGEST_SIZE;
    }
    if (!shows_leaves(target)) {
        take_entries(reply, target, bytes);
    } else if (!take_leaves(reply, target, bytes)) {
        return VERDICT_INVALID;
    }
    /* Nodes of one level, taken as leaves' hashes, have the tree's own top above them. */
    merkle_leaves_init_hashes(&entries, reply->hashes, reply->entries);
    merkle_root(&folded, &entries);
    return digest_equal(&folded, &reply->tree_root) ? VERDICT_VALID : VERDICT_INVALID;
}

/* ---- answering ----------------------------------------------------------- */

/* The leaves from first on, the tensor's last one filled up with zeros. */
static size_t write_leaves(uint8_t *bytes, const struct trace_reply_tree *tree, uint64_t first,
                           uint64_t count)
{
    size_t size = (size_t)count * MERKLE_LEAF_SIZE;
    uint64_t from = first * MERKLE_LEAF_SIZE;
    uint64_t left = tree->byte_count - from;

    memset(bytes, 0, size);
    memcpy(bytes, tree->bytes + from, left < size ? (size_t)left : size);
    return size;
}

static size_t write_entries(uint8_t *bytes, const struct trace_reply_tree *tree, uint64_t first,
                            uint64_t count)
{
    struct trace_query_span span = trace_query_span(count);

    for (uint32_t i = 0; i < span.entries; i++) {
        struct digest entry;

        if (tree->items != NULL && span.level == 0) {
            entry = tree->items[first + i];
        } else {
            merkle_node(&entry, &tree->hashes, span.level, (first >> span.level) + i);
        }
        memcpy(bytes + (size_t)i * DIGEST_SIZE, entry.bytes, DIGEST_SIZE);
    }
    return (size_t)span.entries * DIGEST_SIZE;
}

size_t trace_reply_write(uint8_t *bytes, const struct trace_query *query,
                         const struct trace_reply_tree *tree)
{
    bool root = query->kind == TRACE_QUERY_LIST || query->kind == TRACE_QUERY_TENSOR;
    uint64_t first = root ? 0 : query->index << query->level;
    uint64_t count = tree->hashes.count;
    size_t head = 0;

    if (root) {
        struct digest tree_root;

        merkle_root(&tree_root, &tree->hashes);
        memcpy(bytes, tree_root.bytes, DIGEST_SIZE);
        head = DIGEST_SIZE;
    } else {
        count = trace_query_node_count(count, query->level, query->index);
        assert(count > 0);
    }
    return head + (tree->items == NULL && count <= TRACE_QUERY_LEAVES_MAX
                       ? write_leaves(bytes + head, tree, first, count)
                       : write_entries(bytes + head, tree, first, count));
}
