/*
 * proofs_test.c - no kernel variant takes a process with it: what traps, hangs or dies does so in a
 * child, bars that variant alone, and is remembered for its device, driver and plugin.
 *
 * On the emulated device, of which one kernel has a fault, and whose table says that it can trap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/cuda/selftest/selftest.h"
#include "engine/cuda/selftest/variants.h"
#include "tests/support/device/fake_device.h"

#define BUSY_S 60.0 /* nothing that ends is taken for what does not */

static char folder[] = "/tmp/lockstep-proofs-XXXXXX";
static char file[sizeof(folder) + 32];

static const uint32_t few = 1u << VARIANT_PLAIN | 1u << VARIANT_DOTS | 1u << VARIANT_LISTS;

static const struct device_calls *calls_that_trap(void)
{
    static struct device_calls calls;

    calls = *fake_device_calls();
    calls.can_trap = 1;
    return &calls;
}

static void forget(void)
{
    (void)unlink(file);
}

static void find(struct proofs *proofs, const struct fake_device_switches *switches, double limit_s)
{
    fake_device_set(switches);
    proofs_find(proofs, calls_that_trap(), 0, few, limit_s);
    assert_int_equal(fake_device_leftovers(), 0);
}

static void expect(const struct proofs *proofs, enum proof dots)
{
    assert_int_equal(proofs->found[VARIANT_PLAIN], PROOF_SOUND);
    assert_int_equal(proofs->found[VARIANT_LISTS], PROOF_SOUND);
    assert_int_equal(proofs->found[VARIANT_DOTS], dots);
    assert_int_equal(proofs->found[VARIANT_MMA], PROOF_NONE);
    assert_int_equal(proofs_barred(proofs), dots > PROOF_SOUND ? 1u << VARIANT_DOTS : 0);
}

static void test_a_fault_bars_its_variant_alone(void **state)
{
    static const struct {
        enum fake_fault fault;
        enum proof found;
    } cases[] = {{FAKE_SKIPS, PROOF_WRONG},
                 {FAKE_REFUSED, PROOF_WRONG},
                 {FAKE_TRAPS, PROOF_LOST},
                 {FAKE_CRASHES, PROOF_DIED}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct fake_device_switches switches = {.guilty = UINT64_C(1) << KERNEL_DOTS,
                                                      .fault = cases[i].fault};
        struct proofs proofs;

        forget();
        find(&proofs, &switches, BUSY_S);
        expect(&proofs, cases[i].found);
    }
}

static void test_a_kernel_that_never_ends_is_ended(void **state)
{
    static const struct fake_device_switches hangs = {.guilty = UINT64_C(1) << KERNEL_DOTS,
                                                      .fault = FAKE_HANGS};
    static const struct fake_device_switches sound = {.fail_at = 0};
    struct proofs proofs;

    (void)state;
    forget();
    find(&proofs, &sound, BUSY_S);
    expect(&proofs, PROOF_SOUND);
    forget();
    fake_device_set(&hangs);
    proofs_find(&proofs, calls_that_trap(), 0, 1u << VARIANT_DOTS, 0.5);
    assert_int_equal(proofs.found[VARIANT_DOTS], PROOF_HUNG);
}

static void test_a_finding_is_remembered_for_its_device_alone(void **state)
{
    static const struct fake_device_switches traps = {.guilty = UINT64_C(1) << KERNEL_DOTS,
                                                      .fault = FAKE_TRAPS};
    static const struct fake_device_switches sound = {.fail_at = 0};
    static const struct fake_device_switches other = {.name = "another\tdevice\n"};
    struct proofs proofs;
    struct stat before;
    struct stat after;

    (void)state;
    forget();
    find(&proofs, &traps, BUSY_S);
    expect(&proofs, PROOF_LOST);
    assert_int_equal(stat(file, &before), 0);
    find(&proofs, &sound, BUSY_S);
    expect(&proofs, PROOF_LOST);
    assert_int_equal(stat(file, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* nothing was tried, nothing written */
    find(&proofs, &other, BUSY_S);
    expect(&proofs, PROOF_SOUND);
    find(&proofs, &sound, BUSY_S); /* the first device's line is still there */
    expect(&proofs, PROOF_LOST);
}

static void test_a_damaged_or_full_file_does_no_harm(void **state)
{
    static const struct fake_device_switches sound = {.fail_at = 0};
    struct proofs proofs;
    struct stat facts;

    (void)state;
    for (int round = 0; round < 3; round++) {
        FILE *out = fopen(file, "w");

        assert_non_null(out);
        for (int line = 0; line < (round == 0 ? 1 : 60); line++) {
            fprintf(out, round == 2 ? "device %d\tssssssssssssss\n" : "\t\n%d\n\n\xff", line);
        }
        assert_int_equal(fclose(out), 0);
        find(&proofs, &sound, BUSY_S);
        expect(&proofs, PROOF_SOUND);
        assert_int_equal(stat(file, &facts), 0);
        assert_true(facts.st_size < 16384);
        find(&proofs, &sound, BUSY_S);
        expect(&proofs, PROOF_SOUND);
    }
}

static void test_where_nothing_can_be_remembered_it_is_found_each_time(void **state)
{
    static const struct fake_device_switches traps = {.guilty = UINT64_C(1) << KERNEL_DOTS,
                                                      .fault = FAKE_TRAPS};
    static const struct fake_device_switches sound = {.fail_at = 0};
    struct proofs proofs;

    (void)state;
    assert_int_equal(setenv("LOCKSTEP_CUDA_PROOFS", "/proc/none/proofs", 1), 0);
    find(&proofs, &traps, BUSY_S);
    expect(&proofs, PROOF_LOST);
    find(&proofs, &sound, BUSY_S);
    expect(&proofs, PROOF_SOUND);
    assert_int_equal(setenv("LOCKSTEP_CUDA_PROOFS", "off", 1), 0);
    find(&proofs, &traps, BUSY_S);
    assert_int_equal(proofs_barred(&proofs), 0);
    assert_int_equal(proofs.found[VARIANT_PLAIN], PROOF_NONE);
    assert_int_equal(setenv("LOCKSTEP_CUDA_PROOFS", file, 1), 0);
}

/* The process itself never launches what was barred; it names it and why. */
static void test_a_process_goes_on_without_what_was_barred(void **state)
{
    static const struct fake_device_switches traps = {.guilty = UINT64_C(1) << KERNEL_DOTS,
                                                      .fault = FAKE_TRAPS};
    static const struct fake_device_switches plain = {
        .guilty = UINT64_C(1) << KERNEL_CONTRACT_PLAIN, .fault = FAKE_TRAPS};
    char text[VARIANTS_TEXT_MAX];
    struct variants variants;
    struct error error;

    (void)state;
    assert_int_equal(setenv("LOCKSTEP_CUDA_WITHOUT",
                            "mma,columns,held,strips,attention,epilogue,entropy,views,tiles", 1),
                     0);
    forget();
    fake_device_set(&traps);
    error_init(&error);
    assert_int_equal(variants_of_device(&variants, calls_that_trap(), 0, &error), STATUS_OK);
    variants_text(text, &variants);
    assert_non_null(strstr(text, "dots (it trapped or failed)"));
    assert_null(strstr(text, "lists"));
    assert_int_equal(fake_device_launches(KERNEL_DOTS), 0);
    forget();
    fake_device_set(&plain);
    assert_int_equal(variants_of_device(&variants, calls_that_trap(), 0, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "it trapped or failed"));
    assert_int_equal(fake_device_launches(KERNEL_CONTRACT_PLAIN), 0);
    assert_int_equal(unsetenv("LOCKSTEP_CUDA_WITHOUT"), 0);
}

static int open_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(file, sizeof(file), "%s/state/proofs", folder);
    return setenv("LOCKSTEP_CUDA_PROOFS", file, 1);
}

static int remove_folder(void **state)
{
    char state_folder[sizeof(folder) + 8];

    (void)state;
    forget();
    (void)snprintf(state_folder, sizeof(state_folder), "%s/state", folder);
    return rmdir(state_folder) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fault_bars_its_variant_alone),
        cmocka_unit_test(test_a_kernel_that_never_ends_is_ended),
        cmocka_unit_test(test_a_finding_is_remembered_for_its_device_alone),
        cmocka_unit_test(test_a_damaged_or_full_file_does_no_harm),
        cmocka_unit_test(test_where_nothing_can_be_remembered_it_is_found_each_time),
        cmocka_unit_test(test_a_process_goes_on_without_what_was_barred),
    };

    (void)unsetenv("LOCKSTEP_CUDA_WITHOUT");
    return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
