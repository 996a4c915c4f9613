/*
 * assumptions.h - what the arithmetic assumes, checked by the compiler and again at run time.
 *
 * A wrong compiler flag, or a library that sets flush-to-zero, should fail here and not in a
 * dispute.
 */
#ifndef ENGINE_OPS_ASSUMPTIONS_H
#define ENGINE_OPS_ASSUMPTIONS_H

#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __FAST_MATH__
#error "the engine must not be compiled with -ffast-math: every bit of it is protocol"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the engine must not be compiled with -ffinite-math-only: NaN has a meaning here"
#endif
#if !defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0
#error "binary32 arithmetic must round to binary32: on x86 use SSE (-msse2 -mfpmath=sse)"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are hashed as they lie in memory, which must be little-endian"
#endif

_Static_assert(CHAR_BIT == 8, "a byte has 8 bits");
_Static_assert(sizeof(float) == 4 && FLT_RADIX == 2 && FLT_MANT_DIG == 24, "float is binary32");
_Static_assert(FLT_MAX_EXP == 128 && FLT_MIN_EXP == -125, "float is binary32");
_Static_assert(sizeof(double) == 8 && DBL_MANT_DIG == 53, "double is binary64");
_Static_assert(-1 == ~0, "integers are two's complement");
_Static_assert((-3 >> 1) == -2, "a shift to the right keeps the sign");
_Static_assert(sizeof(size_t) >= 8, "tensors may be larger than 4 GiB");

/*
 * Checks that this thread rounds to nearest even, keeps subnormals, rounds an fma once, and gets
 * the known bits of a sum of exponentials. Every worker thread checks itself: control words belong
 * to threads, and a library loaded later may change them. Takes well under a microsecond. The
 * instructions themselves are tried once, by engine/cpu/isa/probe.h.
 * STATUS_REFUSED says what is wrong.
 */
MUST_CHECK enum status assumptions_check(struct error *error);

#endif /* ENGINE_OPS_ASSUMPTIONS_H */
