/* content_trace.c - see content_trace.h. */
#include "prover/serve/content_trace.h"

#include <stdlib.h>
#include <string.h>

#include "prover/confined/tracer.h"
#include "prover/serve/ask_turns.h"

struct content_trace {
    struct ask_turns *turns;
    struct machine_options machine;
    struct tracer *tracer; /* whose turn it is may use it; NULL: no step is ready */
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
        tracer_close(trace->tracer);
        ask_turns_close(trace->turns);
        free(trace);
    }
}

/* ---- replies -------------------------------------------------------------------- */

static enum status make_ready(struct content_trace *trace,
                              const struct content_trace_request *request, struct error *error)
{
    const struct tracer_step wanted = {.bundle = request->bundle,
                                       .data = (const char *const *)request->data.of,
                                       .data_count = request->data.count,
                                       .machine = &trace->machine,
                                       .step = request->step};
    uint64_t steps_run;
    struct digest root;
    enum status status;

    if (trace->tracer != NULL && tracer_is_of(trace->tracer, request->bundle, request->step)) {
        return STATUS_OK;
    }
    tracer_close(trace->tracer);
    TRY(tracer_open(&trace->tracer, &wanted, error));
    status = tracer_ready(trace->tracer, &root, &steps_run, error);
    if (status != STATUS_OK) {
        tracer_close(trace->tracer);
        trace->tracer = NULL;
    }
    return status;
}

static enum status answer_query(struct content_trace *trace, uint8_t *bytes, size_t *size,
                                const struct content_trace_request *request, struct error *error)
{
    TRY(make_ready(trace, request, error));
    return tracer_ask(trace->tracer, bytes, size, &request->query, error);
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

    *bytes = malloc(TRACER_REPLY_MAX);
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
