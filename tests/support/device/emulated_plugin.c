/*
 * emulated_plugin.c - the emulated device as a plugin: the one symbol of lockstep_cuda.so.
 *
 * With fake_device.c and the rules it makes build/tests/emulated_cuda.so, which LOCKSTEP_CUDA can
 * name, so that the programs themselves run on "a GPU" where there is none.
 *
 *     EMULATED_FAIL_AT=K      the K-th call and all after it fail, as on a lost device
 *     EMULATED_FAULT=F:K,...  the kernels have a fault: skips, refused, traps, hangs or crashes
 *     EMULATED_NAME=NAME      of the device
 *     EMULATED_CAPABILITY=90  of the device
 *     EMULATED_UNIT=22        bits that the unit of halves keeps (emulator.h)
 *     EMULATED_CAN_TRAP=1     variants prove themselves in children first, as on a real one
 *     EMULATED_RESERVES=GIB   it takes address space as a driver does: when a device is opened
 *                             first, much that nobody may touch and GIB that could be written, and
 *                             a little more at every other opening; without room none opens
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/device/emulator.h"
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

/* A name that is none is a test's mistake: it must not pass for a sound device. */
static void read_fault(struct fake_device_switches *wanted, const char *text)
{
    static const char *const faults[FAKE_FAULTS] = {"skips", "refused", "traps", "hangs",
                                                    "crashes"};
    const size_t length = strcspn(text, ":");
    char names[512];
    char *rest = NULL;

    while (wanted->fault < FAKE_FAULTS && (strlen(faults[wanted->fault]) != length ||
                                           memcmp(faults[wanted->fault], text, length) != 0)) {
        wanted->fault++;
    }
    (void)snprintf(names, sizeof(names), "%s", text + length + (text[length] == ':'));
    for (char *name = strtok_r(names, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        const uint64_t kernel = fake_device_kernel(name);

        wanted->guilty |= kernel;
        wanted->fault = kernel == 0 ? FAKE_FAULTS : wanted->fault;
    }
    if (wanted->fault == FAKE_FAULTS || wanted->guilty == 0) {
        fprintf(stderr, "EMULATED_FAULT=%s is no fault of a kernel\n", text);
        abort();
    }
}

const struct device_calls *lockstep_cuda_device(void)
{
    static struct device_calls calls;
    static bool set;
    const char *fail_at = getenv("EMULATED_FAIL_AT");
    const char *capability = getenv("EMULATED_CAPABILITY");
    const char *fault = getenv("EMULATED_FAULT");
    const char *bits = getenv("EMULATED_UNIT");
    const struct emulated_unit unit = {.bits = bits == NULL ? UNIT_BITS_LEAST
                                                            : (int)strtol(bits, NULL, 10)};
    struct fake_device_switches wanted = {
        .fail_at = fail_at == NULL ? 0 : strtoull(fail_at, NULL, 10),
        .result = DEVICE_FAILED,
        .for_good = true,
        .capability = capability == NULL ? 0 : (int32_t)strtol(capability, NULL, 10),
        .name = getenv("EMULATED_NAME"),
        .unit = &unit};

    if (fault != NULL) {
        read_fault(&wanted, fault);
    }
    if (!set) { /* what was counted and noted stays, however often the plugin is asked for */
        fake_device_set(&wanted);
        set = true;
    }
    calls = *fake_device_calls();
    calls.open = reserving_open;
    calls.can_trap = getenv("EMULATED_CAN_TRAP") != NULL;
    return &calls;
}
