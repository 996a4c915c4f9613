/* merkle.c - see merkle.h: hashing of leaves and nodes, and roots. */
#include "proofs/hash/merkle.h"

#include <assert.h>
#include <omp.h>

#include "proofs/hash/sha256.h"

/* Leaves and nodes hash under different first bytes, so a node can never be shown as a leaf. */
enum {
    PREFIX_LEAF = 0x00,
    PREFIX_NODE = 0x01,
};

/* One thread hashes a megabyte at a time; the roots of a window of megabytes wait on the stack. */
#define CHUNK_LEVEL  10
#define CHUNK_LEAVES (1 << CHUNK_LEVEL)
#define CHUNK_SIZE   ((size_t)CHUNK_LEAVES * MERKLE_LEAF_SIZE)
#define WINDOW       256

void merkle_leaf_hash(struct digest *hash, const void *leaf, size_t leaf_size)
{
    struct sha256 stream;
    const uint8_t prefix = PREFIX_LEAF;

    sha256_init_scalar(&stream);
    sha256_add(&stream, &prefix, 1);
    sha256_add(&stream, leaf, leaf_size);
    sha256_end(&stream, hash);
}

void merkle_node_hash(struct digest *hash, const struct digest *left, const struct digest *right)
{
    struct sha256 stream;
    const uint8_t prefix = PREFIX_NODE;

    sha256_init_scalar(&stream);
    sha256_add(&stream, &prefix, 1);
    sha256_add(&stream, left->bytes, DIGEST_SIZE);
    sha256_add(&stream, right->bytes, DIGEST_SIZE);
    sha256_end(&stream, hash);
}

/* Folds count >= 1 nodes of one level into the root over them, which ends in nodes[0]. */
static void fold_level(struct digest *nodes, uint64_t count)
{
    while (count > 1) {
        uint64_t pairs = count / 2;

        sha256_many(nodes, PREFIX_NODE, nodes, sizeof(struct digest[2]), pairs, SHA256_ISA_BEST);
        if (count % 2 == 1) {
            nodes[pairs] = nodes[count - 1];
        }
        count = pairs + count % 2;
    }
}

void merkle_builder_init(struct merkle_builder *builder)
{
    builder->leaf_count = 0;
}

/* Adding a full subtree is adding 2^level to a binary number: equal subtrees are the carries. */
static void add_subtree(struct merkle_builder *builder, const struct digest *root, uint32_t level)
{
    struct digest carry = *root;
    uint32_t place = level;

    assert(builder->leaf_count % (UINT64_C(1) << level) == 0);
    while ((builder->leaf_count >> place & 1) != 0) {
        merkle_node_hash(&carry, &builder->pending[place], &carry);
        place++;
    }
    assert(place <= MERKLE_DEPTH_MAX);
    builder->pending[place] = carry;
    builder->leaf_count += UINT64_C(1) << level;
}

/* The level of the largest subtree that can start at leaf_index and has at most count leaves. */
static uint32_t subtree_level(uint64_t leaf_index, uint64_t count)
{
    uint32_t level = 63 - (uint32_t)__builtin_clzll(count);
    uint32_t aligned = leaf_index == 0 ? level : (uint32_t)__builtin_ctzll(leaf_index);

    return aligned < level ? aligned : level;
}

/* Adds leaf hashes that may be overwritten, in the largest subtrees that fit. */
static void add_hashes(struct merkle_builder *builder, struct digest *hashes, uint64_t count)
{
    while (count > 0) {
        uint32_t level = subtree_level(builder->leaf_count, count);
        uint64_t taken = UINT64_C(1) << level;

        fold_level(hashes, taken);
        add_subtree(builder, hashes, level);
        hashes += taken;
        count -= taken;
    }
}

enum status merkle_builder_add(struct merkle_builder *builder, const struct digest *hashes,
                               uint64_t count)
{
    struct digest copy[CHUNK_LEAVES];

    if (count > MERKLE_LEAVES_MAX - builder->leaf_count) {
        return STATUS_OVER_LIMIT;
    }
    while (count > 0) {
        /* Up to the next multiple of a chunk, so that a long list is cut into full subtrees. */
        uint64_t room = CHUNK_LEAVES - builder->leaf_count % CHUNK_LEAVES;
        uint64_t taken = count < room ? count : room;

        memcpy(copy, hashes, (size_t)taken * sizeof(copy[0]));
        add_hashes(builder, copy, taken);
        hashes += taken;
        count -= taken;
    }
    return STATUS_OK;
}

enum status merkle_builder_add_range(struct merkle_builder *builder, const struct digest *nodes,
                                     uint64_t count)
{
    if (count > MERKLE_LEAVES_MAX - builder->leaf_count) {
        return STATUS_OVER_LIMIT;
    }
    while (count > 0) {
        const uint32_t level = subtree_level(builder->leaf_count, count);

        add_subtree(builder, nodes++, level);
        count -= UINT64_C(1) << level;
    }
    return STATUS_OK;
}

uint32_t merkle_range_count(uint64_t first, uint64_t count)
{
    uint32_t nodes = 0;

    for (; count > 0; nodes++) {
        const uint64_t taken = UINT64_C(1) << subtree_level(first, count);

        first += taken;
        count -= taken;
    }
    return nodes;
}

void merkle_builder_root(const struct merkle_builder *builder, struct digest *root)
{
    uint64_t left = builder->leaf_count;

    if (left == 0) {
        sha256(root, NULL, 0);
        return;
    }
    /* The smallest subtree is the last of the list; each larger one stands to its left. */
    *root = builder->pending[__builtin_ctzll(left)];
    for (left &= left - 1; left != 0; left &= left - 1) {
        merkle_node_hash(root, &builder->pending[__builtin_ctzll(left)], root);
    }
}

/* Hashes up to CHUNK_LEAVES whole leaves. */
static void hash_leaves(struct digest *hashes, const uint8_t *bytes, uint64_t count)
{
    sha256_many(hashes, PREFIX_LEAF, bytes, MERKLE_LEAF_SIZE, count, SHA256_ISA_BEST);
}

/* Adds whole chunks at a multiple of a chunk, some per thread. */
static void add_chunks(struct merkle_builder *builder, const uint8_t *bytes, uint64_t count,
                       int threads)
{
    struct digest roots[WINDOW];
    int used = threads > 0 ? threads : omp_get_max_threads();

    while (count > 0) {
        int taken = count < WINDOW ? (int)count : WINDOW;

#pragma omp parallel for schedule(dynamic) num_threads(used) if (taken > 1 && used > 1)
        for (int i = 0; i < taken; i++) {
            struct digest hashes[CHUNK_LEAVES];

            hash_leaves(hashes, bytes + (size_t)i * CHUNK_SIZE, CHUNK_LEAVES);
            fold_level(hashes, CHUNK_LEAVES);
            roots[i] = hashes[0];
        }
        for (int i = 0; i < taken; i++) {
            add_subtree(builder, &roots[i], CHUNK_LEVEL);
        }
        bytes += (size_t)taken * CHUNK_SIZE;
        count -= (uint64_t)taken;
    }
}

/* Adds whole leaves. */
static void add_leaves(struct merkle_builder *builder, const uint8_t *bytes, uint64_t count,
                       int threads)
{
    struct digest hashes[CHUNK_LEAVES];

    while (count > 0) {
        uint64_t room = CHUNK_LEAVES - builder->leaf_count % CHUNK_LEAVES;
        uint64_t taken = count < room ? count : room;

        if (taken == CHUNK_LEAVES) {
            taken = count - count % CHUNK_LEAVES;
            add_chunks(builder, bytes, taken / CHUNK_LEAVES, threads);
        } else {
            hash_leaves(hashes, bytes, taken);
            add_hashes(builder, hashes, taken);
        }
        bytes += taken * MERKLE_LEAF_SIZE;
        count -= taken;
    }
}

void merkle_stream_init(struct merkle_stream *stream)
{
    merkle_builder_init(&stream->builder);
    stream->size = 0;
}

enum status merkle_stream_add(struct merkle_stream *stream, const void *data, size_t data_size,
                              int threads)
{
    const uint8_t *bytes = data;
    size_t held = stream->size % MERKLE_LEAF_SIZE;

    if (data_size > MERKLE_LEAVES_MAX * MERKLE_LEAF_SIZE - stream->size) {
        return STATUS_OVER_LIMIT;
    }
    if (data_size == 0) {
        return STATUS_OK;
    }
    stream->size += data_size;
    if (held > 0) {
        size_t room = MERKLE_LEAF_SIZE - held;
        size_t taken = data_size < room ? data_size : room;

        memcpy(stream->leaf + held, bytes, taken);
        if (taken < room) {
            return STATUS_OK;
        }
        add_leaves(&stream->builder, stream->leaf, 1, 1);
        bytes += taken;
        data_size -= taken;
    }
    add_leaves(&stream->builder, bytes, data_size / MERKLE_LEAF_SIZE, threads);
    memcpy(stream->leaf, bytes + data_size - data_size % MERKLE_LEAF_SIZE,
           data_size % MERKLE_LEAF_SIZE);
    return STATUS_OK;
}

void merkle_stream_root(const struct merkle_stream *stream, struct digest *root)
{
    struct merkle_builder builder = stream->builder;
    size_t held = stream->size % MERKLE_LEAF_SIZE;

    if (held > 0) {
        uint8_t leaf[MERKLE_LEAF_SIZE] = {0};

        memcpy(leaf, stream->leaf, held);
        add_leaves(&builder, leaf, 1, 1);
    }
    merkle_builder_root(&builder, root);
}

void merkle_leaves_init_hashes(struct merkle_leaves *leaves, const struct digest *hashes,
                               uint64_t count)
{
    assert(count <= MERKLE_LEAVES_MAX);
    *leaves = (struct merkle_leaves){.hashes = hashes, .count = count};
}

void merkle_leaves_init_bytes(struct merkle_leaves *leaves, const void *bytes, uint64_t byte_count)
{
    assert(byte_count <= MERKLE_LEAVES_MAX * MERKLE_LEAF_SIZE);
    *leaves = (struct merkle_leaves){
        .bytes = bytes,
        .byte_count = byte_count,
        .count = byte_count / MERKLE_LEAF_SIZE + (byte_count % MERKLE_LEAF_SIZE != 0),
    };
}

/* The root over count leaves from first, as if they were a list of their own. */
static void range_root(struct digest *root, const struct merkle_leaves *leaves, uint64_t first,
                       uint64_t count)
{
    enum status status;

    assert(first <= leaves->count);
    assert(count <= leaves->count - first);
    if (leaves->hashes != NULL) {
        struct merkle_builder builder;

        merkle_builder_init(&builder);
        status = merkle_builder_add(&builder, leaves->hashes + first, count);
        merkle_builder_root(&builder, root);
    } else {
        struct merkle_stream stream;
        uint64_t from = first * MERKLE_LEAF_SIZE;
        uint64_t size = count * MERKLE_LEAF_SIZE;

        merkle_stream_init(&stream);
        if (size > leaves->byte_count - from) {
            size = leaves->byte_count - from;
        }
        status = merkle_stream_add(&stream, leaves->bytes + from, (size_t)size, leaves->threads);
        merkle_stream_root(&stream, root);
    }
    assert(status == STATUS_OK); /* the init checked the limits */
}

void merkle_leaf_hashes(struct digest *hashes, const struct merkle_leaves *leaves)
{
    uint64_t whole = leaves->byte_count / MERKLE_LEAF_SIZE;
    uint64_t chunks = (whole + CHUNK_LEAVES - 1) / CHUNK_LEAVES;
    int used = leaves->threads > 0 ? leaves->threads : omp_get_max_threads();

    assert(leaves->hashes == NULL);
#pragma omp parallel for schedule(dynamic) num_threads(used) if (chunks > 1 && used > 1)
    for (uint64_t chunk = 0; chunk < chunks; chunk++) {
        uint64_t first = chunk * CHUNK_LEAVES;

        hash_leaves(hashes + first, leaves->bytes + (size_t)first * MERKLE_LEAF_SIZE,
                    whole - first < CHUNK_LEAVES ? whole - first : CHUNK_LEAVES);
    }
    if (whole < leaves->count) {
        range_root(&hashes[whole], leaves, whole, 1);
    }
}

void merkle_root(struct digest *root, const struct merkle_leaves *leaves)
{
    range_root(root, leaves, 0, leaves->count);
}

void merkle_node(struct digest *node, const struct merkle_leaves *leaves, uint32_t level,
                 uint64_t index)
{
    uint64_t span = UINT64_C(1) << level;

    assert(level <= MERKLE_DEPTH_MAX);
    assert(leaves->count > 0);
    assert(index <= (leaves->count - 1) >> level);

    uint64_t first = index << level;
    uint64_t left = leaves->count - first;

    range_root(node, leaves, first, left < span ? left : span);
}

uint32_t merkle_height(uint64_t count)
{
    return count <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(count - 1);
}

/* ---- ranges ---- */

void merkle_range_nodes(struct digest *nodes, const struct merkle_leaves *leaves, uint64_t first)
{
    uint64_t done = 0;

    assert(leaves->bytes != NULL || leaves->count == 0);
    while (done < leaves->count) {
        const uint64_t taken = UINT64_C(1) << subtree_level(first + done, leaves->count - done);
        const uint64_t from = done * MERKLE_LEAF_SIZE;
        const uint64_t rest = leaves->byte_count - from;
        const uint64_t size = taken * MERKLE_LEAF_SIZE;
        struct merkle_leaves part;

        merkle_leaves_init_bytes(&part, leaves->bytes + from, rest < size ? rest : size);
        part.threads = leaves->threads;
        merkle_root(nodes++, &part);
        done += taken;
    }
}
