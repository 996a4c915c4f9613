/*
 * commit.h - roots of tensors, states, segments, traces, programs and data, and the id of a job.
 *
 * A root is the SHA-256 of a short header. The header begins with a 32-byte tag and names
 * everything that the Merkle root alone does not bind: how many items, how many bytes, which type
 * and shape. Tags never begin with 0x00 or 0x01, so no header is ever a leaf or a node of a tree.
 * docs/FORMATS.md has every byte; a contract checks a root with one precompile call per hash.
 *
 * Nothing here allocates, reads or prints.
 */
#ifndef PROOFS_COMMIT_COMMIT_H
#define PROOFS_COMMIT_COMMIT_H

#include "base/digest.h"
#include "base/status.h"
#include "engine/ops/tensor.h"
#include "proofs/hash/merkle.h"

#define COMMIT_DIMS_MAX          6 /* places in the header; the engine's own limit is lower */
#define COMMIT_TENSOR_HEADER_MIN 124
#define COMMIT_TENSOR_HEADER_MAX (COMMIT_TENSOR_HEADER_MIN + TENSOR_NAME_MAX)
#define COMMIT_LIST_HEADER_SIZE  80
#define COMMIT_TENSOR_BYTES_MAX  (MERKLE_LEAVES_MAX * MERKLE_LEAF_SIZE)

/* ---- tensors and data ---- */

/* Training data has a tag of its own, and its header holds no name. */
enum commit_array {
    COMMIT_TENSOR = 0,
    COMMIT_DATA,
};

/* Bytes of all elements. */
uint64_t commit_tensor_size(const struct tensor *tensor);

/* Does it have at most COMMIT_DIMS_MAX bounded dims, a matching count and a name that a tape may
 * give? */
bool commit_tensor_sound(const struct tensor *tensor);

/* Writes the header of a sound tensor; returns its size. role is not part of it. */
size_t commit_tensor_header(uint8_t bytes[COMMIT_TENSOR_HEADER_MAX], enum commit_array kind,
                            const struct tensor *tensor, const struct digest *leaves_root);

/* The same from a label: the part of a header after tag and leaves_root. */
size_t commit_labelled_header(uint8_t bytes[COMMIT_TENSOR_HEADER_MAX], enum commit_array kind,
                              const void *label, size_t label_size,
                              const struct digest *leaves_root);

/* Reads a header from outside; refuses bytes that commit_tensor_header() would not write. The
 * tensor gets the role ROLE_TEMPORARY, or ROLE_DATA and the name "data". */
MUST_CHECK enum status commit_tensor_header_read(struct tensor *tensor, enum commit_array *kind,
                                                 struct digest *leaves_root, const uint8_t *bytes,
                                                 size_t size);

/* The root of a sound tensor whose commit_tensor_size() bytes, little-endian and row-major, are
 * at data. Threads 0: as many as OpenMP would use. */
void commit_tensor_root(struct digest *root, enum commit_array kind, const struct tensor *tensor,
                        const void *data, int threads);

/* The same where a device has hashed the leaves: leaves_root is their Merkle root. */
void commit_tensor_root_of(struct digest *root, enum commit_array kind, const struct tensor *tensor,
                           const struct digest *leaves_root);

/* The same from a label. */
void commit_labelled_root(struct digest *root, enum commit_array kind, const void *label,
                          size_t label_size, const struct digest *leaves_root);

/* The same from pieces, in order, so that hashing overlaps the computation. Borrows tensor. */
struct commit_stream {
    const struct tensor *tensor;
    enum commit_array kind;
    struct merkle_stream stream;
};

void commit_stream_init(struct commit_stream *stream, enum commit_array kind,
                        const struct tensor *tensor);

/* More bytes than the tensor has are the caller's bug. */
void commit_stream_add(struct commit_stream *stream, const void *data, size_t data_size,
                       int threads);

/* All bytes must have been added. */
void commit_stream_root(const struct commit_stream *stream, struct digest *root);

/* ---- lists ---- */

enum commit_list {
    COMMIT_STATE = 0, /* items: tensor roots, in the tape's order */
    COMMIT_SEGMENT,   /* items: state roots after each of its steps; first: its first step */
    COMMIT_TRACE,     /* items: tensor roots, the pre-state before the outputs of the operations */
    COMMIT_PROGRAM,   /* items: descriptors (descriptor.h); first: how many items a trace has */
    COMMIT_BATCH, /* items: tensor roots of a micro-batch's own list; first: which micro-batch */
};
#define COMMIT_LIST_COUNT 5

/* first is 0 for states and traces. */
void commit_list_header(uint8_t bytes[COMMIT_LIST_HEADER_SIZE], enum commit_list kind,
                        uint64_t first, uint64_t count, const struct digest *items_root);

/* A list in progress. A plain value. */
struct commit_roots {
    enum commit_list kind;
    uint64_t first;
    struct merkle_builder builder;
};

void commit_roots_init(struct commit_roots *roots, enum commit_list kind, uint64_t first);

/* Adds an item that is itself a root, or (descriptors) any bytes. STATUS_OVER_LIMIT: too many. */
MUST_CHECK enum status commit_roots_add(struct commit_roots *roots, const struct digest *item);
MUST_CHECK enum status commit_roots_add_bytes(struct commit_roots *roots, const void *item,
                                              size_t item_size);
void commit_roots_end(const struct commit_roots *roots, struct digest *root);

/* The root of a list of roots; items are digests in a row. */
void commit_list_root(struct digest *root, enum commit_list kind, uint64_t first,
                      const struct digest *items, uint64_t count);

/* The root of a list whose items have this tree root. */
void commit_list_root_of(struct digest *root, enum commit_list kind, uint64_t first, uint64_t count,
                         const struct digest *items_root);

/* The id of a job from its canonical bytes. */
void commit_job_id(struct digest *id, const void *job, size_t job_size);

/* ---- openings ---- */

/*
 * Is this leaf (MERKLE_LEAF_SIZE bytes, with its zeros) where path says, in the tensor whose header
 * hashes to root? The number of leaves comes from the header, never from the path.
 */
MUST_CHECK enum verdict commit_leaf_check(const struct digest *root, const uint8_t *header,
                                          size_t header_size, const uint8_t leaf[MERKLE_LEAF_SIZE],
                                          const struct merkle_path *path);

/* Is this item (32 bytes when it is a root) where path says, in the list with this root? */
MUST_CHECK enum verdict commit_item_check(const struct digest *root, enum commit_list kind,
                                          uint64_t first, const void *item, size_t item_size,
                                          const struct merkle_path *path);

#endif /* PROOFS_COMMIT_COMMIT_H */
