/*
 * repeat.h - a step of many micro-batches as a short program: the body of one, and how often.
 *
 * A tape with a repeat is a tape of one micro-batch, of which the operations from `first` on are
 * the body. The body runs `times` times. All it hands on is its carries. A carry begins as the
 * tensor `start`. The body reads `start` as the value that the micro-batch before left in `after`;
 * what follows the body reads `after` as the last value.
 *
 * A joined carry is a sum. It begins again in each group of `group` micro-batches, and the groups'
 * values are added in a balanced tree: group 0 to group 1, 2 to 3, then the pairs, and so on. So
 * the order of every sum is the tape's, and whole groups can be computed elsewhere with the same
 * bits.
 *
 * Machines run an unrolled tape; jobs, programs and people have the short one. The unrolled tape
 * has of each group the first two micro-batches. The second is a loop (tape.h), and stands for all
 * that follow the first: its operations, tensors and memory do not grow with the micro-batches.
 */
#ifndef ENGINE_TAPE_REPEAT_H
#define ENGINE_TAPE_REPEAT_H

#include "engine/tape/tape.h"

/*
 * The place of what a repeat makes, in items of a trace. The trace's list has what micro-batch i
 * leaves in its carries, `block` items; after a group come the joins that it completes, each of
 * `sums` items. All else that a micro-batch makes stands in a list of its own, of `inner` items.
 * Items of these are counted on from the `list` items of the trace's. docs/FORMATS.md, 2.2 and 4.1.
 */
struct repeat_layout {
    uint32_t base;  /* the first item of micro-batch 0 */
    uint32_t times; /* micro-batches */
    uint32_t group; /* micro-batches of a group */
    uint32_t block; /* items that a micro-batch has in the trace's list */
    uint32_t sums;  /* joined carries */
    uint32_t inner; /* items of a micro-batch's own list */
    uint32_t list;  /* items of the trace's list */
};

/* Of a tape as machines run it; times, inner and list are 0 where it has no repeat. */
void repeat_layout_of(struct repeat_layout *layout, const struct tape *tape);

/* Is the item made by a repeat? Then *i is the micro-batch; TENSOR_NONE: a join makes it. */
bool repeat_holds(uint32_t *i, const struct repeat_layout *layout, uint32_t item);

/* The first item of micro-batch number i, in the trace's list. */
uint64_t repeat_block_place(const struct repeat_layout *layout, uint32_t i);

/* The first item of a join. Joins are the inner nodes of the tree, 1 the root, the children of t
 * 2t and 2t + 1; from times / group on these are groups. */
uint64_t repeat_join_place(const struct repeat_layout *layout, uint32_t node);

/* Of what an operation makes, the item that it makes in its first turn: its item in a later one. */
uint32_t repeat_turn_item(const struct repeat_layout *layout, uint32_t item, uint32_t turn);

/* Makes the tape that machines run of one that tape_check() has passed; checks its repeat. Takes
 * the tape, also on failure. A tape without a repeat is returned itself. */
MUST_CHECK enum status repeat_unroll(struct tape **unrolled, struct tape *brief,
                                     struct error *error);

#endif /* ENGINE_TAPE_REPEAT_H */
