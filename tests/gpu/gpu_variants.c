/*
 * gpu_variants.c - each kernel variant alone: its self-test; for those that contract, its bits
 * against the processor's on shapes that a small test does not have, and its speed. And one root by
 * every unit that multiplies.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/trace.h"
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

/* ---- units ---------------------------------------------------------------------- */

#define UNITS 3

/* What multiplies, beside plain kernels where a unit takes no product. */
static const struct {
    const char *name;
    uint32_t variants;
} units[UNITS] = {{"bytes", 1u << VARIANT_WGMMA | 1u << VARIANT_MMA},
                  {"halves", 1u << VARIANT_HALF},
                  {"plain", 0}};

/* What multiplies on chip, by the unit that is free. */
#define ON_CHIP (1u << VARIANT_STRIPS | 1u << VARIANT_ATTENTION)

/* The processor's root is every unit's, or the unit is named; those that have it are appended. */
static uint32_t hold_units(char names[GPU_CHECK_FIRST_MAX], struct digest *root,
                           struct gpu_check *check, const struct model *model, int steps)
{
    const uint32_t free_ones = check->tally->offered & ~check->tally->barred;
    struct machine *cpu = gpu_check_cpu(model->tape, false, false);
    uint32_t count = 0;
    struct error error;

    error_init(&error);
    gpu_check_give(&cpu, 1, model, model->tape, 21);
    for (int step = 0; step < steps; step++) {
        gpu_check_must(cpu->backend->step(cpu, NULL, &error), &error);
    }
    gpu_check_must(state_root_of(root, cpu, &error), &error);
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        const uint32_t own = units[unit].variants & free_ones;
        struct machine *machine;

        if (units[unit].variants != 0 && own == 0) {
            continue; /* the device has it not, or it was found wrong */
        }
        machine = gpu_check_open_barred(
            check, model->tape,
            ~(own | 1u << VARIANT_PLAIN | (own == 0 ? 0 : ON_CHIP & free_ones)));
        gpu_check_give(&machine, 1, model, model->tape, 21);
        for (int step = 0; step < steps; step++) {
            gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
        }
        gpu_check_compare(check, cpu, machine, units[unit].name);
        machine->backend->close(machine);
        (void)snprintf(names + strlen(names), GPU_CHECK_FIRST_MAX - strlen(names), "%s%s",
                       count == 0 ? "" : ", ", units[unit].name);
        count++;
    }
    cpu->backend->close(cpu);
    return count;
}

static void print_root(uint32_t count, const char *names, const struct digest *root, uint32_t bits)
{
    static const char *const words[UNITS + 1] = {"no", "one", "two", "three"};

    printf("  same root, %s unit%s (%s), %u bits: ", words[count], count == 1 ? "" : "s", names,
           bits);
    for (size_t at = 0; at < sizeof(root->bytes); at++) {
        printf("%02x", root->bytes[at]);
    }
    printf("\n");
}

/* Steps of a small GPT-2 by bytes, by halves and by neither. */
void gpu_check_units(struct gpu_check *check, int kind)
{
    static const struct precision cuts[] = {{14, 128}, {14, 512}, {16, 128}};

    (void)kind;
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        const uint64_t differed = check->tally->failures;
        char names[GPU_CHECK_FIRST_MAX] = "";
        struct model_options options;
        struct digest root;
        struct model model;
        struct error error;
        uint32_t count;

        error_init(&error);
        model_options_default(&options, MODEL_GPT2);
        options.precision = cuts[i];
        options.batch = 1;
        options.length = check->quick ? 24 : 200;
        options.layers = 1;
        options.heads = 2;
        options.width = check->quick ? 16 : 256;
        options.steps = 40;
        options.data_count = 5000;
        options.data_dtype = DTYPE_U8;
        gpu_check_must(model_build(&model, &options, &error), &error);
        count = hold_units(names, &root, check, &model, check->quick ? 1 : 4);
        model_release(&model);
        if (check->tally->failures == differed) {
            print_root(count, names, &root, cuts[i].bits);
        }
    }
}

/* As every process chooses: by bytes or by halves, whichever took less time here. */
void gpu_check_unit_times(struct gpu_check *check, int kind)
{
    struct device *device = NULL;
    struct device_facts facts;
    struct unit_times times;

    (void)kind;
    gpu_check_call(check, check->calls->open(&device, &facts, 0));
    gpu_check_call(check, units_time(&times, check->calls, device, &facts, check->tally->barred));
    check->calls->close(device);
    check->tally->quicker = units_quicker(&times);
    for (int at = 0; at < UNIT_FAMILIES * UNIT_WIDTHS; at++) {
        const int family = at / UNIT_WIDTHS;
        const int width = at % UNIT_WIDTHS;
        char name[96];

        if (times.bytes[family][width] > 0.0) {
            (void)snprintf(name, sizeof(name), "time by halves over time by bytes, %s of %s bits",
                           units_family((enum unit_family)family),
                           units_bits((enum unit_width)width));
            gpu_check_number(check, name, times.halves[family][width] / times.bytes[family][width],
                             "");
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
    if (shape[0] == 8192 && cut.bits == 14 && variant != VARIANT_MMA) {
        gpu_check_goal(check, name, work / seconds[ROUNDS / 2], "TFLOP/s",
                       variant == VARIANT_HALF ? 170.0 : 300.0, true);
    } else {
        gpu_check_number(check, name, work / seconds[ROUNDS / 2], "TFLOP/s");
    }
    machine->backend->close(machine);
    tape_free(tape);
}

/* A variant does not take every width: another would be measured in its name. */
void gpu_check_variant_speed(struct gpu_check *check, int kind)
{
    static const int64_t shapes[][3] = {{64, 64, 256},     {8192, 8192, 8192}, {4096, 4096, 4096},
                                        {4096, 2304, 768}, {4096, 768, 3072},  {4096, 50257, 768}};
    static const struct precision cuts[] = {{14, 128}, {14, 512}, {14, 1024}, {16, 128}, {22, 0}};
    const size_t count = check->quick ? 1 : sizeof(shapes) / sizeof(shapes[0]);
    const size_t widths = kind == VARIANT_WGMMA ? 3 : sizeof(cuts) / sizeof(cuts[0]);

    for (size_t i = check->quick ? 0 : 1; i < count; i++) {
        for (size_t j = 0; j < widths; j++) {
            time_variant(check, (enum kernel_variant)kind, shapes[i], cuts[j]);
        }
    }
}
