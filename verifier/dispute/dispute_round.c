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

enum status dispute_hear(const struct dispute_ports *ports, const struct ledger_entry *entry,
                         struct error *error)
{
    const struct game_event *event = &entry->event;

    if (entry->kind != LEDGER_EVENT) {
        return STATUS_OK;
    }
    if (event->kind == GAME_REPLIED) {
        return dispute_keep(ports->cache, &event->claim, DISPUTE_FILE_REPLY, event->payload.bytes,
                            event->payload.size, error);
    }
    if (event->kind == GAME_RULED || event->kind == GAME_LAPSED) { /* it is large, and over */
        dispute_drop(ports->cache, &event->claim, DISPUTE_FILE_TRACE);
    }
    return STATUS_OK;
}

/* ---- reading a dispute back ------------------------------------------------------ */

/* Was the accused convicted by somebody else's claim? */
static enum status find_moot(const struct dispute_ports *ports, bool *moot,
                             const struct store_claim *claim, const struct store_segment *segment,
                             struct error *error)
{
    struct store_reveal reveal;
    enum status status;

    *moot = segment->is_void;
    if (*moot || address_is_zero(&claim->attestor)) {
        return STATUS_OK;
    }
    status = store_reveal(ports->store, &reveal, &claim->segment, &claim->attestor, error);
    *moot = status == STATUS_OK && !reveal.stands;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The trace root that the accused stands by. */
static enum status find_root(const struct dispute_ports *ports, struct dispute *dispute,
                             const struct store_claim *claim, const struct ledger_claim *standing,
                             struct error *error)
{
    struct store_reveal reveal;

    dispute->trace_root = standing->trace_root;
    if (dispute->against_attestor) {
        enum status status =
            store_reveal(ports->store, &reveal, &claim->segment, &claim->attestor, error);

        if (status == STATUS_NOT_FOUND) { /* reorganized away */
            dispute->under_way = true;
            return STATUS_OK;
        }
        TRY(status);
        dispute->trace_root = reveal.root;
    }
    return STATUS_OK;
}

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
        dispute->under_way = reaction != DISPUTE_ANEW && reaction != DISPUTE_OTHERWISE;
        TRY(action_count_acquitted(ports->store, &dispute->acquitted, &dispute->claim,
                                   dispute->turn, error));
    }
    return STATUS_OK;
}

/* Our own turn, in time. The ledger may know more than the store; then the next round knows too. */
static enum status read_turn(const struct dispute_ports *ports, struct dispute *dispute,
                             uint64_t *deadline_s, const struct store_claim *claim,
                             struct error *error)
{
    enum game_turn ours = claim->accused ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT;
    struct ledger_claim standing;
    struct error why;

    error_init(&why);
    dispute->under_way = true;
    if (ledger_get_claim(ports->ledger, &standing, &claim->key, &why) != STATUS_OK ||
        standing.phase != GAME_CLAIM_TRIED || standing.turn != ours ||
        ports->time_s > standing.deadline_s || ports->is_running(ports->context, &claim->key)) {
        return STATUS_OK;
    }
    dispute->under_way = false;
    dispute->turn = standing.turns;
    *deadline_s = standing.deadline_s;
    TRY(find_attempts(ports, dispute, error));
    TRY(find_root(ports, dispute, claim, &standing, error));
    return dispute_folder(dispute->folder, ports->cache, &claim->key, error);
}

static enum status read_dispute(const struct dispute_ports *ports, struct dispute *dispute,
                                uint64_t *deadline_s, const struct store_claim *claim,
                                const struct store_segment *segment, struct error *error)
{
    memset(dispute, 0, sizeof(*dispute));
    dispute->claim = claim->key;
    dispute->answering = claim->accused;
    dispute->against_attestor = !address_is_zero(&claim->attestor);
    dispute->step = claim->step;
    dispute->ours = claim->turn == (claim->accused ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT);
    dispute->late = ports->time_s > claim->deadline_s;
    dispute->move_max = ports->move_max;
    if (claim->accused) {
        memcpy(dispute->queried, claim->queried, claim->queried_size);
        dispute->queried_size = (uint32_t)claim->queried_size;
    }
    TRY(find_moot(ports, &dispute->moot, claim, segment, error));
    return dispute->ours && !dispute->late && !dispute->moot
               ? read_turn(ports, dispute, deadline_s, claim, error)
               : STATUS_OK;
}

/* ---- doing what comes next --------------------------------------------------------- */

/* Ends a claim; an attempt that came too early, or was reorganized away, is tried again. */
static enum status plan_end(const struct dispute_ports *ports, enum action_kind kind,
                            const struct store_claim *claim, uint64_t due_s, struct error *error)
{
    struct action action = {
        .kind = kind, .claim = claim->key, .due_s = due_s, .late_s = GAME_TIME_MAX};
    struct action before;
    enum status status;

    action_name(action.name, kind, &claim->key);
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
 * that it was said, since the database may be lost before the claim is: whoever has looked into the
 * fault need not do so again.
 */
static enum status admit(const struct dispute_ports *ports, const struct dispute *dispute,
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
static enum status note_missed(const struct dispute_ports *ports, const struct store_claim *claim,
                               struct error *error)
{
    static const char why[] = "our turn passed without a move: the claim is lost";
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

static enum status carry(void *context, const struct store_claim *claim, struct error *error)
{
    const struct carrying *carrying = context;
    const struct dispute_ports *ports = carrying->ports;
    enum dispute_kind kind = DISPUTE_WAIT;
    struct store_segment segment;
    struct dispute dispute;
    uint64_t deadline_s = 0;
    enum status status = store_segment_by_hash(ports->store, &segment, &claim->segment, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK; /* reorganized away; the event log will tell */
    }
    TRY(status);
    TRY(read_dispute(ports, &dispute, &deadline_s, claim, &segment, error));
    *carrying->busy = *carrying->busy || ports->is_running(ports->context, &claim->key);
    TRY(dispute_next(&kind, NULL, &dispute, NULL, error));
    switch (kind) {
    case DISPUTE_WAIT:
        return STATUS_OK;
    case DISPUTE_QUERY:
    case DISPUTE_EVIDENCE:
    case DISPUTE_REPLY:
        return dispute_plan(ports, claim, kind, &dispute, deadline_s, error);
    case DISPUTE_NO_FAULT:
        return admit(ports, &dispute, error);
    case DISPUTE_RUN:
        return start_child(ports, &dispute, &segment, error);
    case DISPUTE_TIMEOUT:
        return plan_end(ports, ACTION_TIMEOUT, claim, claim->deadline_s, error);
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

    return store_open_claims(ports->store, carry, &carrying, error);
}

/* ---- what a child says ------------------------------------------------------------- */

enum status dispute_take(const struct dispute_ports *ports, const struct hash32 *claim,
                         const struct check_result *result, struct error *error)
{
    char place[STORE_PLACE_TEXT] = "a dispute";
    char why[STORE_REASON_MAX];
    struct store_claim standing;

    if (result->outcome == CHECK_PROVEN) {
        return store_end_retry(ports->store, claim, error);
    }
    if (store_claim(ports->store, &standing, claim, error) == STATUS_OK) {
        store_place_text(place, &standing.job, standing.index);
    }
    (void)snprintf(why, sizeof(why), "the next move is not found: %.400s",
                   result->reason[0] == '\0' ? "an earlier step is false" : result->reason);
    log_warn(ports->log, "verifier", "%s: %s", place, why);
    return dispute_failed(ports, claim, why, error);
}
