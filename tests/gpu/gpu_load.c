/*
 * gpu_load.c - the same launches again and again, beside a process that keeps the device busy:
 * what depends on time, order or neighbours differs once in many times, if at all.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proofs/commit/trace.h"
#include "tests/gpu/gpu_check.h"

#define LAUNCHES       1000
#define LAUNCHES_QUICK 4
#define STEPS          100
#define STEPS_QUICK    2

static _Noreturn void be_busy(const struct gpu_check *check)
{
    const int64_t side = check->quick ? 64 : 2048;
    struct tape *tape = gpu_check_linear(side, side, side, PRECISION_DEFAULT);
    struct machine *machine = gpu_check_open(check, tape, false, false);
    struct error error;

    error_init(&error);
    gpu_check_give(&machine, 1, NULL, tape, 8);
    for (;;) {
        gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
        gpu_check_must(gpu_machine_wait(machine, &error), &error);
    }
}

/* Before this process opens a device: a child of one that did could not. */
static pid_t start_load(const struct gpu_check *check)
{
    const pid_t load = fork();

    if (load == 0) {
        be_busy(check);
    }
    return load;
}

/* A load that ended by itself was none: its reason stands in the tally. */
static void end_load(pid_t load)
{
    struct error error;
    int status = 0;

    error_init(&error);
    if (load < 0 || waitpid(load, &status, WNOHANG) != 0) {
        gpu_check_must(error_set(&error, STATUS_DEVICE, "the load beside it did not go on"),
                       &error);
    }
    (void)kill(load, SIGKILL);
    (void)waitpid(load, &status, 0);
}

/* The first result is the processor's; all others have its root. */
static void repeat_product(struct gpu_check *check, enum kernel_variant variant)
{
    const int64_t side = check->quick ? 64 : 1024;
    const int launches = check->quick ? LAUNCHES_QUICK : LAUNCHES;
    struct tape *tape = gpu_check_linear(side, 2 * side, side, PRECISION_DEFAULT);
    const uint32_t out = tape->tensor_count - 1;
    struct machine *machines[2] = {gpu_check_cpu(tape, false, false),
                                   gpu_check_open_barred(check, tape, ~(1u << variant))};
    struct digest roots[2];
    struct error error;
    char what[96];

    error_init(&error);
    gpu_check_give(machines, 2, NULL, tape, 7);
    for (int i = 0; i < 2; i++) {
        gpu_check_must(machines[i]->backend->step(machines[i], NULL, &error), &error);
    }
    gpu_check_compare(check, machines[0], machines[1], "the first launch");
    for (int launch = 0; launch < launches; launch++) {
        struct machine *machine = machines[1];

        gpu_check_must(machine->backend->step(machine, NULL, &error), &error);
        gpu_check_must(machine->backend->leaves_roots(machine, &roots[launch > 0], &out, 1, &error),
                       &error);
        check->tally->comparisons++;
        if (launch > 0 && !digest_equal(&roots[0], &roots[1])) {
            (void)snprintf(what, sizeof(what), "launch %d of %s", launch + 1,
                           selftest_name(variant));
            gpu_check_differs(check, what);
        }
    }
    machines[0]->backend->close(machines[0]);
    machines[1]->backend->close(machines[1]);
    tape_free(tape);
}

/* Two machines on the device, step by step. */
static void repeat_steps(struct gpu_check *check)
{
    const int steps = check->quick ? STEPS_QUICK : STEPS;
    struct machine *machines[2];
    struct model_options options;
    struct model model;
    struct error error;

    error_init(&error);
    model_options_default(&options, MODEL_GPT2);
    options.width = check->quick ? 16 : options.width;
    options.layers = check->quick ? 1 : options.layers;
    options.heads = check->quick ? 2 : options.heads;
    options.length = check->quick ? 8 : options.length;
    options.steps = 200;
    options.data_count = 5000;
    options.data_dtype = DTYPE_U8;
    gpu_check_must(model_build(&model, &options, &error), &error);
    for (int i = 0; i < 2; i++) {
        machines[i] = gpu_check_open(check, model.tape, false, false);
    }
    gpu_check_give(machines, 2, &model, model.tape, 6);
    for (int step = 0; step < steps; step++) {
        struct digest roots[2];

        for (int i = 0; i < 2; i++) {
            gpu_check_must(machines[i]->backend->step(machines[i], NULL, &error), &error);
            gpu_check_must(state_root_of(&roots[i], machines[i], &error), &error);
        }
        check->tally->comparisons++;
        if (!digest_equal(&roots[0], &roots[1])) {
            gpu_check_differs(check, "a step of two machines");
        }
    }
    machines[0]->backend->close(machines[0]);
    machines[1]->backend->close(machines[1]);
    model_release(&model);
}

void gpu_check_load(struct gpu_check *check, int kind)
{
    const pid_t load = start_load(check);

    if (kind == VARIANT_COUNT) {
        repeat_steps(check);
    } else {
        repeat_product(check, (enum kernel_variant)kind);
    }
    end_load(load);
}
