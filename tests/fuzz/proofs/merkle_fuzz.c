/*
 * merkle_fuzz.c - any bytes as a path (first byte even) or a proof of many leaves (odd). What is
 * read writes back to the same bytes, and never proves a leaf that is not in the small tree here.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/hash/merkle.h"
#include "tests/support/proofs/merkle_multi.h"

#define TREE_LEAVES 13
#define INDEXES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tree_root(struct digest *root)
{
    struct digest hashes[TREE_LEAVES];
    struct merkle_leaves leaves;

    for (uint8_t i = 0; i < TREE_LEAVES; i++) {
        merkle_leaf_hash(&hashes[i], &i, 1);
    }
    merkle_leaves_init_hashes(&leaves, hashes, TREE_LEAVES);
    merkle_root(root, &leaves);
}

static void try_path(const struct digest *root, const uint8_t *data, size_t size)
{
    struct merkle_path path;
    uint8_t again[MERKLE_PATH_BYTES_MAX];
    struct digest stranger;

    if (merkle_path_read(&path, data, size) != STATUS_OK) {
        return;
    }
    if (merkle_path_write(again, &path) != size || memcmp(again, data, size) != 0) {
        abort();
    }
    merkle_leaf_hash(&stranger, "stranger", 8);
    if (merkle_path_check(&path, &stranger, root) == VERDICT_VALID) {
        abort();
    }
    for (uint8_t i = 0; i < TREE_LEAVES; i++) {
        struct digest hash;

        merkle_leaf_hash(&hash, &i, 1);
        if (merkle_path_check(&path, &hash, root) == VERDICT_VALID &&
            path.leaf_count == TREE_LEAVES && path.leaf_index != i) {
            abort();
        }
    }
}

static void try_multi(const struct digest *root, const uint8_t *data, size_t size)
{
    uint64_t indexes[INDEXES_MAX];
    static struct digest siblings[MERKLE_MULTI_SIBLINGS(INDEXES_MAX)];
    static uint8_t again[16 + sizeof(indexes) + sizeof(siblings)];
    struct digest strangers[INDEXES_MAX];
    struct merkle_multi multi = {
        .indexes = indexes,
        .index_capacity = INDEXES_MAX,
        .siblings = siblings,
        .sibling_capacity = MERKLE_MULTI_SIBLINGS(INDEXES_MAX),
    };

    if (merkle_multi_read(&multi, data, size) != STATUS_OK) {
        return;
    }
    if (merkle_multi_bytes(&multi) != size) {
        abort();
    }
    merkle_multi_write(again, &multi);
    if (memcmp(again, data, size) != 0) {
        abort();
    }
    memset(strangers, 0x5A, sizeof(strangers));
    if (merkle_multi_check(&multi, strangers, root) == VERDICT_VALID) {
        abort();
    }
    for (uint32_t i = 0; i < multi.index_count; i++) {
        uint8_t leaf = (uint8_t)multi.indexes[i];

        merkle_leaf_hash(&strangers[i], &leaf, 1);
    }
    if (merkle_multi_check(&multi, strangers, root) == VERDICT_VALID &&
        multi.leaf_count == TREE_LEAVES && multi.indexes[0] >= TREE_LEAVES) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct digest root;

    if (size == 0) {
        return 0;
    }
    tree_root(&root);
    if (data[0] % 2 == 0) {
        try_path(&root, data + 1, size - 1);
    } else {
        try_multi(&root, data + 1, size - 1);
    }
    return 0;
}
