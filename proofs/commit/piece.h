/*
 * piece.h - a state cut into pieces, so that each can be checked alone.
 *
 * A piece is PIECE_SIZE bytes of a tensor, the last of a tensor may be shorter; its hash is the
 * node of the tensor's Merkle tree that covers it. From the hashes of all pieces, in the tape's
 * order, follow the roots of the tensors and the root of the state. So a reader who knows the root
 * can check a list of hashes from a stranger, and then every piece from every other stranger.
 *
 * Training data is cut likewise, into pieces of PIECE_DATA_SIZE: a step reads short rows from
 * anywhere in it.
 */
#ifndef PROOFS_COMMIT_PIECE_H
#define PROOFS_COMMIT_PIECE_H

#include "base/digest.h"
#include "engine/tape/tape.h"

#define PIECE_SIZE      (256u << 10)
#define PIECE_DATA_SIZE (8u << 10)

/* Of a tensor, and of the whole state. */
uint64_t piece_count(const struct tensor *tensor);
uint64_t piece_count_of_state(const struct tape *tape);

/* size is PIECE_SIZE or PIECE_DATA_SIZE, or less at the end of a tensor. Runs in one thread. */
void piece_hash(struct digest *hash, const void *bytes, size_t size);

/* The root of a tensor; hashes are those of its pieces. */
void piece_tensor_root(struct digest *root, const struct tensor *tensor,
                       const struct digest *hashes);

/* The root of the state; hashes are those of all its pieces. */
MUST_CHECK enum status piece_state_root(struct digest *root, const struct tape *tape,
                                        const struct digest *hashes);

/* Of training data: the number of its pieces; the hashes of all of them, in as many threads as
 * OpenMP would use; the root of the data. */
uint64_t piece_data_count(const struct tensor *tensor);
void piece_data_hashes(struct digest *hashes, const struct tensor *tensor, const void *data);
void piece_data_root(struct digest *root, const struct tensor *tensor, const struct digest *hashes);

#endif /* PROOFS_COMMIT_PIECE_H */
