/*
 * tensor.h - a tensor as the engine knows it: an element type, a shape, a name and a role.
 *
 * It has no memory: the machine that runs the tape decides where the bytes are (plan/backend.h).
 * Tensors are dense and row-major; elements are little-endian when hashed.
 */
#ifndef ENGINE_OPS_TENSOR_H
#define ENGINE_OPS_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/ops/portable.h"

#define TENSOR_RANK_MAX  4
#define TENSOR_NAME_MAX  127
/* Elements of one tensor. Byte offsets and products with a dimension then fit 64 bits. */
#define TENSOR_COUNT_MAX (UINT64_C(1) << 40)

enum dtype {
    DTYPE_F32 = 0, /* binary32; the only NaN ever stored is FLOAT_NAN_BITS */
    DTYPE_U8,
    DTYPE_U16,
    DTYPE_U32,
    DTYPE_I16,
    DTYPE_I32,
    DTYPE_F16,  /* binary16; CAST writes it; CAST, QUANTIZE, GATHER and BATCH_ROWS read it */
    DTYPE_BF16, /* the upper half of a binary32; likewise */
    DTYPE_COUNT,
};

enum role {
    ROLE_TEMPORARY = 0, /* an operation makes it; it ends with the step */
    ROLE_STATE,         /* lives across steps; an operation makes its next value */
    ROLE_DATA,          /* the training data: read only, under the data root */
    ROLE_CONSTANT,      /* an array of the job: schedules, rotary tables */
    ROLE_INPUT,         /* the caller gives it for each step: only in tapes for inference */
    ROLE_OUTPUT,        /* an operation makes it; the caller may read it after the step */
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
    static const uint8_t sizes[DTYPE_COUNT] = {4, 1, 2, 4, 2, 4, 2, 2};

    return sizes[dtype];
}

/* Bytes of all elements. */
/* Is it a float of 16 bits? */
static RULE inline bool dtype_is_half(enum dtype dtype)
{
    return dtype == DTYPE_F16 || dtype == DTYPE_BF16;
}

static RULE inline uint64_t tensor_size(const struct tensor *tensor)
{
    return tensor->count * dtype_size(tensor->dtype);
}

const char *dtype_name(enum dtype dtype);
const char *role_name(enum role role);

/* Does an operation make the tensors of this role? */
static RULE inline bool role_is_made(enum role role)
{
    return role == ROLE_TEMPORARY || role == ROLE_OUTPUT;
}

#endif /* ENGINE_OPS_TENSOR_H */
