/*
 * real.h - binary32 values and their bits.
 *
 * Elements are passed as bits; arithmetic needs values. CPUs and GPUs disagree about the sign and
 * payload of a NaN, so every result of arithmetic passes through real_to_bits(), which writes the
 * one NaN of the engine. Operations that move data copy bits and do not pass through it.
 */
#ifndef ENGINE_OPS_REAL_H
#define ENGINE_OPS_REAL_H

#include <stdint.h>
#include <string.h>

#include "engine/ops/op.h"

static RULE inline float real_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static RULE inline uint32_t real_to_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return value == value ? bits : FLOAT_NAN_BITS;
}

/* The value as it is stored: a NaN becomes the one NaN of the engine. */
static RULE inline float real_stored(float value)
{
    return value == value ? value : real_from_bits(FLOAT_NAN_BITS);
}

#endif /* ENGINE_OPS_REAL_H */
