/*
 * range.h - consecutive operations of a step as a tape of their own, for machines with little
 * memory.
 *
 * The tensors that the operations first .. last-1 read and do not make have ROLE_INPUT, or keep
 * ROLE_DATA; those that they make have ROLE_OUTPUT. Any backend runs the range with the bits of the
 * whole step, in the memory of these operations alone. So a verifier can run one operation from its
 * committed inputs.
 *
 * Run ranges in trace mode: there a backend takes and shows quantized operands in the canonical
 * layout.
 */
#ifndef ENGINE_PLAN_RANGE_H
#define ENGINE_PLAN_RANGE_H

#include "engine/tape/tape.h"

struct range {
    struct tape *tape;
    uint32_t first;
    uint32_t last;
    uint32_t given_count;
    uint32_t made_count;
    uint32_t *given; /* the tensors to write or bind: ids in the whole tape */
    uint32_t *made;  /* the tensors that the range makes, in order: ids in the whole tape */
    uint32_t *ids;   /* per tensor of the whole tape: its id in the range, or TENSOR_NONE */
};

/* Refuses a range that is empty or not inside the tape. Borrows the whole tape for the call. */
MUST_CHECK enum status range_build(struct range *range, const struct tape *whole, uint32_t first,
                                   uint32_t last, struct error *error);
void range_release(struct range *range);

/*
 * The end of the largest range from first on whose tensors together fit memory_max bytes; at least
 * one operation. A machine's plan needs at most that much, plus scratch: leave a tenth for it.
 */
uint32_t range_fit(const struct tape *whole, uint32_t first, uint64_t memory_max);

#endif /* ENGINE_PLAN_RANGE_H */
