/*
 * Goal: the readings of NVML reach the journal unchanged; a missing reading stays unknown.
 * Method: a fake library (tests/support/device/fake_nvml.c) with the readings that the test sets.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prover/train/energy.h"
#include "prover/train/gpu_meter.h"
#include "tests/support/test.h"

#define LIBRARY "build/tests/fake_nvml.so"

static void say(const char *text)
{
    assert_int_equal(setenv("FAKE_NVML", text, 1), 0);
}

static int set_up(void **state)
{
    (void)state;
    if (access(LIBRARY, R_OK) != 0) {
        return -1;
    }
    (void)unsetenv("CUDA_DEVICE_ORDER");
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    return setenv("LOCKSTEP_NVML", LIBRARY, 1);
}

static struct nvml *opened(const char *text)
{
    struct nvml *nvml = NULL;

    say(text);
    assert_int_equal(nvml_open(&nvml, NULL), STATUS_OK);
    return nvml;
}

static void test_device_is_what_the_library_says(void **state)
{
    struct nvml *nvml = opened("2 1000 37 1048576");
    struct nvml_device device;
    struct nvml_reading reading;

    (void)state;
    assert_int_equal(nvml_count(nvml), 2);
    assert_int_equal(nvml_describe(&device, nvml, 1, NULL), STATUS_OK);
    assert_string_equal(device.name, "Fake GPU");
    assert_int_equal(device.memory, UINT64_C(8) << 30);
    assert_int_equal(device.capability, 86);
    nvml_read(&reading, nvml, 1);
    assert_true(reading.has_energy && reading.has_use && reading.has_memory);
    assert_int_equal(reading.microjoules, 1000000);
    assert_int_equal(reading.use, 37);
    assert_int_equal(reading.memory_used, 1048576);
    assert_int_equal(nvml_describe(&device, nvml, 2, NULL), STATUS_DEVICE);
    nvml_close(nvml);
}

static void test_what_is_not_told_is_not_known(void **state)
{
    struct nvml *nvml = opened("1 0 101 0");
    struct nvml_reading reading;

    (void)state;
    nvml_read(&reading, nvml, 0);
    assert_false(reading.has_energy);
    assert_false(reading.has_use);
    nvml_read(&reading, nvml, 5);
    assert_false(reading.has_memory);
    nvml_close(nvml);
}

static void test_library_that_is_missing_or_off_or_broken_is_told(void **state)
{
    struct nvml *nvml = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(setenv("LOCKSTEP_NVML", "off", 1), 0);
    assert_int_equal(nvml_open(&nvml, &error), STATUS_NOT_FOUND);
    assert_int_equal(setenv("LOCKSTEP_NVML", "/nowhere/libnvidia-ml.so.1", 1), 0);
    assert_int_equal(nvml_open(&nvml, &error), STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, "/nowhere/libnvidia-ml.so.1"));
    /* A library, and not this one. */
    assert_int_equal(setenv("LOCKSTEP_NVML", "libm.so.6", 1), 0);
    assert_int_equal(nvml_open(&nvml, &error), STATUS_DEVICE);
    assert_int_equal(setenv("LOCKSTEP_NVML", LIBRARY, 1), 0);
    say("99 0 0 0");
    assert_int_equal(nvml_open(&nvml, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "Driver Not Loaded"));
    assert_null(nvml);
}

/* The energy of another GPU would be worse than none. */
static void test_number_is_only_given_where_it_is_sure(void **state)
{
    struct nvml *nvml = opened("1 1 1 1");
    uint32_t number = 9;

    (void)state;
    assert_true(nvml_number_of(&number, nvml, 0));
    assert_int_equal(number, 0);
    assert_false(nvml_number_of(&number, nvml, 1));
    nvml_close(nvml);
    nvml = opened("4 1 1 1");
    assert_false(nvml_number_of(&number, nvml, 2));
    assert_int_equal(setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1), 0);
    assert_true(nvml_number_of(&number, nvml, 2));
    assert_int_equal(number, 2);
    assert_false(nvml_number_of(&number, nvml, 4));
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "3,1", 1), 0);
    assert_false(nvml_number_of(&number, nvml, 2));
    nvml_close(nvml);
    (void)unsetenv("CUDA_DEVICE_ORDER");
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
}

static void test_energy_of_a_gpu_counts_with_the_step(void **state)
{
    struct energy_gpu gpu = {.nvml = opened("1 5000 50 1"), .number = 0};
    struct energy energy;
    uint64_t used = 0;

    (void)state;
    energy_start(&energy, NULL);
    energy_start_gpu(&energy, &gpu);
    say("1 5042 50 1");
    assert_true(energy_stop(&used, &energy));
    assert_int_equal(used, 42000);
    /* A restarted driver counts from 0: unknown. */
    say("1 17 50 1");
    assert_false(energy_stop(&used, &energy));
    say("1 0 50 1");
    energy_start(&energy, NULL);
    energy_start_gpu(&energy, &gpu);
    say("1 100 50 1");
    assert_false(energy_stop(&used, &energy));
    energy_start(&energy, NULL);
    energy_start_gpu(&energy, NULL);
    assert_false(energy_stop(&used, &energy));
    nvml_close(gpu.nvml);
}

static void test_meter_is_for_gpus_only(void **state)
{
    struct machine_options machine = {.backend = &backend_cpu};
    struct bundle_step step = {.step = 0};
    struct gpu_meter meter;

    (void)state;
    say("1 1 80 2097152");
    assert_null(gpu_meter_open(&meter, &machine, 2, NULL, NULL));
    gpu_meter_step(&meter, &step, NULL);
    gpu_meter_close(&meter);
    machine.backend = &backend_cuda;
    assert_non_null(gpu_meter_open(&meter, &machine, 2, NULL, NULL));
    gpu_meter_step(&meter, &step, NULL);
    assert_int_equal(meter.steps, 1);
    assert_int_equal(meter.use, 80);
    assert_int_equal(meter.memory_most, 2097152);
    step.step = 1; /* ends the segment */
    gpu_meter_step(&meter, &step, NULL);
    assert_int_equal(meter.steps, 0);
    gpu_meter_close(&meter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_is_what_the_library_says),
        cmocka_unit_test(test_what_is_not_told_is_not_known),
        cmocka_unit_test(test_library_that_is_missing_or_off_or_broken_is_told),
        cmocka_unit_test(test_number_is_only_given_where_it_is_sure),
        cmocka_unit_test(test_energy_of_a_gpu_counts_with_the_step),
        cmocka_unit_test(test_meter_is_for_gpus_only),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
