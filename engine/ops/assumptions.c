/* assumptions.c - see assumptions.h. */
#include "engine/ops/assumptions.h"

#include <math.h>
#include <stdbool.h>

#include "engine/ops/fold.h"
#include "engine/ops/real.h"
#include "engine/ops/scalar.h"

/* volatile: the multiplication must run on this thread and not in the compiler. */
static bool multiplies_to(float a, float b, uint32_t bits)
{
    volatile float x = a;
    volatile float y = b;
    volatile float z = x * y;

    return real_to_bits(z) == bits;
}

static bool fma_gives(float a, float b, float c, uint32_t bits)
{
    volatile float x = a;
    volatile float y = b;
    volatile float z = c;
    volatile float result = fmaf(x, y, z);

    return real_to_bits(result) == bits;
}

/* A fold of 100 exponentials, from the smallest subnormal up. */
static uint32_t known_computation(void)
{
    volatile float step = 1.03125f;
    struct fold fold;

    fold_init(&fold);
    for (int i = 0; i < 100; i++) {
        fold_add(&fold, scalar_exp(fmaf((float)i, step, -103.0f)));
    }
    return real_to_bits(fold_total(&fold));
}

#define KNOWN_BITS UINT32_C(0x3f20c036)

enum status assumptions_check(struct error *error)
{
    const char *trouble = NULL;

    if (!multiplies_to(0x1p-126f, 0.5f, UINT32_C(0x00400000))) {
        trouble = "subnormal results are flushed to zero";
    } else if (!multiplies_to(0x1p-149f, 0x1p23f, UINT32_C(0x00800000))) {
        trouble = "subnormal operands are taken for zero";
    } else if (!multiplies_to(0x1.000002p0f, 0x1.8p0f, UINT32_C(0x3fc00002)) ||
               !multiplies_to(-0x1.000002p0f, 0x1.8p0f, UINT32_C(0xbfc00002)) ||
               !multiplies_to(0x1.000006p0f, 0x1.8p0f, UINT32_C(0x3fc00004))) {
        trouble = "results are not rounded to nearest, ties to even";
    } else if (!fma_gives(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f, UINT32_C(0x28800000))) {
        trouble = "fma does not round once";
    } else if (known_computation() != KNOWN_BITS) {
        trouble = "a known computation has other bits";
    }
    if (trouble == NULL) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "this thread's floating-point arithmetic is not ours: %s", trouble);
    error_advise(error, "a loaded library or a compiler flag such as -ffast-math has changed the "
                        "processor's control word: find it and leave it out");
    return STATUS_REFUSED;
}
