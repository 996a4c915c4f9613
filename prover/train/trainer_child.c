/* trainer_child.c - see trainer_child.h. */
#include "prover/train/trainer_child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sandbox/sandbox.h"
#include "proofs/run/step_time.h"
#include "prover/train/gpu_meter.h"
#include "prover/train/train.h"

#define MEASURE_S 1.0
#define SPARE     ((uint64_t)1 << 30) /* beside the tensors: stacks, checkpoints, the journal */

enum {
    SOCKET = STDIN_FILENO,
    FILES_MAX = 1024,
    DATA_MAX = 65536,
};

struct child {
    struct trainer_plan plan;
    char (*data)[FILE_PATH_MAX];
    const char **paths;
    struct bundle *bundle;
    struct run run;
    struct stop stop;
    struct gpu_meter meter;
    uint64_t steps;
    uint64_t final; /* segments, as the command said last */
};

bool trainer_child_asked(int argc, char *const *argv)
{
    return argc == 2 && strcmp(argv[1], TRAINER_WORD) == 0;
}

/* ---- what it may ----------------------------------------------------------------------- */

static void limit_resource(int what, uint64_t value)
{
    struct rlimit now;

    /* A limit that the system has set lower stays. */
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max > value) {
        now.rlim_cur = now.rlim_cur < value ? now.rlim_cur : value;
        now.rlim_max = value;
        (void)setrlimit((__rlimit_resource_t)what, &now);
    }
}

void trainer_child_confine(const struct trainer_plan *plan, const char *const *data)
{
    struct sandbox_plan sandbox = {.network = false};
    const uint64_t memory = plan->machine.memory_max;

    sandbox_forget_passphrases();
    limit_resource(RLIMIT_CORE, 0);
    limit_resource(RLIMIT_NOFILE, FILES_MAX);
    if (plan->on_cuda) { /* the drivers of a GPU want more */
        return;
    }
#ifndef __SANITIZE_ADDRESS__ /* its shadow alone is larger than any limit */
    if (memory != 0 && memory < UINT64_MAX / 2 - SPARE) {
        limit_resource(RLIMIT_DATA, memory + memory / 4 + SPARE);
    }
#else
    (void)memory;
#endif
    for (uint32_t i = 0; i < plan->data_count; i++) {
        sandbox_add_read(&sandbox, data[i]);
    }
    sandbox_add_write(&sandbox, plan->folder);
    sandbox_begin(&sandbox);
}

/* ---- what it says ----------------------------------------------------------------------- */

/* A command that is gone has ended this process, or is about to. */
static void say(const struct trainer_message *message)
{
    (void)trainer_wire_write(SOCKET, message, sizeof(*message));
}

static enum status keep_signature(struct child *child, const struct trainer_message *message,
                                  struct error *error)
{
    return message->numbers[1] > BUNDLE_SIGNATURE_MAX
               ? error_set(error, STATUS_BAD_FORMAT, "a signature of too many bytes")
               : bundle_segment_sign(child->bundle, message->numbers[0],
                                     (const uint8_t *)message->text, (size_t)message->numbers[1],
                                     error);
}

/* Until the command says that the training goes on. */
static enum status wait_for_go(struct child *child, struct error *error)
{
    struct trainer_message message;

    while (trainer_wire_read(SOCKET, &message, sizeof(message))) {
        if (message.kind == TRAINER_GO) {
            child->final = message.numbers[0];
            return STATUS_OK;
        }
        if (message.kind == TRAINER_STOP) {
            child->stop.signal = SIGTERM;
        } else if (message.kind == TRAINER_SIGN) {
            TRY(keep_signature(child, &message, error));
        }
    }
    return error_set(error, STATUS_STOPPED, "the command has ended");
}

static void say_step(void *context, const struct bundle_step *step)
{
    struct child *child = context;
    struct trainer_message message;

    child->steps = step->step + 1;
    gpu_meter_step(&child->meter, step, NULL); /* notes it; the command logs it */
    trainer_wire_put_step(&message, step);
    say(&message);
}

static enum status say_segment(void *context, struct error *error)
{
    const struct trainer_message message = {.kind = TRAINER_SEGMENT};
    struct child *child = context;

    TRY(bundle_flush(child->bundle, error)); /* on disk before it is signed and posted */
    say(&message);
    return wait_for_go(child, error);
}

/* The end and start of each segment that is not final, and the newest, from where it goes on. */
static uint64_t keep_least(void *context)
{
    const struct child *child = context;
    uint64_t segments = child->steps / bundle_job(child->bundle)->segment_length + 1;

    return segments - (child->final < segments ? child->final : segments) + 2;
}

static void say_text(enum trainer_kind kind, uint64_t number, const char *text)
{
    struct trainer_message message = {.kind = (uint32_t)kind, .numbers = {number}};

    (void)snprintf(message.text, sizeof(message.text), "%s", text);
    say(&message);
}

static void say_retry(void *context, uint64_t step, const char *why)
{
    (void)context;
    say_text(TRAINER_RETRY, step, why);
}

static void say_done(struct child *child, const struct train_result *result,
                     const struct error *error)
{
    struct trainer_message message = {
        .kind = TRAINER_DONE,
        .numbers = {result->first, result->steps, result->retries, result->diverged ? 1 : 0}};
    const char *why = NULL;
    uint32_t damaged = child->bundle == NULL ? 0 : bundle_damaged(child->bundle, &why);

    if (damaged > 0) {
        say_text(TRAINER_DAMAGED, damaged, why);
    }
    trainer_wire_put_error(&message, error);
    say(&message);
}

/* ---- what it does ------------------------------------------------------------------------- */

static bool read_plan(struct child *child)
{
    struct trainer_plan *plan = &child->plan;

    if (!trainer_wire_read(SOCKET, plan, sizeof(*plan)) || plan->data_count > DATA_MAX) {
        return false;
    }
    plan->machine.backend = plan->on_cuda ? &backend_cuda : &backend_cpu;
    child->data = calloc((size_t)plan->data_count + 1, sizeof(*child->data));
    child->paths = calloc((size_t)plan->data_count + 1, sizeof(*child->paths));
    if (child->data == NULL || child->paths == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < plan->data_count; i++) {
        if (!trainer_wire_read(SOCKET, child->data[i], FILE_PATH_MAX)) {
            return false;
        }
        child->paths[i] = child->data[i];
    }
    return true;
}

static enum status open_all(struct child *child, struct error *error)
{
    const struct trainer_plan *plan = &child->plan;
    char device[BUNDLE_DEVICE_MAX];

    TRY(stop_open_word(&child->stop, SOCKET, error));
    TRY(bundle_open(&child->bundle, plan->folder, BUNDLE_WRITE, error));
    if (plan->has_key) {
        TRY(bundle_unlock(child->bundle, &plan->key, error));
    }
    TRY(run_open(&child->run, bundle_job(child->bundle), child->paths, plan->data_count,
                 &plan->machine, error));
    run_describe(device, sizeof(device), &child->run.options);
    return bundle_set_device(child->bundle, device, error);
}

/* A machine that cannot be measured says nothing of its pace. */
static void say_ready(struct child *child)
{
    struct trainer_message message = {.kind = TRAINER_READY};
    struct step_time time;
    struct error none;

    error_init(&none);
    if (child->plan.measures &&
        step_time_of_run(&time, &child->run, MEASURE_S, &none) == STATUS_OK) {
        message.numbers[0] = (uint64_t)((time.seconds + time.hashing) * 1e9);
    }
    say(&message);
}

static enum status train_all(struct train_result *result, struct child *child, struct error *error)
{
    const struct trainer_plan *plan = &child->plan;
    struct train_options options = {.keep = plan->keep,
                                    .every = plan->every,
                                    .threads = plan->machine.thread_count,
                                    .energy = true,
                                    .falsify = plan->falsifies ? &plan->falsify : NULL,
                                    .stop = &child->stop,
                                    .progress = say_step,
                                    .progress_context = child,
                                    .segment = say_segment,
                                    .segment_context = child,
                                    .keep_least = plan->keeps_unpaid ? keep_least : NULL,
                                    .keep_context = child,
                                    .retrying = say_retry};

    TRY(open_all(child, error));
    TRY(bundle_step_count(&child->steps, child->bundle, error));
    say_ready(child);
    TRY(wait_for_go(child, error));
    options.gpu = gpu_meter_open(&child->meter, &child->run.options,
                                 bundle_job(child->bundle)->segment_length, child->bundle, NULL);
    return train(result, child->bundle, &child->run, &options, error);
}

int trainer_child_serve(void)
{
    struct child *child = calloc(1, sizeof(*child));
    struct train_result result = {0};
    struct error error;
    enum status status = STATUS_NO_MEMORY;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* what a library prints is no message */
    error_init(&error);
    if (child != NULL && read_plan(child)) {
        child->stop.descriptor = -1;
        trainer_child_confine(&child->plan, child->paths);
        status = train_all(&result, child, &error);
        error.status = status;
        say_done(child, &result, &error);
        gpu_meter_close(&child->meter);
        run_close(&child->run);
        bundle_close(child->bundle);
        encryption_key_wipe(&child->plan.key);
    }
    if (child != NULL) {
        free(child->paths);
        free(child->data);
    }
    free(child);
    return status == STATUS_OK ? 0 : 1;
}
