/* contraction_problem.c - see contraction_problem.h. */
#include "tests/support/numeric/contraction_problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POISON_SIZE ((size_t)1 << 18) /* rubbish in all of a buffer would take the test's time */

const int problem_bits[4] = {14, 15, 16, 22};
const int64_t problem_blocks[6] = {0, 16, 32, 64, 128, 512};

float float_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

uint32_t float_to_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float random_normal(uint64_t *seed)
{
    double u = ((double)(test_random(seed) >> 11) + 0.5) / 9007199254740992.0;
    double v = (double)(test_random(seed) >> 11) / 9007199254740992.0;

    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

static int64_t random_below(uint64_t *seed, int64_t bound)
{
    return (int64_t)test_random_below(seed, (uint64_t)bound);
}

static float random_value(uint64_t *seed, enum values values)
{
    float sign = test_random(seed) & 1 ? -1.0F : 1.0F;

    switch (values) {
    case VALUES_NORMAL:
        return random_normal(seed);
    case VALUES_UNIFORM:
        return sign * (float)(test_random(seed) >> 40) * 0x1p-24F;
    case VALUES_FULL:
        return sign * 0x1.fffffep-1F;
    case VALUES_SPREAD:
        return ldexpf(random_normal(seed), (int)random_below(seed, 60) - 30);
    case VALUES_ANY_FINITE:
        return float_from_bits((uint32_t)test_random(seed) & UINT32_C(0xff7fffff));
    case VALUES_SUBNORMAL:
        return float_from_bits((uint32_t)test_random(seed) & UINT32_C(0x80ffffff));
    case VALUES_SPARSE:
        return random_below(seed, 40) == 0 ? random_normal(seed) : sign * 0.0F;
    case VALUES_HOSTILE:
        if (random_below(seed, 300) == 0) {
            return test_random(seed) & 1 ? float_from_bits(FLOAT_NAN_BITS) : sign * INFINITY;
        }
        return random_normal(seed);
    case VALUES_KINDS:
        break;
    }
    return 0.0F;
}

/* ---- the reference ---- */

int reference_exponent(float x)
{
    int exponent;

    if (!isfinite(x)) {
        return 129;
    }
    if (x == 0.0F) {
        return -149;
    }
    frexp((double)x, &exponent); /* |x| = m 2^e with 1/2 <= m < 1 */
    return exponent;
}

static int32_t reference_integer(float x, int exponent, int bits)
{
    if (exponent == 129) {
        return 0;
    }
    long double limit = (long double)((1 << (bits - 1)) - 1);
    long double scaled = rintl(ldexpl((long double)x, bits - 1 - exponent));

    return (int32_t)(scaled > limit ? limit : (scaled < -limit ? -limit : scaled));
}

/* RNE(sum) to 24 bits, times 2^exponent. */
uint32_t reference_finish(wide sum, int exponent)
{
    wide magnitude = sum < 0 ? -sum : sum;
    int drop = 0;

    while ((magnitude >> drop) >= (1 << 24)) {
        drop++;
    }
    if (drop > 0) {
        wide kept = magnitude >> drop;
        wide twice_rest = (magnitude - (kept << drop)) * 2;
        wide unit = (wide)1 << drop;

        kept += twice_rest > unit || (twice_rest == unit && kept % 2 != 0);
        magnitude = kept;
    }
    return float_to_bits(ldexpf(sum < 0 ? -(float)magnitude : (float)magnitude, drop + exponent));
}

void *take(size_t size)
{
    void *memory = NULL;

    assert_int_equal(posix_memalign(&memory, 64, size + 64), 0);
    memset(memory, 0x5a, size < POISON_SIZE ? size + 64 : POISON_SIZE);
    return memory;
}

/* Strides of a random order of the axes in memory; plain: of the natural order. */
static void random_strides(uint64_t *seed, int64_t *strides, const int64_t *dims, bool plain)
{
    int order[6] = {0, 1, 2, 3, 4, 5};
    int64_t stride = 1;

    for (int i = 5; i > 0 && !plain; i--) {
        int j = (int)random_below(seed, i + 1);
        int held = order[i];

        order[i] = order[j];
        order[j] = held;
    }
    for (int i = 5; i >= 0; i--) {
        strides[order[i]] = stride;
        stride *= dims[order[i]];
    }
}

void operand_init(uint64_t *seed, struct operand_case *operand, const struct problem *problem,
                  int row_axis, enum values values, bool plain)
{
    int64_t dims[6] = {problem->dims[0],        problem->dims[1],
                       problem->dims[row_axis], problem->dims[row_axis + 1],
                       problem->dims[6],        problem->dims[7]};

    memset(operand, 0, sizeof(*operand));
    operand->op.kind = OP_QUANTIZE;
    operand->op.input_count = 1;
    memcpy(&operand->op.attributes[QUANTIZE_DIMS], dims, sizeof(dims));
    random_strides(seed, &operand->op.attributes[QUANTIZE_STRIDES], dims, plain);
    operand->op.attributes[QUANTIZE_BITS] = problem->bits;
    operand->op.attributes[QUANTIZE_BLOCK] = problem->block;
    operand->rows = dims[0] * dims[1] * dims[2] * dims[3];

    size_t count = (size_t)(operand->rows * problem->k);
    size_t width = problem->bits == 22 ? 4 : 2;

    operand->x = take(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        operand->x[i] = random_value(seed, values);
    }
    operand->peaks = take((size_t)(operand->rows * problem->shape.pieces) * 2);
    operand->exponents = take((size_t)(operand->rows * problem->shape.blocks) * 2);
    operand->q_size = count * width;
    operand->q = take(operand->q_size);
}

void operand_release(struct operand_case *operand)
{
    free(operand->x);
    free(operand->c);
    free(operand->peaks);
    free(operand->exponents);
    free(operand->q);
}

struct operand memory_operand(const void *memory, enum dtype dtype)
{
    return (struct operand){.memory = memory, .dtype = dtype, .count = UINT64_MAX};
}

struct rule_call quantize_call(const struct operand_case *operand, int bits)
{
    return (struct rule_call){
        .op = &operand->op,
        .inputs = {memory_operand(operand->x, DTYPE_F32), memory_operand(operand->c, DTYPE_I16)},
        .outputs = {memory_operand(operand->peaks, DTYPE_I16),
                    memory_operand(operand->exponents, DTYPE_I16),
                    memory_operand(operand->q, bits == 22 ? DTYPE_I32 : DTYPE_I16)},
    };
}

static void quantize_by_rules(struct operand_case *operand, const struct problem *problem)
{
    struct rule_call call = quantize_call(operand, problem->bits);
    uint64_t rows = (uint64_t)operand->rows;

    for (uint64_t i = 0; i < rows * (uint64_t)problem->shape.pieces; i++) {
        operand->peaks[i] = (int16_t)rule_quantize_peak(&call, i);
    }
    for (uint64_t i = 0; i < rows * (uint64_t)problem->shape.blocks; i++) {
        operand->exponents[i] = (int16_t)rule_quantize_exponent(&call, i);
    }
    for (uint64_t i = 0; i < rows * (uint64_t)problem->k; i++) {
        uint32_t q = rule_quantize_integer(&call, i);

        if (problem->bits == 22) {
            ((int32_t *)operand->q)[i] = (int32_t)q;
        } else {
            ((int16_t *)operand->q)[i] = (int16_t)q;
        }
    }
}

struct rule_call contract_call(const struct problem *problem)
{
    enum dtype dtype = problem->bits == 22 ? DTYPE_I32 : DTYPE_I16;

    return (struct rule_call){
        .op = &problem->contract,
        .inputs = {memory_operand(problem->a.q, dtype),
                   memory_operand(problem->a.exponents, DTYPE_I16),
                   memory_operand(problem->b.q, dtype),
                   memory_operand(problem->b.exponents, DTYPE_I16)},
    };
}

void problem_solve(struct problem *problem)
{
    struct rule_call call = contract_call(problem);

    quantize_by_rules(&problem->a, problem);
    quantize_by_rules(&problem->b, problem);
    for (int64_t i = 0; i < problem->out_count; i++) {
        problem->out[i] = float_from_bits(rule_contract(&call, (uint64_t)i));
    }
}

void problem_shift(uint64_t *seed, struct problem *problem, int most)
{
    int64_t count = problem->dims[0] * problem->dims[1] * problem->k;

    problem->a.c = take((size_t)count * sizeof(int16_t));
    problem->b.c = take((size_t)count * sizeof(int16_t));
    for (int64_t i = 0; i < count; i++) {
        problem->a.c[i] = (int16_t)(random_below(seed, 2 * most + 1) - most);
        problem->b.c[i] = (int16_t)-problem->a.c[i];
    }
    problem->a.op.input_count = 2;
    problem->b.op.input_count = 2;
    problem_solve(problem);
}

void problem_init(uint64_t *seed, struct problem *problem, const int64_t *dims, int bits,
                  int64_t block, int64_t causal, enum values values, bool plain)
{
    memset(problem, 0, sizeof(*problem));
    memcpy(problem->dims, dims, sizeof(problem->dims));
    problem->k = dims[6] * dims[7];
    problem->bits = bits;
    problem->block = block;
    problem->causal = causal;
    problem->shape = contraction_shape(problem->k, bits, block);
    operand_init(seed, &problem->a, problem, 2, values, plain);
    operand_init(seed, &problem->b, problem, 4, values, plain);
    struct op *op = &problem->contract;

    op->kind = OP_CONTRACT;
    memcpy(&op->attributes[CONTRACT_DIMS], dims, 6 * sizeof(*dims));
    random_strides(seed, &op->attributes[CONTRACT_STRIDES], dims, plain);
    op->attributes[CONTRACT_K] = problem->k;
    op->attributes[CONTRACT_BITS] = bits;
    op->attributes[CONTRACT_BLOCK] = block;
    op->attributes[CONTRACT_CAUSAL] = causal;
    problem->out_count = dims[0] * dims[1] * dims[2] * dims[3] * dims[4] * dims[5];
    problem->out = take((size_t)problem->out_count * sizeof(float));

    problem_solve(problem);
}

void problem_release(struct problem *problem)
{
    operand_release(&problem->a);
    operand_release(&problem->b);
    free(problem->out);
}

void problem_random(uint64_t *seed, struct problem *problem)
{
    int64_t dims[8];

    dims[0] = 1 + random_below(seed, 2);
    dims[1] = 1 + random_below(seed, 3);
    dims[2] = 1 + random_below(seed, 3);
    dims[3] = 1 + random_below(seed, 20);
    dims[4] = 1 + random_below(seed, 3);
    dims[5] = 1 + random_below(seed, 40);
    dims[6] = 1 + random_below(seed, 3);
    dims[7] =
        random_below(seed, 4) == 0 ? 1 + random_below(seed, 600) : 1 + random_below(seed, 150);

    int64_t causal = random_below(seed, 3) == 0 ? 1 + random_below(seed, dims[2] * dims[3]) : 0;

    problem_init(seed, problem, dims, problem_bits[random_below(seed, 4)],
                 problem_blocks[random_below(seed, 6)], causal,
                 (enum values)random_below(seed, VALUES_KINDS), random_below(seed, 3) == 0);
}

/* ---- the rules against the reference ---- */

void check_quantize(const struct problem *problem, const struct operand_case *operand)
{
    const struct contraction_shape *shape = &problem->shape;
    int window = (int)floor((62 - 2 * (problem->bits - 1) - ceil(log2((double)problem->k))) / 2.0);

    assert_int_equal(shape->window, window);
    for (int64_t row = 0; row < operand->rows; row++) {
        int top = -1000;

        for (int64_t k = 0; k < problem->k; k++) {
            float x = operand->x[quantize_place(&operand->op, (uint64_t)row, (uint64_t)k)];

            top = reference_exponent(x) > top ? reference_exponent(x) : top;
        }
        for (int64_t b = 0; b < shape->blocks; b++) {
            int expected = top - window;
            int64_t end = (b + 1) * shape->block < problem->k ? (b + 1) * shape->block : problem->k;

            for (int64_t k = b * shape->block; k < end; k++) {
                float x = operand->x[quantize_place(&operand->op, (uint64_t)row, (uint64_t)k)];

                expected = reference_exponent(x) > expected ? reference_exponent(x) : expected;
            }
            assert_int_equal(operand->exponents[row * shape->blocks + b], expected);
            for (int64_t k = b * shape->block; k < end; k++) {
                float x = operand->x[quantize_place(&operand->op, (uint64_t)row, (uint64_t)k)];
                int64_t at = row * problem->k + k;
                int32_t q =
                    problem->bits == 22 ? ((int32_t *)operand->q)[at] : ((int16_t *)operand->q)[at];

                assert_int_equal(q, reference_integer(x, expected, problem->bits));
            }
        }
    }
}

/* Sums from absolute exponents, base -149 - W at most: independent of the rule's base. */
static uint32_t reference_contract(const struct problem *problem, int64_t row_a, int64_t row_b)
{
    const struct contraction_shape *shape = &problem->shape;
    const int16_t *ea = problem->a.exponents + row_a * shape->blocks;
    const int16_t *eb = problem->b.exponents + row_b * shape->blocks;
    int base = 1000;
    wide sum = 0;

    for (int64_t b = 0; b < shape->blocks; b++) {
        if (ea[b] == 129 || eb[b] == 129) {
            return FLOAT_NAN_BITS;
        }
        base = ea[b] + eb[b] < base ? ea[b] + eb[b] : base; /* not the sum of the two minima */
    }
    for (int64_t k = 0; k < problem->k; k++) {
        int64_t at[2] = {row_a * problem->k + k, row_b * problem->k + k};
        int64_t b = k / shape->block;
        wide qa = problem->bits == 22 ? ((int32_t *)problem->a.q)[at[0]]
                                      : ((int16_t *)problem->a.q)[at[0]];
        wide qb = problem->bits == 22 ? ((int32_t *)problem->b.q)[at[1]]
                                      : ((int16_t *)problem->b.q)[at[1]];

        sum += qa * qb * ((wide)1 << (ea[b] + eb[b] - base));
    }
    return reference_finish(sum, base - 2 * (problem->bits - 1));
}

void check_contract(const struct problem *problem)
{
    const int64_t *d = problem->dims;
    const int64_t *s = &problem->contract.attributes[CONTRACT_STRIDES];
    int64_t m_count = d[2] * d[3];
    int64_t n_count = d[4] * d[5];

    for (int64_t batch = 0; batch < d[0] * d[1]; batch++) {
        for (int64_t m = 0; m < m_count; m++) {
            for (int64_t n = 0; n < n_count; n++) {
                int64_t place = batch / d[1] * s[0] + batch % d[1] * s[1] + m / d[3] * s[2] +
                                m % d[3] * s[3] + n / d[5] * s[4] + n % d[5] * s[5];
                uint32_t expected =
                    reference_contract(problem, batch * m_count + m, batch * n_count + n);

                if (problem->causal > 0 && n > m % problem->causal) {
                    expected = 0;
                }
                assert_int_equal(float_to_bits(problem->out[place]), expected);
            }
        }
    }
}
