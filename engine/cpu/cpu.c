/* cpu.c - the tables of kernels; see cpu.h. */
#include "engine/cpu/cpu.h"

#include <assert.h>
#include <string.h>

void cpu_kernels(struct kernel_table *table, enum isa isa)
{
    assert(isa_available(isa));
    memset(table, 0, sizeof(*table));
    table->name = isa_name(isa);
    if (isa == ISA_SCALAR) {
        return; /* the rules alone */
    }
    moving_kernels(table);
    moving_rows_kernels(table);
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
#elif defined(__aarch64__)
    elementwise_kernels_neon(table);
    rows_kernels_neon(table);
    if (isa == ISA_NEON) {
        contraction_kernels_neon(table);
    } else {
        contraction_kernels_i8mm(table);
    }
#endif
}
