/*
 * giant.h - operations of any size as an accused could commit to them, without their memory.
 *
 * Every element of a tensor is the same, so that all of its full leaves are, and every node of its
 * tree follows in a few hashes: the logits of a large model, or sizes that only a liar would name.
 * Evidence about them is written, and judged, as about any other.
 */
#ifndef TESTS_SUPPORT_DISPUTE_GIANT_H
#define TESTS_SUPPORT_DISPUTE_GIANT_H

#include "proofs/commit/descriptor.h"
#include "proofs/dispute/evidence.h"

struct giant {
    struct tape *tape; /* of one operation */
    uint32_t
        values[DESCRIPTOR_OPERANDS_MAX + 1]; /* by tensor of the tape: the bits of each element */
    struct descriptor_places places;
    struct evidence_context context;
    struct evidence_source source;
};

/* Takes op's kind and attributes; its tensors are made: inputs of these types and sizes are states
 * and have these values, outputs are temporary. op's ids are filled in. One more state is added.
 * Aborts when op_check() refuses it. */
struct giant_tensor {
    enum dtype dtype;
    uint64_t count;
    uint32_t value;
};
void giant_open(struct giant *giant, const struct op *op, const struct giant_tensor *tensors);

/*
 * An operation over rows of k elements, two rows a side. A contract or contract-ones of ones, or a
 * contract-onehot of nothing but word 0: where the blocks have exponent 13, a sum is k. Or a
 * quantize, whose peaks have the exponent. All elements of the output (of quantize the exponents)
 * are `found`.
 */
void giant_open_long(struct giant *giant, enum op_kind kind, int64_t k, int64_t block, int exponent,
                     uint32_t found);
void giant_close(struct giant *giant);

#endif /* TESTS_SUPPORT_DISPUTE_GIANT_H */
