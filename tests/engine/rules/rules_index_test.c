/*
 * rules_index_test.c - each rule that chooses, draws or moves elements reads the right element.
 *
 * Method: small cases worked out by hand; draws recomputed from Philox words and 128-bit products;
 * edges (past the schedule's end, the last window, an index outside of the table).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/ops/real.h"
#include "tests/support/numeric/op_case.h"

#define ONE  0x3f800000
#define TWO  0x40000000
#define HALF 0x3f000000

static void test_step_next_is_one_more(void **state)
{
    struct op_case c;
    uint32_t *step;

    (void)state;
    op_case_init(&c, OP_STEP_NEXT);
    step = op_case_input(&c, DTYPE_U32, 1, NULL);
    op_case_output(&c, DTYPE_U32, 1);

    struct rule_call call = op_case_rule_call(&c);

    *step = 0;
    assert_int_equal(rule_step_next(&call, 0), 1);
    *step = 41;
    assert_int_equal(rule_step_next(&call, 0), 42);
    op_case_release(&c);
}

static void test_schedule_takes_the_row_of_the_step_and_stays_at_the_last(void **state)
{
    const uint32_t table[6] = {10, 11, 20, 21, 30, 31}; /* three rows of two */
    struct op_case c;
    uint32_t *step;

    (void)state;
    op_case_init(&c, OP_SCHEDULE);
    op_case_input(&c, DTYPE_F32, 6, table);
    step = op_case_input(&c, DTYPE_U32, 1, NULL);
    op_case_output(&c, DTYPE_F32, 1);
    for (int64_t column = 0; column < 2; column++) {
        op_case_attributes(&c, (int64_t[]){2, column}, SCHEDULE_ATTRIBUTES);

        struct rule_call call = op_case_rule_call(&c);
        const uint32_t steps[] = {0, 1, 2, 3, 1000000, UINT32_MAX};
        const uint32_t rows[] = {1, 2, 3, 3, 3, 3};

        for (int i = 0; i < 6; i++) {
            *step = steps[i];
            assert_int_equal(rule_schedule(&call, 0), rows[i] * 10 + (uint32_t)column);
        }
    }
    op_case_release(&c);
}

static void test_fill_gives_the_constants_bits(void **state)
{
    struct op_case c;

    (void)state;
    op_case_init(&c, OP_FILL);
    op_case_attributes(&c, (int64_t[]){0x80000000}, FILL_ATTRIBUTES);
    op_case_output(&c, DTYPE_F32, 3);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(rule_fill(&call, i), 0x80000000);
    }
    op_case_release(&c);
}

#define STREAM    5
#define SEED_LOW  0x89abcdef
#define SEED_HIGH 0xfedcba98 /* high bit set: a sign must not creep in */
#define SEED      UINT64_C(0xfedcba9889abcdef)

static uint64_t drawn(uint64_t element, uint32_t step, uint64_t count)
{
    const uint32_t counter[4] = {(uint32_t)element, (uint32_t)(element >> 32), STREAM, step};
    const uint32_t key[2] = {SEED_LOW, SEED_HIGH};
    struct philox_block block = philox(counter, key);
    uint64_t r = (uint64_t)block.words[1] << 32 | block.words[0];

    return (uint64_t)(((unsigned __int128)r * count) >> 64);
}

/* data[i] = i, so a token is its own index. */
static void check_batch_tokens(enum dtype dtype, uint64_t count, int64_t length, int64_t batch)
{
    struct op_case c;
    uint32_t step = 3;

    op_case_init(&c, OP_BATCH_TOKENS);
    void *data = op_case_input(&c, dtype, count, NULL);

    for (uint64_t i = 0; i < count; i++) {
        if (dtype == DTYPE_U8) {
            ((uint8_t *)data)[i] = (uint8_t)i;
        } else if (dtype == DTYPE_U16) {
            ((uint16_t *)data)[i] = (uint16_t)i;
        } else {
            ((uint32_t *)data)[i] = (uint32_t)i;
        }
    }
    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_U32, (uint64_t)(batch * length));
    op_case_output(&c, DTYPE_U32, (uint64_t)(batch * length));
    op_case_attributes(&c, (int64_t[]){batch, length, STREAM, SEED_LOW, SEED_HIGH},
                       BATCH_TOKENS_ATTRIBUTES);

    struct rule_call call = op_case_rule_call(&c);

    for (int64_t b = 0; b < batch; b++) {
        uint64_t start = drawn((uint64_t)b, step, count - (uint64_t)length);

        for (int64_t t = 0; t < length; t++) {
            uint64_t index = (uint64_t)(b * length + t);

            assert_int_equal(rule_batch_tokens(&call, index), start + (uint64_t)t);
            assert_int_equal(rule_batch_targets(&call, index), start + (uint64_t)t + 1);
        }
    }
    op_case_release(&c);
}

static void test_batch_tokens_are_windows_and_targets_follow_by_one(void **state)
{
    (void)state;
    check_batch_tokens(DTYPE_U8, 256, 7, 20);
    check_batch_tokens(DTYPE_U16, 60000, 33, 20);
    check_batch_tokens(DTYPE_U32, 70000, 1, 50);
    check_batch_tokens(DTYPE_U8, 9, 8, 4); /* a single window */
}

static void test_batch_tokens_reach_the_first_and_the_last_window(void **state)
{
    bool first = false;
    bool last = false;

    (void)state;
    for (uint32_t step = 0; step < 200; step++) {
        uint64_t start = drawn(0, step, 10);

        first = first || start == 0;
        last = last || start == 9;
    }
    assert_true(first && last);
}

/* Three rows of four: a batch of two pairs that begins at the second row of units. */
static void check_batch_rows(enum dtype dtype, const void *data, const uint32_t wide[12],
                             uint32_t past)
{
    for (int64_t ahead = 0; ahead < 2; ahead++) {
        struct op_case c;
        uint32_t counter = 1;

        op_case_init(&c, OP_BATCH_ROWS);
        op_case_input(&c, dtype, 12, data);
        op_case_input(&c, DTYPE_U32, 1, &counter);
        op_case_output(&c, dtype <= DTYPE_U32 && dtype != DTYPE_F32 ? DTYPE_U32 : DTYPE_F32, 8);
        op_case_attributes(&c, (int64_t[]){2, 4, STREAM, SEED_LOW, SEED_HIGH, 1, ahead, past, 0},
                           BATCH_ROWS_ATTRIBUTES);

        struct rule_call call = op_case_rule_call(&c);

        /* Positions 2 and 3: the last row, and none. */
        for (uint64_t i = 0; i < 8; i++) {
            const uint64_t t = i % 4 + (uint64_t)ahead;

            assert_int_equal(rule_batch_rows(&call, i), i >= 4 || t == 4 ? past : wide[8 + t]);
        }
        op_case_release(&c);
    }
}

static void test_batch_rows_are_widened_and_end_with_the_past(void **state)
{
    static const uint8_t bytes[12] = {1, 2, 3, 4, 5, 6, 7, 8, 253, 254, 255, 0};
    static const uint32_t words[12] = {1, 2, 3, 4, 5, 6, 7, 8, 253, 254, 255, 0};
    static const uint16_t halves[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0x3c00, 0x8000, 0x0001, 0xfe01};
    static const uint32_t of_halves[12] = {0, 0, 0,   0,          0,          0,
                                           0, 0, ONE, 0x80000000, 0x33800000, FLOAT_NAN_BITS};
    static const uint32_t of_bfloats[12] = {0, 0, 0,          0,          0,          0,
                                            0, 0, 0x3c000000, 0x80000000, 0x00010000, 0xfe010000};

    (void)state;
    check_batch_rows(DTYPE_U8, bytes, words, UINT32_MAX);
    check_batch_rows(DTYPE_U32, words, words, 0);
    check_batch_rows(DTYPE_F16, halves, of_halves, FLOAT_NAN_BITS);
    check_batch_rows(DTYPE_BF16, halves, of_bfloats, 0x80000000);
    check_batch_rows(DTYPE_F32, of_bfloats, of_bfloats, ONE);
}

static void test_random_words_are_those_of_their_blocks(void **state)
{
    uint32_t step = 77;
    struct op_case c;

    (void)state;
    op_case_init(&c, OP_UNIFORM);
    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_U32, 10);
    op_case_attributes(&c, (int64_t[]){STREAM, SEED_LOW, SEED_HIGH}, UNIFORM_ATTRIBUTES);

    struct rule_call call = op_case_rule_call(&c);

    for (uint32_t i = 0; i < 10; i++) {
        const uint32_t counter[4] = {i / 4, 0, STREAM, step};
        const uint32_t key[2] = {SEED_LOW, SEED_HIGH};

        assert_int_equal(rule_uniform(&call, i), philox(counter, key).words[i % 4]);
    }
    op_case_release(&c);
}

static void test_batch_samples_scale_once_and_carry_their_label(void **state)
{
    enum { SAMPLES = 11, WIDTH = 5, BATCH = 30 };
    uint8_t pixels[SAMPLES * WIDTH];
    uint16_t labels[SAMPLES];
    uint32_t step = 77;
    float scale = 1.0f / 255.0f;
    uint32_t scale_bits = real_to_bits(scale);
    struct op_case c;

    (void)state;
    for (int i = 0; i < SAMPLES * WIDTH; i++) {
        pixels[i] = (uint8_t)(200 + i);
    }
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = (uint16_t)(1000 + i);
    }
    op_case_init(&c, OP_BATCH_SAMPLES);
    op_case_input(&c, DTYPE_U8, SAMPLES * WIDTH, pixels);
    op_case_input(&c, DTYPE_U16, SAMPLES, labels);
    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_F32, BATCH * WIDTH);
    op_case_output(&c, DTYPE_U32, BATCH);
    op_case_attributes(&c, (int64_t[]){BATCH, WIDTH, STREAM, SEED_LOW, SEED_HIGH, scale_bits},
                       BATCH_SAMPLES_ATTRIBUTES);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t b = 0; b < BATCH; b++) {
        uint64_t sample = drawn(b, step, SAMPLES);

        assert_int_equal(rule_batch_labels(&call, b), labels[sample]);
        for (uint64_t i = 0; i < WIDTH; i++) {
            float expected = (float)pixels[sample * WIDTH + i] * scale;

            assert_int_equal(rule_batch_samples(&call, b * WIDTH + i), real_to_bits(expected));
        }
    }
    op_case_release(&c);
}

static void test_batch_samples_of_floats_store_the_one_nan(void **state)
{
    const uint32_t samples[2] = {0xffc12345, TWO};
    const uint8_t labels[2] = {1, 1};
    struct op_case c;
    uint32_t step = 0;

    (void)state;
    op_case_init(&c, OP_BATCH_SAMPLES);
    op_case_input(&c, DTYPE_F32, 2, samples);
    op_case_input(&c, DTYPE_U8, 2, labels);
    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_F32, 40);
    op_case_output(&c, DTYPE_U32, 40);
    op_case_attributes(&c, (int64_t[]){40, 1, STREAM, SEED_LOW, SEED_HIGH, HALF},
                       BATCH_SAMPLES_ATTRIBUTES);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t b = 0; b < 40; b++) {
        uint32_t expected = drawn(b, step, 2) == 0 ? FLOAT_NAN_BITS : ONE;

        assert_int_equal(rule_batch_samples(&call, b), expected);
    }
    op_case_release(&c);
}

static void check_dropout(uint64_t threshold, uint32_t step)
{
    enum { COUNT = 203 };
    struct op_case c;

    op_case_init(&c, OP_DROPOUT);
    uint32_t *x = op_case_nasty_input(&c, COUNT, 1);

    op_case_input(&c, DTYPE_U32, 1, &step);
    op_case_output(&c, DTYPE_F32, COUNT);
    op_case_attributes(&c, (int64_t[]){(int64_t)threshold, TWO, STREAM, SEED_LOW, SEED_HIGH},
                       DROPOUT_ATTRIBUTES);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t i = 0; i < COUNT; i++) {
        struct philox_block block = philox_draw(i / 4, STREAM, step, SEED);
        bool keep = block.words[i % 4] >= threshold;

        assert_int_equal(rule_dropout(&call, i),
                         keep ? real_to_bits(real_from_bits(x[i]) * 2.0f) : 0);
    }
    op_case_release(&c);
}

static void test_dropout_keeps_where_the_word_reaches_the_threshold(void **state)
{
    (void)state;
    check_dropout(0, 0);                       /* keeps all */
    check_dropout(UINT64_C(0x100000000), 0);   /* keeps none */
    check_dropout(UINT64_C(0x80000000), 1);    /* one half */
    check_dropout(UINT64_C(0x1999999a), 9999); /* a tenth dropped */
    for (uint64_t i = 0; i < 8; i++) {
        uint64_t word = philox_draw(i / 4, STREAM, 3, SEED).words[i % 4];

        check_dropout(word, 3); /* the word itself is kept */
        check_dropout(word + 1, 3);
    }
}

static void test_gather_reads_rows_and_gives_nan_past_the_table(void **state)
{
    const uint32_t table[6] = {10, 11, 20, 21, 30, 31};
    const uint32_t index[5] = {2, 0, 3, UINT32_MAX, 1};
    const uint32_t expected[10] = {
        30, 31, 10, 11, FLOAT_NAN_BITS, FLOAT_NAN_BITS, FLOAT_NAN_BITS, FLOAT_NAN_BITS, 20, 21};
    struct op_case c;

    (void)state;
    op_case_init(&c, OP_GATHER);
    op_case_input(&c, DTYPE_F32, 6, table);
    op_case_input(&c, DTYPE_U32, 5, index);
    op_case_output(&c, DTYPE_F32, 10);
    op_case_attributes(&c, (int64_t[]){3, 2}, GATHER_ATTRIBUTES);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(rule_gather(&call, i), expected[i]);
    }
    op_case_release(&c);
}

/* Two rows of widths 1, 3, 2: the whole, and its parts. */
static const uint32_t whole[12] = {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
static const uint32_t part0[2] = {0, 10};
static const uint32_t part1[6] = {1, 2, 3, 11, 12, 13};
static const uint32_t part2[4] = {4, 5, 14, 15};

static void test_split_cuts_columns(void **state)
{
    struct op_case c;

    (void)state;
    op_case_init(&c, OP_SPLIT);
    op_case_input(&c, DTYPE_F32, 12, whole);
    op_case_output(&c, DTYPE_F32, 2);
    op_case_output(&c, DTYPE_F32, 6);
    op_case_output(&c, DTYPE_F32, 4);
    op_case_attributes(&c, (int64_t[]){2, 1, 3, 2}, 4);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(rule_split(&call, 0, i), part0[i]);
    }
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(rule_split(&call, 1, i), part1[i]);
    }
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(rule_split(&call, 2, i), part2[i]);
    }
    op_case_release(&c);
}

static void test_concat_is_the_inverse_of_split(void **state)
{
    struct op_case c;

    (void)state;
    op_case_init(&c, OP_CONCAT);
    op_case_input(&c, DTYPE_F32, 2, part0);
    op_case_input(&c, DTYPE_F32, 6, part1);
    op_case_input(&c, DTYPE_F32, 4, part2);
    op_case_output(&c, DTYPE_F32, 12);
    op_case_attributes(&c, (int64_t[]){2, 1, 3, 2}, 4);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t i = 0; i < 12; i++) {
        assert_int_equal(rule_concat(&call, i), whole[i]);
    }
    op_case_release(&c);
}

static void test_expand_repeats_by_div_and_mod(void **state)
{
    const uint32_t a[3] = {7, 8, 9};
    const uint32_t expected[12] = {7, 7, 8, 8, 9, 9, 7, 7, 8, 8, 9, 9};
    struct op_case c;

    (void)state;
    op_case_init(&c, OP_EXPAND);
    op_case_input(&c, DTYPE_F32, 3, a);
    op_case_output(&c, DTYPE_F32, 12);
    op_case_attributes(&c, (int64_t[]){2, 3}, EXPAND_ATTRIBUTES);

    struct rule_call call = op_case_rule_call(&c);

    for (uint64_t i = 0; i < 12; i++) {
        assert_int_equal(rule_expand(&call, i), expected[i]);
    }
    op_case_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_next_is_one_more),
        cmocka_unit_test(test_schedule_takes_the_row_of_the_step_and_stays_at_the_last),
        cmocka_unit_test(test_fill_gives_the_constants_bits),
        cmocka_unit_test(test_batch_tokens_are_windows_and_targets_follow_by_one),
        cmocka_unit_test(test_batch_tokens_reach_the_first_and_the_last_window),
        cmocka_unit_test(test_batch_rows_are_widened_and_end_with_the_past),
        cmocka_unit_test(test_random_words_are_those_of_their_blocks),
        cmocka_unit_test(test_batch_samples_scale_once_and_carry_their_label),
        cmocka_unit_test(test_batch_samples_of_floats_store_the_one_nan),
        cmocka_unit_test(test_dropout_keeps_where_the_word_reaches_the_threshold),
        cmocka_unit_test(test_gather_reads_rows_and_gives_nan_past_the_table),
        cmocka_unit_test(test_split_cuts_columns),
        cmocka_unit_test(test_concat_is_the_inverse_of_split),
        cmocka_unit_test(test_expand_repeats_by_div_and_mod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
