/*
 * float_case.h - one float operation with its memory, run by the looped rules and by every kernel
 * of this CPU, and compared bit by bit.
 *
 *     struct float_case one;
 *
 *     float_case_init(&one, OP_EXPAND, 2, (int64_t[]){1, 5});
 *     float_case_fill(&seed, float_case_input(&one, 5), 5, FLOAT_NASTY);
 *     ...
 *     float_case_output(&one, 20);
 *     float_case_check(&one);
 *     float_case_release(&one);
 */
#ifndef TESTS_SUPPORT_NUMERIC_FLOAT_CASE_H
#define TESTS_SUPPORT_NUMERIC_FLOAT_CASE_H

#include "engine/ops/kernel.h"

#define FLOAT_CASE_TENSORS (OP_INPUTS_MAX + OP_OUTPUTS_MAX)

struct float_case {
    struct op op;
    struct tensor tensors[FLOAT_CASE_TENSORS];
    void *inputs[OP_INPUTS_MAX];
    float *expected[OP_OUTPUTS_MAX]; /* after float_case_rules(): what the rules say */
    float *actual[OP_OUTPUTS_MAX];   /* guarded memory for the kernels */
};

enum float_fill {
    FLOAT_PLAIN,    /* finite numbers of usual size, both signs */
    FLOAT_NASTY,    /* also zeros of both signs, subnormals, huge numbers, infinities and NaN */
    FLOAT_FINITE,   /* as NASTY without infinities and NaN */
    FLOAT_POSITIVE, /* usual size, above zero */
};

void float_case_init(struct float_case *one, enum op_kind kind, uint32_t attribute_count,
                     const int64_t *attributes);
void float_case_release(struct float_case *one);

/* Adds an input. The case owns its memory, which is unaligned on purpose and zero. */
float *float_case_input(struct float_case *one, uint64_t count);
uint32_t *float_case_input_u32(struct float_case *one, uint64_t count);
uint8_t *float_case_input_u8(struct float_case *one, uint64_t count);

void float_case_output(struct float_case *one, uint64_t count);

void float_case_fill(uint64_t *seed, float *to, uint64_t count, enum float_fill fill);

/* Checks the operation with op_check(), and computes `expected` by the looped rules. */
void float_case_rules(struct float_case *one);

/*
 * float_case_rules(), then fails the test unless every kernel gives the same bits: each instruction
 * set of this CPU, 1 and 2 threads, all outputs, each output alone, each output in the memory of
 * each input that op_in_place() allows, and as many outputs in place as possible. No kernel may
 * write outside of its outputs.
 */
void float_case_check(struct float_case *one);

uint32_t float_bits(float x);
float float_of(uint32_t bits);

/* As an attribute. */
int64_t float_attribute(float x);

#endif /* TESTS_SUPPORT_NUMERIC_FLOAT_CASE_H */
