/* content_trace.c - see content_trace.h. */
#include "prover/serve/content_trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "prover/train/traced_step.h"

struct content_trace {
    pthread_mutex_t lock;
    struct machine_options machine;
    struct traced_step traced;
};

void content_trace_request_release(struct content_trace_request *request)
{
    free(request->bundle);
    for (uint32_t i = 0; i < request->data_count; i++) {
        free(request->data[i]);
    }
    *request = (struct content_trace_request){0};
}

enum status content_trace_open(struct content_trace **trace, const struct machine_options *machine,
                               struct error *error)
{
    struct content_trace *made = calloc(1, sizeof(*made));

    *trace = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to answer trace queries");
    }
    made->machine = *machine;
    *trace = made;
    return STATUS_OK;
}

void content_trace_close(struct content_trace *trace)
{
    if (trace != NULL) {
        traced_step_close(&trace->traced);
        (void)pthread_mutex_destroy(&trace->lock);
        free(trace);
    }
}

static enum status make_ready(struct content_trace *trace,
                              const struct content_trace_request *request, struct error *error)
{
    const struct replay_options replay = {.threads = trace->machine.thread_count};
    struct traced_step *traced = &trace->traced;
    uint64_t count = 0;
    enum status status;

    if (traced->bundle != NULL && traced->step == request->step &&
        strcmp(bundle_path(traced->bundle), request->bundle) == 0) {
        return STATUS_OK;
    }
    TRY_OUT(traced_step_open(traced, request->bundle, NULL, request->step, error));
    TRY_OUT(bundle_step_count(&count, traced->bundle, error));
    if (request->step >= count) {
        TRY_OUT(
            error_set(error, STATUS_NOT_FOUND, "step %" PRIu64 " was not run yet", request->step));
    }
    TRY_OUT(traced_step_run(traced, (const char *const *)request->data, request->data_count,
                            &trace->machine, &replay, error));
out:
    if (status != STATUS_OK) {
        traced_step_close(traced);
    }
    return status;
}

/* STATUS_NOT_FOUND: replies that need the ledger are not given here. */
static enum status check_query(const struct trace_query *query, const struct tape *tape,
                               struct error *error)
{
    TRY(trace_query_check(query, tape, error));
    if (query->kind == TRACE_QUERY_DIVERGED || query->kind == TRACE_QUERY_PARTS) {
        return error_set(error, STATUS_NOT_FOUND, "this query is answered on the ledger only");
    }
    return STATUS_OK;
}

enum status content_trace_answer(struct content_trace *trace, uint8_t **bytes, uint64_t *size,
                                 const struct content_trace_request *request, struct error *error)
{
    size_t reply_size = 0;
    enum status status;

    *bytes = NULL;
    if (pthread_mutex_trylock(&trace->lock) != 0) {
        return error_set(error, STATUS_OVER_LIMIT, "busy with another trace query");
    }
    TRY_OUT(make_ready(trace, request, error));
    TRY_OUT(check_query(&request->query, trace->traced.run.job->tape, error));
    *bytes = malloc(TRACE_REPLY_BYTES_MAX);
    if (*bytes == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for a reply"));
    }
    TRY_OUT(
        trace_server_answer(*bytes, &reply_size, &trace->traced.server, &request->query, error));
out:
    if (status != STATUS_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    *size = reply_size;
    (void)pthread_mutex_unlock(&trace->lock);
    return status;
}
