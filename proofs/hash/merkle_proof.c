/* merkle_proof.c - see merkle.h: paths, proofs of many leaves, and the bytes of a path. */
#include <assert.h>
#include <stdbool.h>

#include "base/endian.h"
#include "proofs/hash/merkle.h"

/* How many siblings the path of this leaf has: one on each level where it has a neighbour. */
static uint32_t siblings_needed(uint64_t leaf_index, uint64_t leaf_count)
{
    uint64_t index = leaf_index;
    uint32_t needed = 0;

    for (uint64_t last = leaf_count - 1; last > 0; last >>= 1) {
        if ((index & 1) == 1 || index < last) {
            needed++;
        }
        index >>= 1;
    }
    return needed;
}

void merkle_path_build(struct merkle_path *path, const struct merkle_leaves *leaves,
                       uint64_t leaf_index)
{
    uint64_t index = leaf_index;
    uint32_t level = 0;

    assert(leaf_index < leaves->count);
    path->leaf_index = leaf_index;
    path->leaf_count = leaves->count;
    path->sibling_count = 0;
    for (uint64_t last = leaves->count - 1; last > 0; last >>= 1) {
        if ((index & 1) == 1 || index < last) {
            assert(path->sibling_count < MERKLE_DEPTH_MAX);
            merkle_node(&path->siblings[path->sibling_count], leaves, level, index ^ 1);
            path->sibling_count++;
        }
        index >>= 1;
        level++;
    }
}

/* Is this a place in a tree, and has the path as many siblings as that place needs? */
static bool place_fits(uint64_t leaf_index, uint64_t leaf_count, uint32_t sibling_count)
{
    return leaf_index < leaf_count && leaf_count <= MERKLE_LEAVES_MAX &&
           sibling_count == siblings_needed(leaf_index, leaf_count);
}

enum verdict merkle_path_root(struct digest *root, const struct merkle_path *path,
                              const struct digest *leaf_hash)
{
    struct digest node = *leaf_hash;
    const struct digest *sibling = path->siblings;
    uint64_t index = path->leaf_index;

    if (!place_fits(path->leaf_index, path->leaf_count, path->sibling_count)) {
        return VERDICT_INVALID;
    }
    for (uint64_t last = path->leaf_count - 1; last > 0; last >>= 1) {
        if ((index & 1) == 1) {
            merkle_node_hash(&node, sibling++, &node);
        } else if (index < last) {
            merkle_node_hash(&node, &node, sibling++);
        }
        index >>= 1;
    }
    *root = node;
    return VERDICT_VALID;
}

enum verdict merkle_path_check(const struct merkle_path *path, const struct digest *leaf_hash,
                               const struct digest *root)
{
    struct digest led;

    if (merkle_path_root(&led, path, leaf_hash) != VERDICT_VALID) {
        return VERDICT_INVALID;
    }
    return digest_equal(&led, root) ? VERDICT_VALID : VERDICT_INVALID;
}

/* docs/FORMATS.md, path. */
enum { PATH_INDEX = 0, PATH_COUNT = 8, PATH_SIBLING_COUNT = 16, PATH_SIBLINGS = 18 };

size_t merkle_path_write(uint8_t bytes[MERKLE_PATH_BYTES_MAX], const struct merkle_path *path)
{
    assert(path->sibling_count <= MERKLE_DEPTH_MAX);
    endian_store_be64(bytes + PATH_INDEX, path->leaf_index);
    endian_store_be64(bytes + PATH_COUNT, path->leaf_count);
    endian_store_be16(bytes + PATH_SIBLING_COUNT, (uint16_t)path->sibling_count);
    memcpy(bytes + PATH_SIBLINGS, path->siblings, path->sibling_count * sizeof(struct digest));
    return PATH_SIBLINGS + path->sibling_count * sizeof(struct digest);
}

enum status merkle_path_read(struct merkle_path *path, const uint8_t *bytes, size_t size)
{
    if (size < PATH_SIBLINGS) {
        return STATUS_BAD_FORMAT;
    }

    uint64_t leaf_index = endian_load_be64(bytes + PATH_INDEX);
    uint64_t leaf_count = endian_load_be64(bytes + PATH_COUNT);
    uint32_t sibling_count = endian_load_be16(bytes + PATH_SIBLING_COUNT);

    if (!place_fits(leaf_index, leaf_count, sibling_count) ||
        size != PATH_SIBLINGS + sibling_count * sizeof(struct digest)) {
        return STATUS_BAD_FORMAT;
    }
    path->leaf_index = leaf_index;
    path->leaf_count = leaf_count;
    path->sibling_count = sibling_count;
    memcpy(path->siblings, bytes + PATH_SIBLINGS, sibling_count * sizeof(struct digest));
    return STATUS_OK;
}

/* A part of the tree and the proven leaves in it: indexes[from] to indexes[to - 1]. */
struct part {
    uint64_t first;
    uint64_t count;
    uint32_t from;
    uint32_t to;
};

/* Splits a part of two or more leaves as RFC 6962 does. */
static void part_split(struct part *left, struct part *right, const struct part *part,
                       const uint64_t *indexes)
{
    uint64_t half = UINT64_C(1) << (63 - __builtin_clzll(part->count - 1));
    uint32_t low = part->from;
    uint32_t high = part->to;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (indexes[middle] < part->first + half) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *left = (struct part){part->first, half, part->from, low};
    *right = (struct part){part->first + half, part->count - half, low, part->to};
}

/* Are these indexes of a tree, rising, not too many? */
static bool indexes_fit(const struct merkle_multi *multi)
{
    if (multi->index_count == 0 || multi->index_count > MERKLE_MULTI_LEAVES_MAX ||
        multi->leaf_count > MERKLE_LEAVES_MAX) {
        return false;
    }
    for (uint32_t i = 1; i < multi->index_count; i++) {
        if (multi->indexes[i] <= multi->indexes[i - 1]) {
            return false;
        }
    }
    return multi->indexes[multi->index_count - 1] < multi->leaf_count;
}

/* Collects the places of the siblings, in the order of the proof. */
struct sibling_places {
    const uint64_t *indexes;
    struct merkle_place *places;
    uint32_t count;
    uint32_t capacity;
};

static enum status collect_siblings(struct sibling_places *siblings, const struct part *part)
{
    struct part left;
    struct part right;

    if (part->from == part->to) {
        /* Cut off by splits alone, so the part is one node of the tree. */
        uint32_t level = part->count == 1 ? 0 : 64 - (uint32_t)__builtin_clzll(part->count - 1);

        if (siblings->count >= siblings->capacity) {
            return STATUS_OVER_LIMIT;
        }
        siblings->places[siblings->count++] = (struct merkle_place){level, part->first >> level};
        return STATUS_OK;
    }
    if (part->count == 1) {
        return STATUS_OK;
    }
    part_split(&left, &right, part, siblings->indexes);
    TRY(collect_siblings(siblings, &left));
    return collect_siblings(siblings, &right);
}

enum status merkle_multi_places(struct merkle_place *places, uint32_t *place_count,
                                uint32_t place_capacity, const struct merkle_multi *multi)
{
    struct part all = {0, multi->leaf_count, 0, multi->index_count};
    struct sibling_places siblings = {
        .indexes = multi->indexes, .places = places, .capacity = place_capacity};

    *place_count = 0;
    if (!indexes_fit(multi)) {
        return STATUS_BAD_FORMAT;
    }
    TRY(collect_siblings(&siblings, &all));
    *place_count = siblings.count;
    return STATUS_OK;
}

/* A check in progress: used counts the siblings taken so far. */
struct multi_check {
    const struct merkle_multi *multi;
    const struct digest *leaf_hashes;
    uint32_t used;
};

/* The node over a part. Recursion ends at MERKLE_DEPTH_MAX: each split halves a power of two. */
static bool part_node(struct multi_check *check, struct digest *node, const struct part *part)
{
    if (part->from == part->to) {
        if (check->used >= check->multi->sibling_count) {
            return false;
        }
        *node = check->multi->siblings[check->used++];
        return true;
    }
    if (part->count == 1) {
        *node = check->leaf_hashes[part->from];
        return true;
    }

    struct part left;
    struct part right;
    struct digest right_node;

    part_split(&left, &right, part, check->multi->indexes);
    if (!part_node(check, node, &left) || !part_node(check, &right_node, &right)) {
        return false;
    }
    merkle_node_hash(node, node, &right_node);
    return true;
}

enum verdict merkle_multi_check(const struct merkle_multi *multi, const struct digest *leaf_hashes,
                                const struct digest *root)
{
    struct multi_check check = {multi, leaf_hashes, 0};
    struct part all = {0, multi->leaf_count, 0, multi->index_count};
    struct digest node;

    if (!indexes_fit(multi) || !part_node(&check, &node, &all) ||
        check.used != multi->sibling_count) {
        return VERDICT_INVALID;
    }
    return digest_equal(&node, root) ? VERDICT_VALID : VERDICT_INVALID;
}
