/*
 * launch_contract.h - contractions: products of two quantized operands, their sums, one-hots.
 * contract_kernel.h chooses the kernel; in trace mode operands are packed in scratch first.
 */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_CONTRACT_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_CONTRACT_H

#include "engine/cuda/launch/launcher.h"
#include "engine/cuda/launch/selftest_tape.h"

/* Quantizations and contractions. */
bool launch_is_contraction(enum op_kind kind);

/* Scratch of a contraction; packed: its operands are. */
uint64_t launch_contract_scratch(const struct op *op, bool packed);

/* An operand whose limbs lie in memory. */
struct packed_operand launch_operand(const struct contraction_shape *shape, uint64_t rows,
                                     const uint8_t *planes);

/* A product's arguments but for its operands. */
struct contract_args launch_contract_args(const struct launcher *launcher, const struct op *op);

/* Results go to out, or to what the epilogue makes of them; NULL: there is none. */
enum device_result launch_contract(const struct launcher *launcher, const struct op *op, void *out,
                                   const struct epilogue *epilogue);
enum device_result launch_ones(const struct launcher *launcher, const struct op *op);

/* Its input that the sums are added to, where fusions/epilogue.c has given it one. */
#define ONEHOT_ADDEND 3
enum device_result launch_onehot(const struct launcher *launcher, const struct op *op);
enum device_result launch_chosen(const struct launcher *launcher, const struct op *op);

#define DOTS_SELFTESTS 3
void launch_dots_selftest(struct selftest_tape *tape, uint32_t part);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_CONTRACT_H */
