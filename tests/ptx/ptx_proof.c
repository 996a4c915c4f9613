/*
 * ptx_proof.c - one kernel variant's self-test by kernels that were PTX. planted.py plants faults.
 *
 *     ptx-proof VARIANT CAPABILITY    exit 0: the bits of the rules; 1: others, or not at all; a
 *                                     signal: what no device would forgive
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/selftest/selftest.h"
#include "tests/support/device/fake_device.h"

int main(int argc, char **argv)
{
    struct fake_device_switches switches = {.fail_at = 0};
    const struct device_calls *calls = fake_device_calls();
    enum kernel_variant variant = 0;
    struct device_facts facts;
    struct device *device = NULL;
    bool right = false;

    if (argc != 3) {
        return 2;
    }
    while (variant < VARIANT_COUNT && strcmp(selftest_name(variant), argv[1]) != 0) {
        variant++;
    }
    switches.capability = (int32_t)strtol(argv[2], NULL, 10);
    fake_device_set(&switches);
    if (variant == VARIANT_COUNT || calls->open(&device, &facts, 0) != DEVICE_OK ||
        selftest_try(&right, calls, device, &facts, variant, 0) != DEVICE_OK) {
        right = false;
    }
    if (device != NULL) {
        calls->close(device);
    }
    printf("%s: %s\n", argv[1], right ? "the bits of the rules" : "other bits");
    return right ? 0 : 1;
}
