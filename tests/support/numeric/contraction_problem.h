/*
 * contraction_problem.h - random matrix products for the tests of contraction, with their results
 * by the rules, and a reference in other arithmetic (long double and 128-bit integers).
 */
#ifndef TESTS_SUPPORT_NUMERIC_CONTRACTION_PROBLEM_H
#define TESTS_SUPPORT_NUMERIC_CONTRACTION_PROBLEM_H

#include "engine/ops/contraction.h"
#include "engine/rules/rules.h"
#include "tests/support/test.h"

typedef __int128 wide; /* the reference's own arithmetic */

enum values {
    VALUES_NORMAL,
    VALUES_UNIFORM,    /* a fallback of the norm test */
    VALUES_FULL,       /* all at the largest magnitude */
    VALUES_SPREAD,     /* exponents over 2W and more */
    VALUES_ANY_FINITE, /* every exponent, subnormals too */
    VALUES_SUBNORMAL,
    VALUES_SPARSE,  /* blocks of zeros, -0 */
    VALUES_HOSTILE, /* infinities and NaNs among the rest */
    VALUES_KINDS,
};

struct operand_case {
    struct op op; /* QUANTIZE */
    int64_t rows;
    float *x;
    int16_t *c; /* the shifts; NULL: none */
    int16_t *peaks;
    int16_t *exponents;
    void *q;
    size_t q_size;
};

struct problem {
    int64_t dims[8]; /* B0 B1 M0 M1 N0 N1 K0 K1 */
    int64_t k;
    int bits;
    int64_t block;
    int64_t causal;
    struct contraction_shape shape;
    struct operand_case a;
    struct operand_case b;
    struct op contract;
    int64_t out_count;
    float *out;
};

extern const int problem_bits[4];
extern const int64_t problem_blocks[6];

float float_from_bits(uint32_t bits);
uint32_t float_to_bits(float value);

/* Memory aligned to a cache line, with garbage at its start. Never NULL; free() it. */
void *take(size_t size);

/* Fills x and not the results. plain: strides have the natural order of the axes. */
void operand_init(uint64_t *seed, struct operand_case *operand, const struct problem *problem,
                  int row_axis, enum values values, bool plain);
void operand_release(struct operand_case *operand);

/* Gives both operands shifts, c and -c, up to `most` places, and solves the problem again. */
void problem_shift(uint64_t *seed, struct problem *problem, int most);

void problem_init(uint64_t *seed, struct problem *problem, const int64_t *dims, int bits,
                  int64_t block, int64_t causal, enum values values, bool plain);

/* A random small problem, with hard shapes: 1, ragged, batches that straddle panels. */
void problem_random(uint64_t *seed, struct problem *problem);
void problem_release(struct problem *problem);

/* Computes the results again, after a change of x. */
void problem_solve(struct problem *problem);

struct operand memory_operand(const void *memory, enum dtype dtype);
struct rule_call quantize_call(const struct operand_case *operand, int bits);
struct rule_call contract_call(const struct problem *problem);

int reference_exponent(float x);

/* RNE(sum) to 24 bits, times 2^exponent: the bits of binary32. */
uint32_t reference_finish(wide sum, int exponent);

/* Fails the test unless the results by the rules agree with the reference. */
void check_quantize(const struct problem *problem, const struct operand_case *operand);
void check_contract(const struct problem *problem);

#endif /* TESTS_SUPPORT_NUMERIC_CONTRACTION_PROBLEM_H */
