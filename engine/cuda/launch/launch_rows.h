/* launch_rows.h - operations along rows: norms, softmax, sums, losses, and their gradients. */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_ROWS_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_ROWS_H

#include "engine/cuda/launch/launcher.h"

#define ROWS_NO_RESULT UINT32_MAX

/* The output that is the rows' result: the normed rows, p, or the gradient of x. */
uint32_t launch_rows_result(const struct op *op);

/* Is it a softmax, or its gradient, whose rows have a reach? */
bool launch_has_reach(const struct op *op);

/* Can a warp hold such rows in its registers? */
bool launch_can_hold(const struct op *op);

struct rows_args launch_rows_args(const struct launcher *launcher, const struct op *op);
enum device_result launch_rows(const struct launcher *launcher, const struct op *op);

/* Rows that a warp holds, and their quantization where quantize is not NULL. */
enum device_result launch_held(const struct launcher *launcher, const struct rows_args *rows,
                               const struct quantize_args *quantize);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_ROWS_H */
