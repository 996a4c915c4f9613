/*
 * tensor.h - what a tensor is to the engine: an element type, a shape, a name and a role.
 *
 * No memory here. Where the bytes of a tensor live is the business of the machine that runs the
 * tape (machine.h). Tensors are dense and row-major; elements are little-endian when hashed.
 */
#ifndef ENGINE_OPS_TENSOR_H
#define ENGINE_OPS_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/ops/portable.h"

#define TENSOR_RANK_MAX  4
#define TENSOR_NAME_MAX  63
/* Elements of one tensor: keeps every byte offset and every product with a dimension in 64 bits. */
#define TENSOR_COUNT_MAX (UINT64_C(1) << 40)

enum dtype {
    DTYPE_F32 = 0, /* binary32; the only NaN ever stored is FLOAT_NAN_BITS */
    DTYPE_U8,
    DTYPE_U16,
    DTYPE_U32,
    DTYPE_I16,
    DTYPE_I32,
    DTYPE_COUNT,
};

enum role {
    ROLE_TEMPORARY = 0, /* made by an operation and forgotten after the step */
    ROLE_STATE,         /* lives across steps; its value after the step is made by an operation */
    ROLE_DATA,          /* the training data: read only, under the data root */
    ROLE_CONSTANT,      /* an array held in the job: schedules, rotary tables */
    ROLE_INPUT,         /* given by the caller for each step: only in tapes for inference */
    ROLE_OUTPUT,        /* made like a temporary, and there to be read after the step */
    ROLE_COUNT,
};

struct tensor {
    char name[TENSOR_NAME_MAX + 1];
    enum dtype dtype;
    enum role role;
    uint32_t rank;
    uint64_t dims[TENSOR_RANK_MAX];
    uint64_t count; /* elements: the product of dims */
};

static RULE inline size_t dtype_size(enum dtype dtype)
{
    static const uint8_t sizes[DTYPE_COUNT] = {4, 1, 2, 4, 2, 4};

    return sizes[dtype];
}

const char *dtype_name(enum dtype dtype);
const char *role_name(enum role role);

/* Is a tensor of this role made by an operation? */
static RULE inline bool role_is_made(enum role role)
{
    return role == ROLE_TEMPORARY || role == ROLE_OUTPUT;
}

#endif /* ENGINE_OPS_TENSOR_H */
