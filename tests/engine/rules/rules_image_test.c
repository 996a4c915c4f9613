/*
 * rules_image_test.c - the rules of windows over pictures give the right elements and sums.
 *
 * Method: the rules gather; the test scatters window by window, with the terms of each sum in the
 * order of the rule. Then cases by hand, and the adjoint identity in exact integers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/ops/real.h"
#include "tests/support/numeric/op_case.h"

struct shape {
    int64_t batch, height, width, channels, kernel_height, kernel_width;
    int64_t strides[2], before[2], after[2], dilations[2];
};
/* The same in both directions, and no dilation. */
#define EVEN(stride, padding)                                                                      \
    {stride, stride}, {padding, padding}, {padding, padding},                                      \
    {                                                                                              \
        1, 1                                                                                       \
    }

/* Overlapping, touching and gapped windows; rows and columns that no window reaches. */
static const struct shape shapes[] = {
    {1, 1, 1, 1, 1, 1, EVEN(1, 0)},
    {2, 4, 4, 1, 2, 2, EVEN(2, 0)},
    {2, 5, 7, 3, 2, 3, EVEN(2, 0)},
    {1, 6, 5, 2, 3, 3, EVEN(1, 0)},
    {1, 7, 7, 1, 2, 2, EVEN(3, 0)},
    {3, 3, 8, 2, 3, 1, EVEN(2, 0)},
    {1, 4, 9, 5, 4, 4, EVEN(5, 0)},
    {2, 6, 6, 2, 3, 2, EVEN(2, 0)},
    {2, 6, 7, 3, 3, 2, {2, 1}, {1, 0}, {0, 1}, {1, 1}},
    {1, 9, 8, 2, 3, 3, {1, 2}, {2, 1}, {1, 2}, {2, 1}},
    {1, 5, 9, 3, 2, 3, {3, 2}, {0, 2}, {1, 2}, {1, 3}},
    {1, 11, 4, 2, 4, 2, {2, 2}, {3, 1}, {2, 0}, {3, 2}},
};
static const struct shape padded_shapes[] = {
    {1, 1, 1, 1, 3, 3, EVEN(1, 1)},
    {2, 4, 4, 1, 3, 3, EVEN(1, 1)},
    {2, 5, 7, 3, 2, 3, EVEN(2, 2)},
    {1, 6, 5, 2, 3, 3, EVEN(2, 1)},
    {1, 2, 2, 3, 5, 5, EVEN(1, 2)},
    {1, 3, 4, 2, 2, 2, EVEN(3, 2)},
    {1, 2, 3, 1, 1, 1, EVEN(1, 2)},
    {1, 2, 2, 3, 2, 2, {1, 2}, {5, 0}, {0, 7}, {3, 2}},
    {1, 1, 1, 1, 2, 2, {1, 1}, {1, 1}, {1, 1}, {2, 2}},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static int64_t out_height(const struct shape *s)
{
    int64_t extent = (s->kernel_height - 1) * s->dilations[0] + 1;

    return (s->height + s->before[0] + s->after[0] - extent) / s->strides[0] + 1;
}

static int64_t out_width(const struct shape *s)
{
    int64_t extent = (s->kernel_width - 1) * s->dilations[1] + 1;

    return (s->width + s->before[1] + s->after[1] - extent) / s->strides[1] + 1;
}

static uint64_t picture_count(const struct shape *s)
{
    return (uint64_t)(s->batch * s->height * s->width * s->channels);
}

static uint64_t window_count(const struct shape *s)
{
    return (uint64_t)(s->batch * out_height(s) * out_width(s));
}

static uint64_t columns_count(const struct shape *s)
{
    return window_count(s) * (uint64_t)(s->kernel_height * s->kernel_width * s->channels);
}

/* Of a mean pool: some do, some do not. */
static bool counts_padding(const struct shape *s)
{
    return s->height % 2 != 0;
}

static void case_init(struct op_case *c, enum op_kind kind, const struct shape *s)
{
    const bool mean = kind == OP_MEAN_POOL || kind == OP_MEAN_POOL_GRAD;
    const int64_t attributes[] = {
        s->batch,        s->height,     s->width,        s->channels,     s->kernel_height,
        s->kernel_width, s->strides[0], s->strides[1],   s->before[0],    s->before[1],
        s->after[0],     s->after[1],   s->dilations[0], s->dilations[1], counts_padding(s)};

    op_case_init(c, kind);
    op_case_attributes(c, attributes, mean ? MEAN_POOL_ATTRIBUTES : IMAGE_ATTRIBUTES);
}

/* Walks every element of every window in order (batch, oy, ox, ky, kx, channel). */
struct walk {
    const struct shape *shape;
    int64_t b, oy, ox, ky, kx, c;
    bool inside;      /* in the picture, not in the padding */
    uint64_t picture; /* place in the picture, where inside */
    uint64_t window;  /* place among (batch, oy, ox, channel) */
    uint64_t column;  /* place in im2col's output */
};

static void walk_place(struct walk *w)
{
    const struct shape *s = w->shape;
    int64_t y = w->oy * s->strides[0] + w->ky * s->dilations[0] - s->before[0];
    int64_t x = w->ox * s->strides[1] + w->kx * s->dilations[1] - s->before[1];
    int64_t row = (w->b * out_height(s) + w->oy) * out_width(s) + w->ox;

    w->inside = y >= 0 && y < s->height && x >= 0 && x < s->width;
    w->picture = (uint64_t)(((w->b * s->height + y) * s->width + x) * s->channels + w->c);
    w->window = (uint64_t)(row * s->channels + w->c);
    w->column =
        (uint64_t)(((row * s->kernel_height + w->ky) * s->kernel_width + w->kx) * s->channels +
                   w->c);
}

/* Counts up like an odometer; false after the last element. */
static bool walk_next(struct walk *w)
{
    int64_t *digits[] = {&w->c, &w->kx, &w->ky, &w->ox, &w->oy, &w->b};
    const struct shape *s = w->shape;
    const int64_t sizes[] = {s->channels,  s->kernel_width, s->kernel_height,
                             out_width(s), out_height(s),   s->batch};

    for (int i = 0; i < 6; i++) {
        (*digits[i])++;
        if (*digits[i] < sizes[i]) {
            walk_place(w);
            return true;
        }
        *digits[i] = 0;
    }
    return false;
}

static struct walk walk_begin(const struct shape *shape)
{
    struct walk w = {.shape = shape};

    walk_place(&w);
    return w;
}

/* A scattered sum: terms are added in the order of the calls; the first one is stored. */
static void scatter(float *sums, bool *begun, uint64_t at, uint32_t term_bits)
{
    float term = real_from_bits(term_bits);

    sums[at] = begun[at] ? sums[at] + term : term;
    begun[at] = true;
}

static void check_sums(const struct op_case *c, rule_function *rule, const float *sums,
                       uint64_t count)
{
    struct rule_call call = op_case_rule_call(c);

    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(rule(&call, i), real_to_bits(sums[i]));
    }
}

/* What each window's sum is divided by, per (batch, oy, ox, channel). */
static float *divisors_of(const struct shape *s)
{
    float *divisors = calloc(window_count(s) * (uint64_t)s->channels, sizeof(*divisors));
    struct walk w = walk_begin(s);

    do {
        divisors[w.window] += w.inside || counts_padding(s) ? 1.0f : 0.0f;
    } while (walk_next(&w));
    return divisors;
}

static void check_im2col(const struct shape *s)
{
    struct op_case c;

    case_init(&c, OP_IM2COL, s);
    const uint32_t *x = op_case_nasty_input(&c, picture_count(s), 1);

    op_case_output(&c, DTYPE_F32, columns_count(s));

    struct rule_call call = op_case_rule_call(&c);
    struct walk w = walk_begin(s);

    do {
        assert_int_equal(rule_im2col(&call, w.column), w.inside ? x[w.picture] : 0);
    } while (walk_next(&w));
    op_case_release(&c);
}

static void test_im2col_lays_windows_out_in_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        check_im2col(&shapes[i]);
    }
    for (size_t i = 0; i < COUNT_OF(padded_shapes); i++) {
        check_im2col(&padded_shapes[i]);
    }
}

/* Visits one (ky, kx) after the other, so each element's terms come in that order. */
static void check_col2im(const struct shape *s)
{
    struct op_case c;
    float *sums = calloc(picture_count(s), sizeof(*sums));
    bool *begun = calloc(picture_count(s), sizeof(*begun));

    case_init(&c, OP_COL2IM, s);
    const uint32_t *columns = op_case_nasty_input(&c, columns_count(s), 2);

    op_case_output(&c, DTYPE_F32, picture_count(s));
    for (int64_t place = 0; place < s->kernel_height * s->kernel_width; place++) {
        struct walk w = walk_begin(s);

        do {
            if (w.ky * s->kernel_width + w.kx == place && w.inside) {
                scatter(sums, begun, w.picture, columns[w.column]);
            }
        } while (walk_next(&w));
    }
    check_sums(&c, rule_col2im, sums, picture_count(s));
    op_case_release(&c);
    free(begun);
    free(sums);
}

static void test_col2im_adds_in_order_of_the_kernels_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        check_col2im(&shapes[i]);
    }
    for (size_t i = 0; i < COUNT_OF(padded_shapes); i++) {
        check_col2im(&padded_shapes[i]);
    }
}

/* <im2col(x), y> = <x, col2im(y)>, exactly, since the integers are small. */
static void test_col2im_is_the_adjoint_of_im2col(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(padded_shapes); i++) {
        const struct shape *s = &padded_shapes[i];
        struct op_case forward;
        struct op_case back;
        int64_t left = 0;
        int64_t right = 0;

        case_init(&forward, OP_IM2COL, s);
        case_init(&back, OP_COL2IM, s);
        float *x = op_case_input(&forward, DTYPE_F32, picture_count(s), NULL);
        float *y = op_case_input(&back, DTYPE_F32, columns_count(s), NULL);

        op_case_output(&forward, DTYPE_F32, columns_count(s));
        op_case_output(&back, DTYPE_F32, picture_count(s));
        for (uint64_t k = 0; k < picture_count(s); k++) {
            x[k] = (float)(int64_t)(philox_draw(k, 1, 0, 0).words[0] % 21) - 10.0f;
        }
        for (uint64_t k = 0; k < columns_count(s); k++) {
            y[k] = (float)(int64_t)(philox_draw(k, 2, 0, 0).words[0] % 21) - 10.0f;
        }

        struct rule_call forward_call = op_case_rule_call(&forward);
        struct rule_call back_call = op_case_rule_call(&back);

        for (uint64_t k = 0; k < columns_count(s); k++) {
            left += (int64_t)(real_from_bits(rule_im2col(&forward_call, k)) * y[k]);
        }
        for (uint64_t k = 0; k < picture_count(s); k++) {
            right += (int64_t)(real_from_bits(rule_col2im(&back_call, k)) * x[k]);
        }
        assert_int_equal(left, right);
        op_case_release(&forward);
        op_case_release(&back);
    }
}

/* Is a before b as a candidate for the maximum? Any NaN beats any number; nothing beats a NaN. */
static bool beats(uint32_t a_bits, uint32_t b_bits)
{
    float a = real_from_bits(a_bits);
    float b = real_from_bits(b_bits);

    if (b != b) {
        return false;
    }
    return a != a || a > b;
}

static void check_max_pool(const struct shape *s)
{
    struct op_case c;
    uint64_t outputs = window_count(s) * (uint64_t)s->channels;
    uint32_t *places = calloc(outputs, sizeof(*places));
    uint64_t *held = calloc(outputs, sizeof(*held));
    bool *begun = calloc(outputs, sizeof(*begun));

    case_init(&c, OP_MAX_POOL, s);
    const uint32_t *x = op_case_nasty_input(&c, picture_count(s), 3);

    op_case_output(&c, DTYPE_F32, outputs);
    op_case_output(&c, DTYPE_U32, outputs);

    struct rule_call call = op_case_rule_call(&c);
    struct walk w = walk_begin(s);

    do {
        if (!w.inside) {
            continue;
        }
        if (!begun[w.window] || beats(x[w.picture], x[held[w.window]])) {
            begun[w.window] = true;
            held[w.window] = w.picture;
            places[w.window] = (uint32_t)(w.ky * s->kernel_width + w.kx);
        }
    } while (walk_next(&w));
    for (uint64_t i = 0; i < outputs; i++) {
        assert_int_equal(rule_max_pool_index(&call, i), places[i]);
        assert_int_equal(rule_max_pool(&call, i), real_to_bits(real_from_bits(x[held[i]])));
    }
    op_case_release(&c);
    free(begun);
    free(held);
    free(places);
}

static void test_max_pool_takes_the_first_maximum_or_the_first_nan(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        check_max_pool(&shapes[i]);
    }
}

static void test_max_pool_zeros_of_both_signs_are_equal(void **state)
{
    const struct shape s = {1, 1, 4, 1, 1, 2, EVEN(2, 0)};
    const uint32_t x[4] = {0x80000000, 0, 0, 0x80000000};
    struct op_case c;

    (void)state;
    case_init(&c, OP_MAX_POOL, &s);
    op_case_input(&c, DTYPE_F32, 4, x);
    op_case_output(&c, DTYPE_F32, 2);
    op_case_output(&c, DTYPE_U32, 2);

    struct rule_call call = op_case_rule_call(&c);

    assert_int_equal(rule_max_pool(&call, 0), 0x80000000);
    assert_int_equal(rule_max_pool_index(&call, 0), 0);
    assert_int_equal(rule_max_pool(&call, 1), 0);
    assert_int_equal(rule_max_pool_index(&call, 1), 0);
    op_case_release(&c);
}

static void check_max_pool_grad(const struct shape *s)
{
    struct op_case c;
    uint64_t outputs = window_count(s) * (uint64_t)s->channels;
    float *sums = calloc(picture_count(s), sizeof(*sums));
    bool *begun = calloc(picture_count(s), sizeof(*begun));

    case_init(&c, OP_MAX_POOL_GRAD, s);
    uint32_t *index = op_case_input(&c, DTYPE_U32, outputs, NULL);
    const uint32_t *dy = op_case_nasty_input(&c, outputs, 4);

    op_case_output(&c, DTYPE_F32, picture_count(s));
    /* One index is past the last place, as a cheating solver might write it: it points nowhere. */
    for (uint64_t i = 0; i < outputs; i++) {
        index[i] =
            philox_draw(i, 5, 0, 0).words[0] % (uint32_t)(s->kernel_height * s->kernel_width + 1);
    }

    struct walk w = walk_begin(s);

    do {
        if (w.inside && index[w.window] == (uint32_t)(w.ky * s->kernel_width + w.kx)) {
            scatter(sums, begun, w.picture, dy[w.window]);
        }
    } while (walk_next(&w));
    check_sums(&c, rule_max_pool_grad, sums, picture_count(s));
    op_case_release(&c);
    free(begun);
    free(sums);
}

static void test_max_pool_grad_adds_in_order_of_windows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        check_max_pool_grad(&shapes[i]);
    }
}

static void check_mean_pool(const struct shape *s)
{
    struct op_case c;
    uint64_t outputs = window_count(s) * (uint64_t)s->channels;
    float *sums = calloc(outputs, sizeof(*sums));
    bool *begun = calloc(outputs, sizeof(*begun));

    float *divisors = divisors_of(s);

    case_init(&c, OP_MEAN_POOL, s);
    const uint32_t *x = op_case_nasty_input(&c, picture_count(s), 6);

    op_case_output(&c, DTYPE_F32, outputs);

    struct walk w = walk_begin(s);

    do {
        if (w.inside) {
            scatter(sums, begun, w.window, x[w.picture]);
        }
    } while (walk_next(&w));
    for (uint64_t i = 0; i < outputs; i++) {
        sums[i] = sums[i] / divisors[i];
    }
    check_sums(&c, rule_mean_pool, sums, outputs);
    op_case_release(&c);
    free(divisors);
    free(begun);
    free(sums);
}

static void check_mean_pool_grad(const struct shape *s)
{
    struct op_case c;
    uint64_t outputs = window_count(s) * (uint64_t)s->channels;
    float *sums = calloc(picture_count(s), sizeof(*sums));
    bool *begun = calloc(picture_count(s), sizeof(*begun));

    float *divisors = divisors_of(s);

    case_init(&c, OP_MEAN_POOL_GRAD, s);
    const uint32_t *dy = op_case_nasty_input(&c, outputs, 7);

    op_case_output(&c, DTYPE_F32, picture_count(s));

    struct walk w = walk_begin(s);

    do {
        if (w.inside) {
            float share = real_from_bits(dy[w.window]) / divisors[w.window];

            scatter(sums, begun, w.picture, real_to_bits(share));
        }
    } while (walk_next(&w));
    check_sums(&c, rule_mean_pool_grad, sums, picture_count(s));
    op_case_release(&c);
    free(divisors);
    free(begun);
    free(sums);
}

static void test_mean_pool_and_its_gradient_add_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        check_mean_pool(&shapes[i]);
        check_mean_pool_grad(&shapes[i]);
    }
}

static void test_mean_pool_of_negative_zeros_is_negative_zero(void **state)
{
    const struct shape s = {1, 1, 2, 1, 1, 2, EVEN(1, 0)};
    const uint32_t x[2] = {0x80000000, 0x80000000};
    struct op_case c;

    (void)state;
    case_init(&c, OP_MEAN_POOL, &s);
    op_case_input(&c, DTYPE_F32, 2, x);
    op_case_output(&c, DTYPE_F32, 1);

    struct rule_call call = op_case_rule_call(&c);

    assert_int_equal(rule_mean_pool(&call, 0), 0x80000000);
    op_case_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_im2col_lays_windows_out_in_rows),
        cmocka_unit_test(test_col2im_adds_in_order_of_the_kernels_places),
        cmocka_unit_test(test_col2im_is_the_adjoint_of_im2col),
        cmocka_unit_test(test_max_pool_takes_the_first_maximum_or_the_first_nan),
        cmocka_unit_test(test_max_pool_zeros_of_both_signs_are_equal),
        cmocka_unit_test(test_max_pool_grad_adds_in_order_of_windows),
        cmocka_unit_test(test_mean_pool_and_its_gradient_add_in_order),
        cmocka_unit_test(test_mean_pool_of_negative_zeros_is_negative_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
