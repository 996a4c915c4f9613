/* contract_case.c - see contract_case.h. */
#include "bench/support/contract_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/contraction.h"

/* Touched at once, so that no page fault is measured. */
static void *take(size_t size)
{
    size_t rounded = (size + 4095) / 4096 * 4096 + 4096;
    void *memory = aligned_alloc(4096, rounded);

    if (memory == NULL) {
        fprintf(stderr, "bench: no memory for %zu bytes\n", rounded);
        exit(2);
    }
    memset(memory, 0, rounded);
    return memory;
}

static uint64_t next_word(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void fill_normal(float *x, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i += 2) {
        double u = ((double)(next_word(&seed) >> 11) + 0.5) * 0x1p-53;
        double angle = 6.283185307179586 * (double)(next_word(&seed) >> 11) * 0x1p-53;
        double radius = sqrt(-2.0 * log(u));

        x[i] = (float)(radius * cos(angle));
        if (i + 1 < count) {
            x[i + 1] = (float)(radius * sin(angle));
        }
    }
}

static void set_quantize(struct op *op, const struct contract_shape *shape, int64_t rows,
                         bool transposed)
{
    int64_t row_stride = transposed ? 1 : shape->k;
    int64_t k_stride = transposed ? rows : 1;
    int64_t attributes[QUANTIZE_ATTRIBUTES] = {
        shape->batch, 1, 1, rows, 1, shape->k, rows * shape->k, 0, 0, 0, 0, 0, shape->bits,
        shape->block,
    };

    attributes[QUANTIZE_STRIDES + 3] = row_stride;
    attributes[QUANTIZE_STRIDES + 5] = k_stride;
    op->kind = OP_QUANTIZE;
    op->attribute_count = QUANTIZE_ATTRIBUTES;
    memcpy(op->attributes, attributes, sizeof(attributes));
}

static size_t scratch_of(const struct contract_case *one, const struct op *op)
{
    const struct kernel *kernel = &one->table.kernels[op->kind];

    return kernel->scratch_size == NULL ? 0 : kernel->scratch_size(op, one->thread_count);
}

void contract_case_init(struct contract_case *one, const struct contract_shape *shape, enum isa isa,
                        int thread_count)
{
    const int64_t rows[2] = {shape->m, shape->n};
    int64_t attributes[CONTRACT_ATTRIBUTES] = {
        shape->batch, 1, 1, shape->m, 1,           shape->n,     shape->m * shape->n, 0, 0,
        shape->n,     0, 1, shape->k, shape->bits, shape->block, shape->causal,
    };

    memset(one, 0, sizeof(*one));
    one->shape = *shape;
    one->thread_count = thread_count;
    cpu_kernels(&one->table, isa);
    one->contract.kind = OP_CONTRACT;
    one->contract.attribute_count = CONTRACT_ATTRIBUTES;
    memcpy(one->contract.attributes, attributes, sizeof(attributes));
    for (int i = 0; i < 2; i++) {
        size_t count = (size_t)(shape->batch * rows[i] * shape->k);

        set_quantize(&one->quantize[i], shape, rows[i],
                     i == 0 ? shape->a_transposed : shape->b_transposed);
        struct contraction_shape cut = contraction_shape_of(&one->quantize[i]);

        one->x[i] = take(count * sizeof(float));
        fill_normal(one->x[i], count, (uint64_t)i + 1);
        one->exponents[i] = take((size_t)(shape->batch * rows[i] * cut.blocks) * sizeof(int16_t));
        one->q[i] = take(contraction_packed_size(&one->quantize[i]));
    }
    one->out = take((size_t)(shape->batch * shape->m * shape->n) * sizeof(float));
    one->scratch = take(scratch_of(one, &one->contract) + scratch_of(one, &one->quantize[0]) +
                        scratch_of(one, &one->quantize[1]));
}

void contract_case_release(struct contract_case *one)
{
    for (int i = 0; i < 2; i++) {
        free(one->x[i]);
        free(one->exponents[i]);
        free(one->q[i]);
    }
    free(one->out);
    free(one->scratch);
}

void contract_case_quantize(struct contract_case *one)
{
    for (int i = 0; i < 2; i++) {
        static const struct tensor numbers = {.dtype = DTYPE_F32}; /* every operand has the id 0 */
        struct kernel_call call = {.op = &one->quantize[i],
                                   .tensors = &numbers,
                                   .inputs = {one->x[i]},
                                   .outputs = {NULL, one->exponents[i], one->q[i]},
                                   .scratch = one->scratch,
                                   .thread_count = one->thread_count};

        one->table.kernels[OP_QUANTIZE].run(&call);
    }
}

void contract_case_multiply(struct contract_case *one)
{
    struct kernel_call call = {
        .op = &one->contract,
        .inputs = {one->q[0], one->exponents[0], one->q[1], one->exponents[1]},
        .outputs = {one->out},
        .scratch = one->scratch,
        .thread_count = one->thread_count};

    one->table.kernels[OP_CONTRACT].run(&call);
}
