/*
 * loader_test.c - the plugin is found, checked and opened, or refused with a sentence.
 *
 * The errors of loading need no plugin; where one was built, it is loaded, its numbers are this
 * program's, and without a GPU it says so cleanly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cuda/device/loader.h"
#include "engine/cuda/kernels/args.h"
#include "engine/plan/backend.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/test.h"

static enum status open_with(const char *wish, struct error *error)
{
    const struct device_calls *calls = NULL;
    enum status status;

    error_init(error);
    if (wish == NULL) {
        assert_int_equal(unsetenv("LOCKSTEP_CUDA"), 0);
    } else {
        assert_int_equal(setenv("LOCKSTEP_CUDA", wish, 1), 0);
    }
    status = loader_open(&calls, error);
    assert_true((status == STATUS_OK) == (error->text[0] == '\0'));
    return status;
}

static void test_loader_turned_off_finds_nothing(void **state)
{
    struct error error;

    (void)state;
    assert_int_equal(open_with("off", &error), STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, "turned off"));
}

static void test_loader_missing_file_is_named(void **state)
{
    struct error error;

    (void)state;
    assert_int_equal(open_with("/nowhere/plugin.so", &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "/nowhere/plugin.so"));
    assert_non_null(strstr(error.advice, "nvcc"));
}

static void test_loader_file_that_is_no_library_is_refused(void **state)
{
    char path[512];
    struct error error;
    FILE *file;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/plugin.so", test_temp_dir());
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("not a library", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(open_with(path, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, path));
}

static void test_loader_library_that_is_no_plugin_is_refused(void **state)
{
    struct error error;

    (void)state;
    assert_int_equal(open_with("libm.so.6", &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "no CUDA plugin"));
}

static void test_loader_without_a_plugin_says_where_it_looked(void **state)
{
    struct error error;
    enum status status = open_with(NULL, &error);

    (void)state;
    /* Tests lie in another folder than the plugin. */
    assert_int_equal(status, STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, "../lib/lockstep"));
    assert_true(error.advice[0] != '\0');
}

static void test_loader_other_build_is_refused(void **state)
{
    struct device_calls calls = {.abi = DEVICE_ABI,
                                 .rules_version = RULES_VERSION,
                                 .kernel_count = KERNEL_COUNT,
                                 .arguments_check = KERNEL_ARGUMENTS_CHECK};
    uint32_t *numbers[4] = {&calls.abi, &calls.rules_version, &calls.kernel_count,
                            &calls.arguments_check};
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(loader_check(&calls, "plugin", &error), STATUS_OK);
    for (int i = 0; i < 4; i++) {
        (*numbers[i])++;
        assert_int_equal(loader_check(&calls, "plugin", &error), STATUS_DEVICE);
        (*numbers[i])--;
    }
    assert_int_equal(loader_check(NULL, "plugin", &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "of another build"));
}

static void test_plugin_opens_a_device_or_says_why_not(void **state)
{
    struct machine_options options = {.isa = ISA_SCALAR};
    const char *build = getenv("TEST_BUILD");
    struct machine *machine = NULL;
    struct tape *tape;
    struct error error;
    char path[512];
    enum status status;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/" LOADER_PLUGIN, build == NULL ? "build" : build);
    if (access(path, R_OK) != 0) {
        test_skip("this machine has no GPU; 'make cuda' builds the plugin (%s) anywhere", path);
    }
    assert_int_equal(open_with(path, &error), STATUS_OK);
    tape = random_tape(1, 3);
    status = backend_cuda.open(&machine, tape, &options, &error);
    if (status == STATUS_OK) {
        backend_cuda.close(machine);
    } else {
        assert_int_equal(status, STATUS_DEVICE);
        assert_true(strstr(error.text, "driver") != NULL || strstr(error.text, "device") != NULL);
        assert_true(error.advice[0] != '\0');
    }
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loader_turned_off_finds_nothing),
        cmocka_unit_test(test_loader_missing_file_is_named),
        cmocka_unit_test(test_loader_file_that_is_no_library_is_refused),
        cmocka_unit_test(test_loader_library_that_is_no_plugin_is_refused),
        cmocka_unit_test(test_loader_without_a_plugin_says_where_it_looked),
        cmocka_unit_test(test_loader_other_build_is_refused),
        cmocka_unit_test(test_plugin_opens_a_device_or_says_why_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
