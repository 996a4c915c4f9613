/*
 * philox_test.c - Philox4x32-10 is the published one, its counter and key have the engine's layout,
 * and the integers drawn from it are floor(r*count/2^64).
 *
 * Method: Random123's known answers; counter and key word by word; 128-bit products as oracle.
 */
#include "engine/ops/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct known_answer {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t words[4];
};

/* Random123 v1.14.0, tests/kat_vectors, the lines "philox4x32 10". */
static const struct known_answer known_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_philox_gives_the_published_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(known_answers) / sizeof(known_answers[0]); i++) {
        struct philox_block block = philox(known_answers[i].counter, known_answers[i].key);

        assert_memory_equal(block.words, known_answers[i].words, sizeof(block.words));
    }
}

static void test_draw_puts_element_stream_step_and_seed_in_their_words(void **state)
{
    (void)state;
    const struct known_answer *pi = &known_answers[2];
    uint64_t element = UINT64_C(0x85a308d3243f6a88);
    uint64_t seed = UINT64_C(0x299f31d0a4093822);
    struct philox_block block = philox_draw(element, 0x13198a2e, 0x03707344, seed);

    assert_memory_equal(block.words, pi->words, sizeof(block.words));
}

static void test_any_changed_bit_of_counter_or_key_changes_every_word(void **state)
{
    (void)state;
    const struct known_answer *base = &known_answers[0];

    for (uint32_t bit = 0; bit < 192; bit++) {
        uint32_t in[6] = {0};

        in[bit / 32] = UINT32_C(1) << (bit % 32);
        struct philox_block block = philox(in, in + 4);

        for (int i = 0; i < 4; i++) {
            assert_int_not_equal(block.words[i], base->words[i]);
        }
    }
}

static uint64_t below_by_wide_product(const struct philox_block *block, uint64_t count)
{
    uint64_t r = (uint64_t)block->words[1] << 32 | block->words[0];

    return (uint64_t)(((unsigned __int128)r * count) >> 64);
}

static void test_below_is_the_high_half_of_the_product(void **state)
{
    static const uint64_t counts[] = {1,
                                      2,
                                      3,
                                      1000,
                                      UINT64_C(0xffffffff),
                                      UINT64_C(0x100000000),
                                      UINT64_C(0x100000001),
                                      UINT64_C(0x10000000000),
                                      UINT64_C(0xffffffff00000000),
                                      UINT64_MAX};
    static const uint32_t corners[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (uint32_t i = 0; i < 36; i++) {
            struct philox_block block = {{corners[i / 6], corners[i % 6], 0, 0}};

            assert_int_equal(philox_below(&block, counts[c]),
                             below_by_wide_product(&block, counts[c]));
        }
        for (uint64_t i = 0; i < 100000; i++) {
            struct philox_block block = philox_draw(i, 1, 2, 3);
            uint64_t got = philox_below(&block, counts[c]);

            assert_true(got < counts[c]);
            assert_int_equal(got, below_by_wide_product(&block, counts[c]));
        }
    }
}

static void test_below_reaches_each_integer_about_equally(void **state)
{
    enum { COUNT = 10, DRAWS = 100000 };
    uint32_t seen[COUNT] = {0};

    (void)state;
    for (uint64_t i = 0; i < DRAWS; i++) {
        struct philox_block block = philox_draw(i, 7, 0, 42);

        seen[philox_below(&block, COUNT)]++;
    }
    for (int i = 0; i < COUNT; i++) {
        /* Five standard deviations of a binomial count: sqrt(1e5 * 0.1 * 0.9) = 95. */
        assert_in_range(seen[i], DRAWS / COUNT - 475, DRAWS / COUNT + 475);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_gives_the_published_answers),
        cmocka_unit_test(test_draw_puts_element_stream_step_and_seed_in_their_words),
        cmocka_unit_test(test_any_changed_bit_of_counter_or_key_changes_every_word),
        cmocka_unit_test(test_below_is_the_high_half_of_the_product),
        cmocka_unit_test(test_below_reaches_each_integer_about_equally),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
