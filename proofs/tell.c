/* tell.c - see tell.h. */
#include "proofs/tell.h"

#include <assert.h>
#include <string.h>

#include "proofs/sha256.h"
#include "proofs/trace.h"

#define HEADER_TREE_ROOT 32 /* where every header has the root of its tree */

/* ---- what is asked for --------------------------------------------------- */

static void target_list(struct tell_target *target, const struct ask *ask, const struct tape *tape)
{
    static const struct digest no_root;
    uint64_t count = ask_list_count(tape, ask->list);

    target->is_list = true;
    target->last_size = DIGEST_SIZE;
    target->count = count;
    if (ask->kind == ASK_LIST_NODE) {
        target->count = ask_node_count(count, ask->level, ask->index);
        return;
    }
    commit_list_header(target->header, ask->list == ASK_TRACE ? COMMIT_TRACE : COMMIT_STATE, 0,
                       count, &no_root);
    target->header_size = COMMIT_LIST_HEADER_SIZE;
}

static void target_tensor(struct tell_target *target, const struct ask *ask,
                          const struct tape *tape)
{
    static const struct digest no_root;
    const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, ask->item)];
    uint64_t count = ask_tensor_count(tensor);
    uint64_t first = 0;

    target->count = count;
    if (ask->kind == ASK_TENSOR_NODE) {
        target->count = ask_node_count(count, ask->level, ask->index);
        first = ask->index << ask->level;
    } else {
        target->header_size =
            (uint32_t)commit_tensor_header(target->header, COMMIT_TENSOR, tensor, &no_root);
    }
    target->last_size = MERKLE_LEAF_SIZE;
    if (first + target->count == count) {
        target->last_size = (uint32_t)(commit_tensor_size(tensor) - (count - 1) * MERKLE_LEAF_SIZE);
    }
}

enum status tell_target(struct tell_target *target, const struct ask *ask, const struct tape *tape,
                        const struct digest *known, struct error *error)
{
    enum status status = ask_check(ask, tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (ask->kind == ASK_DIVERGED || ask->kind == ASK_PARTS) {
        return error_set(error, STATUS_USAGE, "what is told of that is no tree");
    }
    *target = (struct tell_target){.known = *known};
    if (ask->kind == ASK_LIST || ask->kind == ASK_LIST_NODE) {
        target_list(target, ask, tape);
    } else {
        target_tensor(target, ask, tape);
    }
    return STATUS_OK;
}

static bool shows_leaves(const struct tell_target *target)
{
    return !target->is_list && target->count <= ASK_LEAVES_MAX;
}

size_t tell_size(const struct tell_target *target)
{
    size_t head = target->header_size > 0 ? DIGEST_SIZE : 0;

    return head + (shows_leaves(target) ? (size_t)target->count * MERKLE_LEAF_SIZE
                                        : (size_t)ask_span(target->count).entries * DIGEST_SIZE);
}

/* ---- checking ------------------------------------------------------------ */

/* Is the root that an answer begins with the one that the known hash is of? */
static bool header_fits(struct told *told, const struct tell_target *target, const uint8_t *root)
{
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    struct digest hash;

    memcpy(header, target->header, target->header_size);
    memcpy(header + HEADER_TREE_ROOT, root, DIGEST_SIZE);
    memcpy(told->tree_root.bytes, root, DIGEST_SIZE);
    sha256(&hash, header, target->header_size);
    return digest_equal(&hash, &target->known);
}

/* The leaves of a tensor, the last one zero behind its bytes. */
static bool take_leaves(struct told *told, const struct tell_target *target, const uint8_t *bytes)
{
    const uint8_t *last = bytes + (target->count - 1) * MERKLE_LEAF_SIZE;

    for (uint32_t i = target->last_size; i < MERKLE_LEAF_SIZE; i++) {
        if (last[i] != 0) {
            return false;
        }
    }
    told->leaves = bytes;
    told->level = 0;
    told->entries = (uint32_t)target->count;
    for (uint32_t i = 0; i < told->entries; i++) {
        merkle_leaf_hash(&told->hashes[i], bytes + (size_t)i * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
    }
    return true;
}

static void take_entries(struct told *told, const struct tell_target *target, const uint8_t *bytes)
{
    struct ask_span span = ask_span(target->count);

    told->level = span.level;
    told->entries = span.entries;
    if (target->is_list && span.level == 0) {
        told->items = bytes;
        for (uint32_t i = 0; i < span.entries; i++) {
            merkle_leaf_hash(&told->hashes[i], bytes + (size_t)i * DIGEST_SIZE, DIGEST_SIZE);
        }
    } else {
        memcpy(told->hashes, bytes, (size_t)span.entries * DIGEST_SIZE);
    }
}

enum verdict tell_check(struct told *told, const struct tell_target *target, const uint8_t *bytes,
                        size_t size)
{
    struct merkle_leaves entries;
    struct digest folded;

    told->items = NULL;
    told->leaves = NULL;
    told->tree_root = target->known;
    if (size != tell_size(target)) {
        return VERDICT_INVALID;
    }
    if (target->header_size > 0) {
        if (!header_fits(told, target, bytes)) {
            return VERDICT_INVALID;
        }
        bytes += DIGEST_SIZE;
    }
    if (!shows_leaves(target)) {
        take_entries(told, target, bytes);
    } else if (!take_leaves(told, target, bytes)) {
        return VERDICT_INVALID;
    }
    /* Nodes of one level, taken as leaves' hashes, have the tree's own top above them. */
    merkle_leaves_init_hashes(&entries, told->hashes, told->entries);
    merkle_root(&folded, &entries);
    return digest_equal(&folded, &told->tree_root) ? VERDICT_VALID : VERDICT_INVALID;
}

/* ---- answering ----------------------------------------------------------- */

/* The leaves from first on, the tensor's last one filled up with zeros. */
static size_t write_leaves(uint8_t *bytes, const struct tell_tree *tree, uint64_t first,
                           uint64_t count)
{
    size_t size = (size_t)count * MERKLE_LEAF_SIZE;
    uint64_t from = first * MERKLE_LEAF_SIZE;
    uint64_t left = tree->byte_count - from;

    memset(bytes, 0, size);
    memcpy(bytes, tree->bytes + from, left < size ? (size_t)left : size);
    return size;
}

static size_t write_entries(uint8_t *bytes, const struct tell_tree *tree, uint64_t first,
                            uint64_t count)
{
    struct ask_span span = ask_span(count);

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

size_t tell_write(uint8_t *bytes, const struct ask *ask, const struct tell_tree *tree)
{
    bool root = ask->kind == ASK_LIST || ask->kind == ASK_TENSOR;
    uint64_t first = root ? 0 : ask->index << ask->level;
    uint64_t count = tree->hashes.count;
    size_t head = 0;

    if (root) {
        struct digest tree_root;

        merkle_root(&tree_root, &tree->hashes);
        memcpy(bytes, tree_root.bytes, DIGEST_SIZE);
        head = DIGEST_SIZE;
    } else {
        count = ask_node_count(count, ask->level, ask->index);
        assert(count > 0);
    }
    return head + (tree->items == NULL && count <= ASK_LEAVES_MAX
                       ? write_leaves(bytes + head, tree, first, count)
                       : write_entries(bytes + head, tree, first, count));
}
