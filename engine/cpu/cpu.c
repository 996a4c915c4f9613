/* cpu.c - what this CPU can run, and the tables of kernels; see cpu.h. */
#include "engine/cpu/cpu.h"

#include <assert.h>
#include <string.h>

const char *isa_name(enum isa isa)
{
    static const char *const names[ISA_COUNT] = {"scalar", "avx2", "avx512"};

    return (unsigned)isa < ISA_COUNT ? names[isa] : "unknown";
}

bool isa_available(enum isa isa)
{
    switch (isa) {
    case ISA_SCALAR:
        return true;
    case ISA_AVX2:
#if defined(__x86_64__)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
        return false;
#endif
    case ISA_AVX512:
#if defined(__x86_64__)
        return isa_available(ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#else
        return false;
#endif
    case ISA_COUNT:
        break;
    }
    return false;
}

enum isa isa_best(void)
{
    enum isa best = ISA_SCALAR;

    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        best = isa_available((enum isa)isa) ? (enum isa)isa : best;
    }
    return best;
}

void cpu_kernels(struct kernel_table *table, enum isa isa)
{
    assert(isa_available(isa));
    memset(table, 0, sizeof(*table));
    table->name = isa_name(isa);
    if (isa == ISA_SCALAR) {
        return; /* the rules alone */
    }
    moving_kernels(table);
#if defined(__x86_64__)
    if (isa == ISA_AVX2) {
        contraction_kernels_avx2(table);
        elementwise_kernels_avx2(table);
        rows_kernels_avx2(table);
    } else {
        contraction_kernels_avx512(table);
        elementwise_kernels_avx512(table);
        rows_kernels_avx512(table);
    }
#endif
}
