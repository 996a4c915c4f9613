/*
 * Goal: quantization and exact contraction have the bits that docs/arithmetic-contraction.md states,
 * in the rules, in every kernel, layout and thread count, on ordinary and on hostile numbers.
 * Method: an independent reference (long double and 128-bit integers) judges the rules; the rules
 * judge the kernels, bit for bit, over random shapes, views and values, then at the extremes that
 * the overflow proofs speak of.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/contraction.h"
#include "engine/cpu/cpu.h"
#include "engine/rules.h"

typedef __int128 wide; /* the reference's own arithmetic */

/* ---- deterministic randomness ---- */

static uint64_t seed_state;

static uint64_t random_word(void)
{
    uint64_t z = (seed_state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int64_t random_below(int64_t bound)
{
    return (int64_t)(random_word() % (uint64_t)bound);
}

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float random_normal(void)
{
    double u = ((double)(random_word() >> 11) + 0.5) / 9007199254740992.0;
    double v = (double)(random_word() >> 11) / 9007199254740992.0;

    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

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

static float random_value(enum values values)
{
    float sign = random_word() & 1 ? -1.0F : 1.0F;

    switch (values) {
    case VALUES_NORMAL:
        return random_normal();
    case VALUES_UNIFORM:
        return sign * (float)(random_word() >> 40) * 0x1p-24F;
    case VALUES_FULL:
        return sign * 0x1.fffffep-1F;
    case VALUES_SPREAD:
        return ldexpf(random_normal(), (int)random_below(60) - 30);
    case VALUES_ANY_FINITE:
        return from_bits((uint32_t)random_word() & UINT32_C(0xff7fffff));
    case VALUES_SUBNORMAL:
        return from_bits((uint32_t)random_word() & UINT32_C(0x80ffffff));
    case VALUES_SPARSE:
        return random_below(40) == 0 ? random_normal() : sign * 0.0F;
    case VALUES_HOSTILE:
        if (random_below(300) == 0) {
            return random_word() & 1 ? from_bits(FLOAT_NAN_BITS) : sign * INFINITY;
        }
        return random_normal();
    case VALUES_KINDS:
        break;
    }
    return 0.0F;
}

/* ---- the reference ---- */

static int reference_exponent(float x)
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
static uint32_t reference_finish(wide sum, int exponent)
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
    return to_bits(ldexpf(sum < 0 ? -(float)magnitude : (float)magnitude, drop + exponent));
}

/* ---- a problem: two operands, their views, and all results by the rules ---- */

struct operand_case {
    struct op op;
    int64_t rows;
    float *x;
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

static void *take(size_t size)
{
    void *memory = NULL;

    assert_int_equal(posix_memalign(&memory, 64, size + 64), 0);
    memset(memory, 0x5a, size + 64);
    return memory;
}

/* Strides of a random order of the axes in memory. With plain the order is the natural one. */
static void random_strides(int64_t *strides, const int64_t *dims, bool plain)
{
    int order[6] = {0, 1, 2, 3, 4, 5};
    int64_t stride = 1;

    for (int i = 5; i > 0 && !plain; i--) {
        int j = (int)random_below(i + 1);
        int held = order[i];

        order[i] = order[j];
        order[j] = held;
    }
    for (int i = 5; i >= 0; i--) {
        strides[order[i]] = stride;
        stride *= dims[order[i]];
    }
}

static void operand_init(struct operand_case *operand, const struct problem *problem, int row_axis,
                         enum values values, bool plain)
{
    int64_t dims[6] = {problem->dims[0],        problem->dims[1],
                       problem->dims[row_axis], problem->dims[row_axis + 1],
                       problem->dims[6],        problem->dims[7]};

    memset(operand, 0, sizeof(*operand));
    operand->op.kind = OP_QUANTIZE;
    memcpy(&operand->op.attributes[QUANTIZE_DIMS], dims, sizeof(dims));
    random_strides(&operand->op.attributes[QUANTIZE_STRIDES], dims, plain);
    operand->op.attributes[QUANTIZE_BITS] = problem->bits;
    operand->op.attributes[QUANTIZE_BLOCK] = problem->block;
    operand->rows = dims[0] * dims[1] * dims[2] * dims[3];

    size_t count = (size_t)(operand->rows * problem->k);
    size_t width = problem->bits == 22 ? 4 : 2;

    operand->x = take(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        operand->x[i] = random_value(values);
    }
    operand->peaks = take((size_t)(operand->rows * problem->shape.pieces) * 2);
    operand->exponents = take((size_t)(operand->rows * problem->shape.blocks) * 2);
    operand->q_size = count * width;
    operand->q = take(operand->q_size);
}

static void operand_release(struct operand_case *operand)
{
    free(operand->x);
    free(operand->peaks);
    free(operand->exponents);
    free(operand->q);
}

static struct operand memory_operand(const void *memory, enum dtype dtype)
{
    return (struct operand){.memory = memory, .dtype = dtype, .count = UINT64_MAX};
}

static struct rule_call quantize_call(const struct operand_case *operand, int bits)
{
    return (struct rule_call){
        .op = &operand->op,
        .inputs = {memory_operand(operand->x, DTYPE_F32)},
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

static struct rule_call contract_call(const struct problem *problem)
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

static void problem_init(struct problem *problem, const int64_t *dims, int bits, int64_t block,
                         int64_t causal, enum values values, bool plain)
{
    memset(problem, 0, sizeof(*problem));
    memcpy(problem->dims, dims, sizeof(problem->dims));
    problem->k = dims[6] * dims[7];
    problem->bits = bits;
    problem->block = block;
    problem->causal = causal;
    problem->shape = contraction_shape(problem->k, bits, block);
    operand_init(&problem->a, problem, 2, values, plain);
    operand_init(&problem->b, problem, 4, values, plain);
    quantize_by_rules(&problem->a, problem);
    quantize_by_rules(&problem->b, problem);

    struct op *op = &problem->contract;

    op->kind = OP_CONTRACT;
    memcpy(&op->attributes[CONTRACT_DIMS], dims, 6 * sizeof(*dims));
    random_strides(&op->attributes[CONTRACT_STRIDES], dims, plain);
    op->attributes[CONTRACT_K] = problem->k;
    op->attributes[CONTRACT_BITS] = bits;
    op->attributes[CONTRACT_BLOCK] = block;
    op->attributes[CONTRACT_CAUSAL] = causal;
    problem->out_count = dims[0] * dims[1] * dims[2] * dims[3] * dims[4] * dims[5];
    problem->out = take((size_t)problem->out_count * sizeof(float));

    struct rule_call call = contract_call(problem);

    for (int64_t i = 0; i < problem->out_count; i++) {
        problem->out[i] = from_bits(rule_contract(&call, (uint64_t)i));
    }
}

static void problem_release(struct problem *problem)
{
    operand_release(&problem->a);
    operand_release(&problem->b);
    free(problem->out);
}

static const int bits_all[] = {14, 15, 16, 22};
static const int64_t blocks_all[] = {0, 16, 32, 64, 128, 512};

/* A random small problem; every hard shape comes up: 1, ragged, batches that straddle panels. */
static void problem_random(struct problem *problem)
{
    int64_t dims[8];

    dims[0] = 1 + random_below(2);
    dims[1] = 1 + random_below(3);
    dims[2] = 1 + random_below(3);
    dims[3] = 1 + random_below(20);
    dims[4] = 1 + random_below(3);
    dims[5] = 1 + random_below(40);
    dims[6] = 1 + random_below(3);
    dims[7] = random_below(4) == 0 ? 1 + random_below(600) : 1 + random_below(150);

    int64_t causal = random_below(3) == 0 ? 1 + random_below(dims[2] * dims[3]) : 0;

    problem_init(problem, dims, bits_all[random_below(4)], blocks_all[random_below(6)], causal,
                 (enum values)random_below(VALUES_KINDS), random_below(3) == 0);
}

/* ---- the rules against the reference ---- */

static void check_quantize(const struct problem *problem, const struct operand_case *operand)
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

/* Sums from absolute exponents, base -149 - W at most: independent of the rule's own base. */
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

static void check_contract(const struct problem *problem)
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
                assert_int_equal(to_bits(problem->out[place]), expected);
            }
        }
    }
}

static void test_rules_agree_with_the_reference(void **state)
{
    (void)state;
    seed_state = 1;
    for (int turn = 0; turn < 120; turn++) {
        struct problem problem;

        problem_random(&problem);
        check_quantize(&problem, &problem.a);
        check_quantize(&problem, &problem.b);
        check_contract(&problem);
        problem_release(&problem);
    }
}

static void test_finish_rounds_once_and_once_more_where_subnormal(void **state)
{
    (void)state;
    seed_state = 2;
    for (int turn = 0; turn < 400000; turn++) {
        int64_t sum = (int64_t)random_word() >> (1 + random_below(63));
        int exponent = (int)random_below(420) - 270;

        if (random_below(2)) {
            sum &= ~((INT64_C(1) << random_below(40)) - 1); /* ties */
        }
        assert_int_equal(contraction_finish(sum, exponent), reference_finish(sum, exponent));
    }
    assert_int_equal(contraction_finish(0, 50), 0);
    assert_int_equal(contraction_finish(-1, -400), UINT32_C(0x80000000));
    assert_int_equal(contraction_finish(1, -149), 1);
    assert_int_equal(contraction_finish(1, -150), 0); /* a tie, to even */
    assert_int_equal(contraction_finish(3, -151), 1);
    assert_int_equal(contraction_finish((1 << 25) - 1, 103), UINT32_C(0x7f800000));
    assert_int_equal(contraction_finish((1 << 24) - 1, 104), UINT32_C(0x7f7fffff));
    assert_int_equal(contraction_finish(INT64_MIN, -63), to_bits(-1.0F));
}

static void test_exponents_of_all_powers_and_their_neighbours(void **state)
{
    (void)state;
    for (uint32_t power = 0; power < 255; power++) {
        for (int step = -1; step <= 1; step++) {
            uint32_t bits = (power << 23) + (uint32_t)step;

            if (power > 0 || step >= 0) {
                assert_int_equal(exponent_of_bits(bits), reference_exponent(from_bits(bits)));
                assert_int_equal(exponent_of_bits(bits | UINT32_C(0x80000000)),
                                 exponent_of_bits(bits));
            }
        }
    }
    for (int place = 0; place < 23; place++) {
        assert_int_equal(exponent_of_bits(UINT32_C(1) << place), place - 148);
    }
    assert_int_equal(exponent_of_bits(UINT32_C(0x7f7fffff)), 128);
    assert_int_equal(exponent_of_bits(UINT32_C(0x7f800000)), EXPONENT_POISON);
    assert_int_equal(exponent_of_bits(FLOAT_NAN_BITS), EXPONENT_POISON);
}

/* A liar's exponents and integers: any value must give a value. UBSan watches. */
static void test_rules_are_total_on_lies(void **state)
{
    (void)state;
    seed_state = 3;
    for (int turn = 0; turn < 60; turn++) {
        struct problem problem;

        problem_random(&problem);
        for (int64_t i = 0; i < problem.a.rows * problem.shape.blocks; i++) {
            problem.a.exponents[i] = (int16_t)random_word();
        }
        for (size_t i = 0; i < problem.a.q_size; i++) {
            ((uint8_t *)problem.a.q)[i] = (uint8_t)random_word();
        }
        struct rule_call call = contract_call(&problem);
        struct rule_call quantize = quantize_call(&problem.a, problem.bits);

        for (int64_t i = 0; i < problem.out_count; i++) {
            uint32_t bits = rule_contract(&call, (uint64_t)i);

            assert_true((bits & UINT32_C(0x7fffffff)) <= FLOAT_NAN_BITS);
        }
        for (int64_t i = 0; i < problem.a.rows * problem.k; i++) {
            int32_t q = (int32_t)rule_quantize_integer(&quantize, (uint64_t)i);

            assert_true(abs(q) < 1 << (problem.bits - 1));
        }
        problem_release(&problem);
    }
}

/* ---- the kernels against the rules ---- */

struct run {
    const struct kernel_table *table;
    int thread_count;
    bool packed;
};

static void kernel_run(const struct run *run, struct kernel_call *call)
{
    const struct kernel *kernel = &run->table->kernels[call->op->kind];

    call->thread_count = run->thread_count;
    call->packed = run->packed;
    call->scratch =
        take(kernel->scratch_size == NULL ? 0 : kernel->scratch_size(call->op, run->thread_count));
    kernel->run(call);
    free(call->scratch);
}

/* Runs QUANTIZE and returns its q buffer, checking what is canonical against the rules. */
static void *kernel_quantize(const struct run *run, const struct operand_case *operand,
                             const struct problem *problem)
{
    size_t exponents_size = (size_t)(operand->rows * problem->shape.blocks) * 2;
    size_t peaks_size = (size_t)(operand->rows * problem->shape.pieces) * 2;
    int16_t *exponents = take(exponents_size);
    int16_t *peaks = take(peaks_size);
    void *q = take(run->packed ? contraction_packed_size(&operand->op) : operand->q_size);
    struct kernel_call call = {.op = &operand->op,
                               .inputs = {operand->x},
                               .outputs = {run->packed ? NULL : peaks, exponents, q}};

    kernel_run(run, &call);
    assert_memory_equal(exponents, operand->exponents, exponents_size);
    if (!run->packed) {
        assert_memory_equal(peaks, operand->peaks, peaks_size);
        assert_memory_equal(q, operand->q, operand->q_size);
    }
    free(exponents);
    free(peaks);
    return q;
}

static void check_kernel_contract(const struct run *run, const struct problem *problem, void *qa,
                                  void *qb)
{
    size_t size = (size_t)problem->out_count * sizeof(float);
    float *out = take(size);
    struct kernel_call call = {
        .op = &problem->contract,
        .inputs = {qa, problem->a.exponents, qb, problem->b.exponents},
        .outputs = {out},
    };

    kernel_run(run, &call);
    assert_memory_equal(out, problem->out, size);
    free(out);
}

static void check_kernel_ones(const struct run *run, const struct problem *problem, void *q)
{
    const struct operand_case *a = &problem->a;
    enum dtype dtype = problem->bits == 22 ? DTYPE_I32 : DTYPE_I16;
    struct op op = {.kind = OP_CONTRACT_ONES,
                    .attributes = {a->rows, problem->k, problem->bits, problem->block}};
    struct rule_call rule = {
        .op = &op,
        .inputs = {memory_operand(a->q, dtype), memory_operand(a->exponents, DTYPE_I16)}};
    float *out = take((size_t)a->rows * sizeof(float));
    struct kernel_call call = {.op = &op, .inputs = {q, a->exponents}, .outputs = {out}};

    kernel_run(run, &call);
    for (int64_t row = 0; row < a->rows; row++) {
        assert_int_equal(to_bits(out[row]), rule_contract_ones(&rule, (uint64_t)row));
    }
    free(out);
}

static void check_kernel_onehot(const struct run *run, const struct problem *problem, void *q)
{
    const struct operand_case *a = &problem->a;
    enum dtype dtype = problem->bits == 22 ? DTYPE_I32 : DTYPE_I16;
    int64_t words = 1 + random_below(12);
    struct op op = {.kind = OP_CONTRACT_ONEHOT,
                    .attributes = {words, a->rows, problem->k, problem->bits, problem->block}};
    uint32_t *index = take((size_t)problem->k * sizeof(uint32_t));
    float *out = take((size_t)(words * a->rows) * sizeof(float));

    for (int64_t k = 0; k < problem->k; k++) {
        index[k] = random_below(50) == 0 ? UINT32_MAX : (uint32_t)random_below(words + 1);
    }
    struct rule_call rule = {.op = &op,
                             .inputs = {memory_operand(index, DTYPE_U32),
                                        memory_operand(a->q, dtype),
                                        memory_operand(a->exponents, DTYPE_I16)}};
    struct kernel_call call = {.op = &op, .inputs = {index, q, a->exponents}, .outputs = {out}};

    kernel_run(run, &call);
    for (int64_t i = 0; i < words * a->rows; i++) {
        assert_int_equal(to_bits(out[i]), rule_contract_onehot(&rule, (uint64_t)i));
    }
    free(index);
    free(out);
}

static void check_kernels(const struct run *run, const struct problem *problem, bool sums)
{
    void *qa = kernel_quantize(run, &problem->a, problem);
    void *qb = kernel_quantize(run, &problem->b, problem);

    check_kernel_contract(run, problem, qa, qb);
    if (sums) {
        check_kernel_ones(run, problem, qa);
        check_kernel_onehot(run, problem, qa);
    }
    free(qa);
    free(qb);
}

/* Every table that this CPU runs; returns how many. */
static int tables(struct kernel_table *out)
{
    int count = 0;

    memset(out, 0, 2 * sizeof(*out));
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        contraction_kernels_avx2(&out[count++]);
    }
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
        contraction_kernels_avx512(&out[count++]);
    }
    return count;
}

static void check_all_kernels(const struct problem *problem, bool sums)
{
    struct kernel_table table[2];
    int count = tables(table);

    for (int i = 0; i < count; i++) {
        for (int mode = 0; mode < 4; mode++) {
            struct run run = {
                .table = &table[i], .thread_count = 1 + (mode & 1), .packed = mode >= 2};

            check_kernels(&run, problem, sums);
        }
    }
}

static void test_kernels_give_the_rules_bits(void **state)
{
    const char *soak = getenv("SOAK_MINUTES");
    int turns = soak != NULL && atoi(soak) > 0 ? 1500 * atoi(soak) : 250;

    (void)state;
    seed_state = 4;
    for (int turn = 0; turn < turns; turn++) {
        struct problem problem;

        problem_random(&problem);
        check_all_kernels(&problem, true);
        problem_release(&problem);
    }
}

static void test_kernels_every_bits_block_and_values(void **state)
{
    (void)state;
    seed_state = 5;
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 6; j++) {
            for (int values = 0; values < VALUES_KINDS; values++) {
                int64_t dims[8] = {1, 1, 1, 19, 1, 50, 1, 515 + random_below(100)};
                struct problem problem;

                problem_init(&problem, dims, bits_all[i], blocks_all[j], 0, (enum values)values,
                             true);
                check_all_kernels(&problem, true);
                problem_release(&problem);
            }
        }
    }
}

/* Tasks of several slices and panels, full tiles and every kind of edge. */
static void test_kernels_large_shapes(void **state)
{
    static const int64_t shapes[][8] = {
        {1, 1, 1, 150, 1, 230, 1, 1100}, /* two slices, ragged tasks */
        {1, 1, 1, 16, 1, 48, 1, 2049},   /* three slices, one tile wide, odd */
        {1, 2, 1, 130, 1, 64, 1, 128},   /* attention mixing */
        {2, 1, 1, 100, 1, 100, 1, 64},   /* attention scores, batches straddle panels */
    };

    (void)state;
    seed_state = 6;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int turn = 0; turn < 4; turn++) {
            int64_t m_count = shapes[i][2] * shapes[i][3];
            struct problem problem;

            problem_init(&problem, shapes[i], bits_all[turn], turn == 3 ? 0 : 128,
                         turn == 1 ? m_count : 0, VALUES_NORMAL, turn != 2);
            check_all_kernels(&problem, false);
            problem_release(&problem);
        }
    }
}

/* ---- the extremes of the proofs ---- */

/* All elements at the clamp, in phase: every partial sum is as large as it can be. */
static void test_extremes_longest_rows_at_the_clamp(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (int64_t k = 50257; k <= 50258; k++) {
            int64_t dims[8] = {1, 1, 1, 2, 1, 3, 1, k};
            struct problem problem;

            seed_state = 7;
            problem_init(&problem, dims, bits_all[i], bits_all[i] == 22 ? 0 : 128, 0, VALUES_FULL,
                         true);
            for (int64_t at = 0; at < 2 * k; at++) { /* make them equal: S = K * Q^2 */
                problem.a.x[at] = 0x1.fffffep-1F;
            }
            for (int64_t at = 0; at < 3 * k; at++) {
                problem.b.x[at] = at < k ? 0x1.fffffep-1F : -0x1.fffffep-1F;
            }
            quantize_by_rules(&problem.a, &problem);
            quantize_by_rules(&problem.b, &problem);
            struct rule_call call = contract_call(&problem);

            for (int64_t at = 0; at < 6; at++) {
                problem.out[at] = from_bits(rule_contract(&call, (uint64_t)at));
            }
            wide largest = (1 << (problem.bits - 1)) - 1;

            assert_int_equal(to_bits(problem.out[0]),
                             reference_finish(largest * largest * k, -2 * (problem.bits - 1)));
            check_contract(&problem);
            check_all_kernels(&problem, true);
            problem_release(&problem);
        }
    }
}

/*
 * The widest window: every other block at the top and at the clamp, the others W below, both
 * operands in phase. |S| comes as near to 2^62 as the proof lets it.
 */
static void test_extremes_widest_exponent_window(void **state)
{
    static const int64_t lengths[] = {16, 17, 32, 33, 64, 65, 127, 128, 129, 256, 257, 1024, 1025};

    (void)state;
    seed_state = 8;
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
            for (int64_t block = 16; block <= 128; block *= 2) {
                int64_t k = lengths[j];
                int64_t dims[8] = {1, 1, 1, 2, 1, 17, 1, k};
                int window = contraction_window(bits_all[i], k);
                struct problem problem;

                assert_true(window >= 0);
                problem_init(&problem, dims, bits_all[i], block, 0, VALUES_FULL, true);
                for (int64_t at = 0; at < 19 * k; at++) {
                    bool low = at % k / block % 2 == 0 && k > block;
                    float x = ldexpf(0x1.fffffep-1F, low ? -window : 0);

                    *(at < 2 * k ? &problem.a.x[at] : &problem.b.x[at - 2 * k]) = x;
                }
                quantize_by_rules(&problem.a, &problem);
                quantize_by_rules(&problem.b, &problem);
                struct rule_call call = contract_call(&problem);

                for (int64_t at = 0; at < problem.out_count; at++) {
                    problem.out[at] = from_bits(rule_contract(&call, (uint64_t)at));
                }
                check_contract(&problem);
                check_all_kernels(&problem, true);
                problem_release(&problem);
            }
        }
    }
}

static void test_window_is_refused_exactly_past_its_longest_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        int room = 62 - 2 * (bits_all[i] - 1);

        assert_int_equal(contraction_window(bits_all[i], INT64_C(1) << room), 0);
        assert_int_equal(contraction_window(bits_all[i], (INT64_C(1) << room) + 1), -1);
        assert_int_equal(contraction_window(bits_all[i], 1), room / 2);
    }
}

/* ---- any cut of K ---- */

struct cut {
    struct contraction_shape shape;
    struct quantized_row rows[2];
};

static int64_t part_of(const struct cut *cut, int64_t part, int64_t parts)
{
    return contraction_partial(&cut->shape, &cut->rows[0], &cut->rows[1],
                               cut->shape.blocks * part / parts,
                               cut->shape.blocks * (part + 1) / parts);
}

static void check_cuts(const struct problem *problem)
{
    struct cut cut = {
        .shape = problem->shape,
        .rows = {{problem->a.q, problem->a.exponents}, {problem->b.q, problem->b.exponents}}};
    int64_t whole = part_of(&cut, 0, 1);
    int64_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t threads[4] = {0};
    bool poison[2];
    int lowest = contraction_lowest(&poison[0], problem->a.exponents, problem->shape.blocks) +
                 contraction_lowest(&poison[1], problem->b.exponents, problem->shape.blocks);

    assert_true(shared != MAP_FAILED);
    for (int child = 0; child < 2; child++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            shared[child] = part_of(&cut, child, 2);
            _exit(0);
        }
    }
    for (int child = 0; child < 2; child++) {
        int status;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
#pragma omp parallel for num_threads(2)
    for (int part = 0; part < 4; part++) {
        threads[part] = part_of(&cut, part, 4);
    }
    assert_true(shared[0] + shared[1] == whole);
    assert_true(threads[0] + threads[1] + threads[2] + threads[3] == whole);
    assert_int_equal(contraction_finish(shared[0] + shared[1], lowest - 2 * (problem->bits - 1)),
                     to_bits(problem->out[0]));
    munmap(shared, 4096);
}

static void test_any_cut_of_k_over_threads_and_processes_adds_up(void **state)
{
    (void)state;
    seed_state = 9;
    for (size_t i = 0; i < 4; i++) {
        int64_t dims[8] = {1, 1, 1, 1, 1, 1, 1, 3001};
        struct problem problem;

        problem_init(&problem, dims, bits_all[i], 64, 0, VALUES_SPREAD, true);
        check_cuts(&problem);
        problem_release(&problem);
    }
}

/* ---- properties ---- */

/* Exchanging the operands, and the strides with them, leaves out as it was. */
static void test_exchanged_operands_give_the_transpose(void **state)
{
    struct kernel_table table[2];
    int count = tables(table);

    (void)state;
    seed_state = 10;
    for (int turn = 0; turn < 60; turn++) {
        struct problem problem;
        struct problem other;

        problem_random(&problem);
        other = problem;
        for (int i = 0; i < 2; i++) {
            int64_t *a = other.contract.attributes;

            a[2 + i] = problem.contract.attributes[4 + i];
            a[4 + i] = problem.contract.attributes[2 + i];
            a[8 + i] = problem.contract.attributes[10 + i];
            a[10 + i] = problem.contract.attributes[8 + i];
        }
        other.a = problem.b;
        other.b = problem.a;
        if (problem.causal == 0) {
            for (int i = 0; i < count; i++) {
                check_kernels(&(struct run){&table[i], 2, true}, &other, false);
            }
        }
        problem_release(&problem);
    }
}

/* The referee's way in: elements by fetch give what memory gives. */
static uint32_t fetch_element(void *context, uint32_t tensor, uint64_t index)
{
    return operand_get(&((const struct operand *)context)[tensor], index);
}

static void test_rules_fetch_gives_what_memory_gives(void **state)
{
    (void)state;
    seed_state = 11;
    for (int turn = 0; turn < 40; turn++) {
        struct problem problem;

        problem_random(&problem);
        struct rule_call call = contract_call(&problem);
        struct operand sources[4];

        memcpy(sources, call.inputs, sizeof(sources));
        for (uint32_t i = 0; i < 4; i++) {
            call.inputs[i].memory = NULL;
            call.inputs[i].fetch = fetch_element;
            call.inputs[i].context = sources;
            call.inputs[i].tensor = i;
        }
        for (int64_t at = 0; at < problem.out_count; at += 1 + problem.out_count / 50) {
            assert_int_equal(rule_contract(&call, (uint64_t)at), to_bits(problem.out[at]));
        }
        problem_release(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponents_of_all_powers_and_their_neighbours),
        cmocka_unit_test(test_finish_rounds_once_and_once_more_where_subnormal),
        cmocka_unit_test(test_window_is_refused_exactly_past_its_longest_row),
        cmocka_unit_test(test_rules_agree_with_the_reference),
        cmocka_unit_test(test_rules_are_total_on_lies),
        cmocka_unit_test(test_rules_fetch_gives_what_memory_gives),
        cmocka_unit_test(test_any_cut_of_k_over_threads_and_processes_adds_up),
        cmocka_unit_test(test_kernels_give_the_rules_bits),
        cmocka_unit_test(test_kernels_every_bits_block_and_values),
        cmocka_unit_test(test_kernels_large_shapes),
        cmocka_unit_test(test_extremes_longest_rows_at_the_clamp),
        cmocka_unit_test(test_extremes_widest_exponent_window),
        cmocka_unit_test(test_exchanged_operands_give_the_transpose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
