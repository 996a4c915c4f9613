/* selftest.c - see selftest.h. */
#include "engine/cuda/selftest/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/launch/launch_contract.h"
#include "engine/cuda/launch/launch_quantize.h"
#include "engine/ops/kernel.h"

/* ---- the variants -------------------------------------------------------------------- */

/* Those that launch.h chooses; the others are fusion patterns. */
static const struct launch_variant {
    const char *name;
    selftest_build *build;
    uint32_t parts;
} launch_variants[VARIANT_COUNT] = {
    [VARIANT_WGMMA] = {"wgmma", contract_wgmma_selftest, WGMMA_SELFTESTS},
    [VARIANT_MMA] = {"mma", contract_mma_selftest, MMA_SELFTESTS},
    [VARIANT_HALF] = {"half", contract_half_selftest, HALF_SELFTESTS},
    [VARIANT_PLAIN] = {"plain", contract_plain_selftest, PLAIN_SELFTESTS},
    [VARIANT_DOTS] = {"dots", launch_dots_selftest, DOTS_SELFTESTS},
    [VARIANT_COLUMNS] = {"columns", launch_columns_selftest, COLUMNS_SELFTESTS},
};

static struct launch_variant find_variant(enum kernel_variant variant)
{
    const struct fusion_pattern *pattern = fuse_pattern(variant);

    return pattern == NULL
               ? launch_variants[variant]
               : (struct launch_variant){pattern->name, pattern->selftest, pattern->selftests};
}

const char *selftest_name(enum kernel_variant variant)
{
    return find_variant(variant).name;
}

/* ---- one tape -------------------------------------------------------------------------- */

struct selftest {
    struct selftest_tape tape;
    struct fusion fusion;
    bool needed[SELFTEST_TENSORS_MAX]; /* an executed operation reads it, or it is compared */
    uint64_t sizes[SELFTEST_TENSORS_MAX];
    void *host[SELFTEST_TENSORS_MAX];
    void *device[SELFTEST_TENSORS_MAX];
};

/*
 * Numbers of all sizes, one in a hundred a zero of either sign. Where a row's length is known, its
 * pieces differ in size instead. Indices are small.
 */
static void fill_tensor(void *values, const struct tensor *tensor, int64_t row, uint64_t seed)
{
    uint64_t random = seed;

    for (uint64_t i = 0; i < tensor->count; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (tensor->dtype != DTYPE_F32) {
            ((uint32_t *)values)[i] = (uint32_t)(random >> 33) % 32;
            continue;
        }
        const float value = (float)((int64_t)(random >> 40) - (1 << 23));
        const bool zero = row == 0 && (random >> 32 & 1) == 0 && (random >> 20) % 50 == 0;
        const uint64_t piece = row == 0 ? 0 : i % (uint64_t)row / CONTRACTION_PIECE;
        const uint64_t size =
            row == 0 ? (random >> 12) % 7 * (i % 3) : i / (uint64_t)row * (piece + 1) % 7 * 2;

        ((float *)values)[i] = zero ? value * 0.0f : ldexpf(value, -23 - (int)size);
    }
}

static void give_tensor(struct selftest *test, uint32_t id)
{
    const struct tensor *tensor = &test->tape.tensors[id];
    const uint64_t row = (uint64_t)test->tape.row[id];

    if (test->tape.fills[id] == NULL) {
        fill_tensor(test->host[id], tensor, test->tape.row[id], id + 1);
        return;
    }
    for (uint64_t i = 0; i < tensor->count; i++) {
        ((float *)test->host[id])[i] = test->tape.fills[id](i / row, i % row);
    }
}

static bool run_rules(struct selftest *test)
{
    for (uint32_t id = 0; id < test->tape.tape.tensor_count; id++) {
        const struct tensor *tensor = &test->tape.tensors[id];

        test->sizes[id] = tensor->count * dtype_size(tensor->dtype);
        test->host[id] = malloc(test->sizes[id]);
        if (test->host[id] == NULL) {
            return false;
        }
        if (!test->tape.made[id]) {
            give_tensor(test, id);
        }
    }
    for (uint32_t at = 0; at < test->tape.tape.op_count; at++) {
        const struct op *op = &test->tape.ops[at];
        struct kernel_call call = {.op = op, .tensors = test->tape.tensors, .thread_count = 1};

        for (uint32_t i = 0; i < op->input_count; i++) {
            call.inputs[i] = test->host[op->inputs[i]];
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            call.outputs[i] = test->host[op->outputs[i]];
            test->sizes[op->outputs[i]] = launch_output_size(op, i, test->tape.tensors, true);
        }
        kernel_run_rules(&call);
    }
    return true;
}

/* Device memory for all: tensors, operations, scratch. */
static enum device_result place_tensors(void **block, uint8_t **lists_at, struct selftest *test,
                                        struct launcher *launcher)
{
    const uint64_t ops_size = packed_round_up(sizeof(test->tape.ops), PACKED_ALIGNMENT);
    uint64_t size = ops_size;
    uint64_t scratch = 0;

    for (uint32_t id = 0; id < test->tape.tape.tensor_count; id++) {
        size += packed_round_up(test->sizes[id], PACKED_ALIGNMENT);
    }
    for (uint32_t at = 0; at < test->tape.tape.op_count; at++) {
        const struct op *ops[2] = {&test->tape.ops[at], &test->fusion.ops[at]};

        for (int i = 0; i < 2; i++) {
            const uint64_t own = launch_scratch_size(ops[i], test->tape.tensors, true);

            scratch = own > scratch ? own : scratch;
        }
    }
    const uint64_t lists = packed_round_up(test->fusion.size, PACKED_ALIGNMENT);
    const enum device_result result =
        launcher->calls->allocate(launcher->device, block, size + lists + scratch);
    uint8_t *at = *block;

    if (result != DEVICE_OK) {
        return result;
    }
    launcher->ops = (const struct op *)at;
    at += ops_size;
    for (uint32_t id = 0; id < test->tape.tape.tensor_count; id++) {
        test->device[id] = at;
        at += packed_round_up(test->sizes[id], PACKED_ALIGNMENT);
    }
    for (uint32_t id = 0; id < test->tape.tape.tensor_count; id++) {
        if (test->fusion.holders[id] != id) {
            test->device[id] =
                (uint8_t *)test->device[test->fusion.holders[id]] + test->fusion.offsets[id];
        }
    }
    *lists_at = at;
    launcher->scratch = at + lists;
    launcher->tape = &test->tape.tape;
    launcher->memory = test->device;
    return launcher->calls->upload(launcher->device, *block, test->fusion.ops,
                                   test->tape.tape.op_count * sizeof(struct op));
}

/* Marks what the rewritten tape needs: operations without a reader are not executed. */
static void find_needed(struct selftest *test)
{
    for (uint32_t at = test->tape.tape.op_count; at > 0; at--) {
        const struct op *op = &test->fusion.ops[at - 1];
        bool makes = false;

        for (uint32_t i = 0; i < op->output_count; i++) {
            const uint32_t id = op->outputs[i];

            makes = makes || test->needed[test->fusion.holders[id]] ||
                    test->tape.tensors[id].role == ROLE_OUTPUT;
        }
        for (uint32_t i = 0; makes && i < op->input_count; i++) {
            test->needed[test->fusion.holders[op->inputs[i]]] = true;
        }
        if (op->output_count > 0) {
            test->needed[op->outputs[0]] = makes; /* stands for the operation from here on */
        }
    }
}

/* Outputs are filled first, so that a kernel that writes nothing cannot be right by luck. */
static enum device_result give_values(struct selftest *test, const struct launcher *launcher)
{
    const struct device_calls *calls = launcher->calls;
    enum device_result result = DEVICE_OK;

    for (uint32_t id = 0; id < test->tape.tape.tensor_count && result == DEVICE_OK; id++) {
        result = test->tape.made[id]
                     ? calls->fill(launcher->device, test->device[id], 0xa5, test->sizes[id])
                     : calls->upload(launcher->device, test->device[id], test->host[id],
                                     test->sizes[id]);
    }
    return result;
}

static enum device_result compare_outputs(bool *right, const struct selftest *test,
                                          const struct launcher *launcher)
{
    enum device_result result = DEVICE_OK;

    *right = true;
    for (uint32_t id = 0; id < test->tape.tape.tensor_count && result == DEVICE_OK; id++) {
        void *got;

        if (test->tape.tensors[id].role != ROLE_OUTPUT) {
            continue;
        }
        got = malloc(test->sizes[id]);
        if (got == NULL) {
            return DEVICE_NO_MEMORY;
        }
        result =
            launcher->calls->download(launcher->device, got, test->device[id], test->sizes[id]);
        *right = *right && result == DEVICE_OK && memcmp(got, test->host[id], test->sizes[id]) == 0;
        free(got);
    }
    *right = *right && result == DEVICE_OK;
    return result;
}

static enum device_result run_tape(bool *right, struct selftest *test, struct launcher *launcher)
{
    enum device_result result = give_values(test, launcher);
    uint32_t next;

    for (uint32_t at = 0; at < test->tape.tape.op_count && result == DEVICE_OK; at = next) {
        next = at + 1;
        const struct op *op = &test->fusion.ops[at];

        if (op->output_count > 0 && test->needed[op->outputs[0]]) {
            result = fuse_launch(&next, &test->fusion, launcher, at, test->tape.tape.op_count);
        }
    }
    return result == DEVICE_OK ? compare_outputs(right, test, launcher) : result;
}

/* Rewritten and launched as the machine would do it. */
static enum device_result run_fused(bool *right, struct selftest *test, struct launcher *launcher)
{
    const struct fusion_facts facts = {.disabled = launcher->disabled,
                                       .shared_max = launcher->shared_max};
    struct tape rewritten = test->tape.tape;
    enum device_result result;
    uint8_t *lists = NULL;
    void *block = NULL;
    struct error ignored;

    error_init(&ignored);
    if (fuse_tape(&test->fusion, &test->tape.tape, &facts, &ignored) != STATUS_OK) {
        return DEVICE_NO_MEMORY;
    }
    find_needed(test);
    rewritten.ops = test->fusion.ops;
    result = place_tensors(&block, &lists, test, launcher);
    launcher->tape = &rewritten;
    if (result == DEVICE_OK &&
        fuse_upload(&result, &test->fusion, launcher, lists, &ignored) != STATUS_OK) {
        result = DEVICE_NO_MEMORY;
    }
    if (result == DEVICE_OK) {
        result = run_tape(right, test, launcher);
    }
    if (block != NULL) {
        launcher->calls->release(launcher->device, block);
    }
    fusion_release(&test->fusion);
    launcher->tape = NULL;
    return result;
}

static enum device_result run_part(bool *right, const struct launcher *device_launcher,
                                   selftest_build *build, uint32_t part)
{
    /* A copy: it points into the test, which ends here. */
    struct launcher launcher = *device_launcher;
    struct selftest *test = calloc(1, sizeof(*test));
    enum device_result result = DEVICE_NO_MEMORY;

    *right = false;
    if (test == NULL) {
        return result;
    }
    selftest_init(&test->tape);
    build(&test->tape, part);
    launcher.processors = test->tape.splits ? 64 : 1;
    if (run_rules(test)) {
        result = run_fused(right, test, &launcher);
    }
    for (uint32_t id = 0; id < test->tape.tape.tensor_count; id++) {
        free(test->host[id]);
    }
    free(test);
    return result;
}

/* ---- one variant ----------------------------------------------------------------------- */

/* All parts, with everything else disabled. */
static enum device_result run_parts(bool *right, const struct launcher *device_launcher,
                                    enum kernel_variant variant, uint32_t allowed)
{
    const struct launch_variant tested = find_variant(variant);
    struct launcher launcher = *device_launcher;

    launcher.disabled = ~allowed;
    for (uint32_t part = 0; part < tested.parts && *right; part++) {
        DEVICE_TRY(run_part(right, &launcher, tested.build, part));
    }
    return DEVICE_OK;
}

enum device_result selftest_variant(bool *right, const struct launcher *device_launcher,
                                    enum kernel_variant variant)
{
    const uint32_t free_ones = ~device_launcher->disabled;
    const uint32_t own = 1u << variant;

    *right = true;
    if (variant < CONTRACT_VARIANTS) {
        return run_parts(right, device_launcher, variant, own);
    }
    if (variant != VARIANT_EPILOGUE) {
        return run_parts(right, device_launcher, variant, own | 1u << VARIANT_PLAIN);
    }
    /* What follows products is tested behind each kernel that makes them. */
    for (uint32_t product = 0; product < CONTRACT_VARIANTS && *right; product++) {
        if ((free_ones >> product & 1) != 0) {
            DEVICE_TRY(run_parts(right, device_launcher, variant,
                                 own | 1u << product | 1u << VARIANT_PLAIN |
                                     (free_ones & 1u << VARIANT_HELD)));
        }
    }
    return DEVICE_OK;
}

/* ---- by bytes or by halves --------------------------------------------------------------- */

#define UNITS_ROUNDS 2 /* the first also brings the kernel to the device */
#define UNITS_ROWS   128
#define UNITS_K_MAX  4096

/* A product that fills a device, of zeros, and its memory. */
struct units_product {
    struct selftest_tape tape;
    void *memory[SELFTEST_TENSORS_MAX];
    const struct op *op;
    void *block;
};

static enum device_result give_memory(struct units_product *product, struct launcher *launcher)
{
    const struct op *op = product->op;
    const uint64_t out = product->tape.tensors[op->outputs[0]].count * sizeof(float);
    uint64_t size = packed_round_up(out, PACKED_ALIGNMENT);

    for (uint32_t at = 0; at < 2; at++) {
        const struct op *quantize = &product->tape.ops[at];

        size += launch_output_size(quantize, 2, product->tape.tensors, true);
    }
    const uint64_t all = size + launch_scratch_size(op, product->tape.tensors, true);

    DEVICE_TRY(launcher->calls->allocate(launcher->device, &product->block, all));
    uint8_t *at = product->block;

    product->memory[op->outputs[0]] = at;
    at += packed_round_up(out, PACKED_ALIGNMENT);
    for (uint32_t i = 0; i < 2; i++) {
        const struct op *quantize = &product->tape.ops[i];

        product->memory[quantize->outputs[2]] = at;
        product->memory[quantize->outputs[1]] = at; /* nobody reads exponents of packed ones */
        at += launch_output_size(quantize, 2, product->tape.tensors, true);
    }
    launcher->scratch = at;
    launcher->tape = &product->tape.tape;
    launcher->memory = product->memory;
    return launcher->calls->fill(launcher->device, product->block, 0, all);
}

/* The least of some rounds. */
static enum device_result time_product(double *least, const struct launcher *launcher,
                                       const struct units_product *product)
{
    const struct device_calls *calls = launcher->calls;

    for (uint32_t round = 0; round < UNITS_ROUNDS; round++) {
        double seconds = 0.0;

        DEVICE_TRY(calls->mark(launcher->device, 0));
        DEVICE_TRY(
            launch_contract(launcher, product->op, product->memory[product->op->outputs[0]], NULL));
        DEVICE_TRY(calls->mark(launcher->device, 1));
        DEVICE_TRY(calls->seconds(launcher->device, &seconds, 0, 1));
        *least = round == 0 || seconds < *least ? seconds : *least;
    }
    return DEVICE_OK;
}

static enum device_result time_both(struct unit_times *times, struct launcher *launcher,
                                    struct units_product *product)
{
    const struct contraction_shape shape = contraction_shape_of(product->op);
    const uint32_t disabled = launcher->disabled;
    enum device_result result;

    launcher->disabled = disabled | 1u << VARIANT_HALF;
    const bool bytes = contract_variant_of(launcher, &shape) != VARIANT_PLAIN;

    if (!bytes || (disabled >> VARIANT_HALF & 1) != 0) {
        return DEVICE_OK; /* there is no choice */
    }
    result = give_memory(product, launcher);
    if (result == DEVICE_OK) {
        result = time_product(&times->bytes, launcher, product);
    }
    launcher->disabled = disabled | 1u << VARIANT_WGMMA | 1u << VARIANT_MMA;
    if (result == DEVICE_OK) {
        result = time_product(&times->halves, launcher, product);
    }
    launcher->disabled = disabled;
    return result;
}

/* The device's multiprocessors have a tile each, and a little more. */
static enum device_result time_width(struct unit_times *times, struct launcher *launcher, int bits)
{
    const int64_t processors = launcher->processors < 1 ? 1 : launcher->processors;
    const int64_t k = processors * 32 < UNITS_K_MAX ? (processors + 1) / 2 * 64 : UNITS_K_MAX;
    struct units_product *product = calloc(1, sizeof(*product));
    enum device_result result;
    int64_t side = 1;

    if (product == NULL) {
        return DEVICE_NO_MEMORY;
    }
    while (side * side < processors) {
        side++;
    }
    const int64_t rows = side * UNITS_ROWS;
    const int64_t sizes[3] = {1, rows, rows};

    selftest_init(&product->tape);
    const struct op *a = selftest_quantize(
        &product->tape, selftest_give_rows(&product->tape, rows, k), 1, rows, k, bits, 128, true);
    const struct op *b = selftest_quantize(
        &product->tape, selftest_give_rows(&product->tape, rows, k), 1, rows, k, bits, 128, true);

    product->op = selftest_contract(&product->tape, a, b, sizes, k, false);
    result = time_both(times, launcher, product);
    if (product->block != NULL) {
        launcher->calls->release(launcher->device, product->block);
    }
    free(product);
    return result;
}

enum device_result selftest_units(struct unit_times times[2], const struct device_calls *calls,
                                  struct device *device, const struct device_facts *facts,
                                  uint32_t disabled)
{
    struct launcher launcher = {.calls = calls,
                                .device = device,
                                .block_count = 64,
                                .capability = facts->capability,
                                .processors = (uint32_t)facts->multiprocessors,
                                .shared_max = facts->shared_max,
                                .disabled = disabled | ~selftest_offered(facts),
                                .gives_up = true,
                                .packed = true};

    times[0] = times[1] = (struct unit_times){.bytes = 0.0};
    DEVICE_TRY(time_width(&times[0], &launcher, 14));
    return time_width(&times[1], &launcher, 16);
}

uint32_t selftest_quicker(const struct unit_times times[2])
{
    return (times[0].halves < times[0].bytes ? QUICKER_NARROW : 0) |
           (times[1].halves < times[1].bytes ? QUICKER_WIDE : 0);
}

/* ---- on an open device ------------------------------------------------------------------ */

uint32_t selftest_offered(const struct device_facts *facts)
{
    const uint32_t all = (1u << VARIANT_COUNT) - 1;

    return facts->capability == HOPPER_CAPABILITY ? all : all & ~(1u << VARIANT_WGMMA);
}

/* A kernel that does not start harms nothing but its own variant. Without the plain one, all
 * end. */
static enum device_result forgive_variant(enum device_result result,
                                          const struct launcher *launcher,
                                          enum kernel_variant variant)
{
    return result == DEVICE_OK || result == DEVICE_NO_MEMORY || variant == VARIANT_PLAIN
               ? result
               : launcher->calls->wait(launcher->device);
}

enum device_result selftest_try(bool *right, const struct device_calls *calls,
                                struct device *device, const struct device_facts *facts,
                                enum kernel_variant variant, uint32_t disabled)
{
    const struct launcher launcher = {.calls = calls,
                                      .device = device,
                                      .block_count = 64,
                                      .capability = facts->capability,
                                      .shared_max = facts->shared_max,
                                      .disabled = disabled | ~selftest_offered(facts),
                                      .gives_up = true,
                                      .packed = true};

    *right = false;
    return forgive_variant(selftest_variant(right, &launcher, variant), &launcher, variant);
}
