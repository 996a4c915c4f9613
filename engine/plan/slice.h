/*
 * slice.h - a part of one operation as an operation of its own.
 *
 * An operation whose tensors do not fit a machine is cut along an axis: rows, elements, a batch,
 * heads, either side of a contraction. Each part is again an operation of the same kind, over parts
 * of the tensors, and makes the very bits that the whole would make there: nothing that is summed
 * is ever cut. A part may be cut again, along the same axis or another. Kinds whose elements depend
 * on where they stand (randomness, batches) and scalars have no axis.
 *
 * Nothing here allocates. Only operations that passed op_check() may be cut.
 */
#ifndef ENGINE_PLAN_SLICE_H
#define ENGINE_PLAN_SLICE_H

#include "engine/tape/tape.h"

#define SLICE_TENSORS_MAX (OP_INPUTS_MAX + OP_OUTPUTS_MAX)
#define SLICE_AXES_MAX    6

/* An operation with tensors of its own: input i is tensor i, output i is tensor input_count + i. */
struct slice {
    struct op op;
    struct tensor tensors[SLICE_TENSORS_MAX];
};

/* Elements of a tensor: count runs of run elements, the first at first, each stride behind. */
struct slice_view {
    uint64_t first;
    uint64_t run;
    uint64_t stride;
    uint64_t count;
};

/*
 * Operation number at of a tape, whole. Inputs have ROLE_INPUT (or ROLE_DATA), outputs
 * ROLE_OUTPUT.
 */
void slice_whole(struct slice *slice, const struct tape *tape, uint32_t at);

/* Bytes of all its tensors. */
uint64_t slice_size(const struct slice *slice);

/* How many axes it has, and into how many units each can be cut: lengths[axis]. */
uint32_t slice_axes(uint64_t lengths[SLICE_AXES_MAX], const struct slice *whole);

/*
 * The part of the units first .. last-1 of an axis. views[i] says which elements of the whole's
 * tensor i are the part's tensor i, in their order.
 */
void slice_take(struct slice *part, struct slice_view views[SLICE_TENSORS_MAX],
                const struct slice *whole, uint32_t axis, uint64_t first, uint64_t last);

/* The parts, all of `units` units but the last, that fit size bytes best; false: no axis helps. */
bool slice_choose(uint32_t *axis, uint64_t *units, const struct slice *whole, uint64_t size);

/* Copies between a tensor of the whole and one of the part. */
void slice_gather(void *part, const void *whole, const struct slice_view *view,
                  uint64_t element_size);
void slice_scatter(void *whole, const void *part, const struct slice_view *view,
                   uint64_t element_size);

#endif /* ENGINE_PLAN_SLICE_H */
