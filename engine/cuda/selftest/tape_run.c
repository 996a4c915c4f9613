/* tape_run.c - see tape_run.h. */
#include "engine/cuda/selftest/tape_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/launch/launch.h"
#include "engine/ops/kernel.h"

#define TIMED_ROUNDS 5 /* one on a device that is so small that it is none */

struct tape_run {
    struct selftest_tape tape;
    struct fusion fusion;
    bool needed[SELFTEST_TENSORS_MAX]; /* an executed operation reads it, or it is compared */
    uint64_t sizes[SELFTEST_TENSORS_MAX];
    void *host[SELFTEST_TENSORS_MAX];
    void *device[SELFTEST_TENSORS_MAX];
    bool timed;     /* or compared */
    double seconds; /* of the last operation */
    bool right;     /* every shown tensor is what the rules make */
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

static void give_tensor(struct tape_run *run, uint32_t id)
{
    const struct tensor *tensor = &run->tape.tensors[id];
    const uint64_t row = (uint64_t)run->tape.row[id];

    if (run->tape.fills[id] == NULL) {
        fill_tensor(run->host[id], tensor, run->tape.row[id], id + 1);
        return;
    }
    for (uint64_t i = 0; i < tensor->count; i++) {
        ((float *)run->host[id])[i] = run->tape.fills[id](i / row, i % row);
    }
}

static bool run_rules(struct tape_run *run)
{
    for (uint32_t id = 0; id < run->tape.tape.tensor_count; id++) {
        const struct tensor *tensor = &run->tape.tensors[id];

        run->host[id] = malloc(tensor->count * dtype_size(tensor->dtype));
        if (run->host[id] == NULL) {
            return false;
        }
        if (!run->tape.made[id]) {
            give_tensor(run, id);
        }
    }
    for (uint32_t at = 0; at < run->tape.tape.op_count; at++) {
        const struct op *op = &run->tape.ops[at];
        struct kernel_call call = {.op = op, .tensors = run->tape.tensors, .thread_count = 1};

        for (uint32_t i = 0; i < op->input_count; i++) {
            call.inputs[i] = run->host[op->inputs[i]];
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            call.outputs[i] = run->host[op->outputs[i]];
        }
        kernel_run_rules(&call);
    }
    return true;
}

/* Bytes of each tensor on the device. */
static void size_tensors(struct tape_run *run)
{
    for (uint32_t id = 0; id < run->tape.tape.tensor_count; id++) {
        run->sizes[id] = run->tape.tensors[id].count * dtype_size(run->tape.tensors[id].dtype);
    }
    for (uint32_t at = 0; at < run->tape.tape.op_count; at++) {
        const struct op *op = &run->tape.ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            run->sizes[op->outputs[i]] = launch_output_size(op, i, run->tape.tensors, true);
        }
    }
}

/* Device memory for all: tensors, operations, scratch. */
static enum device_result place_tensors(void **block, uint8_t **lists_at, struct tape_run *run,
                                        struct launcher *launcher)
{
    const uint64_t ops_size = packed_round_up(sizeof(run->tape.ops), PACKED_ALIGNMENT);
    uint64_t size = ops_size;
    uint64_t scratch = 0;

    for (uint32_t id = 0; id < run->tape.tape.tensor_count; id++) {
        size += packed_round_up(run->sizes[id], PACKED_ALIGNMENT);
    }
    for (uint32_t at = 0; at < run->tape.tape.op_count; at++) {
        const struct op *ops[2] = {&run->tape.ops[at], &run->fusion.ops[at]};

        for (int i = 0; i < 2; i++) {
            const uint64_t own = launch_scratch_size(ops[i], run->tape.tensors, true);

            scratch = own > scratch ? own : scratch;
        }
    }
    const uint64_t lists = packed_round_up(run->fusion.size, PACKED_ALIGNMENT);
    const enum device_result result =
        launcher->calls->allocate(launcher->device, block, size + lists + scratch);
    uint8_t *at = *block;

    if (result != DEVICE_OK) {
        return result;
    }
    launcher->ops = (const struct op *)at;
    at += ops_size;
    for (uint32_t id = 0; id < run->tape.tape.tensor_count; id++) {
        run->device[id] = at;
        at += packed_round_up(run->sizes[id], PACKED_ALIGNMENT);
    }
    for (uint32_t id = 0; id < run->tape.tape.tensor_count; id++) {
        if (run->fusion.holders[id] != id) {
            run->device[id] =
                (uint8_t *)run->device[run->fusion.holders[id]] + run->fusion.offsets[id];
        }
    }
    *lists_at = at;
    launcher->scratch = at + lists;
    launcher->tape = &run->tape.tape;
    launcher->memory = run->device;
    return launcher->calls->upload(launcher->device, *block, run->fusion.ops,
                                   run->tape.tape.op_count * sizeof(struct op));
}

/* Marks what the rewritten tape needs: operations without a reader are not executed. */
static void find_needed(struct tape_run *run)
{
    for (uint32_t at = run->tape.tape.op_count; at > 0; at--) {
        const struct op *op = &run->fusion.ops[at - 1];
        bool makes = false;

        for (uint32_t i = 0; i < op->output_count; i++) {
            const uint32_t id = op->outputs[i];

            makes = makes || run->needed[run->fusion.holders[id]] ||
                    run->tape.tensors[id].role == ROLE_OUTPUT;
        }
        for (uint32_t i = 0; makes && i < op->input_count; i++) {
            run->needed[run->fusion.holders[op->inputs[i]]] = true;
        }
        if (op->output_count > 0) {
            run->needed[op->outputs[0]] = makes; /* stands for the operation from here on */
        }
    }
}

/* Outputs are filled first, so that a kernel that writes nothing cannot be right by luck. */
static enum device_result give_values(struct tape_run *run, const struct launcher *launcher)
{
    const struct device_calls *calls = launcher->calls;
    enum device_result result = DEVICE_OK;

    for (uint32_t id = 0; id < run->tape.tape.tensor_count && result == DEVICE_OK; id++) {
        result =
            run->tape.made[id]
                ? calls->fill(launcher->device, run->device[id], 0xa5, run->sizes[id])
                : calls->upload(launcher->device, run->device[id], run->host[id], run->sizes[id]);
    }
    return result;
}

static enum device_result compare_outputs(struct tape_run *run, const struct launcher *launcher)
{
    enum device_result result = DEVICE_OK;

    run->right = true;
    for (uint32_t id = 0; id < run->tape.tape.tensor_count && result == DEVICE_OK; id++) {
        void *got;

        if (run->tape.tensors[id].role != ROLE_OUTPUT) {
            continue;
        }
        got = malloc(run->sizes[id]);
        if (got == NULL) {
            return DEVICE_NO_MEMORY;
        }
        result = launcher->calls->download(launcher->device, got, run->device[id], run->sizes[id]);
        run->right =
            run->right && result == DEVICE_OK && memcmp(got, run->host[id], run->sizes[id]) == 0;
        free(got);
    }
    run->right = run->right && result == DEVICE_OK;
    return result;
}

static enum device_result compare_all(struct tape_run *run, struct launcher *launcher)
{
    enum device_result result = give_values(run, launcher);
    uint32_t next;

    for (uint32_t at = 0; at < run->tape.tape.op_count && result == DEVICE_OK; at = next) {
        next = at + 1;
        const struct op *op = &run->fusion.ops[at];

        if (op->output_count > 0 && run->needed[op->outputs[0]]) {
            result = fuse_launch(&next, &run->fusion, launcher, at, run->tape.tape.op_count);
        }
    }
    return result == DEVICE_OK ? compare_outputs(run, launcher) : result;
}

/* The last operation alone, over zeros: the least of some rounds. */
static enum device_result time_last(struct tape_run *run, struct launcher *launcher)
{
    const struct device_calls *calls = launcher->calls;
    const uint32_t last = run->tape.tape.op_count - 1;
    const uint32_t rounds = launcher->processors < TIMED_ROUNDS ? 1 : TIMED_ROUNDS;

    for (uint32_t id = 0; id < run->tape.tape.tensor_count; id++) {
        DEVICE_TRY(calls->fill(launcher->device, run->device[id], 0, run->sizes[id]));
    }
    for (uint32_t round = 0; round < rounds; round++) {
        double seconds = 0.0;
        uint32_t next;

        DEVICE_TRY(calls->mark(launcher->device, 0));
        DEVICE_TRY(fuse_launch(&next, &run->fusion, launcher, last, last + 1));
        DEVICE_TRY(calls->mark(launcher->device, 1));
        DEVICE_TRY(calls->seconds(launcher->device, &seconds, 0, 1));
        run->seconds = round == 0 || seconds < run->seconds ? seconds : run->seconds;
    }
    return DEVICE_OK;
}

/* Rewritten and launched as the machine would do it: compared, or timed. */
static enum device_result run_fused(struct tape_run *run, struct launcher *launcher)
{
    const struct fusion_facts facts = {.disabled = launcher->disabled,
                                       .shared_max = launcher->shared_max};
    struct tape rewritten = run->tape.tape;
    enum device_result result;
    uint8_t *lists = NULL;
    void *block = NULL;
    struct error ignored;

    error_init(&ignored);
    if (fuse_tape(&run->fusion, &run->tape.tape, &facts, &ignored) != STATUS_OK) {
        return DEVICE_NO_MEMORY;
    }
    find_needed(run);
    size_tensors(run);
    rewritten.ops = run->fusion.ops;
    result = place_tensors(&block, &lists, run, launcher);
    launcher->tape = &rewritten;
    if (result == DEVICE_OK &&
        fuse_upload(&result, &run->fusion, launcher, lists, &ignored) != STATUS_OK) {
        result = DEVICE_NO_MEMORY;
    }
    if (result == DEVICE_OK) {
        result = run->timed ? time_last(run, launcher) : compare_all(run, launcher);
    }
    if (block != NULL) {
        launcher->calls->release(launcher->device, block);
    }
    fusion_release(&run->fusion);
    launcher->tape = NULL;
    return result;
}

enum device_result tape_run_compare(bool *right, const struct launcher *device_launcher,
                                    selftest_build *build, uint32_t part)
{
    /* A copy: it points into the run, which ends here. */
    struct launcher launcher = *device_launcher;
    struct tape_run *run = calloc(1, sizeof(*run));
    enum device_result result = DEVICE_NO_MEMORY;

    *right = false;
    if (run == NULL) {
        return result;
    }
    selftest_init(&run->tape);
    build(&run->tape, part);
    launcher.processors = run->tape.splits ? 64 : 1;
    if (run_rules(run)) {
        result = run_fused(run, &launcher);
    }
    *right = run->right;
    for (uint32_t id = 0; id < run->tape.tape.tensor_count; id++) {
        free(run->host[id]);
    }
    free(run);
    return result;
}

enum device_result tape_run_time(double *seconds, const struct launcher *device_launcher,
                                 selftest_timed *build, int bits)
{
    struct launcher launcher = *device_launcher;
    struct tape_run *run = calloc(1, sizeof(*run));
    enum device_result result;

    if (run == NULL) {
        return DEVICE_NO_MEMORY;
    }
    selftest_init(&run->tape);
    build(&run->tape, bits, launcher.processors < 1 ? 1 : launcher.processors);
    run->timed = true;
    result = run_fused(run, &launcher);
    *seconds = run->seconds;
    free(run);
    return result;
}
