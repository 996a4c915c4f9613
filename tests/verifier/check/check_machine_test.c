/*
 * Goal: a check computes where its request says, and a second replay comes from elsewhere.
 * Method: requests for each device, with the emulated GPU of tests/support as the plugin.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/backend.h"
#include "verifier/check/check.h"

static struct check_request request;

static enum status machine_for(struct machine_options *options, const char *device, bool other)
{
    struct error error;

    error_init(&error);
    memset(&request, 0, sizeof(request));
    request.threads = 3;
    request.memory_max = (uint64_t)1 << 30;
    request.device_memory = 12345;
    (void)snprintf(request.device, sizeof(request.device), "%s", device);
    return check_machine(options, &request, other, &error);
}

static void test_the_cpu_confirms_a_gpu(void **state)
{
    struct machine_options options;

    (void)state;
    assert_int_equal(setenv("LOCKSTEP_CUDA", "build/tests/emulated_cuda.so", 1), 0);
    assert_int_equal(machine_for(&options, "cuda", false), STATUS_OK);
    assert_ptr_equal(options.backend, &backend_cuda);
    assert_int_equal(options.device_memory, 12345);
    assert_int_equal(options.thread_count, 3);
    assert_true(options.memory_max < (uint64_t)1 << 30);
    assert_int_equal(machine_for(&options, "cuda", true), STATUS_OK);
    assert_ptr_equal(options.backend, &backend_cpu);
    assert_int_equal(options.isa, isa_best());
}

static void test_other_instructions_confirm_a_cpu(void **state)
{
    static const char *const names[] = {"cpu", ""};
    struct machine_options first;
    struct machine_options second;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(machine_for(&first, names[i], false), STATUS_OK);
        assert_int_equal(machine_for(&second, names[i], true), STATUS_OK);
        assert_ptr_equal(first.backend, &backend_cpu);
        assert_ptr_equal(second.backend, &backend_cpu);
        assert_true(first.isa != second.isa || isa_best() == ISA_SCALAR);
    }
}

static void test_a_device_that_is_not_there_is_refused(void **state)
{
    struct machine_options options;

    (void)state;
    assert_int_equal(setenv("LOCKSTEP_CUDA", "build/tests/none.so", 1), 0);
    assert_int_not_equal(machine_for(&options, "cuda", false), STATUS_OK);
    assert_int_not_equal(machine_for(&options, "tpu", false), STATUS_OK);
    assert_int_equal(machine_for(&options, "auto", false), STATUS_OK);
    assert_ptr_equal(options.backend, &backend_cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cpu_confirms_a_gpu),
        cmocka_unit_test(test_other_instructions_confirm_a_cpu),
        cmocka_unit_test(test_a_device_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
