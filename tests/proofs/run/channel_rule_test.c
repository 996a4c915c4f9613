/*
 * Goal: a product whose channels differ is shifted so that it is as exact as one whose do not, and
 * one that needs no shift has none.
 *
 * Method: rows of random numbers, with channels scaled in one operand by every power of two and
 * scaled back in the other; their errors beside those of numbers of one size.
 */
#include <math.h>
#include <stdlib.h>

#include "proofs/run/channel_rule.h"
#include "tests/support/test.h"

enum { K = 256, LINES = 8 };

struct product {
    float a[LINES][K];
    float b[LINES][K];
    struct channel sizes[2][K];
    int16_t c[K];
};

/* The last channel is zero in both. */
static void draw(struct product *product, unsigned large, double by)
{
    unsigned state = 1;

    for (int i = 0; i < 2 * LINES * K; i++) {
        const int k = i % K;
        double sum = -6.0;
        double scale = (unsigned)k < large ? by : 1.0;

        for (int n = 0; n < 12; n++) {
            state = state * 1664525u + 1013904223u;
            sum += (double)(state >> 8) / 16777216.0;
        }
        sum = k == K - 1 ? 0.0 : sum;
        if (i < LINES * K) {
            product->a[i / K][k] = (float)(sum * scale);
        } else {
            product->b[i / K - LINES][k] = (float)(sum / scale);
        }
    }
    for (int i = 0; i < 2 * LINES * K; i++) {
        struct channel *channel = &product->sizes[i / (LINES * K)][i % K];
        const double size = fabs(i < LINES * K ? (double)product->a[i / K][i % K]
                                               : (double)product->b[i / K - LINES][i % K]);

        channel->largest = i % (LINES * K) < K || size > channel->largest ? size : channel->largest;
        channel->squares = (i % (LINES * K) < K ? 0.0 : channel->squares) + size * size;
    }
}

static struct product_error error_of(const struct product *product, const int16_t *c)
{
    struct product_error sum = {0};

    for (int i = 0; i < LINES * LINES; i++) {
        product_error_add(&sum, product->a[i / LINES], product->b[i % LINES], K, c, 14, 128);
    }
    return sum;
}

static void test_outlying_channels_cost_nothing(void **context)
{
    struct product *product = test_calloc(1, sizeof(*product));
    struct error error;
    bool worth = true;

    (void)context;
    error_init(&error);
    draw(product, 0, 1.0);
    assert_int_equal(
        channel_rule(product->c, &worth, product->sizes[0], product->sizes[1], K, false, &error),
        STATUS_OK);
    assert_false(worth);
    const struct product_error even = error_of(product, NULL);

    assert_true(even.ours < 0.1 * even.bfloat16);
    for (int power = 3; power <= 20; power++) {
        draw(product, 15, ldexp(1.0, power));
        assert_int_equal(channel_rule(product->c, &worth, product->sizes[0], product->sizes[1], K,
                                      false, &error),
                         STATUS_OK);
        assert_true(worth);
        assert_int_equal(product->c[K - 1], 0);
        assert_in_range(product->c[0], power - 1, power + 1);
        const struct product_error shifted = error_of(product, product->c);
        const struct product_error plain = error_of(product, NULL);

        assert_true(shifted.ours < 2.0 * even.ours);
        assert_true(power < 6 || plain.ours > plain.bfloat16);
    }
    test_free(product);
}

/* Half of the channels larger in one operand and as much smaller in the other: the medians stand on
 * different sides, and what both rules shift is shifted twice. */
static void test_half_of_the_channels_may_be_larger(void **context)
{
    const struct channel a[4] = {{100.0, 1e4}, {1.0, 1.0}, {100.0, 1e4}, {1.0, 1.0}};
    const struct channel b[4] = {{0.01, 1e-4}, {1.0, 1.0}, {0.01, 1e-4}, {1.0, 1.0}};
    struct error error;
    int16_t c[4];
    bool worth = false;

    (void)context;
    error_init(&error);
    assert_int_equal(channel_rule(c, &worth, a, b, 4, false, &error), STATUS_OK);
    assert_int_equal(c[0] - c[1], 13);
    worth = false;
    assert_int_equal(channel_rule(c, &worth, a, b, 4, true, &error), STATUS_OK);
    assert_true(worth);
    assert_in_range(c[0] - c[1], 6, 7);
    assert_int_equal(c[2], c[0]);
    assert_int_equal(c[3], c[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outlying_channels_cost_nothing),
        cmocka_unit_test(test_half_of_the_channels_may_be_larger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
