/* node_checks.c - see node_checks.h. */
#include "verifier/node/node_checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/hex.h"
#include "verifier/node/node_children.h"
#include "verifier/node/node_claims.h"
#include "verifier/node/node_disputes.h"
#include "verifier/store/keep.h"
#include "verifier/store/mirrors.h"

enum {
    RETRY_MS = 1000,
};

#define RESUME_MS  30000               /* what is computed since is lost with a child */
#define LINE_BYTES ((uint64_t)1 << 20) /* less does not measure a line */

/* ---- requests ---------------------------------------------------------------- */

/* STATUS_NOT_FOUND: what the task is about does not stand on the ledger (any more). */
static enum status make_request(struct node *node, struct check_request **made,
                                const struct task *task, struct error *error)
{
    struct store_segment segment;

    *made = NULL;
    if (task->kind == TASK_TRIAL) {
        struct store_job job;

        TRY(store_job(node->ports.store, &job, &task->job, error));
        return node_trial_request(node, made, &job, error);
    }
    TRY(store_segment_by_hash(node->ports.store, &segment, &task->segment, error));
    if (!digest_equal(&segment.previous, &task->previous)) {
        return STATUS_NOT_FOUND;
    }
    TRY(node_request(node, made, &segment, error));
    (*made)->states = task->kind == TASK_FETCH;
    (*made)->seed = task->seed;
    (*made)->proven = task->proven;
    (*made)->resume_ms = RESUME_MS;
    (*made)->keep_max = node->ports.keep == NULL ? 0 : keep_wants(node->ports.keep, *made);
    return STATUS_OK;
}

static enum status skip_task(struct node *node, const struct task *task, const char *why,
                             struct error *error)
{
    struct check_result *result = calloc(1, sizeof(*result));
    enum status status;

    if (result == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a result");
    }
    (void)snprintf(result->reason, sizeof(result->reason), "%s", why);
    status = queue_finish(node->ports.store, task, result, TASK_SKIPPED, node->now_ms, 0, error);
    free(result);
    return status;
}

static enum status start_one(struct node *node, const struct task *task, struct error *error)
{
    struct check_request *request = NULL;
    enum status status = make_request(node, &request, task, error);

    if (status == STATUS_NOT_FOUND) {
        free(request);
        return skip_task(node, task, "it does not stand on the ledger any more", error);
    }
    TRY_OUT(status);
    TRY_OUT(store_begin(node->ports.store, error));
    status = queue_begin(node->ports.store, task, node->now_ms, error);
    if (status == STATUS_OK) { /* without a free child the task is not begun */
        status = node_start(node, task->number, NULL, request, error);
        request = NULL;
    }
    status = store_end(node->ports.store, status, error);
out:
    free(request);
    return status;
}

enum status node_start_checks(struct node *node, bool *busy, struct error *error)
{
    uint32_t most = node->options.checks_max;
    uint32_t of_job = most > 1 ? most - 1 : 1; /* one job never has all the places */
    enum status status = STATUS_OK;

    while (status == STATUS_OK && !node->fault && !node->options.by_hand &&
           node->running_count < most + NODE_PLACES_BESIDE - 1) {
        struct task task;

        TRY_OUT(queue_next(node->ports.store, &task, node->now_ms, of_job,
                           node->running_count >= most, error));
        TRY_OUT(start_one(node, &task, error));
        *busy = true;
    }
out:
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- results ---------------------------------------------------------------- */

/* A child that read hostile bytes may say anything. */
static bool is_an_answer(const struct check_request *request, const struct check_result *result)
{
    const struct check_segment *segment = node_segment_of(request, result);

    if (request->states || request->trial) {
        return result->outcome == CHECK_CANNOT_TELL ||
               (result->outcome == CHECK_PROVEN && (request->states || result->steps_run > 0));
    }

    return result->outcome != CHECK_REFUTED ||
           (segment != NULL && result->step < segment->steps &&
            digest_equal(&result->post_state, &segment->states[result->step]));
}

/* The segment is right: no verdict against that follows. */
static enum status vouch_segment(struct node *node, const struct task *task,
                                 const struct check_result *result, const char **why,
                                 struct error *error)
{
    struct store_segment segment;
    struct verdict_db_entry entry;
    enum status status;

    if (node->options.mode == NODE_OBSERVE) {
        return STATUS_OK;
    }
    status = store_segment_by_hash(node->ports.store, &segment, &task->segment, error);
    if (status == STATUS_NOT_FOUND) {
        *why = "the segment does not stand on the ledger any more";
        return STATUS_OK;
    }
    TRY(status);
    entry = node_entry(node, &segment, &result->before);
    entry.verdict = GAME_VERDICT_RIGHT;
    status = verdict_db_enter(node->ports.verdicts, &entry, error);
    if (status == STATUS_REFUSED) {
        log_error(node->ports.log, "verifier", "%s", error->text);
        *why = "the verdict database contradicts";
        return STATUS_OK;
    }
    return status;
}

/* Two replays disagree: this machine signs nothing until somebody has looked. */
static enum status stop_signing(struct node *node, const struct check_result *result,
                                struct error *error)
{
    char truth[HEX_SIZE(DIGEST_SIZE)];
    char other[HEX_SIZE(DIGEST_SIZE)];
    char text[STORE_REASON_MAX];

    hex_encode(truth, result->true_state.bytes, DIGEST_SIZE);
    hex_encode(other, result->other_state.bytes, DIGEST_SIZE);
    (void)snprintf(text, sizeof(text), "%.250s (%.16s... and %.16s...)", result->reason, truth,
                   other);
    return node_fault(node, text, error);
}

static enum status count_result(struct node *node, const struct task *task,
                                const struct check_result *result, struct error *error)
{
    static const char *const done[TASK_KINDS] = {
        [TASK_CHECK] = "proven", [TASK_FETCH] = "its states are here", [TASK_TRIAL] = "tried"};
    char place[STORE_PLACE_TEXT];
    char name[64];

    if (task->kind == TASK_TRIAL) {
        store_job_text(place, &task->job);
    } else {
        store_place_text(place, &task->job, task->index);
    }
    log_write(node->ports.log, result->outcome == CHECK_PROVEN ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
              "verifier", "%s: %s%s%s", place,
              result->outcome == CHECK_PROVEN ? done[task->kind]
                                              : check_outcome_name(result->outcome),
              result->reason[0] == '\0' ? "" : ": ", result->reason);
    if (result->note[0] != '\0') {
        log_write(node->ports.log, LOG_LEVEL_INFO, "verifier", "%s: %s", place, result->note);
    }
    if (task->kind != TASK_CHECK) {
        return STATUS_OK;
    }
    (void)snprintf(name, sizeof(name), "checks.%s", check_outcome_name(result->outcome));
    TRY(store_count(node->ports.store, name, 1, error));
    TRY(store_count(node->ports.store, "steps", (int64_t)result->steps_run, error));
    return store_count(node->ports.store, "compute_ns", (int64_t)result->compute_ns, error);
}

/* How fast this machine's line is: by the fastest of the states that came. */
static enum status measure_line(struct node *node, const struct task *task,
                                struct check_result *result, struct error *error)
{
    struct store_segment segment;
    uint64_t bytes = 0;
    int64_t best = 0;
    enum status status;

    for (uint32_t i = 0; i < result->mirror_count; i++) {
        bytes += result->mirrors[i].bytes;
    }
    TRY(store_number(node->ports.store, &best, "line_bytes_s", error));
    if (bytes >= LINE_BYTES && result->fetch_ns > 0 &&
        (double)bytes * 1e9 / (double)result->fetch_ns > (double)best) {
        best = (int64_t)((double)bytes * 1e9 / (double)result->fetch_ns);
        TRY(store_set_number(node->ports.store, "line_bytes_s", best, error));
    }
    status = store_segment_by_hash(node->ports.store, &segment, &task->segment, error);
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    /* What comes too slowly by a line that is slow itself is not the solver's fault. */
    result->line_works = result->line_works && (best == 0 || result->wanted_bytes / (uint64_t)best <
                                                                 segment.terms.seal_period_s / 2);
    return STATUS_OK;
}

/* What follows from a result. The verdict database has a verdict before the store does: a crash in
 * between makes the check run again, to the same verdict. */
static enum status conclude_check(struct node *node, const struct task *task,
                                  const struct check_request *request, struct check_result *result,
                                  struct error *error)
{
    struct store *store = node->ports.store;
    const char *why = NULL;
    enum status status = STATUS_OK;

    if (result->has_header) {
        TRY(store_set_header(store, &task->job, result->header, error));
    }
    if (task->kind == TASK_FETCH) {
        TRY(measure_line(node, task, result, error));
    }
    switch (result->outcome) {
    case CHECK_PROVEN:
        status =
            task->kind == TASK_CHECK ? vouch_segment(node, task, result, &why, error) : STATUS_OK;
        break;
    case CHECK_REFUTED:
        status = node_accuse(node, task, request, result, &why, error);
        break;
    case CHECK_FAULT:
        status = stop_signing(node, result, error);
        break;
    case CHECK_CANNOT_TELL:
        return queue_finish(
            store, task, result, result->permanent ? TASK_SKIPPED : TASK_WAITING, node->now_ms,
            node->now_ms + backoff_pause(RETRY_MS, QUEUE_WAIT_MS_MAX, task->attempts), error);
    }
    if (why != NULL) {
        (void)snprintf(result->reason, sizeof(result->reason), "%s", why);
    }
    return status == STATUS_OK
               ? queue_finish(store, task, result, TASK_DONE, node->now_ms, 0, error)
               : status;
}

static enum status take_answer(struct node *node, struct node_running *place,
                               struct check_result *result, struct error *error)
{
    struct task task;
    enum status status;

    TRY(queue_get(node->ports.store, &task, place->number, error));
    TRY(store_begin(node->ports.store, error));
    if (!is_an_answer(place->request, result)) {
        result->outcome = CHECK_CANNOT_TELL;
        (void)snprintf(result->reason, sizeof(result->reason),
                       "the check's answer is about something that was not asked");
    }
    TRY_OUT(count_result(node, &task, result, error));
    TRY_OUT(mirrors_note(node->ports.store, place->request, result, node->now_ms, node->ports.log,
                         error));
    if (node->ports.keep != NULL) {
        keep_take(node->ports.keep, node->ports.store, place->request, result, node->now_ms / 1000,
                  node->ports.log);
    }
    status = conclude_check(node, &task, place->request, result, error);
out:
    return store_end(node->ports.store, status, error);
}

/* A result that a full disk cannot take stays in memory: the next round tries again. */
static enum status keep_answer(struct node *node, struct node_running *place, struct error *error)
{
    struct check_result *result = malloc(sizeof(*result)); /* the store may get another reason */
    enum status status;

    if (result == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a result");
    }
    *result = *place->result;
    status = place->disputing ? node_take_move(node, place, result, error)
                              : take_answer(node, place, result, error);
    free(result);
    if (status == STATUS_OK) {
        free(place->request);
        free(place->result);
        *place = (struct node_running){0};
        node->running_count--;
    }
    return status;
}

enum status node_take_answers(struct node *node, bool *busy, struct error *error)
{
    enum status status = node_collect(node, error);

    for (uint32_t i = 0; i < WORKERS_MAX && status == STATUS_OK; i++) {
        if (node->running[i].result != NULL) {
            *busy = true;
            status = keep_answer(node, &node->running[i], error);
        }
    }
    return status;
}
