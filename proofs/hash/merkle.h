/*
 * merkle.h - Merkle trees as RFC 6962 hashes them: roots, paths for one leaf, proofs for many.
 *
 * A leaf hashes as SHA-256(0x00 || leaf), a node as SHA-256(0x01 || left || right). A list is split
 * at the largest power of two below its length. So a node at (level, index) covers the leaves from
 * index * 2^level up to (index + 1) * 2^level, or to the end of the list. A node without a right
 * neighbour rises unhashed.
 *
 * Bytes are cut into leaves of 1,024 bytes, the last filled up with zeros. The root does not bind
 * the number of bytes: bind it beside the root (commit.h).
 *
 * Nothing here allocates or prints. The number of threads never changes a root.
 */
#ifndef PROOFS_HASH_MERKLE_H
#define PROOFS_HASH_MERKLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/status.h"

#define MERKLE_LEAF_SIZE             1024
#define MERKLE_DEPTH_MAX             40 /* bounds every path and every loop over levels */
#define MERKLE_LEAVES_MAX            (UINT64_C(1) << MERKLE_DEPTH_MAX)
#define MERKLE_PATH_BYTES_MAX        (18 + MERKLE_DEPTH_MAX * DIGEST_SIZE)
#define MERKLE_MULTI_LEAVES_MAX      65536
/* Enough siblings for any proof of `count` leaves. */
#define MERKLE_MULTI_SIBLINGS(count) ((size_t)(count)*MERKLE_DEPTH_MAX)

/* One leaf, one node: in portable C, as all that convicts. What follows hashes many at once. */
void merkle_leaf_hash(struct digest *hash, const void *leaf, size_t leaf_size);
void merkle_node_hash(struct digest *hash, const struct digest *left, const struct digest *right);

/* ---- roots of what arrives in pieces ---- */

/* A root in progress over leaf hashes. A plain value: copy it, drop it. */
struct merkle_builder {
    uint64_t leaf_count;
    /* pending[k] roots 2^k leaves, and means something only while bit k of leaf_count is set. */
    struct digest pending[MERKLE_DEPTH_MAX + 1];
};

void merkle_builder_init(struct merkle_builder *builder);

/* Adds leaves by their hashes. STATUS_OVER_LIMIT leaves the builder as it was. */
MUST_CHECK enum status merkle_builder_add(struct merkle_builder *builder,
                                          const struct digest *hashes, uint64_t count);

/* The root of the leaves so far; of none: SHA-256 of nothing. The builder can go on. */
void merkle_builder_root(const struct merkle_builder *builder, struct digest *root);

/* A root in progress over bytes, in pieces of any size. A plain value. */
struct merkle_stream {
    struct merkle_builder builder;
    uint64_t size;                  /* bytes so far */
    uint8_t leaf[MERKLE_LEAF_SIZE]; /* the first size % 1,024 bytes wait here for their leaf */
};

void merkle_stream_init(struct merkle_stream *stream);

/* Threads 0 means as many as OpenMP would use. STATUS_OVER_LIMIT leaves the stream as it was. */
MUST_CHECK enum status merkle_stream_add(struct merkle_stream *stream, const void *data,
                                         size_t data_size, int threads);
void merkle_stream_root(const struct merkle_stream *stream, struct digest *root);

/* ---- trees whose leaves are all at hand ---- */

/* Borrows either the leaf hashes or the bytes, for as long as it is used. */
struct merkle_leaves {
    const struct digest *hashes; /* NULL when the leaves are cut from bytes */
    const uint8_t *bytes;
    uint64_t byte_count;
    uint64_t count;
    int threads; /* 0: as many as OpenMP would use; the init sets 0 */
};

/* The level of the root of a tree of count leaves, count > 0: the smallest that covers them all. */
uint32_t merkle_height(uint64_t count);

/* More leaves than MERKLE_LEAVES_MAX are the caller's bug. */
void merkle_leaves_init_hashes(struct merkle_leaves *leaves, const struct digest *hashes,
                               uint64_t count);
void merkle_leaves_init_bytes(struct merkle_leaves *leaves, const void *bytes, uint64_t byte_count);

void merkle_root(struct digest *root, const struct merkle_leaves *leaves);

/* The hash of every leaf of leaves that are cut from bytes; hashes has room for leaves->count. */
void merkle_leaf_hashes(struct digest *hashes, const struct merkle_leaves *leaves);

/* The node at (level, index); it must exist. */
void merkle_node(struct digest *node, const struct merkle_leaves *leaves, uint32_t level,
                 uint64_t index);

/* ---- ranges of leaves, hashed at several places ---- */

/* The leaves first .. first + count - 1 of a list as its largest full subtrees, left to right. */
#define MERKLE_RANGE_NODES_MAX (2 * MERKLE_DEPTH_MAX)

/* How many these are. */
uint32_t merkle_range_count(uint64_t first, uint64_t count);

/* Their roots; leaves are those of the range alone, cut from bytes. */
void merkle_range_nodes(struct digest *nodes, const struct merkle_leaves *leaves, uint64_t first);

/* Adds a range that begins behind the leaves that the builder has. STATUS_OVER_LIMIT leaves it as
 * it was. */
MUST_CHECK enum status merkle_builder_add_range(struct merkle_builder *builder,
                                                const struct digest *nodes, uint64_t count);

/* ---- the path of one leaf ---- */

/* The siblings that lead from one leaf to the root, nearest the leaf first. */
struct merkle_path {
    uint64_t leaf_index;
    uint64_t leaf_count;
    uint32_t sibling_count;
    struct digest siblings[MERKLE_DEPTH_MAX];
};

/* leaf_index must be less than leaves->count. */
void merkle_path_build(struct merkle_path *path, const struct merkle_leaves *leaves,
                       uint64_t leaf_index);

/* The root that path leads to from the leaf with this hash; VERDICT_INVALID: it is no path at
 * all. */
MUST_CHECK enum verdict merkle_path_root(struct digest *root, const struct merkle_path *path,
                                         const struct digest *leaf_hash);

/*
 * Does path lead from the leaf with this hash to root? Safe on hostile input.
 *
 * A path does not bind leaf_count: the path of leaf 0 is the same for three leaves and for four.
 * Take leaf_count from what the root is bound to, never from the sender of the path.
 */
MUST_CHECK enum verdict merkle_path_check(const struct merkle_path *path,
                                          const struct digest *leaf_hash,
                                          const struct digest *root);

/* Writes the path as docs/FORMATS.md has it; returns the bytes written. */
size_t merkle_path_write(uint8_t bytes[MERKLE_PATH_BYTES_MAX], const struct merkle_path *path);

/* Reads exactly size bytes. Refuses a path whose number of siblings does not fit its place. */
MUST_CHECK enum status merkle_path_read(struct merkle_path *path, const uint8_t *bytes,
                                        size_t size);

/* ---- the proof of many leaves ---- */

/*
 * Proves the leaves at indexes (rising, no two equal) together. The siblings are the nodes that
 * cover none of these leaves and whose parent covers one, from left to right. The arrays are the
 * caller's, of the capacities named.
 */
struct merkle_multi {
    uint64_t leaf_count;
    uint64_t *indexes;
    uint32_t index_count;
    uint32_t index_capacity;
    struct digest *siblings;
    uint32_t sibling_count;
    uint32_t sibling_capacity;
};

/*
 * Which nodes of the tree the siblings are, in their order. leaf_count, indexes and index_count are
 * set. STATUS_BAD_FORMAT: indexes do not rise or leave the tree; STATUS_OVER_LIMIT: no room.
 */
struct merkle_place {
    uint32_t level;
    uint64_t index;
};
MUST_CHECK enum status merkle_multi_places(struct merkle_place *places, uint32_t *place_count,
                                           uint32_t place_capacity,
                                           const struct merkle_multi *multi);

/* As merkle_path_check(), for leaf_hashes[i] at multi->indexes[i]. */
MUST_CHECK enum verdict merkle_multi_check(const struct merkle_multi *multi,
                                           const struct digest *leaf_hashes,
                                           const struct digest *root);

#endif /* PROOFS_HASH_MERKLE_H */
