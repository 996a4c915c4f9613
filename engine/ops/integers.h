/*
 * integers.h - the functions of INTEGER, and the order in which SORT has numbers. Rules call them,
 * and so do kernels. Integers have 32 bits without a sign; what does not fit comes round.
 */
#ifndef ENGINE_OPS_INTEGERS_H
#define ENGINE_OPS_INTEGERS_H

#include "engine/ops/op.h"

#define INTEGER_CASE(NAME, text, contract, value)                                                  \
    case INTEGER_##NAME:                                                                           \
        return (value);

static RULE inline uint32_t element_integers(enum integer_function function, uint32_t a, uint32_t b)
{
    switch (function) {
        OP_INTEGER_CODES(INTEGER_CASE)
    case INTEGER_FUNCTION_COUNT:
        break;
    }
    return 0;
}

/* A number that has the place of these bits of a binary32: NaN above all, -0 with +0. */
static RULE inline uint32_t sort_key(uint32_t bits, bool descending)
{
    const uint32_t size = bits & UINT32_C(0x7fffffff);
    const bool above = size == 0 || size == bits;
    uint32_t key = above ? size | UINT32_C(0x80000000) : ~bits;

    key = size > UINT32_C(0x7f800000) ? UINT32_MAX : key;
    return descending ? ~key : key;
}

#endif /* ENGINE_OPS_INTEGERS_H */
