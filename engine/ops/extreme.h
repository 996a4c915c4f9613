/*
 * extreme.h - which of two elements is the extreme of a row, for REDUCE's rules and kernels.
 */
#ifndef ENGINE_OPS_EXTREME_H
#define ENGINE_OPS_EXTREME_H

#include "engine/ops/op.h"

/*
 * Does a later element take over from the holder? A NaN takes over from a number and keeps the row.
 * Equal numbers, -0 and +0 among them, leave the earlier one.
 */
static RULE inline bool extreme_takes(int64_t function, float holder, float later)
{
    bool beyond = function == REDUCE_MIN ? later < holder : later > holder;

    return beyond || (later != later && holder == holder);
}

#endif /* ENGINE_OPS_EXTREME_H */
