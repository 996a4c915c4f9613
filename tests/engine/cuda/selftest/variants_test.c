/*
 * variants_test.c - no kernel variant is used that was not seen to give the bits of the rules.
 *
 * On the emulated device: sound variants are all offered. One whose kernels do nothing, or do not
 * start, is disabled, named, and replaced by the next; a machine never launches it. Variants are
 * tested once in a process. A device that fails meanwhile is reported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/selftest/selftest.h"
#include "engine/cuda/selftest/variants.h"
#include "tests/support/device/emulator.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

static enum status look(struct variants *variants, struct error *error)
{
    error_init(error);
    return variants_of_device(variants, fake_device_calls(), 0, error);
}

static void expect_text(const struct fake_device_switches *switches, const char *expected)
{
    char text[VARIANTS_TEXT_MAX];
    struct variants variants;
    struct error error;

    fake_device_set(switches);
    if (look(&variants, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    variants_text(text, &variants);
    assert_string_equal(text, expected);
    assert_int_equal(fake_device_leftovers(), 0);
    fake_device_set(&sound);
}

static void append(char text[VARIANTS_TEXT_MAX], const char *more)
{
    const size_t used = strlen(text);

    (void)snprintf(text + used, VARIANTS_TEXT_MAX - used, "%s", more);
}

/* The same with all variants disabled that do not contract. */
static void expect_text_alone(const struct fake_device_switches *switches, const char *expected)
{
    char text[VARIANTS_TEXT_MAX];

    char without[VARIANTS_TEXT_MAX] = "";

    (void)snprintf(text, sizeof(text), "%s", expected);
    for (uint32_t variant = CONTRACT_VARIANTS; variant < VARIANT_COUNT; variant++) {
        append(without, variant == CONTRACT_VARIANTS ? "" : ",");
        append(without, selftest_name(variant));
        append(text, strstr(text, "disabled") == NULL ? "; disabled: " : ", ");
        append(text, selftest_name(variant));
        append(text, " (by name)");
    }
    assert_int_equal(setenv("LOCKSTEP_CUDA_WITHOUT", without, 1), 0);
    expect_text(switches, text);
    assert_int_equal(unsetenv("LOCKSTEP_CUDA_WITHOUT"), 0);
}

static void test_sound_variants_are_all_offered(void **state)
{
    static const struct fake_device_switches hopper = {.capability = 90};
    static const struct fake_device_switches newer = {.capability = 120};

    (void)state;
    expect_text(&sound, "mma, half, plain");
    expect_text(&hopper, "wgmma, mma, half, plain");
    expect_text(&newer, "mma, half, plain");
}

static void test_a_product_kernel_with_other_bits_is_disabled_and_named(void **state)
{
    static const uint32_t of_wgmma[] = {KERNEL_HOPPER_NARROW, KERNEL_HOPPER_NARROW_HALF};
    static const uint32_t of_mma[] = {KERNEL_CONTRACT_NARROW, KERNEL_CONTRACT_WIDE,
                                      KERNEL_CONTRACT_THREE};
    static const uint32_t of_half[] = {KERNEL_HALVES_SHORT, KERNEL_HALVES_LONG, KERNEL_HALVES_WIDE,
                                       KERNEL_HALVES_THREE};

    (void)state;
    for (size_t i = 0; i < sizeof(of_wgmma) / sizeof(of_wgmma[0]); i++) {
        struct fake_device_switches wrong = {
            .capability = 90, .guilty = UINT64_C(1) << of_wgmma[i], .fault = FAKE_SKIPS};
        struct fake_device_switches refused = {
            .capability = 90, .guilty = UINT64_C(1) << of_wgmma[i], .fault = FAKE_REFUSED};

        expect_text_alone(&wrong, "mma, half, plain; disabled: wgmma (other bits than the rules)");
        expect_text_alone(&refused,
                          "mma, half, plain; disabled: wgmma (other bits than the rules)");
    }
    for (size_t i = 0; i < sizeof(of_mma) / sizeof(of_mma[0]); i++) {
        struct fake_device_switches wrong = {.guilty = UINT64_C(1) << of_mma[i],
                                             .fault = FAKE_SKIPS};

        expect_text_alone(&wrong, "half, plain; disabled: mma (other bits than the rules)");
    }
    for (size_t i = 0; i < sizeof(of_half) / sizeof(of_half[0]); i++) {
        struct fake_device_switches wrong = {.guilty = UINT64_C(1) << of_half[i],
                                             .fault = FAKE_SKIPS};

        expect_text_alone(&wrong, "mma, plain; disabled: half (other bits than the rules)");
    }
}

/* A unit of less than 23 bits is found and not used, however it treats the others. */
static void test_a_unit_that_drops_bits_is_found(void **state)
{
    static const int bits[] = {22, 13};

    (void)state;
    for (int at = 0; at < 12; at++) {
        const struct emulated_unit poor = {bits[at / 6], (enum unit_cut)(at % 3), at / 3 % 2 == 1};
        const struct fake_device_switches planted = {.unit = &poor};

        expect_text_alone(&planted, "mma, plain; disabled: half (other bits than the rules)");
    }
    for (int at = 0; at < 18; at++) {
        const struct emulated_unit unit = {UNIT_BITS_LEAST + at % 3, (enum unit_cut)(at / 3 % 3),
                                           at / 9 == 1};
        const struct fake_device_switches honest = {.unit = &unit};

        expect_text_alone(&honest, "mma, half, plain");
    }
}

/* By itself, with halves and nothing else that multiplies. */
static bool right_by_halves(const struct emulated_unit *unit, enum kernel_variant variant)
{
    const struct fake_device_switches switches = {.unit = unit};
    const struct device_calls *calls = fake_device_calls();
    struct device_facts facts;
    struct device *device = NULL;
    bool right = false;

    fake_device_set(&switches);
    assert_int_equal(calls->open(&device, &facts, 0), DEVICE_OK);
    assert_int_equal(selftest_try(&right, calls, device, &facts, variant, 1u << VARIANT_MMA),
                     DEVICE_OK);
    calls->close(device);
    return right;
}

/* Strips and attention find it as well, without half's own test. */
static void test_strips_and_attention_find_a_unit_that_drops_bits(void **state)
{
    static const enum kernel_variant variants[2] = {VARIANT_STRIPS, VARIANT_ATTENTION};
    static const struct emulated_unit poor[] = {{22, UNIT_CUTS, false}, {22, UNIT_DOWN, true},
                                                {22, UNIT_ODD, false},  {13, UNIT_CUTS, true},
                                                {13, UNIT_DOWN, false}, {13, UNIT_ODD, true}};
    static const struct emulated_unit honest[] = {
        {23, UNIT_CUTS, false}, {23, UNIT_ODD, true}, {24, UNIT_DOWN, true}, {25, UNIT_ODD, false}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < sizeof(poor) / sizeof(poor[0]); at++) {
            assert_false(right_by_halves(&poor[at], variants[i]));
        }
        for (size_t at = 0; at < sizeof(honest) / sizeof(honest[0]); at++) {
            assert_true(right_by_halves(&honest[at], variants[i]));
            assert_int_equal(emulator_unit_lost(), 0);
        }
    }
    fake_device_set(&sound);
}

/* By bytes or by halves is a question of time, width by width, and of nothing else. */
static void test_what_is_quicker_comes_first(void **state)
{
    static const uint64_t narrow = UINT64_C(1) << KERNEL_CONTRACT_NARROW;
    static const uint64_t wide = UINT64_C(1) << KERNEL_CONTRACT_WIDE;
    static const struct fake_device_switches slow_narrow = {.slow = narrow};
    static const struct fake_device_switches slow_wide = {.slow = wide};
    static const struct fake_device_switches slow = {.slow = narrow | wide};
    static const struct fake_device_switches hopper = {.capability = 90,
                                                       .slow = UINT64_C(3) << KERNEL_HOPPER_NARROW};
    static const struct fake_device_switches skipped = {
        .slow = narrow, .guilty = UINT64_C(7) << KERNEL_HALVES_SHORT, .fault = FAKE_SKIPS};
    static const uint64_t of_strips = UINT64_C(3) << KERNEL_STRIP_COLUMNS_NARROW;
    static const uint64_t of_attention = UINT64_C(3) << KERNEL_ATTENTION_NARROW;
    static const struct fake_device_switches slow_strips = {.slow = of_strips};
    static const struct fake_device_switches slow_attention = {
        .slow = wide | UINT64_C(1) << KERNEL_ATTENTION_NARROW};
    static const struct fake_device_switches without_bytes = {
        .slow = UINT64_C(7) << KERNEL_CONTRACT_NARROW | of_strips | of_attention};

    (void)state;
    expect_text(&slow_narrow, "mma, half, plain; half first in products of 14 bits");
    expect_text(&slow_wide, "mma, half, plain; half first in products of 15, 16 bits");
    expect_text(&slow, "mma, half, plain; half first in products of 14, 15, 16 bits");
    expect_text(&slow_strips, "mma, half, plain; half first in strips of 14, 15, 16 bits");
    expect_text(&slow_attention, "mma, half, plain; half first in products of 15, 16 bits, "
                                 "attention of 14 bits");
    expect_text(&without_bytes, "mma, half, plain; half first in products of 14, 15, 16, 22 bits, "
                                "strips of 14, 15, 16 bits, attention of 14, 15, 16 bits");
    expect_text(&hopper, "wgmma, mma, half, plain; half first in products of 14 bits");
    expect_text_alone(&skipped, "mma, plain; disabled: half (other bits than the rules)");
}

/* Each width by what was found quicker. */
static void test_the_quicker_unit_is_launched(void **state)
{
    const struct contraction_shape shapes[3] = {contraction_shape(512, 14, 128),
                                                contraction_shape(512, 16, 128),
                                                contraction_shape(512, 22, 128)};
    struct launcher launcher = {.capability = 90};

    (void)state;
    assert_int_equal(contract_variant_of(&launcher, &shapes[0]), VARIANT_WGMMA);
    launcher.quicker = QUICKER(UNITS_PRODUCTS, WIDTH_NARROW) | QUICKER(UNITS_PRODUCTS, WIDTH_WIDE);
    assert_int_equal(contract_variant_of(&launcher, &shapes[0]), VARIANT_HALF);
    assert_int_equal(contract_variant_of(&launcher, &shapes[1]), VARIANT_HALF);
    assert_int_equal(contract_variant_of(&launcher, &shapes[2]), VARIANT_MMA);
    launcher.quicker = QUICKER(UNITS_PRODUCTS, WIDTH_THREE);
    assert_int_equal(contract_variant_of(&launcher, &shapes[0]), VARIANT_WGMMA);
    assert_int_equal(contract_variant_of(&launcher, &shapes[2]), VARIANT_HALF);
    launcher.disabled = 1u << VARIANT_HALF;
    assert_int_equal(contract_variant_of(&launcher, &shapes[2]), VARIANT_MMA);
}

/* What holds an operand on chip: by the family's own times; by halves where bytes are barred. */
static void test_the_quicker_unit_is_on_chip(void **state)
{
    struct launcher launcher = {.quicker = QUICKER(UNITS_STRIPS, WIDTH_NARROW) |
                                           QUICKER(UNITS_ATTENTION, WIDTH_WIDE)};

    (void)state;
    assert_true(contract_by_halves(&launcher, UNITS_STRIPS, 14));
    assert_false(contract_by_halves(&launcher, UNITS_STRIPS, 15));
    assert_false(contract_by_halves(&launcher, UNITS_ATTENTION, 14));
    assert_true(contract_by_halves(&launcher, UNITS_ATTENTION, 15));
    assert_true(contract_by_halves(&launcher, UNITS_ATTENTION, 16));
    launcher.disabled = 1u << VARIANT_HALF;
    assert_false(contract_by_halves(&launcher, UNITS_STRIPS, 14));
    launcher.disabled = 1u << VARIANT_MMA;
    assert_true(contract_by_halves(&launcher, UNITS_STRIPS, 15));
    launcher.disabled = 1u << VARIANT_MMA | 1u << VARIANT_HALF;
    assert_false(contract_by_halves(&launcher, UNITS_STRIPS, 14));
}

#define OTHERS                                                                                     \
    "dots", "lists", "columns", "held", "strips", "attention", "epilogue", "entropy", "views",     \
        "tiles"

/* All other variants are disabled: each is tested by itself. */
static bool is_by_halves(uint32_t kernel)
{
    static const uint32_t kernels[] = {
        KERNEL_STRIP_HALVES_NARROW,       KERNEL_STRIP_HALVES_WIDE,
        KERNEL_ATTENTION_HALVES_NARROW,   KERNEL_ATTENTION_HALVES_WIDE,
        KERNEL_ATTEND_KEYS_HALVES_NARROW, KERNEL_ATTEND_KEYS_HALVES_WIDE,
        KERNEL_ATTEND_LONG_HALVES_NARROW, KERNEL_ATTEND_LONG_HALVES_WIDE};
    bool found = false;

    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        found = found || kernels[i] == kernel;
    }
    return found;
}

static void test_another_variant_with_other_bits_is_disabled_and_named(void **state)
{
    static const char *const names[] = {"mma", "half", OTHERS};
    static const struct {
        uint32_t kernel;
        const char *name;
    } others[] = {
        {KERNEL_DOTS, "dots"},
        {KERNEL_UPDATES, "lists"},
        {KERNEL_SQUARES, "lists"},
        {KERNEL_TOTAL, "lists"},
        {KERNEL_QUANTIZE_COLUMNS, "columns"},
        {KERNEL_HELD, "held"},
        {KERNEL_STRIP_COLUMNS_NARROW, "strips"},
        {KERNEL_STRIP_COLUMNS_WIDE, "strips"},
        {KERNEL_ATTENTION_NARROW, "attention"},
        {KERNEL_ATTENTION_WIDE, "attention"},
        {KERNEL_STRIP_HALVES_NARROW, "strips"},
        {KERNEL_STRIP_HALVES_WIDE, "strips"},
        {KERNEL_ATTENTION_HALVES_NARROW, "attention"},
        {KERNEL_ATTENTION_HALVES_WIDE, "attention"},
        {KERNEL_ATTEND_KEYS_NARROW, "attention"},
        {KERNEL_ATTEND_KEYS_WIDE, "attention"},
        {KERNEL_ATTEND_KEYS_HALVES_NARROW, "attention"},
        {KERNEL_ATTEND_KEYS_HALVES_WIDE, "attention"},
        {KERNEL_ATTEND_LONG_NARROW, "attention"},
        {KERNEL_ATTEND_LONG_WIDE, "attention"},
        {KERNEL_ATTEND_LONG_HALVES_NARROW, "attention"},
        {KERNEL_ATTEND_LONG_HALVES_WIDE, "attention"},
        {KERNEL_QUADS, "epilogue"},
        {KERNEL_ENTROPY, "entropy"},
        {KERNEL_QUANTIZE_TILES, "tiles"},
        {KERNEL_QUANTIZE_RAISE, "tiles"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct fake_device_switches wrong = {.guilty = UINT64_C(1) << others[i].kernel,
                                             .fault = FAKE_SKIPS};
        struct fake_device_switches refused = {.guilty = UINT64_C(1) << others[i].kernel,
                                               .fault = FAKE_REFUSED};
        const bool by_halves = is_by_halves(others[i].kernel);
        char expected[VARIANTS_TEXT_MAX] = "";
        char without[VARIANTS_TEXT_MAX] = "";

        append(expected, by_halves ? "half, plain; disabled: " : "plain; disabled: ");
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            const bool it = strcmp(names[j], others[i].name) == 0;

            if (by_halves && strcmp(names[j], "half") == 0) {
                continue;
            }
            append(expected, j == 0 ? "" : ", ");
            append(expected, names[j]);
            append(expected, it ? " (other bits than the rules)" : " (by name)");
            if (!it) {
                append(without, without[0] == '\0' ? "" : ",");
                append(without, names[j]);
            }
        }
        assert_int_equal(setenv("LOCKSTEP_CUDA_WITHOUT", without, 1), 0);
        expect_text(&wrong, expected);
        expect_text(&refused, expected);
    }
    assert_int_equal(unsetenv("LOCKSTEP_CUDA_WITHOUT"), 0);
}

static void test_without_a_sound_variant_there_is_no_device(void **state)
{
    struct fake_device_switches wrong = {.guilty = UINT64_C(1) << KERNEL_CONTRACT_PLAIN,
                                         .fault = FAKE_SKIPS};
    struct variants variants;
    struct error error;

    (void)state;
    fake_device_set(&wrong);
    assert_int_equal(look(&variants, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "other bits than the rules"));
    assert_int_equal(fake_device_leftovers(), 0);
    fake_device_set(&sound);
}

static void test_variants_are_tested_once_in_a_process(void **state)
{
    struct variants first;
    struct variants second;
    struct error error;
    uint64_t calls;

    (void)state;
    fake_device_set(&sound);
    assert_int_equal(look(&first, &error), STATUS_OK);
    assert_true(fake_device_launches(KERNEL_CONTRACT_NARROW) > 0);
    calls = fake_device_call_count();
    assert_int_equal(look(&second, &error), STATUS_OK);
    assert_int_equal(fake_device_call_count(), calls);
    assert_memory_equal(&first, &second, sizeof(first));
}

static void test_variants_can_be_disabled_by_name(void **state)
{
    static const struct fake_device_switches hopper = {.capability = 90};
    struct variants variants;
    struct error error;

    (void)state;
    assert_int_equal(
        setenv("LOCKSTEP_CUDA_WITHOUT", "wgmma,dots,lists,columns,held,strips,epilogue", 1), 0);
    expect_text(&hopper,
                "mma, half, plain; disabled: wgmma (by name), dots (by name), lists (by name), "
                "columns (by name), held (by name), strips (by name), epilogue (by name)");
    assert_int_equal(setenv("LOCKSTEP_CUDA_WITHOUT", "mma,held,wgmma", 1), 0);
    expect_text(&hopper, "half, plain; disabled: wgmma (by name), mma (by name), held (by name)");
    assert_int_equal(setenv("LOCKSTEP_CUDA_WITHOUT", "half", 1), 0);
    expect_text(&hopper, "wgmma, mma, plain; disabled: half (by name)");
    assert_int_equal(setenv("LOCKSTEP_CUDA_WITHOUT", "plain", 1), 0);
    assert_int_equal(look(&variants, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "'plain', which is no kernel variant"));
    assert_int_equal(unsetenv("LOCKSTEP_CUDA_WITHOUT"), 0);
}

/* Each call of the device fails in turn, and then all that follow it. */
static void test_a_device_that_fails_in_the_self_test_is_reported(void **state)
{
    struct variants variants;
    struct error error;
    uint64_t count;

    (void)state;
    fake_device_set(&sound);
    assert_int_equal(look(&variants, &error), STATUS_OK);
    count = fake_device_call_count();
    for (uint64_t at = 1; at <= count; at += 1 + at / 2) {
        struct fake_device_switches switches = {
            .fail_at = at, .result = DEVICE_FAILED, .for_good = true};

        fake_device_set(&switches);
        assert_int_equal(look(&variants, &error), STATUS_DEVICE);
        assert_true(error.text[0] != '\0' && error.advice[0] != '\0');
        assert_int_equal(fake_device_leftovers(), 0);
    }
    fake_device_set(&sound);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_variants_are_all_offered),
        cmocka_unit_test(test_a_product_kernel_with_other_bits_is_disabled_and_named),
        cmocka_unit_test(test_a_unit_that_drops_bits_is_found),
        cmocka_unit_test(test_strips_and_attention_find_a_unit_that_drops_bits),
        cmocka_unit_test(test_what_is_quicker_comes_first),
        cmocka_unit_test(test_the_quicker_unit_is_launched),
        cmocka_unit_test(test_the_quicker_unit_is_on_chip),
        cmocka_unit_test(test_another_variant_with_other_bits_is_disabled_and_named),
        cmocka_unit_test(test_without_a_sound_variant_there_is_no_device),
        cmocka_unit_test(test_variants_are_tested_once_in_a_process),
        cmocka_unit_test(test_variants_can_be_disabled_by_name),
        cmocka_unit_test(test_a_device_that_fails_in_the_self_test_is_reported),
    };

    test_choose(argc, argv);
    (void)unsetenv("LOCKSTEP_CUDA_WITHOUT");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
