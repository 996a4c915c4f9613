/*
 * evidence_bound.h - how large evidence about an operation can become, and whether it fits.
 *
 * A claimant shows what a rule reads, leaf by leaf, with the proofs of the leaves. What does not
 * fit a transaction convicts nobody. So the largest evidence of every output is computed from the
 * attributes and shapes alone, and tape_check() refuses an operation that could need more. Of an
 * output with an axis (rule.h), evidence of one of its shortest parts must fit, with a reply.
 *
 * The bound holds for every element, wherever its operands lie in their leaves. The bytes are those
 * of docs/FORMATS.md, section 9.
 */
#ifndef ENGINE_RULES_EVIDENCE_BOUND_H
#define ENGINE_RULES_EVIDENCE_BOUND_H

#include "engine/ops/op.h"

/* The least that a ledger takes in a move. */
#define EVIDENCE_FITS (UINT64_C(124) * 1024)

/* Bytes of the largest evidence of output number `output`; op_check() has passed. */
uint64_t evidence_bound(const struct op *op, const struct tensor *tensors, uint32_t output);

/* STATUS_OVER_LIMIT: evidence of an output could have more than EVIDENCE_FITS bytes. */
MUST_CHECK enum status evidence_bound_check(const struct op *op, const struct tensor *tensors,
                                            struct error *error);

#endif /* ENGINE_RULES_EVIDENCE_BOUND_H */
