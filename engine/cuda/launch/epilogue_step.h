/*
 * epilogue_step.h - element-wise operations as steps on numbers that a kernel has in registers:
 * which operations can be a step, and a step's arguments. epilogue_body.h executes them.
 */
#ifndef ENGINE_CUDA_LAUNCH_EPILOGUE_STEP_H
#define ENGINE_CUDA_LAUNCH_EPILOGUE_STEP_H

#include "engine/cuda/launch/launcher.h"

/* An operation as a step. */
struct epilogue_form {
    enum epilogue_code code;
    uint32_t other;  /* the input that is read beside the number; OP_INPUTS_MAX: none */
    uint32_t source; /* enum epilogue_source, but nothing is prefetched */
    uint32_t constant;
    uint64_t row; /* of EPILOGUE_ROW: its length, a multiple of four */
};

/* Can op be a step on the numbers of its input `value`? */
bool epilogue_takes(struct epilogue_form *form, const struct op *op, const struct tensor *tensors,
                    uint32_t value);

/* Appends op. out: where its output goes; NULL: nobody wants it. */
void epilogue_add(struct epilogue *epilogue, const struct launcher *launcher, const struct op *op,
                  const struct epilogue_form *form, void *out);

#endif /* ENGINE_CUDA_LAUNCH_EPILOGUE_STEP_H */
