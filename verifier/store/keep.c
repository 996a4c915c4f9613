/* keep.c - see keep.h. */
#include "verifier/store/keep.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hex.h"
#include "verifier/check/check_keep.h"

/* ---- what a state is worth -------------------------------------------------- */

#define LAST_KEPT_S (14 * 86400) /* how long the last state of a closed job is kept */

enum worth {
    WORTH_NOTHING, /* its jobs ended long ago, or nobody knows them */
    WORTH_PASSED,  /* a later end is final */
    WORTH_NEXT,    /* not final yet: the next segment begins with it */
    WORTH_FINAL,   /* the last end that is final; of a closed job it is the model */
};

struct ranking {
    struct store *store;
    uint64_t now_s;
    struct kept_state *state;
};

/* One id may be in several jobs of the ledger: the one that needs the state most counts. */
static enum status rank_job(void *context, const void *row, struct error *error)
{
    const struct ranking *ranking = context;
    const struct store_job *job = row;
    struct kept_state *state = ranking->state;
    uint64_t final = (uint64_t)job->state.finalized * job->terms.segment_steps;
    uint32_t worth;

    final = final < job->terms.steps ? final : job->terms.steps;
    (void)error;
    worth = job->state.phase == GAME_PHASE_CLOSED && ranking->now_s > job->closed_s + LAST_KEPT_S
                ? WORTH_NOTHING
            : state->step == final                  ? WORTH_FINAL
            : job->state.phase == GAME_PHASE_CLOSED ? WORTH_NOTHING
            : state->step < final                   ? WORTH_PASSED
                                                    : WORTH_NEXT;
    state->rank = worth > state->rank ? worth : state->rank;
    return STATUS_OK;
}

static enum status rank_state(void *context, struct kept_state *state, struct error *error)
{
    struct ranking ranking = *(const struct ranking *)context;
    char id[HEX_SIZE(DIGEST_SIZE)];
    char where[HEX_SIZE(DIGEST_SIZE) + 16];

    ranking.state = state;
    hex_encode(id, state->job.bytes, DIGEST_SIZE);
    (void)snprintf(where, sizeof(where), "j.id = x'%s'", id);
    return store_visit(ranking.store, STORE_JOBS, where, rank_job, &ranking, error);
}

enum status keep_sweep(const struct keep *keep, struct store *store, uint64_t now_s,
                       struct error *error)
{
    struct ranking ranking = {.store = store, .now_s = now_s};
    char text[STORE_REASON_MAX];
    const char *url;
    uint32_t count = 0;
    uint64_t size = 0;

    if (keep->folder == NULL) {
        return store_set_text(store, "keeps", "nothing", error);
    }
    url = kept_url(keep->folder);
    TRY(kept_bound(keep->folder, &count, &size, keep->bytes_max, rank_state, &ranking, error));
    (void)snprintf(text, sizeof(text), "%" PRIu32 " states, %.1f of %.1f MB%s%.150s", count,
                   (double)size / 1e6, (double)keep->bytes_max / 1e6,
                   url[0] == '\0' ? "; not served" : ", served at ", url);
    return store_set_text(store, "keeps", text, error);
}

/* ---- keeping ---------------------------------------------------------------- */

enum status keep_open(struct keep *keep, const char *folder, const char *place, uint64_t bytes_max,
                      struct error *error)
{
    keep->bytes_max = bytes_max;
    return kept_open(&keep->folder, folder, place, error);
}

void keep_close(struct keep *keep)
{
    kept_close(keep->folder);
    *keep = (struct keep){0};
}

/* The steps before which the states stand that the segment begins and ends with. */
static uint64_t start_of(const struct check_request *request)
{
    return (uint64_t)request->index * request->segment_steps;
}

static uint64_t end_of(const struct check_request *request)
{
    return start_of(request) + request->segments[request->segment_count - 1].steps;
}

uint64_t keep_wants(const struct keep *keep, const struct check_request *request)
{
    return keep->folder == NULL || (kept_has(keep->folder, &request->job_id, end_of(request)) &&
                                    (!request->states ||
                                     kept_has(keep->folder, &request->job_id, start_of(request))))
               ? 0
               : keep->bytes_max;
}

static enum status take_part(const struct keep *keep, const struct check_request *request,
                             const struct digest *root, uint64_t step, enum kept_part part,
                             struct error *error)
{
    char from[FILE_PATH_MAX];
    char to[FILE_PATH_MAX];

    TRY(check_keep_path(from, request->cache, root, part, error));
    TRY(kept_path(to, keep->folder, &request->job_id, step, part, error));
    return rename(from, to) == 0 ? STATUS_OK : error_set_errno(error, "cannot keep %s", to);
}

/* The state appears last: who finds it finds the rest. */
static void take_state(const struct keep *keep, const struct check_request *request,
                       const struct digest *root, uint64_t step, const struct log *log)
{
    struct error why;
    enum status status;

    error_init(&why);
    if (kept_has(keep->folder, &request->job_id, step)) { /* another child has left it, too */
        return;
    }
    TRY_OUT(take_part(keep, request, root, step, KEPT_JOB, &why));
    TRY_OUT(take_part(keep, request, root, step, KEPT_PIECES, &why));
    TRY_OUT(take_part(keep, request, root, step, KEPT_STATE, &why));
out:
    if (status != STATUS_OK) {
        log_warn(log, "verifier", "the state before step %" PRIu64 " is not kept: %s", step,
                 why.text);
    }
}

void keep_take(const struct keep *keep, struct store *store, const struct check_request *request,
               const struct check_result *result, uint64_t now_s, const struct log *log)
{
    struct error why;

    error_init(&why);
    if (keep->folder == NULL || request->keep_max == 0 || request->trial ||
        (result->outcome != CHECK_PROVEN && !request->states)) {
        return;
    }
    if (result->keep_trouble[0] != '\0') {
        log_warn(log, "verifier", "the state before step %" PRIu64 " is not kept: %s",
                 end_of(request), result->keep_trouble);
    }
    if (result->kept_start && request->states) {
        take_state(keep, request, &result->before, start_of(request), log);
    }
    if (result->kept) {
        take_state(keep, request, check_keep_root(request), end_of(request), log);
    }
    if ((result->kept || result->kept_start) && keep_sweep(keep, store, now_s, &why) != STATUS_OK) {
        log_warn(log, "verifier", "what is kept was not looked through: %s", why.text);
    }
}
