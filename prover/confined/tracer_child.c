/* tracer_child.c - see tracer_child.h. */
#include "prover/confined/tracer_child.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proofs/dispute/fraud_proof.h"
#include "proofs/dispute/ledger_query.h"
#include "prover/confined/confined_child.h"
#include "prover/confined/tracer.h"
#include "prover/train/traced_step.h"

/* Of the machine's memory: the states before the step, and what one operation touches. */
#define QUARTERS 8

struct tracer_child {
    struct confined_child base;
    struct traced_step traced;
    uint64_t steps_run;
    uint8_t query[TRACER_QUERY_MAX];
    uint8_t reply[TRACER_REPLY_MAX];
};

_Static_assert(TRACE_REPLY_BYTES_MAX <= TRACER_REPLY_MAX, "every reply fits");

/* ---- its life ------------------------------------------------------------------------- */

/* It holds nothing that would be lost, so it ends in the middle of a step. */
static void *end_with_command(void *context)
{
    struct pollfd watched = {.fd = CONFINED_CHILD_SOCKET};

    (void)context;
    while ((watched.revents & (POLLHUP | POLLERR)) == 0) {
        (void)poll(&watched, 1, -1);
    }
    _exit(0);
}

/* A stop is for the command: it may have answers to give before it ends. The thread that started
 * this process may end before the command does, so its end is no sign. */
static enum status watch_command(struct error *error)
{
    pthread_t thread;

    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    if (pthread_create(&thread, NULL, end_with_command, NULL) != 0) {
        return error_set(error, STATUS_NO_MEMORY, "no thread to look after the command");
    }
    (void)pthread_detach(thread);
    return STATUS_OK;
}

/* ---- the step ------------------------------------------------------------------------- */

static void count_step(void *context, uint64_t step)
{
    struct tracer_child *child = context;

    (void)step;
    child->steps_run++;
}

static enum status run_step(struct tracer_child *child, struct error *error)
{
    const struct confined_plan *plan = &child->base.plan;
    const struct replay_options replay = {
        .threads = plan->machine.thread_count, .progress = count_step, .progress_context = child};
    uint64_t count = 0;

    TRY(watch_command(error));
    TRY(traced_step_open(&child->traced, plan->folder, plan->has_key ? &plan->key : NULL,
                         plan->step, error));
    TRY(bundle_step_count(&count, child->traced.bundle, error));
    if (plan->step >= count) {
        return error_set(error, STATUS_NOT_FOUND, "step %" PRIu64 " was not run yet", plan->step);
    }
    return traced_step_run(&child->traced, child->base.paths, plan->data_count, &plan->machine,
                           &replay, error);
}

/* ---- replies ---------------------------------------------------------------------------- */

/* A peer's query. STATUS_NOT_FOUND: replies that need the ledger are not given to it. */
static enum status reply_to_peer(size_t *size, struct tracer_child *child, uint32_t query_size,
                                 struct error *error)
{
    struct trace_query query;

    if (trace_query_read(&query, child->query, query_size) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "bytes that are no trace query");
    }
    TRY(trace_query_check(&query, child->traced.run.job->tape, error));
    if (query.kind == TRACE_QUERY_DIVERGED || query.kind == TRACE_QUERY_PARTS) {
        return error_set(error, STATUS_NOT_FOUND, "this query is answered on the ledger only");
    }
    return trace_server_answer(child->reply, size, &child->traced.server, &query, error);
}

static enum status reply_on_ledger(size_t *size, struct tracer_child *child, uint32_t query_size,
                                   struct error *error)
{
    struct ledger_queried queried;
    struct evidence_given given;
    struct buffer reply;
    enum status status;

    if (ledger_queried_read(&queried, child->query, query_size) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger has a query that this program cannot read");
    }
    run_given(&given, &child->traced.run);
    buffer_init(&reply, sizeof(child->reply));
    TRY_OUT(fraud_proof_reply(&reply, &child->traced.server, &given, &queried.query,
                              &queried.parts.range, error));
    memcpy(child->reply, reply.data, reply.size);
    *size = reply.size;
out:
    buffer_release(&reply);
    return status;
}

static void say_reply(struct tracer_child *child, const struct confined_message *asked)
{
    struct confined_message message = {.kind = CONFINED_REPLY};
    struct error error;
    size_t size = 0;

    error_init(&error);
    error.status = asked->kind == CONFINED_ASK ? reply_to_peer(&size, child, asked->size, &error)
                                               : reply_on_ledger(&size, child, asked->size, &error);
    confined_wire_put_error(&message, &error);
    message.size = error.status == STATUS_OK ? (uint32_t)size : 0;
    confined_child_say(&message, child->reply);
}

/* Until the command hangs up, or says what it never says. */
static void reply_to_all(struct tracer_child *child)
{
    struct confined_message asked;

    while (confined_wire_read(CONFINED_CHILD_SOCKET, &asked, sizeof(asked)) &&
           (asked.kind == CONFINED_ASK || asked.kind == CONFINED_ASK_LEDGER) &&
           asked.size <= sizeof(child->query) &&
           confined_wire_read(CONFINED_CHILD_SOCKET, child->query, asked.size)) {
        say_reply(child, &asked);
    }
}

static enum status trace_all(struct tracer_child *child)
{
    struct confined_message message = {.kind = CONFINED_TRACED};
    struct error error;

    error_init(&error);
    error.status = run_step(child, &error);
    if (error.status != STATUS_OK) {
        message.kind = CONFINED_DONE;
        confined_wire_put_error(&message, &error);
        confined_child_say(&message, NULL);
        return error.status;
    }
    message.numbers[0] = child->steps_run;
    message.root = child->traced.server.trace.root;
    confined_child_say(&message, NULL);
    reply_to_all(child);
    return STATUS_OK;
}

int tracer_child_serve(void)
{
    struct tracer_child *child = calloc(1, sizeof(*child));
    enum status status = STATUS_NO_MEMORY;

    if (child != NULL && confined_child_begin(&child->base)) {
        confined_child_confine(&child->base.plan, child->base.paths, QUARTERS);
        status = trace_all(child);
        traced_step_close(&child->traced);
    }
    if (child != NULL) {
        confined_child_end(&child->base);
    }
    free(child);
    return status == STATUS_OK ? 0 : 1;
}
