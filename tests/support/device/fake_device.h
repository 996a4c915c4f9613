/*
 * fake_device.h - a CUDA device that is none: its memory is the host's, and its kernels are the
 * plugin's own sources, run by the emulator.
 *
 * So the CUDA backend's machine, its launches and its kernels are held to the rules on any
 * processor; and any of its calls can be made to fail, the way a device does. With a seed, queued
 * work runs when something waits for it, not sooner, and the lanes take turns at random, as far as
 * signals allow: a signal that is missing shows in the bits. Without, it runs at once. What only a
 * device can show (its compiler's code, its speed) is not here.
 */
#ifndef TESTS_SUPPORT_DEVICE_FAKE_DEVICE_H
#define TESTS_SUPPORT_DEVICE_FAKE_DEVICE_H

#include <stdbool.h>

#include "engine/cuda/device/device.h"

struct emulated_unit;

/* The table; one set of switches for all devices of the process. */
const struct device_calls *fake_device_calls(void);

/* The kernel of a name, as in KERNEL_LIST, as a bit of guilty; 0: none has it. */
uint64_t fake_device_kernel(const char *name);

/* What a kernel can do but give the right bits. */
enum fake_fault {
    FAKE_SKIPS,   /* nothing */
    FAKE_REFUSED, /* its launch fails */
    FAKE_TRAPS,   /* the device is lost to the process */
    FAKE_HANGS,   /* it never ends */
    FAKE_CRASHES, /* the process ends */
    FAKE_FAULTS
};

struct fake_device_switches {
    uint64_t fail_at;          /* the call with this number (from 1) fails; 0: none */
    enum device_result result; /* of that call */
    bool for_good;             /* and of every call after it, as a lost device would */
    uint64_t memory_max;       /* bytes; 0: no limit */
    enum device_result open;   /* what opening a device gives */
    uint64_t seed;             /* of the turns that lanes take; 0: all work runs at once */
    bool deaf;                 /* signals are not awaited: to see that this is found */
    int32_t capability;        /* 0: 80 */
    uint32_t shared_max;       /* bytes that a block of it may have; 0: not known */
    const char *name;          /* of the device; NULL: a usual one */
    uint64_t guilty;           /* kernels that have the fault: 1 << enum cuda_kernel */
    enum fake_fault fault;
    uint64_t slow;                    /* kernels that take a thousand times as long */
    const struct emulated_unit *unit; /* that multiplies halves; NULL: the usual one */
};
void fake_device_set(const struct fake_device_switches *switches); /* and counts from 0 */

/*
 * Memory of the test's that kernels are given as if it were the device's: racecheck knows of it,
 * and what is in it where it was written. The test keeps it, and takes it back before it is freed.
 */
void fake_device_lend(const void *memory, uint64_t size, bool written);
void fake_device_take_back(const void *memory);

uint64_t fake_device_call_count(void);

/* Launches of a kernel since fake_device_set(). */
uint64_t fake_device_launches(uint32_t kernel);

/* Allocations that were not released, and devices and graphs that were not closed. */
uint64_t fake_device_leftovers(void);

#endif /* TESTS_SUPPORT_DEVICE_FAKE_DEVICE_H */
