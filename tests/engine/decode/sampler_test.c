/*
 * sampler_test.c - the rule of sampling is made of operations of the engine, and draws what it
 * says.
 *
 * Method: shares beside SOFTMAX's rule and words beside UNIFORM's, bit for bit; the conditions of
 * the thresholds, with ties; how often each token comes; numbers out of their range.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/decode/sampler.h"
#include "engine/ops/fold.h"
#include "engine/ops/kernel.h"
#include "engine/ops/philox.h"
#include "engine/ops/scalar.h"
#include "tests/support/numeric/float_case.h"
#include "tests/support/test.h"

enum { WORDS = 1500 };

static void fill_logits(float *logits, uint32_t count, uint64_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        logits[i] = (float)((double)test_random_below(&seed, 8000) / 1000.0);
    }
}

static struct sampler open_sampler(struct sampler_rule rule, uint32_t vocabulary)
{
    struct sampler sampler;
    struct error error;

    error_init(&error);
    assert_int_equal(sampler_init(&sampler, &rule, vocabulary, &error), STATUS_OK);
    return sampler;
}

static void test_shares_are_those_of_the_engine(void **state)
{
    float logits[WORDS];
    struct sampler sampler =
        open_sampler((struct sampler_rule){.temperature = 0.7f, .top_p = 1.0f}, WORDS);
    struct sampler_choice choice;
    const int64_t attributes[] = {1, WORDS, 0, float_attribute(1.0f)};
    static const uint64_t counts[] = {2, 1, WORDS, 2, 1, WORDS};
    struct float_case one;

    (void)state;
    fill_logits(logits, WORDS, 5);
    sampler_next(&choice, &sampler, logits);
    float_case_init(&one, OP_SOFTMAX, 4, attributes);
    memcpy(float_case_input(&one, WORDS), sampler.z, sizeof(logits));
    for (size_t i = 0; i < 6; i++) {
        float_case_output(&one, counts[i]);
    }
    float_case_rules(&one);
    assert_memory_equal(one.expected[5], sampler.p, sizeof(logits));
    float_case_release(&one);
    sampler_release(&sampler);
}

/* What a draw should be, from the words of the stream. */
static uint32_t drawn(const struct sampler *sampler, uint32_t number, const uint8_t *may)
{
    double most = -INFINITY;
    uint32_t best = 0;

    for (uint32_t i = 0; i < sampler->vocabulary; i++) {
        const uint64_t element = (uint64_t)(number % SAMPLER_SLICE) * sampler->vocabulary + i;
        const struct philox_block block =
            philox_draw(element / 4, number / SAMPLER_SLICE, 0, sampler->rule.seed);
        const double v = ((double)block.words[element % 4] + 0.5) * 0x1p-32;
        const double height = (double)sampler->z[i] - log(-log1p(-v));

        if (may[i] && height > most) {
            most = height;
            best = i;
        }
    }
    return best;
}

static void test_the_token_is_the_highest_that_may_be_chosen(void **state)
{
    enum { FEW = 37 };
    float logits[FEW];
    uint8_t may[FEW];
    struct sampler_choice choice;
    struct sampler sampler = open_sampler(
        (struct sampler_rule){.temperature = 1.3f, .top_p = 0.8f, .top_k = 9, .seed = 77}, FEW);

    (void)state;
    for (uint32_t number = 0; number < 200; number++) {
        double above_p = 0.0;
        double at_p = 0.0;
        int above_k = 0;
        int at_k = 0;

        fill_logits(logits, FEW, number + 1);
        logits[number % FEW] = logits[(number + 5) % FEW]; /* a tie */
        sampler_next(&choice, &sampler, logits);
        for (uint32_t i = 0; i < FEW; i++) {
            const float p = sampler.p[i];

            at_p += p >= choice.threshold_p ? (double)p : 0.0;
            above_p += p > choice.threshold_p ? (double)p : 0.0;
            at_k += p >= choice.threshold_k;
            above_k += p > choice.threshold_k;
            may[i] = p >= choice.threshold_p && p >= choice.threshold_k;
        }
        assert_true(at_p >= 0.8 - 1e-6 && above_p < 0.8 + 1e-6);
        assert_true(at_k >= 9 && above_k < 9);
        assert_int_equal(choice.token, drawn(&sampler, number, may));
    }
    sampler_release(&sampler);
}

/* What UNIFORM's word is, as the rule says: in binary32, each operation rounded. */
static float noise_of_rule(uint32_t word)
{
    const float scaled = (float)word * 0x1p-32f;
    const float v = scaled + 0x1p-33f;
    const float half = v * v * 0.5f;

    return scalar_log(v < 0x1p-12f ? v + half : -scalar_log(1.0f - v));
}

static uint32_t word_of(uint64_t element, uint32_t stream, uint64_t seed)
{
    return philox_draw(element / 4, stream, 0, seed).words[element % 4];
}

/*
 * Two logits that cancel two tokens' draws: both heights are 0, and the first token is taken. One
 * bit more of the second takes the second. So every bit of the noise counts, with small words too.
 */
static void test_every_bit_of_the_noise_counts(void **state)
{
    enum { DRAWS = 120000 };
    struct sampler sampler =
        open_sampler((struct sampler_rule){.temperature = 1.0f, .top_p = 1.0f, .seed = 12}, 2);
    uint32_t small = 0;

    (void)state;
    for (uint32_t number = 0; number < DRAWS; number++) {
        const uint32_t stream = number / SAMPLER_SLICE;
        const uint64_t first = (uint64_t)(number % SAMPLER_SLICE) * 2;
        const uint32_t words[2] = {word_of(first, stream, 12), word_of(first + 1, stream, 12)};
        float logits[2] = {noise_of_rule(words[0]), noise_of_rule(words[1])};
        const bool second = number % 2 == 1;
        struct sampler_choice choice;

        small += words[0] < 1u << 20 || words[1] < 1u << 20;
        logits[1] = second ? nextafterf(logits[1], INFINITY) : logits[1];
        sampler_next(&choice, &sampler, logits);
        assert_int_equal(choice.token, second ? 1 : 0);
    }
    assert_true(small > 0);
    sampler_release(&sampler);
}

/* The fold over all tokens, in chunks, of the shares that are at least tau. */
static float share_from(const float *p, uint32_t count, float tau)
{
    struct fold parts;
    struct fold chunk;

    fold_init(&parts);
    for (uint32_t i = 0; i < count; i++) {
        if (i % FOLD_CHUNK == 0) {
            fold_init(&chunk);
        }
        fold_add(&chunk, p[i] >= tau ? p[i] : 0.0f);
        if (i % FOLD_CHUNK == FOLD_CHUNK - 1 || i == count - 1) {
            fold_add(&parts, fold_total(&chunk));
        }
    }
    return fold_total(&parts);
}

/* A top-p that is the share of the k likeliest to the bit takes k tokens; a bit more takes one
 * more. A top-k of the whole vocabulary is a rule too. */
static void test_thresholds_are_exact(void **state)
{
    enum { FEW = 1100 };
    float logits[FEW];
    struct sampler_choice choice;
    struct sampler sampler =
        open_sampler((struct sampler_rule){.temperature = 1.0f, .top_p = 1.0f, .seed = 3}, FEW);

    (void)state;
    for (uint32_t number = 0; number < 60; number++) {
        const uint32_t k = 2 + number % 30;

        fill_logits(logits, FEW, 900 + number);
        sampler.rule.top_p = 1.0f;
        sampler.rule.top_k = FEW;
        sampler_next(&choice, &sampler, logits);
        assert_true(choice.threshold_p == 0.0f && choice.threshold_k == sampler.sorted[FEW - 1]);
        sampler.rule.top_k = FEW + 1;
        sampler_next(&choice, &sampler, logits);
        assert_true(choice.threshold_k == 0.0f);
        sampler.rule.top_k = 0;
        sampler.rule.top_p = share_from(sampler.p, FEW, sampler.sorted[k - 1]);
        sampler_next(&choice, &sampler, logits);
        assert_true(choice.threshold_p == sampler.sorted[k - 1]);
        assert_true(choice.threshold_k == 0.0f);
        sampler.rule.top_p = nextafterf(sampler.rule.top_p, 1.0f);
        sampler_next(&choice, &sampler, logits);
        assert_true(choice.threshold_p < sampler.sorted[k - 1]);
    }
    sampler_release(&sampler);
}

static void test_tokens_come_as_often_as_they_are_likely(void **state)
{
    enum { FEW = 5, DRAWS = 40000 };
    const float logits[FEW] = {0.0f, 1.0f, 2.0f, -1.0f, 0.5f};
    uint32_t counts[FEW] = {0};
    struct sampler_choice choice;
    struct sampler sampler =
        open_sampler((struct sampler_rule){.temperature = 1.0f, .top_p = 1.0f, .seed = 4}, FEW);

    (void)state;
    for (uint32_t i = 0; i < DRAWS; i++) {
        sampler_next(&choice, &sampler, logits);
        counts[choice.token]++;
    }
    for (uint32_t i = 0; i < FEW; i++) {
        const double p = (double)sampler.p[i];

        assert_true(fabs(counts[i] / (double)DRAWS - p) <= 5.0 * sqrt(p * (1.0 - p) / DRAWS));
    }
    sampler_restart(&sampler, 4);
    sampler_next(&choice, &sampler, logits);
    const uint32_t first = choice.token;

    sampler_restart(&sampler, 4);
    sampler_next(&choice, &sampler, logits);
    assert_int_equal(choice.token, first);
    sampler_release(&sampler);
}

static void test_temperature_zero_takes_the_first_largest(void **state)
{
    const float logits[] = {1.0f, 3.0f, 3.0f, -2.0f};
    struct sampler_choice choice;
    struct sampler sampler =
        open_sampler((struct sampler_rule){.temperature = 0.0f, .top_p = 1.0f}, 4);

    (void)state;
    sampler_next(&choice, &sampler, logits);
    assert_int_equal(choice.token, 1);
    sampler_release(&sampler);
}

static void test_numbers_out_of_range_are_refused(void **state)
{
    static const struct sampler_rule wrong[] = {
        {.temperature = -1.0f, .top_p = 1.0f},  {.temperature = 1e-4f, .top_p = 1.0f},
        {.temperature = 101.0f, .top_p = 1.0f}, {.temperature = NAN, .top_p = 1.0f},
        {.temperature = 1.0f, .top_p = 0.0f},   {.temperature = 1.0f, .top_p = NAN},
    };
    struct sampler sampler;
    struct error error;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        error_init(&error);
        assert_int_equal(sampler_init(&sampler, &wrong[i], 4, &error), STATUS_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_are_those_of_the_engine),
        cmocka_unit_test(test_the_token_is_the_highest_that_may_be_chosen),
        cmocka_unit_test(test_every_bit_of_the_noise_counts),
        cmocka_unit_test(test_thresholds_are_exact),
        cmocka_unit_test(test_tokens_come_as_often_as_they_are_likely),
        cmocka_unit_test(test_temperature_zero_takes_the_first_largest),
        cmocka_unit_test(test_numbers_out_of_range_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
