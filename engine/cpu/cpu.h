/*
 * cpu.h - the CPU's instruction sets and the families of kernels written for each.
 *
 * A family adds the kernels of its kinds to a table. The looped rules run all other kinds. A new
 * instruction set (NEON) is a new enum value, a section of simd.h and an entry in cpu.c: no rule
 * and no caller changes.
 */
#ifndef ENGINE_CPU_CPU_H
#define ENGINE_CPU_CPU_H

#include "engine/ops/kernel.h"

enum isa {
    ISA_SCALAR = 0, /* the looped rules */
    ISA_AVX2,       /* AVX2, FMA, F16C and BMI2 */
    ISA_AVX512,     /* these and AVX-512 F, BW, DQ, VL and VNNI */
    ISA_COUNT,
};

/* These add kernels to a table. Call them only where the CPU has the instruction set. */
void contraction_kernels_avx2(struct kernel_table *table);
void contraction_kernels_avx512(struct kernel_table *table);
void elementwise_kernels_avx2(struct kernel_table *table);
void elementwise_kernels_avx512(struct kernel_table *table);
void rows_kernels_avx2(struct kernel_table *table);
void rows_kernels_avx512(struct kernel_table *table);
/* Kinds that only move data or draw randomness: plain C is as fast as memory. */
void moving_kernels(struct kernel_table *table);

const char *isa_name(enum isa isa);

/* Does this CPU, under this operating system, run isa? */
bool isa_available(enum isa isa);

/* The best available instruction set. */
enum isa isa_best(void);

/* Fills the table for isa, which must be available. */
void cpu_kernels(struct kernel_table *table, enum isa isa);

#endif /* ENGINE_CPU_CPU_H */
