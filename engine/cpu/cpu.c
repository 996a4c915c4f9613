/* cpu.c - what this CPU can run, and the tables of kernels; see cpu.h. */
#include "engine/cpu/cpu.h"

#include <assert.h>
#include <string.h>

#include "base/host.h"

const char *isa_name(enum isa isa)
{
    static const char *const names[ISA_COUNT] = {"scalar", "avx2", "avx512"};

    return (unsigned)isa < ISA_COUNT ? names[isa] : "unknown";
}

bool isa_available(enum isa isa)
{
    struct host_cpuid cpuid;

    host_cpuid_read(&cpuid);
    switch (isa) {
    case ISA_SCALAR:
        return true;
    case ISA_AVX2:
        return host_has_avx2(&cpuid);
    case ISA_AVX512:
        return host_has_avx512(&cpuid);
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
