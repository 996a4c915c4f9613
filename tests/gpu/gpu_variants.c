/*
 * gpu_variants.c - each kernel variant alone: its self-test; for those that contract, its bits
 * against the processor's on shapes that a small test does not have, and its speed.
 */
#include <stdlib.h>

#include "tests/gpu/gpu_check.h"

#define ROUNDS 7

/* As a process does it before it uses a variant, but each on a device that was just opened. */
void gpu_check_selftest(struct gpu_check *check, int kind)
{
    const enum kernel_variant variant = (enum kernel_variant)kind;
    struct device_facts facts;
    struct device *device = NULL;
    bool right = false;

    gpu_check_call(check, check->calls->open(&device, &facts, 0));
    gpu_check_call(
        check, selftest_try(&right, check->calls, device, &facts, variant, check->tally->barred));
    check->tally->comparisons++;
    if (!right) {
        gpu_check_differs(check, "other bits than the rules");
    }
    check->calls->close(device);
}

/* ---- bits ----------------------------------------------------------------------- */

static void hold_variant(struct gpu_check *check, enum kernel_variant variant,
                         const int64_t shape[3], struct precision cut, uint64_t seed)
{
    struct tape *tape = gpu_check_linear(shape[0], shape[1], shape[2], cut);
    struct machine *machines[2] = {gpu_check_cpu(tape, false, false),
                                   gpu_check_open_barred(check, tape, ~(1u << variant))};
    struct error error;
    char what[96];

    error_init(&error);
    gpu_check_give(machines, 2, NULL, tape, seed);
    for (int i = 0; i < 2; i++) {
        gpu_check_must(machines[i]->backend->step(machines[i], NULL, &error), &error);
    }
    (void)snprintf(what, sizeof(what), "contraction by %s, %lld x %lld x %lld, %u/%u",
                   selftest_name(variant), (long long)shape[0], (long long)shape[1],
                   (long long)shape[2], cut.bits, cut.block);
    gpu_check_compare(check, machines[0], machines[1], what);
    for (int i = 0; i < 2; i++) {
        machines[i]->backend->close(machines[i]);
    }
    tape_free(tape);
}

/* Products at the edges of tiles, split ones, and some that fill a device. */
void gpu_check_variant(struct gpu_check *check, int kind)
{
    static const int64_t shapes[][3] = {{3, 5, 7},         {257, 190, 515}, {1000, 1000, 1000},
                                        {64, 48, 5000},    {130, 4100, 64}, {2048, 96, 1152},
                                        {3000, 3001, 2050}};
    static const struct precision cuts[] = {{14, 128}, {14, 0},  {16, 128}, {15, 512},
                                            {22, 0},   {14, 32}, {22, 128}};
    const size_t count = check->quick ? 1 : sizeof(shapes) / sizeof(shapes[0]);

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < sizeof(cuts) / sizeof(cuts[0]); j++) {
            hold_variant(check, (enum kernel_variant)kind, shapes[i], cuts[j], i);
        }
    }
}

/* ---- speed ----------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void time_variant(struct gpu_check *check, enum kernel_variant variant,
                         const int64_t shape[3], struct precision cut)
{
    const double work = 2e-12 * (double)shape[0] * (double)shape[1] * (double)shape[2];
    struct tape *tape = gpu_check_linear(shape[0], shape[1], shape[2], cut);
    struct machine *machine = gpu_check_open_barred(check, tape, ~(1u << variant));
    double seconds[ROUNDS];
    struct error error;
    char name[96];

    error_init(&error);
    gpu_check_give(&machine, 1, NULL, tape, 5);
    for (int round = -3; round < ROUNDS; round++) {
        double took = 0.0;

        gpu_check_must(gpu_machine_time(&took, machine, 1, &error), &error);
        seconds[round < 0 ? 0 : round] = took;
    }
    qsort(seconds, ROUNDS, sizeof(seconds[0]), by_size);
    (void)snprintf(name, sizeof(name), "%lld x %lld x %lld by %s, %u/%u", (long long)shape[0],
                   (long long)shape[1], (long long)shape[2], selftest_name(variant), cut.bits,
                   cut.block);
    gpu_check_number(check, name, work / seconds[ROUNDS / 2], "TFLOP/s");
    machine->backend->close(machine);
    tape_free(tape);
}

/* A variant does not take every width: another would be measured in its name. */
void gpu_check_variant_speed(struct gpu_check *check, int kind)
{
    static const int64_t shapes[][3] = {{64, 64, 256},     {4096, 4096, 4096}, {8192, 8192, 8192},
                                        {4096, 2304, 768}, {4096, 768, 3072},  {4096, 50257, 768}};
    static const struct precision cuts[] = {{14, 128}, {16, 128}, {22, 0}};
    const size_t count = check->quick ? 1 : sizeof(shapes) / sizeof(shapes[0]);
    const size_t widths = kind == VARIANT_WGMMA ? 1 : 3;

    for (size_t i = check->quick ? 0 : 1; i < count; i++) {
        for (size_t j = 0; j < widths; j++) {
            time_variant(check, (enum kernel_variant)kind, shapes[i], cuts[j]);
        }
    }
}
