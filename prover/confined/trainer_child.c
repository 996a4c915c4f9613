/* trainer_child.c - see trainer_child.h. */
#include "prover/confined/trainer_child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/io/spawn.h"
#include "engine/ranks/rank_step.h"
#include "proofs/run/step_time.h"
#include "prover/confined/confined_child.h"
#include "prover/ranks/ranks_agree.h"
#include "prover/ranks/ranks_machine.h"
#include "prover/ranks/ranks_mpi.h"
#include "prover/ranks/ranks_team.h"
#include "prover/train/gpu_meter.h"
#include "prover/train/train.h"

#define MEASURE_S 1.0
#define QUARTERS  1 /* of the machine's memory: what it takes beside the machine */

struct trainer_child {
    struct confined_child base;
    struct bundle *bundle;
    struct run run;
    struct stop stop;
    struct gpu_meter meter;
    struct ranks_team team;         /* where ranks train together */
    struct ranks_machine_plan plan; /* likewise */
    uint64_t steps;
    uint64_t final; /* segments, as the command said last */
};

/* ---- what it says ----------------------------------------------------------------------- */

static enum status keep_signature(struct trainer_child *child,
                                  const struct confined_message *message, struct error *error)
{
    uint8_t signature[BUNDLE_SIGNATURE_MAX];

    if (message->size > sizeof(signature)) {
        return error_set(error, STATUS_BAD_FORMAT, "a signature of too many bytes");
    }
    if (!confined_wire_read(CONFINED_CHILD_SOCKET, signature, message->size)) {
        return error_set(error, STATUS_STOPPED, "the command has ended");
    }
    return bundle_segment_sign(child->bundle, message->numbers[0], signature, message->size, error);
}

/* Until the command says that the training goes on. */
static enum status wait_for_go(struct trainer_child *child, struct error *error)
{
    struct confined_message message;

    while (confined_wire_read(CONFINED_CHILD_SOCKET, &message, sizeof(message))) {
        if (message.kind == CONFINED_GO) {
            child->final = message.numbers[0];
            return STATUS_OK;
        }
        if (message.kind == CONFINED_STOP) {
            child->stop.signal = SIGTERM;
        } else if (message.kind == CONFINED_SIGN) {
            TRY(keep_signature(child, &message, error));
        }
    }
    return error_set(error, STATUS_STOPPED, "the command has ended");
}

static void say_step(void *context, const struct bundle_step *step)
{
    struct trainer_child *child = context;
    struct confined_message message;

    child->steps = step->step + 1;
    gpu_meter_step(&child->meter, step, NULL); /* notes it; the command logs it */
    confined_wire_put_step(&message, step);
    confined_child_say(&message, NULL);
}

static enum status say_segment(void *context, struct error *error)
{
    const struct confined_message message = {.kind = CONFINED_SEGMENT};
    struct trainer_child *child = context;

    TRY(bundle_flush(child->bundle, error)); /* on disk before it is signed and posted */
    confined_child_say(&message, NULL);
    return wait_for_go(child, error);
}

/* The end and start of each segment that is not final, and the newest, from where it goes on. */
static uint64_t keep_least(void *context)
{
    const struct trainer_child *child = context;
    uint64_t segments = child->steps / bundle_job(child->bundle)->segment_length + 1;

    return segments - (child->final < segments ? child->final : segments) + 2;
}

static void say_text(enum confined_kind kind, uint64_t number, const char *text)
{
    struct confined_message message = {.kind = (uint32_t)kind, .numbers = {number}};

    (void)snprintf(message.text, sizeof(message.text), "%s", text);
    confined_child_say(&message, NULL);
}

static void say_retry(void *context, uint64_t step, const char *why)
{
    (void)context;
    say_text(CONFINED_RETRY, step, why);
}

/* Not all ranks see where checkpoints lie. */
static void say_alone(void *context, const char *why)
{
    (void)context;
    say_text(CONFINED_ALONE, 0, why);
}

static void say_done(struct trainer_child *child, const struct train_result *result,
                     const struct error *error)
{
    struct confined_message message = {
        .kind = CONFINED_DONE,
        .numbers = {result->first, result->steps, result->retries, result->diverged ? 1 : 0}};
    const char *why = NULL;
    uint32_t damaged = child->bundle == NULL ? 0 : bundle_damaged(child->bundle, &why);

    if (damaged > 0) {
        say_text(CONFINED_DAMAGED, damaged, why);
    }
    confined_wire_put_error(&message, error);
    confined_child_say(&message, NULL);
}

/* ---- what it does ------------------------------------------------------------------------- */

static bool has_ranks(const struct trainer_child *child)
{
    return child->base.plan.ranks > 1;
}

/* The other ranks come before this process is confined: it makes no connection later. */
static enum status meet_ranks(struct trainer_child *child, struct error *error)
{
    const struct ranks_place place = {.rank_count = child->base.plan.ranks,
                                      .mpi = child->base.plan.mpi};
    const char *secret;
    enum status status;

    if (!has_ranks(child)) {
        return STATUS_OK;
    }
    if (place.mpi != RANKS_MPI_NONE) {
        return ranks_mpi_open(&child->team, &place, error);
    }
    TRY(ranks_place_secret(&secret, &place, error));
    TRY(ranks_tcp_open(&child->team, 0, place.rank_count, error));
    status = ranks_meet_all(&child->team, SPAWN_FURTHER, secret, CONFINED_CHILD_SOCKET, error);
    (void)close(SPAWN_FURTHER); /* nobody calls later */
    return status;
}

/* The machine of all ranks, or the one of this process. */
static enum status open_run(struct trainer_child *child, struct error *error)
{
    const struct confined_plan *plan = &child->base.plan;
    const struct job *job = bundle_job(child->bundle);
    struct machine_options options = plan->machine;
    enum status status;

    if (has_ranks(child)) {
        child->plan = (struct ranks_machine_plan){.team = &child->team,
                                                  .job = job->id,
                                                  .cross_check = plan->cross_check,
                                                  .own = plan->machine,
                                                  .tell = say_alone};
        options = ranks_machine_options(&child->plan);
    }
    status = run_open(&child->run, job, child->base.paths, plan->data_count, &options, error);
    return status != STATUS_OK && has_ranks(child) && !child->team.agreed
               ? ranks_agree(&child->team, &job->id, status, error)
               : status;
}

/* "cpu avx512, 1 thread, 4 ranks"; "6 ranks (2 spare)" where 2 have no group of micro-batches. */
static enum status describe_machine(char *text, size_t size, const struct trainer_child *child,
                                    struct error *error)
{
    const uint32_t ranks = child->base.plan.ranks;
    struct rank_wire wire;
    size_t used;

    run_describe(text, size, &child->base.plan.machine);
    used = strlen(text);
    if (!has_ranks(child)) {
        return STATUS_OK;
    }
    TRY(rank_step_wire(&wire, bundle_job(child->bundle)->tape, ranks, error));
    if (wire.spare == 0) {
        (void)snprintf(text + used, size - used, ", %u ranks", ranks);
    } else {
        (void)snprintf(text + used, size - used, ", %u ranks (%u spare)", ranks, wire.spare);
    }
    return STATUS_OK;
}

static enum status open_all(struct trainer_child *child, struct error *error)
{
    const struct confined_plan *plan = &child->base.plan;
    char device[BUNDLE_DEVICE_MAX];

    TRY(stop_open_word(&child->stop, CONFINED_CHILD_SOCKET, error));
    TRY(bundle_open(&child->bundle, plan->folder, BUNDLE_WRITE, error));
    if (plan->has_key) {
        TRY(bundle_unlock(child->bundle, &plan->key, error));
    }
    TRY(open_run(child, error));
    TRY(describe_machine(device, sizeof(device), child, error));
    return bundle_set_device(child->bundle, device, error);
}

/* A machine that cannot be measured says nothing of its pace. */
static void say_ready(struct trainer_child *child)
{
    struct confined_message message = {.kind = CONFINED_READY};
    struct step_time time;
    struct error none;

    error_init(&none);
    if (child->base.plan.measures &&
        step_time_of_run(&time, &child->run, MEASURE_S, &none) == STATUS_OK) {
        message.numbers[0] = (uint64_t)((time.seconds + time.hashing) * 1e9);
    }
    confined_child_say(&message, NULL);
}

static enum status train_all(struct train_result *result, struct trainer_child *child,
                             struct error *error)
{
    const struct confined_plan *plan = &child->base.plan;
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
    options.gpu = gpu_meter_open(&child->meter, &plan->machine,
                                 bundle_job(child->bundle)->segment_length, child->bundle, NULL);
    return train(result, child->bundle, &child->run, &options, error);
}

int trainer_child_serve(void)
{
    struct trainer_child *child = calloc(1, sizeof(*child));
    struct train_result result = {0};
    struct error error;
    enum status status = STATUS_NO_MEMORY;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    error_init(&error);
    if (child != NULL && confined_child_begin(&child->base)) {
        child->stop.descriptor = -1;
        status = meet_ranks(child, &error);
        confined_child_confine(&child->base.plan, child->base.paths, QUARTERS);
        status = status == STATUS_OK ? train_all(&result, child, &error) : status;
        error.status = status;
        say_done(child, &result, &error);
        gpu_meter_close(&child->meter);
        run_close(&child->run);
        ranks_team_close(&child->team);
        bundle_close(child->bundle);
    }
    if (child != NULL) {
        confined_child_end(&child->base);
    }
    free(child);
    return status == STATUS_OK ? 0 : 1;
}
