/*
 * slice.h - a part of one operation as an operation of its own.
 *
 * An operation whose tensors do not fit a machine is cut along an axis: rows, elements, a batch,
 * heads, either side of a contraction. Each part is an operation of the same kind over parts of the
 * tensors, and makes the bits that the whole makes there: no axis of a sum is ever cut. A part can
 * be cut again. Kinds whose elements depend on their index (randomness, batches) and scalars have
 * no axis.
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

/* `count` runs of `run` elements of a tensor; the first starts at `first`, each a stride later. */
struct slice_view {
    uint64_t first;
    uint64_t run;
    uint64_t stride;
    uint64_t count;
};

/* The whole of a tape's operation. Inputs have ROLE_INPUT (or ROLE_DATA), outputs ROLE_OUTPUT. */
void slice_whole(struct slice *slice, const struct tape *tape, uint32_t at);

/* Bytes of all its tensors. */
uint64_t slice_size(const struct slice *slice);

/* The number of axes. lengths[axis] is the number of units into which an axis can be cut. */
uint32_t slice_axes(uint64_t lengths[SLICE_AXES_MAX], const struct slice *whole);

/*
 * The part of the units first .. last-1 of an axis. The part's tensor i has the elements views[i]
 * of the whole's tensor i, in their order.
 */
void slice_take(struct slice *part, struct slice_view views[SLICE_TENSORS_MAX],
                const struct slice *whole, uint32_t axis, uint64_t first, uint64_t last);

/* Chooses parts of `units` units each (the last may be shorter), to fit size bytes. False: no axis
 * can be cut. */
bool slice_choose(uint32_t *axis, uint64_t *units, const struct slice *whole, uint64_t size);

/* Copies between a tensor of the whole and one of the part. */
void slice_gather(void *part, const void *whole, const struct slice_view *view,
                  uint64_t element_size);
void slice_scatter(void *whole, const void *part, const struct slice_view *view,
                   uint64_t element_size);

#endif /* ENGINE_PLAN_SLICE_H */
