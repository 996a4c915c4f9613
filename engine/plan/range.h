/*
 * range.h - a run of a step's operations as a tape of its own, for machines with little memory.
 *
 * What the operations first .. last-1 read and do not make themselves is to be given (ROLE_INPUT,
 * or the role it has); what they make is to be read (ROLE_OUTPUT). Any backend runs it, with the
 * bits of the whole step, in the memory of these operations alone: so one operation of a step is
 * verified from its committed inputs, and a model is split over devices by handing the outputs of
 * one range to the next.
 *
 * Run ranges in trace mode: there a quantized operand is given and read in the canonical layout,
 * whatever a backend keeps inside.
 */
#ifndef ENGINE_PLAN_RANGE_H
#define ENGINE_PLAN_RANGE_H

#include "engine/tape/tape.h"

struct range {
    struct tape *tape; /* operations and tensors keep their meaning; ids are those below */
    uint32_t first;
    uint32_t last;
    uint32_t given_count;
    uint32_t made_count;
    uint32_t *given; /* ids in the whole tape of what must be written or bound */
    uint32_t *made;  /* ids in the whole tape, in the order in which they are made */
    uint32_t *ids;   /* per tensor of the whole tape: its id in the range's, or TENSOR_NONE */
};

/* Refuses a range that is empty or not inside the tape. The whole tape is only borrowed. */
MUST_CHECK enum status range_build(struct range *range, const struct tape *whole, uint32_t first,
                                   uint32_t last, struct error *error);
void range_release(struct range *range);

/*
 * The largest range that starts at first and whose tensors, all counted at once, stay within
 * memory_max bytes; at least one operation. Plans of a machine need less, never more, but for
 * scratch: leave a tenth for that.
 */
uint32_t range_fit(const struct tape *whole, uint32_t first, uint64_t memory_max);

#endif /* ENGINE_PLAN_RANGE_H */
