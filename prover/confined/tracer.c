/* tracer.c - see tracer.h. */
#include "prover/confined/tracer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/run/data_paths.h"
#include "prover/confined/confined.h"

/* One that dies of the step itself, for want of memory, dies every time. */
enum { STARTS_MAX = 3 };

struct tracer {
    struct confined child;
    struct confined_plan plan;
    struct data_paths data;
    bool is_ready;
    struct digest root;
    uint64_t steps_run;
};

/* ---- its life ------------------------------------------------------------------------- */

static enum status start_child(struct tracer *tracer, struct error *error)
{
    tracer->is_ready = false;
    confined_end(&tracer->child);
    return confined_start(&tracer->child, CONFINED_TRACER, "answers", &tracer->plan,
                          (const char *const *)tracer->data.of, tracer->data.count, error);
}

enum status tracer_open(struct tracer **tracer, const struct tracer_step *wanted,
                        struct error *error)
{
    struct tracer *made = calloc(1, sizeof(*made));
    enum status status;

    *tracer = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a process that answers");
    }
    made->child.socket = -1;
    made->plan.machine = *wanted->machine;
    made->plan.machine.trace = false;
    made->plan.step = wanted->step;
    if (wanted->key != NULL) {
        made->plan.key = *wanted->key;
        made->plan.has_key = true;
    }
    (void)snprintf(made->plan.folder, sizeof(made->plan.folder), "%s", wanted->bundle);
    TRY_OUT(data_paths_open(&made->data, wanted->data_count, error));
    for (uint32_t i = 0; i < wanted->data_count; i++) {
        if (wanted->data[i] != NULL) {
            TRY_OUT(data_paths_set(&made->data, i, wanted->data[i], error));
        }
    }
    TRY_OUT(start_child(made, error));
    *tracer = made;
    return STATUS_OK;
out:
    tracer_close(made);
    return status;
}

void tracer_close(struct tracer *tracer)
{
    if (tracer != NULL) {
        confined_end(&tracer->child);
        encryption_key_wipe(&tracer->plan.key);
        data_paths_close(&tracer->data);
        free(tracer);
    }
}

bool tracer_is_of(const struct tracer *tracer, const char *bundle, uint64_t step)
{
    return tracer->plan.step == step && strcmp(tracer->plan.folder, bundle) == 0;
}

/* ---- what is said ----------------------------------------------------------------------- */

/* A question, and where its answer goes. NULL: only that the step is run. */
struct exchange {
    struct confined_message asked;
    const uint8_t *query;
    uint8_t *bytes;
    size_t *size;
};

static enum status nonsense_reply(struct tracer *tracer, bool *died, struct error *error)
{
    *died = false;
    tracer->is_ready = false;
    confined_end(&tracer->child);
    return confined_nonsense(&tracer->child, error);
}

static enum status wait_for_step(struct tracer *tracer, bool *died, struct error *error)
{
    struct confined_message message;
    struct error said;

    TRY(confined_read(&tracer->child, &message, error));
    confined_wire_get_error(&said, &message);
    if (message.kind == CONFINED_DONE && said.status != STATUS_OK) {
        *died = false;
        *error = said;
        return said.status;
    }
    if (message.kind != CONFINED_TRACED) {
        return nonsense_reply(tracer, died, error);
    }
    tracer->is_ready = true;
    tracer->root = message.root;
    tracer->steps_run = message.numbers[0];
    return STATUS_OK;
}

static enum status ask_child(struct tracer *tracer, bool *died, const struct exchange *exchange,
                             struct error *error)
{
    struct confined_message message;
    struct error said;

    if (!tracer->is_ready) {
        TRY(wait_for_step(tracer, died, error));
    }
    if (exchange == NULL) {
        return STATUS_OK;
    }
    confined_tell(&tracer->child, &exchange->asked, exchange->query);
    TRY(confined_read(&tracer->child, &message, error));
    confined_wire_get_error(&said, &message);
    if (message.kind != CONFINED_REPLY || message.size > TRACER_REPLY_MAX ||
        (message.size == 0) == (said.status == STATUS_OK)) {
        return nonsense_reply(tracer, died, error);
    }
    TRY(confined_read_bytes(&tracer->child, exchange->bytes, message.size, error));
    *exchange->size = message.size;
    *died = false;
    if (said.status != STATUS_OK) {
        *error = said;
    }
    return said.status;
}

/* Asks, and asks another child where one was ended from outside. */
static enum status exchange_with(struct tracer *tracer, const struct exchange *exchange,
                                 struct error *error)
{
    for (uint32_t starts = 0;; starts++) {
        bool died = true;
        enum status status;

        if (tracer->child.process == 0) {
            TRY(start_child(tracer, error));
        }
        status = ask_child(tracer, &died, exchange, error);
        if (status == STATUS_OK || !died || starts + 1 == STARTS_MAX) {
            return status;
        }
        error_init(error);
    }
}

enum status tracer_ready(struct tracer *tracer, struct digest *root, uint64_t *steps_run,
                         struct error *error)
{
    TRY(exchange_with(tracer, NULL, error));
    *root = tracer->root;
    *steps_run = tracer->steps_run;
    return STATUS_OK;
}

enum status tracer_ask(struct tracer *tracer, uint8_t *bytes, size_t *size,
                       const struct trace_query *query, struct error *error)
{
    uint8_t written[TRACE_QUERY_SIZE];
    const struct exchange exchange = {.asked = {.kind = CONFINED_ASK, .size = sizeof(written)},
                                      .query = written,
                                      .bytes = bytes,
                                      .size = size};

    trace_query_write(written, query);
    return exchange_with(tracer, &exchange, error);
}

enum status tracer_ask_ledger(struct tracer *tracer, uint8_t *bytes, size_t *size,
                              const uint8_t *queried, uint32_t queried_size, struct error *error)
{
    const struct exchange exchange = {.asked = {.kind = CONFINED_ASK_LEDGER, .size = queried_size},
                                      .query = queried,
                                      .bytes = bytes,
                                      .size = size};

    assert(queried_size <= TRACER_QUERY_MAX);
    return exchange_with(tracer, &exchange, error);
}
