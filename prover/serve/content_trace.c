/* content_trace.c - see content_trace.h. */
#include "prover/serve/content_trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "prover/train/fault_injection.h"

struct content_trace {
    pthread_mutex_t lock;
    struct machine_options machine;
    struct bundle *bundle; /* NULL: nothing is ready */
    struct run run;
    struct trace_server server;
    uint64_t step;
};

void content_trace_request_release(struct content_trace_request *wish)
{
    free(wish->bundle);
    for (uint32_t i = 0; i < wish->data_count; i++) {
        free(wish->data[i]);
    }
    *wish = (struct content_trace_request){0};
}

enum status content_trace_open(struct content_trace **trace, const struct machine_options *machine,
                               struct error *error)
{
    struct content_trace *made = calloc(1, sizeof(*made));

    *trace = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to answer asks");
    }
    made->machine = *machine;
    *trace = made;
    return STATUS_OK;
}

static void forget(struct content_trace *trace)
{
    trace_server_close(&trace->server);
    memset(&trace->server, 0, sizeof(trace->server));
    run_close(&trace->run);
    memset(&trace->run, 0, sizeof(trace->run));
    bundle_close(trace->bundle);
    trace->bundle = NULL;
}

void content_trace_close(struct content_trace *trace)
{
    if (trace != NULL) {
        forget(trace);
        (void)pthread_mutex_destroy(&trace->lock);
        free(trace);
    }
}

static enum status make_ready(struct content_trace *trace, const struct content_trace_request *wish,
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
    TRY_OUT(bundle_open(&trace->bundle, wish->bundle, BUNDLE_READ, error));
    TRY_OUT(bundle_step_count(&count, trace->bundle, error));
    if (wish->step >= count) {
        TRY_OUT(error_set(error, STATUS_NOT_FOUND, "step %" PRIu64 " was not run yet", wish->step));
    }
    TRY_OUT(run_open(&trace->run, bundle_job(trace->bundle), (const char *const *)wish->data,
                     wish->data_count, &trace->machine, error));
    TRY_OUT(replay_reach(&trace->run, trace->bundle, wish->step, &replay, error));
    TRY_OUT(run_reopen(&trace->run, &tracing, error));
    TRY_OUT(trace_server_open(&trace->server, trace->run.machine, error));
    TRY_OUT(fault_injection_stand_by(&trace->server, trace->bundle, wish->step, error));
out:
    if (status != STATUS_OK) {
        forget(trace);
    }
    return status;
}

enum status content_trace_answer(struct content_trace *trace, uint8_t **bytes, uint64_t *size,
                                 const struct content_trace_request *wish, struct error *error)
{
    size_t answer_size = 0;
    enum status status;

    *bytes = NULL;
    if (pthread_mutex_trylock(&trace->lock) != 0) {
        return error_set(error, STATUS_OVER_LIMIT, "another ask is being answered");
    }
    TRY_OUT(make_ready(trace, wish, error));
    TRY_OUT(trace_query_check(&wish->query, trace->run.job->tape, error));
    if ((wish->query.kind == TRACE_QUERY_DIVERGED || wish->query.kind == TRACE_QUERY_PARTS)) {
        TRY_OUT(error_set(error, STATUS_NOT_FOUND, "this is told on the ledger only"));
    }
    *bytes = malloc(TRACE_REPLY_BYTES_MAX);
    TRY_OUT(*bytes == NULL
                ? error_set(error, STATUS_NO_MEMORY, "no memory for an answer")
                : trace_server_answer(*bytes, &answer_size, &trace->server, &wish->query, error));
out:
    if (status != STATUS_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    *size = answer_size;
    (void)pthread_mutex_unlock(&trace->lock);
    return status;
}
