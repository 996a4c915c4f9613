/*
 * epilogue.h - element-wise operations as steps on numbers that a kernel has in registers: which
 * operations can be one, and how they are launched. epilogue_body.h makes them, fuse_epilogue.c
 * finds the products that they follow.
 */
#ifndef ENGINE_CUDA_LAUNCH_EPILOGUE_H
#define ENGINE_CUDA_LAUNCH_EPILOGUE_H

#include "engine/cuda/launch/launch.h"

struct chain; /* fuse.h */

/* An operation as a step. */
struct epilogue_form {
    uint32_t other;  /* the input that is read beside; OP_INPUTS_MAX: none */
    uint32_t source; /* enum epilogue_source, but nothing is sent for ahead */
    uint32_t constant;
    uint64_t row; /* of EPILOGUE_ROW: its length, a multiple of four */
};

/* Can op be a step on the numbers of its input `value`? */
bool epilogue_takes(struct epilogue_form *form, const struct op *op, const struct tensor *tensors,
                    uint32_t value);

/* Does a contraction write its results as an epilogue reads them: row after row, from 0 on? */
bool epilogue_follows(const struct op *contract);

/* How each operation of a chain goes on: from which one's output, by which of its inputs. */
struct epilogue_link {
    struct epilogue_form form;
    uint32_t from; /* an earlier operation of the chain; 0: the contraction */
    uint32_t value;
};

/*
 * Does op go on from one of ops[count], the first of which is a contraction and each other one a
 * step behind it? It reads nothing else that they make, and but for the contraction's results
 * nothing that another one goes on from.
 */
bool epilogue_joins(struct epilogue_link *link, const struct op *const *ops, uint32_t count,
                    const struct op *op, const struct tensor *tensors);

/* A contraction and what follows it; a gradient along rows and the sum that it is added to. */
enum device_result launch_epilogue(const struct launcher *launcher, const struct chain *chain);
enum device_result launch_row_sum(const struct launcher *launcher, const struct chain *chain);

/* One operation by kernel_quads, where it takes it. */
bool launch_quads_takes(const struct launcher *launcher, const struct op *op);
enum device_result launch_quads(const struct launcher *launcher, const struct op *op);

#endif /* ENGINE_CUDA_LAUNCH_EPILOGUE_H */
