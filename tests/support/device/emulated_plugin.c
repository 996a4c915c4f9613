/*
 * emulated_plugin.c - the emulated device as a plugin: the one symbol of lockstep_cuda.so.
 *
 * With fake_device.c and the rules it makes build/tests/emulated_cuda.so, which LOCKSTEP_CUDA can
 * name, so that the programs themselves run on "a GPU" where there is none. EMULATED_FAIL_AT=K
 * makes its K-th call fail and all after it, as those of a lost device would; EMULATED_NAME names
 * the device. EMULATED_RESERVES=GIB makes it take address space as a driver does: when a device is
 * opened first, much that nobody may touch and GIB that could be written, and a little more at
 * every other opening; where it gets none the device does not open.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/support/device/fake_device.h"

#define GIB       (UINT64_C(1) << 30)
#define UNTOUCHED (256 * GIB)
#define LATER     (UINT64_C(64) << 20)
#define LATER_MAX 4

device_plugin lockstep_cuda_device;

static bool reserve(uint64_t size, int protection)
{
    return mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
           MAP_FAILED;
}

/* Kept to the end of the process, as a driver's. */
static bool reserve_as_driver(uint64_t gib)
{
    static uint32_t openings;

    openings++;
    if (openings == 1) {
        return reserve(UNTOUCHED, PROT_NONE) && reserve(gib * GIB, PROT_READ | PROT_WRITE);
    }
    return openings > LATER_MAX || reserve(LATER, PROT_READ | PROT_WRITE);
}

static enum device_result reserving_open(struct device **device, struct device_facts *facts,
                                         int ordinal)
{
    const char *reserves = getenv("EMULATED_RESERVES");
    const enum device_result result = fake_device_calls()->open(device, facts, ordinal);

    if (result == DEVICE_OK && reserves != NULL &&
        !reserve_as_driver(strtoull(reserves, NULL, 10))) {
        fake_device_calls()->close(*device);
        *device = NULL;
        return DEVICE_FAILED;
    }
    return result;
}

const struct device_calls *lockstep_cuda_device(void)
{
    static struct device_calls calls;
    const char *fail_at = getenv("EMULATED_FAIL_AT");
    const struct fake_device_switches wanted = {
        .fail_at = fail_at == NULL ? 0 : strtoull(fail_at, NULL, 10),
        .result = DEVICE_FAILED,
        .for_good = true,
        .name = getenv("EMULATED_NAME")};

    if (fail_at != NULL || wanted.name != NULL) {
        fake_device_set(&wanted);
    }
    calls = *fake_device_calls();
    calls.open = reserving_open;
    return &calls;
}
