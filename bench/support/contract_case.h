/*
 * contract_case.h - one exact matrix product to measure: operands, operations and their buffers.
 *
 * out (batch, M, N) = A B^T over K. Each operand lies either with k or with its rows along memory:
 * the forms that forward and backward passes need. Quantized operands are packed, as in fast mode.
 */
#ifndef BENCH_SUPPORT_CONTRACT_CASE_H
#define BENCH_SUPPORT_CONTRACT_CASE_H

#include "engine/cpu/cpu.h"

struct contract_shape {
    int64_t batch;
    int64_t m;
    int64_t n;
    int64_t k;
    bool a_transposed; /* rows along memory: A is stored (batch, K, M) */
    bool b_transposed;
    int bits;
    int64_t block;
    int64_t causal;
};

struct contract_case {
    struct contract_shape shape;
    struct kernel_table table;
    struct op quantize[2];
    struct op contract;
    float *x[2];
    float *out;
    int16_t *exponents[2];
    void *q[2];
    void *scratch;
    int thread_count;
};

/* Allocates; x is filled with standard normal numbers. Exits where memory runs out: a benchmark. */
void contract_case_init(struct contract_case *one, const struct contract_shape *shape, enum isa isa,
                        int thread_count);
void contract_case_release(struct contract_case *one);

void contract_case_quantize(struct contract_case *one); /* both operands */
void contract_case_multiply(struct contract_case *one);

/* Repeatable standard normal numbers. */
void fill_normal(float *x, size_t count, uint64_t seed);

#endif /* BENCH_SUPPORT_CONTRACT_CASE_H */
