/* content_trace.c - see content_trace.h. */
#include "prover/serve/content_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "prover/serve/ask_turns.h"
#include "prover/train/traced_step.h"

struct content_trace {
    struct ask_turns *turns;
    struct machine_options machine;
    struct traced_step traced; /* whose turn it is may use it */
};

void content_trace_request_release(struct content_trace_request *request)
{
    free(request->bundle);
    data_paths_close(&request->data);
    *request = (struct content_trace_request){0};
}

enum status content_trace_open(struct content_trace **trace, const struct machine_options *machine,
                               struct error *error)
{
    struct content_trace *made = calloc(1, sizeof(*made));

    *trace = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to answer trace queries");
    }
    made->machine = *machine;
    if (ask_turns_open(&made->turns, error) != STATUS_OK) {
        free(made);
        return error->status;
    }
    *trace = made;
    return STATUS_OK;
}

void content_trace_close(struct content_trace *trace)
{
    if (trace != NULL) {
        traced_step_close(&trace->traced);
        ask_turns_close(trace->turns);
        free(trace);
    }
}

/* ---- replies -------------------------------------------------------------------- */

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
    TRY_OUT(traced_step_run(traced, (const char *const *)request->data.of, request->data.count,
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

static enum status answer_query(struct content_trace *trace, uint8_t *bytes, size_t *size,
                                const struct content_trace_request *request, struct error *error)
{
    TRY(make_ready(trace, request, error));
    TRY(check_query(&request->query, trace->traced.run.job->tape, error));
    return trace_server_answer(bytes, size, &trace->traced.server, &request->query, error);
}

static enum status answer_in_turn(struct content_trace *trace, uint8_t *bytes, size_t *size,
                                  const struct content_trace_request *request, struct error *error)
{
    struct ask_turns_party *party;
    enum status status;

    TRY(ask_turns_enter(trace->turns, &party, &request->party, error));
    TRY(ask_turns_wait(trace->turns, party, CONTENT_TRACE_WAIT_S, error));
    status = answer_query(trace, bytes, size, request, error);
    ask_turns_leave(trace->turns, party);
    return status;
}

enum status content_trace_answer(struct content_trace *trace, uint8_t **bytes, uint64_t *size,
                                 const struct content_trace_request *request, struct error *error)
{
    size_t reply_size = 0;
    enum status status;

    *bytes = malloc(TRACE_REPLY_BYTES_MAX);
    if (*bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a reply");
    }
    status = answer_in_turn(trace, *bytes, &reply_size, request, error);
    if (status != STATUS_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    *size = reply_size;
    return status;
}
