/*
 * gpu_kernels.c - where a GPU's time goes, kernel by kernel: each launch of a committed GPT-2 step
 * between two marks. The launches wait for each other then, so that their sum is above the step's
 * own time; what each takes is what it takes alone.
 */
#include <stdlib.h>

#include "proofs/commit/trace.h"
#include "tests/gpu/gpu_check.h"

/* Marks that no machine uses. */
#define MARK_FROM 10
#define MARK_TO   11

#define KERNEL_NAME(number, function, arguments) #function,

static const char *const kernel_names[KERNEL_COUNT] = {KERNEL_LIST(KERNEL_NAME)};

/* Of this section's process: calls have no context of their own. */
static const struct device_calls *untimed;
static double kernel_seconds[KERNEL_COUNT];
static uint32_t kernel_launches[KERNEL_COUNT];

static enum device_result timed_launch(struct device *device, const struct device_launch *launch)
{
    double seconds = 0.0;

    DEVICE_TRY(untimed->mark(device, MARK_FROM));
    DEVICE_TRY(untimed->launch(device, launch));
    DEVICE_TRY(untimed->mark(device, MARK_TO));
    DEVICE_TRY(untimed->seconds(device, &seconds, MARK_FROM, MARK_TO));
    kernel_seconds[launch->kernel] += seconds;
    kernel_launches[launch->kernel]++;
    return DEVICE_OK;
}

/* With it a machine queues launches one by one and records none. */
static void ignore_seconds(void *context, uint32_t op, double seconds)
{
    (void)context;
    (void)op;
    (void)seconds;
}

static void committed_step(struct machine *machine)
{
    struct digest root;
    struct error error;

    error_init(&error);
    gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
    gpu_check_must(state_root_of(&root, machine, &error), &error);
}

/* kind: the batch. */
void gpu_check_kernels(struct gpu_check *check, int kind)
{
    const struct machine_options options = {.timed = ignore_seconds};
    struct device_calls calls = *check->calls;
    const struct cuda_config config = {
        .calls = &calls, .disabled = check->tally->barred, .quicker = check->tally->quicker};
    struct machine *machine = NULL;
    struct model model;
    struct error error;

    untimed = check->calls;
    calls.launch = timed_launch;
    error_init(&error);
    gpu_check_gpt2(&model, check, (uint32_t)kind, 1024, false);
    gpu_check_must(machine_cuda_open(&machine, model.tape, &options, &config, &error), &error);
    gpu_check_give(&machine, 1, &model, model.tape, 9);
    committed_step(machine);
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        kernel_seconds[kernel] = 0.0;
        kernel_launches[kernel] = 0;
    }
    committed_step(machine);
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        char name[96];

        if (kernel_launches[kernel] > 0) {
            (void)snprintf(name, sizeof(name), "    %s, %u launches", kernel_names[kernel],
                           kernel_launches[kernel]);
            gpu_check_number(check, name, 1e3 * kernel_seconds[kernel], "ms");
        }
    }
    machine->backend->close(machine);
    model_release(&model);
}
