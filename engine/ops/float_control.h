/*
 * float_control.h - sets a thread's floating-point control word to what the rules need.
 *
 * A loaded library may have set flush-to-zero or another rounding mode on any thread. Code that
 * computes by the rules first takes the default (round to nearest even, keep subnormals, no traps)
 * and restores the old word afterwards. LLVM's OpenMP copies the caller's word to the workers at
 * every fork and back at every join; GNU's leaves each thread its own. So the caller takes the
 * default outside of parallel regions, and every worker takes it again inside.
 */
#ifndef ENGINE_OPS_FLOAT_CONTROL_H
#define ENGINE_OPS_FLOAT_CONTROL_H

#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FLOAT_CONTROL_X86_DEFAULT 0x1f80u
#define FLOAT_CONTROL_X86_FLAGS   0x003fu /* sticky exception flags: no influence on results */

/* Sets the default word for the calling thread; returns the old one. */
static inline uint64_t float_control_take(void)
{
#if defined(__x86_64__)
    unsigned control = _mm_getcsr();

    if ((control & ~FLOAT_CONTROL_X86_FLAGS) != FLOAT_CONTROL_X86_DEFAULT) {
        _mm_setcsr(FLOAT_CONTROL_X86_DEFAULT);
    }
    return control;
#elif defined(__aarch64__)
    uint64_t control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    if (control != 0) {
        __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
    }
    return control;
#else
    return 0;
#endif
}

static inline void float_control_give_back(uint64_t control)
{
#if defined(__x86_64__)
    if ((control & ~FLOAT_CONTROL_X86_FLAGS) != FLOAT_CONTROL_X86_DEFAULT) {
        _mm_setcsr((unsigned)control);
    }
#elif defined(__aarch64__)
    if (control != 0) {
        __asm__ volatile("msr fpcr, %0" ::"r"(control));
    }
#else
    (void)control;
#endif
}

#endif /* ENGINE_OPS_FLOAT_CONTROL_H */
