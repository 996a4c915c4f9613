/*
 * float_control.h - the control word of a thread's floating-point unit, as the rules demand it.
 *
 * A library that was loaded can have set flush-to-zero or another rounding on any thread. Whoever
 * computes by the rules takes the default (round to nearest even, subnormals kept, no traps) for as
 * long as it computes, and then gives back what it found. OpenMP's runtimes differ: LLVM's hands
 * the caller's word on to its workers at every fork and back to the caller at every join, GNU's
 * leaves each thread its own. So the caller takes the default first, outside of parallel regions,
 * and every worker takes it again inside.
 */
#ifndef ENGINE_OPS_FLOAT_CONTROL_H
#define ENGINE_OPS_FLOAT_CONTROL_H

#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FLOAT_CONTROL_X86_DEFAULT 0x1f80u
#define FLOAT_CONTROL_X86_FLAGS   0x003fu /* what happened so far: no influence */

/* Takes the default for the calling thread; returns what was there. */
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
