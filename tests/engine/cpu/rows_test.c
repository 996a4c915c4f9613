/*
 * rows_test.c - every row kernel gives its rules' bits, and the rules compute their functions.
 *
 * Method: kernels against the looped rules for every width up to 70 and around the edges of chunks,
 * on ordinary and special numbers, in place and apart (float_case.h); rules against double
 * precision, at their edges, a sum in the canonical order, and pinned vectors.
 */
#include <math.h>

#include "engine/ops/kernel.h"
#include "tests/support/numeric/float_case.h"
#include "tests/support/test.h"

#define EPSILON 1e-5f

static uint64_t chunks_of(uint64_t columns)
{
    return fold_chunks(columns);
}

static void add_inputs(struct float_case *one, uint64_t *seed, enum float_fill fill,
                       const uint64_t *counts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        float_case_fill(seed, float_case_input(one, counts[i]), counts[i], fill);
    }
}

static void add_outputs(struct float_case *one, const uint64_t *counts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        float_case_output(one, counts[i]);
    }
}

/* Targets of cross-entropy: any column, and sometimes one outside of the row. */
static void add_targets(struct float_case *one, uint64_t *seed, uint64_t rows, uint64_t columns)
{
    uint32_t *target = float_case_input_u32(one, rows);

    for (uint64_t r = 0; r < rows; r++) {
        target[r] = (uint32_t)test_random_below(seed, columns + (r % 7 == 3));
        target[r] = r % 5 == 4 ? TARGET_IGNORED : target[r];
    }
}

/* A case with random inputs of any row operation; the caller releases it. */
static void rows_init(struct float_case *one, enum op_kind kind, uint64_t *seed,
                      enum float_fill fill, uint64_t rows, uint64_t columns, int64_t causal)
{
    uint64_t whole = rows * columns;
    uint64_t parts = rows * chunks_of(columns);
    int64_t attributes[4] = {(int64_t)rows, (int64_t)columns};
    uint32_t attribute_count = 2;

    if (kind == OP_LAYER_NORM || kind == OP_RMS_NORM) {
        attributes[attribute_count++] = float_attribute(EPSILON);
    } else if (kind == OP_SOFTMAX || kind == OP_SOFTMAX_GRAD) {
        attributes[attribute_count++] = causal;
        attributes[attribute_count++] = float_attribute(0.125f);
    }
    float_case_init(one, kind, attribute_count, attributes);
    if (kind == OP_ROW_SUM) {
        add_inputs(one, seed, fill, (uint64_t[]){whole}, 1);
        add_outputs(one, (uint64_t[]){parts, rows}, 2);
    } else if (kind == OP_LAYER_NORM) {
        add_inputs(one, seed, fill, (uint64_t[]){whole, columns, columns}, 3);
        add_outputs(one, (uint64_t[]){parts, rows, parts, rows, whole}, 5);
    } else if (kind == OP_LAYER_NORM_GRAD) {
        add_inputs(one, seed, fill, (uint64_t[]){whole, whole, columns, rows, rows}, 5);
        add_outputs(one, (uint64_t[]){parts, parts, rows, rows, whole, whole}, 6);
    } else if (kind == OP_RMS_NORM) {
        add_inputs(one, seed, fill, (uint64_t[]){whole, columns}, 2);
        add_outputs(one, (uint64_t[]){parts, rows, whole}, 3);
    } else if (kind == OP_RMS_NORM_GRAD) {
        add_inputs(one, seed, fill, (uint64_t[]){whole, whole, columns, rows}, 4);
        add_outputs(one, (uint64_t[]){parts, rows, whole, whole}, 4);
    } else if (kind == OP_SOFTMAX) {
        add_inputs(one, seed, fill, (uint64_t[]){whole}, 1);
        add_outputs(one, (uint64_t[]){parts, rows, whole, parts, rows, whole}, 6);
    } else if (kind == OP_SOFTMAX_GRAD) {
        add_inputs(one, seed, fill, (uint64_t[]){whole, whole}, 2);
        add_outputs(one, (uint64_t[]){parts, rows, whole}, 3);
    } else if (kind == OP_CROSS_ENTROPY) {
        add_inputs(one, seed, fill, (uint64_t[]){whole}, 1);
        add_targets(one, seed, rows, columns);
        add_outputs(one, (uint64_t[]){parts, rows, whole, parts, rows, rows}, 6);
    } else {
        add_inputs(one, seed, fill, (uint64_t[]){whole}, 1);
        add_targets(one, seed, rows, columns);
        add_inputs(one, seed, fill, (uint64_t[]){rows, rows, rows}, 3);
        add_outputs(one, (uint64_t[]){whole}, 1);
    }
}

static const enum op_kind kinds[] = {
    OP_ROW_SUM, OP_LAYER_NORM,   OP_LAYER_NORM_GRAD, OP_RMS_NORM,           OP_RMS_NORM_GRAD,
    OP_SOFTMAX, OP_SOFTMAX_GRAD, OP_CROSS_ENTROPY,   OP_CROSS_ENTROPY_GRAD,
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void check_shape(enum float_fill fill, uint64_t rows, uint64_t columns, int64_t causal)
{
    uint64_t seed = rows * 7919 + columns;

    for (size_t k = 0; k < KINDS; k++) {
        struct float_case one;

        if (causal != 0 && kinds[k] != OP_SOFTMAX && kinds[k] != OP_SOFTMAX_GRAD) {
            continue;
        }
        rows_init(&one, kinds[k], &seed, fill, rows, columns, causal);
        float_case_check(&one);
        float_case_release(&one);
    }
}

static void test_kernels_give_the_rules_bits_for_every_small_width(void **state)
{
    (void)state;
    for (uint64_t columns = 1; columns <= 70; columns++) {
        check_shape(FLOAT_PLAIN, 3, columns, 0);
        check_shape(FLOAT_FINITE, 8, columns, 0);
        check_shape(FLOAT_NASTY, 5, columns, 0);
    }
}

static void test_kernels_give_the_rules_bits_around_chunks(void **state)
{
    (void)state;
    for (uint64_t columns = 1023; columns <= 1030; columns++) {
        check_shape(FLOAT_PLAIN, 17, columns, 0);
        check_shape(FLOAT_NASTY, 17, columns, 0);
    }
    check_shape(FLOAT_PLAIN, 9, 2049, 0);
    check_shape(FLOAT_FINITE, 9, 2049, 0);
    check_shape(FLOAT_NASTY, 9, 4096, 0);
    check_shape(FLOAT_PLAIN, 2, 50257, 0);
    check_shape(FLOAT_FINITE, 1, 50257, 0);
}

static void test_causal_kernels_give_the_rules_bits(void **state)
{
    (void)state;
    for (int64_t length = 1; length <= 70; length += length < 20 ? 1 : 7) {
        uint64_t columns = (uint64_t)length;

        check_shape(FLOAT_PLAIN, 2 * columns, columns, length);
        check_shape(FLOAT_NASTY, 3 * columns, columns, length);
    }
    /* The first half of the rows does not see the last chunks. */
    check_shape(FLOAT_PLAIN, 1100, 1100, 1100);
    check_shape(FLOAT_FINITE, 12, 2100, 2100);
}

/* A softmax of `sequences` times `heads` times `length` rows with a reach. */
static void check_reach(enum op_kind kind, enum float_fill fill, uint64_t sequences, uint64_t heads,
                        uint64_t length)
{
    struct float_case one;
    uint64_t seed = sequences * 131 + heads * 17 + length;
    uint32_t *reach;

    rows_init(&one, kind, &seed, fill, sequences * heads * length, length, (int64_t)length);
    reach = float_case_input_u32(&one, sequences * length);
    for (uint64_t i = 0; i < sequences * length; i++) {
        reach[i] = i % 11 == 3 ? UINT32_MAX : (uint32_t)test_random_below(&seed, length + 2);
    }
    float_case_check(&one);
    float_case_release(&one);
}

static void test_kernels_with_a_reach_give_the_rules_bits(void **state)
{
    static const enum op_kind both[] = {OP_SOFTMAX, OP_SOFTMAX_GRAD};

    (void)state;
    for (int k = 0; k < 2; k++) {
        for (uint64_t length = 1; length <= 70; length += length < 20 ? 1 : 7) {
            check_reach(both[k], FLOAT_PLAIN, 2, 3, length);
            check_reach(both[k], FLOAT_NASTY, 3, 1, length);
        }
        /* Rows that see no column of the first chunk, or of the last. */
        check_reach(both[k], FLOAT_PLAIN, 1, 1, 2100);
    }
}

/* A row sees its own place and as many before it as its reach says, and its probabilities are those
 * of a softmax over them. */
static void test_softmax_with_a_reach_is_the_softmax_of_what_it_sees(void **state)
{
    enum { SEQUENCES = 2, HEADS = 3, LENGTH = 9 };
    struct float_case one;
    uint64_t seed = 5;
    uint32_t *reach;

    (void)state;
    rows_init(&one, OP_SOFTMAX, &seed, FLOAT_PLAIN, SEQUENCES * HEADS * LENGTH, LENGTH, LENGTH);
    reach = float_case_input_u32(&one, SEQUENCES * LENGTH);
    for (uint64_t i = 0; i < SEQUENCES * LENGTH; i++) {
        reach[i] = (uint32_t)(i * 5 % 7);
    }
    float_case_rules(&one);
    for (int r = 0; r < SEQUENCES * HEADS * LENGTH; r++) {
        const float *x = (const float *)one.inputs[0] + r * LENGTH;
        int place = r % LENGTH;
        int back = (int)reach[r / (HEADS * LENGTH) * LENGTH + place];
        double sum = 0.0;

        for (int c = 0; c <= place; c++) {
            sum += c >= place - back ? exp((double)x[c] * 0.125) : 0.0;
        }
        for (int c = 0; c < LENGTH; c++) {
            double p = c <= place && c >= place - back ? exp((double)x[c] * 0.125) / sum : 0.0;

            assert_true(fabs((double)one.expected[5][r * LENGTH + c] - p) < 1e-6);
        }
    }
    float_case_release(&one);
}

static void test_ignored_target_has_no_loss_and_no_gradient(void **state)
{
    struct float_case one;
    uint64_t seed = 9;

    (void)state;
    rows_init(&one, OP_CROSS_ENTROPY, &seed, FLOAT_NASTY, 10, 33, 0);
    float_case_rules(&one);
    assert_int_equal(float_bits(one.expected[5][4]), 0);
    assert_int_equal(float_bits(one.expected[5][9]), 0);
    float_case_release(&one);
    rows_init(&one, OP_CROSS_ENTROPY_GRAD, &seed, FLOAT_NASTY, 10, 33, 0);
    float_case_rules(&one);
    for (int c = 0; c < 33; c++) {
        assert_int_equal(float_bits(one.expected[0][4 * 33 + c]), 0);
    }
    float_case_release(&one);
}

/* Most rows hold one special value only. */
static void test_kernels_give_the_rules_bits_on_rows_of_one_value(void **state)
{
    static const float values[] = {-0.0f, 0.0f, -INFINITY, INFINITY, NAN, 3e38f, -0x1p-149f};
    uint64_t seed = 1;

    (void)state;
    for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
        for (size_t k = 0; k < KINDS; k++) {
            struct float_case one;

            rows_init(&one, kinds[k], &seed, FLOAT_PLAIN, 7, 43, 0);
            for (int i = 0; i < 7 * 43; i++) {
                ((float *)one.inputs[0])[i] = values[v];
            }
            float_case_check(&one);
            float_case_release(&one);
        }
    }
}

/* ---- what the rules compute ------------------------------------------------------ */

enum { R = 4, C = 1500 };

static void check_near(double got, double exact, double bound)
{
    if (!(fabs(got - exact) <= bound)) {
        fail_msg("got %.9g, in double precision it is %.9g", got, exact);
    }
}

static void test_layer_norm_is_close_to_double_precision(void **state)
{
    struct float_case one;
    uint64_t seed = 31;

    (void)state;
    rows_init(&one, OP_LAYER_NORM, &seed, FLOAT_PLAIN, R, C, 0);
    float_case_rules(&one);
    for (int r = 0; r < R; r++) {
        const float *x = (const float *)one.inputs[0] + r * C;
        double mean = 0.0;
        double variance = 0.0;

        for (int c = 0; c < C; c++) {
            mean += (double)x[c] / C;
        }
        for (int c = 0; c < C; c++) {
            variance += (x[c] - mean) * (x[c] - mean) / C;
        }
        check_near(one.expected[1][r], mean, 1e-6);
        check_near(one.expected[3][r], 1.0 / sqrt(variance + (double)EPSILON), 1e-6);
        for (int c = 0; c < C; c++) {
            double y = (x[c] - mean) / sqrt(variance + (double)EPSILON);
            y = y * ((float *)one.inputs[1])[c] + ((float *)one.inputs[2])[c];
            check_near(one.expected[4][r * C + c], y, 4e-6);
        }
    }
    float_case_release(&one);
}

/* dx against the derivative of sum(dy * y) by x, from central differences in double. */
static double norm_objective(const float *dy, const double *x, const float *gain, bool centred)
{
    double mean = 0.0;
    double square = 0.0;
    double total = 0.0;

    for (int c = 0; centred && c < C; c++) {
        mean += x[c] / C;
    }
    for (int c = 0; c < C; c++) {
        square += (x[c] - mean) * (x[c] - mean) / C;
    }
    for (int c = 0; c < C; c++) {
        total += dy[c] * gain[c] * (x[c] - mean) / sqrt(square + (double)EPSILON);
    }
    return total;
}

static void check_norm_gradient(struct float_case *one, bool centred, uint32_t dx_output)
{
    double x[C];
    const float *dy = one->inputs[0];
    const float *gain = one->inputs[2];
    double mean = 0.0;
    double square = 0.0;

    for (int c = 0; c < C; c++) {
        x[c] = ((const float *)one->inputs[1])[c];
        mean += centred ? x[c] / C : 0.0;
    }
    for (int c = 0; c < C; c++) {
        square += (x[c] - mean) * (x[c] - mean) / C;
    }
    if (centred) {
        ((float *)one->inputs[3])[0] = (float)mean;
    }
    ((float *)one->inputs[centred ? 4 : 3])[0] = (float)(1.0 / sqrt(square + (double)EPSILON));
    float_case_rules(one);
    for (int c = 0; c < C; c += 37) {
        double keep = x[c];
        x[c] = keep + 1e-4;
        double above = norm_objective(dy, x, gain, centred);
        x[c] = keep - 1e-4;
        double below = norm_objective(dy, x, gain, centred);
        x[c] = keep;
        check_near(one->expected[dx_output][c], (above - below) / 2e-4, 2e-5);
        check_near(one->expected[dx_output + 1][c],
                   dy[c] * (x[c] - mean) / sqrt(square + (double)EPSILON), 1e-5);
    }
}

static void test_norm_gradients_agree_with_finite_differences(void **state)
{
    struct float_case one;
    uint64_t seed = 37;

    (void)state;
    rows_init(&one, OP_LAYER_NORM_GRAD, &seed, FLOAT_PLAIN, 1, C, 0);
    check_norm_gradient(&one, true, 4);
    float_case_release(&one);
    rows_init(&one, OP_RMS_NORM_GRAD, &seed, FLOAT_PLAIN, 1, C, 0);
    check_norm_gradient(&one, false, 2);
    float_case_release(&one);
}

static void test_softmax_is_close_to_double_precision(void **state)
{
    struct float_case one;
    uint64_t seed = 41;

    (void)state;
    rows_init(&one, OP_SOFTMAX, &seed, FLOAT_PLAIN, 6, 40, 6);
    for (int i = 0; i < 6 * 40; i++) {
        ((float *)one.inputs[0])[i] *= 8.0f;
    }
    float_case_rules(&one);
    for (int r = 0; r < 6; r++) {
        const float *x = (const float *)one.inputs[0] + r * 40;
        double sum = 0.0;

        for (int c = 0; c <= r; c++) {
            sum += exp(x[c] * 0.125);
        }
        for (int c = 0; c < 40; c++) {
            double p = c <= r ? exp(x[c] * 0.125) / sum : 0.0;
            check_near(one.expected[5][r * 40 + c], p, 5e-7 * p);
            if (c > r) {
                assert_int_equal(float_bits(one.expected[2][r * 40 + c]), 0);
                assert_int_equal(float_bits(one.expected[5][r * 40 + c]), 0);
            }
        }
    }
    float_case_release(&one);
}

static void test_softmax_chunks_that_no_column_is_seen_of_are_stated(void **state)
{
    struct float_case one;
    uint64_t seed = 43;

    (void)state;
    rows_init(&one, OP_SOFTMAX, &seed, FLOAT_PLAIN, 2, 1030, 1030);
    float_case_rules(&one);
    assert_int_equal(float_bits(one.expected[0][1]), 0xff800000);
    assert_int_equal(float_bits(one.expected[3][1]), 0);
    /* Row 0 sees one column: its probability is exactly 1. */
    assert_int_equal(float_bits(one.expected[5][0]), 0x3f800000);
    float_case_release(&one);
}

static void test_row_maximum_of_zeros_is_plus_zero_and_of_nan_is_nan(void **state)
{
    struct float_case one;
    uint64_t seed = 47;

    (void)state;
    rows_init(&one, OP_CROSS_ENTROPY, &seed, FLOAT_PLAIN, 3, 5, 0);
    for (int i = 0; i < 15; i++) {
        ((float *)one.inputs[0])[i] = i < 5 ? -0.0f : -1.0f - (float)i;
    }
    ((float *)one.inputs[0])[7] = NAN;
    float_case_check(&one);
    assert_int_equal(float_bits(one.expected[1][0]), 0);
    assert_int_equal(float_bits(one.expected[1][1]), FLOAT_NAN_BITS);
    assert_true(one.expected[1][2] == -11.0f);
    float_case_release(&one);
}

static void test_cross_entropy_is_close_to_double_precision(void **state)
{
    struct float_case loss;
    struct float_case gradient;
    uint64_t seed = 53;
    uint64_t same_seed = 53;

    (void)state;
    rows_init(&loss, OP_CROSS_ENTROPY, &seed, FLOAT_PLAIN, R, C, 0);
    rows_init(&gradient, OP_CROSS_ENTROPY_GRAD, &same_seed, FLOAT_PLAIN, R, C, 0);
    ((uint32_t *)loss.inputs[1])[3] = 17;
    ((uint32_t *)gradient.inputs[1])[3] = 17;
    float_case_rules(&loss);
    for (int r = 0; r < R; r++) {
        ((float *)gradient.inputs[2])[r] = loss.expected[1][r];
        ((float *)gradient.inputs[3])[r] = loss.expected[4][r];
        ((float *)gradient.inputs[4])[r] = 0.5f;
    }
    float_case_rules(&gradient);
    for (int r = 0; r < R; r++) {
        const float *x = (const float *)loss.inputs[0] + r * C;
        uint32_t target = ((const uint32_t *)loss.inputs[1])[r];
        double sum = 0.0;

        for (int c = 0; c < C; c++) {
            sum += exp((double)x[c]);
        }
        check_near(loss.expected[5][r], log(sum) - x[target], 2e-6);
        for (uint32_t c = 0; c < C; c++) {
            double p = exp((double)x[c]) / sum - (c == target ? 1.0 : 0.0);
            check_near(gradient.expected[0][(uint32_t)r * C + c], 0.5 * p, 1e-7);
        }
    }
    float_case_release(&loss);
    float_case_release(&gradient);
}

static void test_target_outside_the_vocabulary_gives_nan(void **state)
{
    struct float_case one;
    uint64_t seed = 59;

    (void)state;
    rows_init(&one, OP_CROSS_ENTROPY, &seed, FLOAT_PLAIN, 2, 5, 0);
    ((uint32_t *)one.inputs[1])[0] = 5;
    ((uint32_t *)one.inputs[1])[1] = 4;
    float_case_check(&one);
    assert_int_equal(float_bits(one.expected[5][0]), FLOAT_NAN_BITS);
    assert_true(isfinite(one.expected[5][1]));
    float_case_release(&one);
    rows_init(&one, OP_CROSS_ENTROPY_GRAD, &seed, FLOAT_PLAIN, 2, 5, 0);
    ((uint32_t *)one.inputs[1])[0] = TARGET_IGNORED - 1;
    float_case_check(&one);
    assert_int_equal(float_bits(one.expected[0][4]), FLOAT_NAN_BITS);
    float_case_release(&one);
}

/* A sum whose bits depend on the order. */
static void test_row_sum_adds_in_the_canonical_order(void **state)
{
    struct float_case one;
    uint64_t seed = 61;
    float *x;

    (void)state;
    rows_init(&one, OP_ROW_SUM, &seed, FLOAT_PLAIN, 1, 64, 0);
    x = one.inputs[0];
    for (int i = 0; i < 64; i++) {
        x[i] = 0.0f;
    }
    x[0] = 0x1p24f;
    x[1] = 1.0f;
    x[17] = 1.0f;
    x[33] = -1.0f;
    x[32] = 1.0f;
    /* lane 0 = 2^24 + 1 = 2^24 (even); lane 1 = 1 - 1 = 0, and 0 + 1 from lane 17; then 2^24 + 1 is
     * 2^24 again. From left to right the sum would be 2^24 as well, but exactly it is 2^24 + 2. */
    float_case_check(&one);
    assert_true(one.expected[1][0] == 0x1p24f);
    x[16] = 1.0f; /* lane 0 + lane 16 is lost too, where lane 16 + 17 first would not be */
    float_case_check(&one);
    assert_true(one.expected[1][0] == 0x1p24f);
    x[33] = 0.0f; /* lane 1 = 1, with lane 17: 2, and that shows */
    float_case_check(&one);
    assert_true(one.expected[1][0] == 0x1p24f + 2.0f);
    float_case_release(&one);
}

struct pinned {
    enum op_kind kind;
    uint64_t columns;
    uint64_t digest;
};

static void test_bits_are_the_pinned_ones(void **state)
{
    static const struct pinned vectors[] = {
        {OP_ROW_SUM, 2049, UINT64_C(0xbcf4c95e053a1ae8)},
        {OP_LAYER_NORM, 768, UINT64_C(0xfed152531c5c7a64)},
        {OP_LAYER_NORM_GRAD, 1027, UINT64_C(0xf13392449ac6b45d)},
        {OP_RMS_NORM, 768, UINT64_C(0x10fb9921d3df88ea)},
        {OP_RMS_NORM_GRAD, 65, UINT64_C(0x9b24fe974a13e138)},
        {OP_SOFTMAX, 129, UINT64_C(0x741acd46395e03be)},
        {OP_SOFTMAX_GRAD, 1025, UINT64_C(0x019822037514f0c7)},
        {OP_CROSS_ENTROPY, 5003, UINT64_C(0xde58aae36029630b)},
        {OP_CROSS_ENTROPY_GRAD, 257, UINT64_C(0x96d698375946b2c7)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct float_case one;
        uint64_t seed = 67;
        uint64_t digest = 0;

        rows_init(&one, vectors[i].kind, &seed, FLOAT_PLAIN, 3, vectors[i].columns, 0);
        float_case_rules(&one);
        for (uint32_t output = 0; output < one.op.output_count; output++) {
            for (uint64_t k = 0; k < one.tensors[one.op.outputs[output]].count; k++) {
                digest =
                    (digest ^ float_bits(one.expected[output][k])) * UINT64_C(0x9e3779b97f4a7c15);
                digest ^= digest >> 29;
            }
        }
        float_case_release(&one);
        if (digest != vectors[i].digest) {
            fail_msg("%s: the outputs digest to %016llx", op_kind_name(vectors[i].kind),
                     (unsigned long long)digest);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_give_the_rules_bits_for_every_small_width),
        cmocka_unit_test(test_kernels_give_the_rules_bits_around_chunks),
        cmocka_unit_test(test_causal_kernels_give_the_rules_bits),
        cmocka_unit_test(test_kernels_with_a_reach_give_the_rules_bits),
        cmocka_unit_test(test_softmax_with_a_reach_is_the_softmax_of_what_it_sees),
        cmocka_unit_test(test_ignored_target_has_no_loss_and_no_gradient),
        cmocka_unit_test(test_kernels_give_the_rules_bits_on_rows_of_one_value),
        cmocka_unit_test(test_layer_norm_is_close_to_double_precision),
        cmocka_unit_test(test_norm_gradients_agree_with_finite_differences),
        cmocka_unit_test(test_softmax_is_close_to_double_precision),
        cmocka_unit_test(test_softmax_chunks_that_no_column_is_seen_of_are_stated),
        cmocka_unit_test(test_row_maximum_of_zeros_is_plus_zero_and_of_nan_is_nan),
        cmocka_unit_test(test_cross_entropy_is_close_to_double_precision),
        cmocka_unit_test(test_target_outside_the_vocabulary_gives_nan),
        cmocka_unit_test(test_row_sum_adds_in_the_canonical_order),
        cmocka_unit_test(test_bits_are_the_pinned_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
