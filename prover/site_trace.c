/* site_trace.c - see site_trace.h. */
#include "prover/site_trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "prover/lie.h"

struct site_trace {
    pthread_mutex_t lock;
    struct machine_options machine;
    struct bundle *bundle; /* NULL: nothing is ready */
    struct run run;
    struct teller teller;
    uint64_t step;
};

void site_trace_wish_release(struct site_trace_wish *wish)
{
    free(wish->bundle);
    for (uint32_t i = 0; i < wish->data_count; i++) {
        free(wish->data[i]);
    }
    *wish = (struct site_trace_wish){0};
}

enum status site_trace_open(struct site_trace **trace, const struct machine_options *machine,
                            struct error *error)
{
    struct site_trace *made = calloc(1, sizeof(*made));

    *trace = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to answer asks");
    }
    made->machine = *machine;
    *trace = made;
    return STATUS_OK;
}

static void forget(struct site_trace *trace)
{
    teller_close(&trace->teller);
    memset(&trace->teller, 0, sizeof(trace->teller));
    run_close(&trace->run);
    memset(&trace->run, 0, sizeof(trace->run));
    bundle_close(trace->bundle);
    trace->bundle = NULL;
}

void site_trace_close(struct site_trace *trace)
{
    if (trace != NULL) {
        forget(trace);
        (void)pthread_mutex_destroy(&trace->lock);
        free(trace);
    }
}

static enum status make_ready(struct site_trace *trace, const struct site_trace_wish *wish,
                              struct error *error)
{
    const struct replay_options replay = {.threads = trace->machine.thread_count};
    struct machine_options tracing = trace->machine;
    uint64_t count = 0;
    enum status status;

    if (trace->bundle != NULL && trace->step == wish->step &&
        strcmp(bundle_path(trace->bundle), wish->bundle) == 0) {
        return STATUS_OK;
    }
    forget(trace);
    tracing.trace = true;
    trace->step = wish->step;
    status = bundle_open(&trace->bundle, wish->bundle, BUNDLE_READ, error);
    if (status == STATUS_OK) {
        status = bundle_step_count(&count, trace->bundle, error);
    }
    if (status == STATUS_OK && wish->step >= count) {
        status = error_set(error, STATUS_NOT_FOUND, "step %" PRIu64 " was not run yet", wish->step);
    }
    if (status == STATUS_OK) {
        status = run_open(&trace->run, bundle_job(trace->bundle), (const char *const *)wish->data,
                          wish->data_count, &trace->machine, error);
    }
    if (status == STATUS_OK) {
        status = replay_reach(&trace->run, trace->bundle, wish->step, &replay, error);
    }
    if (status == STATUS_OK) {
        status = run_reopen(&trace->run, &tracing, error);
    }
    if (status == STATUS_OK) {
        status = teller_open(&trace->teller, trace->run.machine, error);
    }
    if (status == STATUS_OK) {
        status = lie_stand_by(&trace->teller, trace->bundle, wish->step, error);
    }
    if (status != STATUS_OK) {
        forget(trace);
    }
    return status;
}

enum status site_trace_answer(struct site_trace *trace, uint8_t **bytes, uint64_t *size,
                              const struct site_trace_wish *wish, struct error *error)
{
    size_t answer_size = 0;
    enum status status;

    *bytes = NULL;
    if (pthread_mutex_trylock(&trace->lock) != 0) {
        return error_set(error, STATUS_OVER_LIMIT, "another ask is being answered");
    }
    status = make_ready(trace, wish, error);
    if (status == STATUS_OK) {
        status = ask_check(&wish->ask, trace->run.job->tape, error);
    }
    if (status == STATUS_OK && (wish->ask.kind == ASK_DIVERGED || wish->ask.kind == ASK_PARTS)) {
        status = error_set(error, STATUS_NOT_FOUND, "this is told on the ledger only");
    }
    if (status == STATUS_OK) {
        *bytes = malloc(TELL_BYTES_MAX);
        status = *bytes == NULL
                     ? error_set(error, STATUS_NO_MEMORY, "no memory for an answer")
                     : teller_answer(*bytes, &answer_size, &trace->teller, &wish->ask, error);
    }
    if (status != STATUS_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    *size = answer_size;
    (void)pthread_mutex_unlock(&trace->lock);
    return status;
}
