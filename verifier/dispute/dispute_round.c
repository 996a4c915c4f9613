/* dispute_round.c - see dispute_round.h. */
#include "verifier/dispute/dispute_round.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "verifier/dispute/dispute_next.h"

#define NEVER_MS ((uint64_t)INT64_MAX)

enum {
    AGAIN_S = 2, /* until a timeout or a lapse that was refused is tried again */
};

struct carrying {
    const struct dispute_ports *ports;
    bool *busy;
};

/* ---- what the ledger says ------------------------------------------------------ */

/* A reply about the list of a micro-batch commits the accused to its root. */
static enum status keep_batch_root(const struct dispute_ports *ports,
                                   const struct game_event *event, struct error *error)
{
    struct file_bytes bytes = {0};
    struct ledger_queried queried;
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    struct trace_reply reply;
    enum status status;

    TRY(dispute_folder(folder, ports->cache, &event->claim, error));
    TRY(file_path_join(path, sizeof(path), error, folder, DISPUTE_FILE_QUERIED));
    status = file_read(&bytes, error, path, LEDGER_QUERIED_SIZE_MAX);
    if (status == STATUS_OK && ledger_queried_read(&queried, bytes.data, bytes.size) == STATUS_OK &&
        queried.target.is_unknown &&
        trace_reply_check(&reply, &queried.target, event->payload.bytes, event->payload.size) ==
            VERDICT_VALID) {
        status = dispute_keep(ports->cache, &event->claim, DISPUTE_FILE_BATCH, reply.root.bytes,
                              DIGEST_SIZE, error);
    }
    file_bytes_release(&bytes);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status dispute_hear(const struct dispute_ports *ports, const struct ledger_entry *entry,
                         struct error *error)
{
    const struct game_event *event = &entry->event;

    if (entry->kind != LEDGER_EVENT) {
        return STATUS_OK;
    }
    if (event->kind == GAME_QUERIED) {
        return dispute_keep(ports->cache, &event->claim, DISPUTE_FILE_QUERIED, event->payload.bytes,
                            event->payload.size, error);
    }
    if (event->kind == GAME_REPLIED) {
        TRY(keep_batch_root(ports, event, error));
        return dispute_keep(ports->cache, &event->claim, DISPUTE_FILE_REPLY, event->payload.bytes,
                            event->payload.size, error);
    }
    if (event->kind == GAME_RULED) { /* it is large, and over */
        dispute_drop(ports->cache, &event->claim, DISPUTE_FILE_TRACE);
    }
    return STATUS_OK;
}

/* ---- reading a dispute back ------------------------------------------------------ */

/* The moves that were made in this turn. */
static enum status find_attempts(const struct dispute_ports *ports, struct dispute *dispute,
                                 struct error *error)
{
    struct action last;
    enum dispute_reaction reaction;
    enum status status = action_of_turn(ports->store, &last, &dispute->attempt, &dispute->claim,
                                        dispute->turn, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    TRY(status);
    dispute->under_way = true;
    if (last.state == ACTION_REFUSED && dispute->attempt < DISPUTE_ATTEMPTS_MAX) {
        reaction = dispute_reaction(last.refusal);
        dispute->under_way = reaction != DISPUTE_REMAKE && reaction != DISPUTE_OTHERWISE;
        TRY(action_count_acquitted(ports->store, &dispute->acquitted, &dispute->claim,
                                   dispute->turn, error));
    }
    return STATUS_OK;
}

static enum status read_dispute(const struct dispute_ports *ports, struct dispute *dispute,
                                const struct store_dispute *claim, struct error *error)
{
    memset(dispute, 0, sizeof(*dispute));
    dispute->claim = claim->key;
    dispute->step = claim->step;
    dispute->trace_root = claim->trace_root;
    dispute->turn = claim->state.turns;
    dispute->ours = dispute_is_ours_to_move(ports, claim);
    dispute->follows = dispute_is_followed(ports, claim);
    dispute->late = claim->state.deadline_s > 0 && ports->time_s > claim->state.deadline_s;
    dispute->overtaken = claim->overtaken;
    dispute->move_max = ports->move_max;
    if ((!dispute->ours && !dispute->follows) || dispute->late || dispute->overtaken) {
        return STATUS_OK;
    }
    TRY(dispute_folder(dispute->folder, ports->cache, &claim->key, error));
    if (ports->is_running(ports->context, &claim->key)) {
        dispute->under_way = true;
        return STATUS_OK;
    }
    return dispute->ours ? find_attempts(ports, dispute, error) : STATUS_OK;
}

/* ---- doing what comes next --------------------------------------------------------- */

/* Ends a claim; an attempt that came too early, or was reorganized away, is tried again. */
static enum status plan_end(const struct dispute_ports *ports, enum action_kind kind,
                            const struct store_dispute *claim, uint64_t due_s, struct error *error)
{
    struct action action = {
        .kind = kind, .claim = claim->key, .due_s = due_s, .late_s = GAME_TIME_MAX};
    struct action before;
    enum status status;

    action_name(action.name, kind, &claim->key);
    if (kind == ACTION_TIMEOUT) { /* of this turn: another may run out later */
        size_t size = strlen(action.name);

        (void)snprintf(action.name + size, sizeof(action.name) - size, "/%u", claim->state.turns);
    }
    status = action_find(ports->store, &before, action.name, error);
    if (status == STATUS_NOT_FOUND) {
        return action_plan(ports->store, &action, error);
    }
    TRY(status);
    return before.state == ACTION_REFUSED || before.state == ACTION_OVERTAKEN
               ? action_set(ports->store, &before, ACTION_PLANNED, ports->time_s + AGAIN_S, "",
                            error)
               : STATUS_OK;
}

/* Starts the child that finds the move. Without a free one the next round tries again. */
static enum status start_child(const struct dispute_ports *ports, const struct dispute *dispute,
                               const struct store_segment *segment, struct error *error)
{
    struct store_retry retry;
    struct error unsaved;
    enum status status;

    error_init(&unsaved);
    TRY(store_retry(ports->store, &retry, &dispute->claim, error));
    /* No pause is that long: the clock was set back since. */
    if (retry.next_ms > ports->now_ms && retry.next_ms - ports->now_ms <= QUEUE_WAIT_MS_MAX) {
        return STATUS_OK;
    }
    if (dispute_save(dispute, &unsaved) != STATUS_OK) {
        return dispute_failed(ports, &dispute->claim, unsaved.text, error);
    }
    status = ports->run_step(ports->context, dispute, segment, error);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/*
 * A claim of ours was false, which no machine that can be believed makes. The dispute remembers
 * that it was said, since the database may be lost before the claim is: a user who has looked into
 * the fault need not do so again.
 */
static enum status admit_fault(const struct dispute_ports *ports, const struct dispute *dispute,
                               struct error *error)
{
    static const char why[] = "a claim was made, and the accused is right in all that it made of"
                              " the step";
    char path[FILE_PATH_MAX];

    TRY(dispute_path(path, dispute, DISPUTE_FILE_ADMITTED, error));
    if (file_exists(path)) {
        return STATUS_OK;
    }
    TRY(ports->find_fault(ports->context, why, error));
    return dispute_keep(ports->cache, &dispute->claim, DISPUTE_FILE_ADMITTED, why, sizeof(why) - 1,
                        error);
}

/* Says once that a turn of ours passed unused. */
static enum status note_missed(const struct dispute_ports *ports, const struct store_dispute *claim,
                               struct error *error)
{
    static const char why[] = "our clock ran out without a move: our bond is lost";
    char place[STORE_PLACE_TEXT];
    struct store_retry retry;

    TRY(store_retry(ports->store, &retry, &claim->key, error));
    if (retry.next_ms == NEVER_MS) {
        return STATUS_OK;
    }
    store_place_text(place, &claim->job, claim->index);
    log_error(ports->log, "verifier", "%s: %s", place, why);
    retry.next_ms = NEVER_MS;
    return store_set_retry(ports->store, &claim->key, &retry, why, error);
}

static enum status carry_dispute(void *context, const void *row, struct error *error)
{
    const struct carrying *carrying = context;
    const struct dispute_ports *ports = carrying->ports;
    const struct store_dispute *claim = row;
    enum dispute_kind kind = DISPUTE_WAIT;
    struct store_segment segment;
    struct dispute dispute;
    enum status status = store_segment_by_hash(ports->store, &segment, &claim->segment, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK; /* reorganized away; the event log will tell */
    }
    TRY(status);
    TRY(read_dispute(ports, &dispute, claim, error));
    *carrying->busy = *carrying->busy || ports->is_running(ports->context, &claim->key);
    TRY(dispute_next(&kind, NULL, &dispute, NULL, error));
    switch (kind) {
    case DISPUTE_WAIT:
        return STATUS_OK;
    case DISPUTE_QUERY:
    case DISPUTE_EVIDENCE:
        return dispute_plan(ports, claim, kind, &dispute, error);
    case DISPUTE_NO_FAULT:
        return admit_fault(ports, &dispute, error);
    case DISPUTE_RUN:
        return start_child(ports, &dispute, &segment, error);
    case DISPUTE_TIMEOUT:
        return plan_end(ports, ACTION_TIMEOUT, claim, claim->state.deadline_s, error);
    case DISPUTE_LAPSE:
        return plan_end(ports, ACTION_LAPSE, claim, 0, error);
    case DISPUTE_MISSED:
        break;
    }
    return note_missed(ports, claim, error);
}

enum status dispute_round(const struct dispute_ports *ports, bool *busy, struct error *error)
{
    struct carrying carrying = {ports, busy};

    return store_visit(ports->store, STORE_DISPUTES,
                       "d.ours = 1 AND d.phase <> :claim_closed ORDER BY d.deadline_s",
                       carry_dispute, &carrying, error);
}

/* ---- what a child says ------------------------------------------------------------- */

enum status dispute_take(const struct dispute_ports *ports, const struct hash32 *claim,
                         const struct check_result *result, struct error *error)
{
    char place[STORE_PLACE_TEXT] = "a dispute";
    char why[STORE_REASON_MAX];
    struct store_dispute standing;

    if (result->outcome == CHECK_PROVEN) {
        return store_end_retry(ports->store, claim, error);
    }
    if (store_dispute(ports->store, &standing, claim, error) == STATUS_OK) {
        store_place_text(place, &standing.job, standing.index);
    }
    (void)snprintf(why, sizeof(why), "the next move is not found: %.400s",
                   result->reason[0] == '\0' ? "an earlier step is false" : result->reason);
    log_warn(ports->log, "verifier", "%s: %s", place, why);
    return dispute_failed(ports, claim, why, error);
}
