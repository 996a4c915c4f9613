/* tensor.c - see tensor.h. */
#include "engine/ops/tensor.h"

const char *dtype_name(enum dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {"f32", "u8",  "u16", "u32",
                                                   "i16", "i32", "f16", "bf16"};

    return (unsigned)dtype < DTYPE_COUNT ? names[dtype] : "unknown";
}

const char *role_name(enum role role)
{
    static const char *const names[ROLE_COUNT] = {"temporary", "state", "data",
                                                  "constant",  "input", "output"};

    return (unsigned)role < ROLE_COUNT ? names[role] : "unknown";
}
