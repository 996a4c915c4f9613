/* content_trace.c - see content_trace.h. */
#include "prover/serve/content_trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "prover/train/traced_step.h"

struct party {
    struct address account;
    bool waits;     /* with one query, or is being answered */
    uint64_t last;  /* the number of its last turn; 0: it had none */
    double share;   /* turns that it may have now, */
    time_t share_s; /* as of this second */
};

struct content_trace {
    pthread_mutex_t lock; /* all but traced, which is the running turn's */
    pthread_cond_t turned;
    struct party parties[CONTENT_TRACE_PARTIES_MAX];
    uint32_t party_count;
    uint64_t turns;
    bool running;
    struct machine_options machine;
    struct traced_step traced;
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
    (void)pthread_mutex_init(&made->lock, NULL); /* neither can fail here */
    (void)pthread_cond_init(&made->turned, NULL);
    made->machine = *machine;
    *trace = made;
    return STATUS_OK;
}

void content_trace_close(struct content_trace *trace)
{
    if (trace != NULL) {
        traced_step_close(&trace->traced);
        (void)pthread_cond_destroy(&trace->turned);
        (void)pthread_mutex_destroy(&trace->lock);
        free(trace);
    }
}

/* ---- turns ---------------------------------------------------------------------- */

/* Where nobody is remembered any more, the one that was idle for longest is forgotten. */
static struct party *place_of(struct content_trace *trace, const struct address *account)
{
    struct party *oldest = NULL;

    for (uint32_t i = 0; i < trace->party_count; i++) {
        struct party *party = &trace->parties[i];

        if (address_equal(&party->account, account)) {
            return party;
        }
        if (!party->waits && (oldest == NULL || party->last < oldest->last)) {
            oldest = party;
        }
    }
    if (trace->party_count < CONTENT_TRACE_PARTIES_MAX) {
        oldest = &trace->parties[trace->party_count++];
    }
    if (oldest != NULL) {
        *oldest = (struct party){.account = *account, .share = CONTENT_TRACE_SHARE};
    }
    return oldest;
}

static bool has_share(struct party *party, time_t now_s)
{
    if (now_s > party->share_s && party->share_s != 0) {
        party->share += CONTENT_TRACE_SHARE_S * (double)(now_s - party->share_s);
    }
    party->share = party->share < CONTENT_TRACE_SHARE ? party->share : CONTENT_TRACE_SHARE;
    party->share_s = now_s;
    return party->share >= 1;
}

static bool is_next(const struct content_trace *trace, const struct party *party)
{
    for (uint32_t i = 0; i < trace->party_count; i++) {
        if (trace->parties[i].waits && trace->parties[i].last < party->last) {
            return false;
        }
    }
    return !trace->running;
}

/* *party: whose turn it is then, until end_turn(). */
static enum status begin_turn(struct content_trace *trace, struct party **party,
                              const struct address *account, struct error *error)
{
    struct timespec end;
    int waited = 0;

    (void)clock_gettime(CLOCK_REALTIME, &end);
    *party = place_of(trace, account);
    if (*party == NULL || (*party)->waits) {
        return error_set(error, STATUS_OVER_LIMIT, "busy with another trace query");
    }
    if (!address_is_zero(account) && !has_share(*party, end.tv_sec)) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "this party has had its share of replies: %d, and %d more each second",
                         CONTENT_TRACE_SHARE, CONTENT_TRACE_SHARE_S);
    }
    end.tv_sec += CONTENT_TRACE_WAIT_S;
    (*party)->waits = true;
    while (!is_next(trace, *party) && waited == 0) {
        waited = pthread_cond_timedwait(&trace->turned, &trace->lock, &end);
    }
    if (!is_next(trace, *party)) {
        (*party)->waits = false;
        return error_set(error, STATUS_OVER_LIMIT, "busy with the trace queries of others");
    }
    trace->running = true;
    (*party)->last = ++trace->turns;
    (*party)->share -= 1;
    return STATUS_OK;
}

static void end_turn(struct content_trace *trace, struct party *party)
{
    trace->running = false;
    party->waits = false;
    (void)pthread_cond_broadcast(&trace->turned);
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

static enum status answer(struct content_trace *trace, uint8_t *bytes, size_t *size,
                          const struct content_trace_request *request, struct error *error)
{
    TRY(make_ready(trace, request, error));
    TRY(check_query(&request->query, trace->traced.run.job->tape, error));
    return trace_server_answer(bytes, size, &trace->traced.server, &request->query, error);
}

enum status content_trace_answer(struct content_trace *trace, uint8_t **bytes, uint64_t *size,
                                 const struct content_trace_request *request, struct error *error)
{
    size_t reply_size = 0;
    struct party *party;
    enum status status;

    *bytes = malloc(TRACE_REPLY_BYTES_MAX);
    if (*bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a reply");
    }
    (void)pthread_mutex_lock(&trace->lock);
    status = begin_turn(trace, &party, &request->party, error);
    if (status == STATUS_OK) {
        (void)pthread_mutex_unlock(&trace->lock);
        status = answer(trace, *bytes, &reply_size, request, error);
        (void)pthread_mutex_lock(&trace->lock);
        end_turn(trace, party);
    }
    (void)pthread_mutex_unlock(&trace->lock);
    if (status != STATUS_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    *size = reply_size;
    return status;
}
