/*
 * leaf_proof.h - one leaf of a state of a segment, proven up to the root of the segment.
 *
 * A verifier that replays a segment is asked for leaves that a seed draws: which state, which of
 * its tensors, which leaf of that (docs/FORMATS.md, 9.7). A proof does not say which leaf it is
 * about. Its reader learns how many tensors and leaves there are, draws, and checks that place.
 */
#ifndef PROOFS_COMMIT_LEAF_PROOF_H
#define PROOFS_COMMIT_LEAF_PROOF_H

#include "base/buffer.h"
#include "engine/plan/backend.h"
#include "proofs/hash/merkle.h"

#define LEAF_PROOF_SIZE_MAX 8192

struct leaf_proof_place {
    uint32_t step; /* of the segment: the state after it */
    uint32_t tensor;
    uint64_t leaf;
};

/* How many leaves a tensor has. */
uint64_t leaf_proof_leaves(const struct tensor *tensor);

/* Of the state that the machine holds: the one after place->step. Zeros fill the leaf up. */
MUST_CHECK enum status leaf_proof_leaf(uint8_t leaf[MERKLE_LEAF_SIZE],
                                       const struct leaf_proof_place *place,
                                       struct machine *machine, struct error *error);

/* Appends the proof of the same. states: the roots of the segment's states, steps of them. */
MUST_CHECK enum status leaf_proof_write(struct buffer *bytes, const struct leaf_proof_place *place,
                                        const struct digest *states, uint32_t steps,
                                        struct machine *machine, struct error *error);

/* What was read; borrows the bytes. */
struct leaf_proof {
    uint32_t tensors; /* of the state, at least 1 */
    uint64_t leaves;  /* of the tensor, at least 1 */
    const uint8_t *label;
    uint32_t label_size;
    const uint8_t *leaf;
    struct merkle_path of_state; /* siblings alone */
    struct merkle_path of_tensor;
    struct merkle_path of_leaf;
};

/* Reads exactly size bytes from anywhere. */
MUST_CHECK enum status leaf_proof_read(struct leaf_proof *proof, const uint8_t *bytes, size_t size,
                                       struct error *error);

/* Does the leaf stand at this place of the segment with this root, whose first step is `first`? */
MUST_CHECK enum verdict leaf_proof_check(struct leaf_proof *proof, const struct digest *segment,
                                         uint64_t first, uint32_t steps,
                                         const struct leaf_proof_place *place);

#endif /* PROOFS_COMMIT_LEAF_PROOF_H */
