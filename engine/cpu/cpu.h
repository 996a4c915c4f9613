/*
 * cpu.h - the CPU's instruction sets and the families of kernels written for each.
 *
 * A family adds the kernels of its kinds to a table. The looped rules run all other kinds. A new
 * instruction set is a new enum value, a section of simd.h and an entry in cpu.c: no rule
 * and no caller changes.
 */
#ifndef ENGINE_CPU_CPU_H
#define ENGINE_CPU_CPU_H

#include "engine/cpu/isa/isa.h"
#include "engine/ops/kernel.h"

/* These add kernels to a table. Call them only where the CPU has the instruction set. */
void contraction_kernels_avx2(struct kernel_table *table);
void contraction_kernels_avx512(struct kernel_table *table);
void elementwise_kernels_avx2(struct kernel_table *table);
void elementwise_kernels_avx512(struct kernel_table *table);
void rows_kernels_avx2(struct kernel_table *table);
void rows_kernels_avx512(struct kernel_table *table);
void contraction_kernels_neon(struct kernel_table *table);
void contraction_kernels_i8mm(struct kernel_table *table);
void elementwise_kernels_neon(struct kernel_table *table);
void rows_kernels_neon(struct kernel_table *table);
/* Kinds that only move data or draw randomness: plain C is as fast as memory. */
void moving_kernels(struct kernel_table *table);
void moving_rows_kernels(struct kernel_table *table);
/* IM2COL, COL2IM and the four pools, for moving_kernels() only. */
void moving_image_kernels(struct kernel_table *table);

/* Fills the table for isa, which must be available. */
void cpu_kernels(struct kernel_table *table, enum isa isa);

#endif /* ENGINE_CPU_CPU_H */
