/* solver_timeout.c - see solver_timeout.h. */
#include "verifier/node/solver_timeout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/job/due_moves.h"

enum {
    SPREAD_SHARE = 5, /* of the grace period: how far apart the nodes are */
    AGAIN_S = 60,     /* until what was refused is tried again */
};

bool solver_timeout_is_anybodys(enum action_kind kind)
{
    return kind == ACTION_DRAW || (kind >= ACTION_TIMEOUT && kind <= ACTION_EXPIRE);
}

enum action_state solver_timeout_refused(uint64_t *due_s, const struct node *node,
                                         enum game_refusal_kind refusal)
{
    *due_s = node->clock.time_s;
    switch ((int)refusal) {
    case GAME_WRONG_INDEX:   /* it is final, */
    case GAME_WRONG_PHASE:   /* the job or the claim at an end, */
    case GAME_WRONG_SEGMENT: /* or void, */
    case GAME_NOT_NEEDED:    /* enough verdicts since, */
    case GAME_ALREADY_DRAWN:
    case GAME_NOT_LAPSED:
    case GAME_NOT_PAID:
    case GAME_TOO_EARLY: /* or another round, another turn has begun */
        return ACTION_OVERTAKEN;
    default:
        return ACTION_REFUSED;
    }
}

/* ---- when ------------------------------------------------------------------- */

uint64_t solver_timeout_place(const struct node *node, const struct hash32 *about, uint64_t span_s)
{
    struct hash32 hash = verdict_db_derive(
        node->ports.verdicts, "who makes the move of who vanished", about->bytes, HASH32_SIZE);
    uint64_t number = 0;

    for (int i = 0; i < 6; i++) {
        number = number << 8 | hash.bytes[i];
    }
    return number % (span_s + 1);
}

/* Could anybody have made the move since a moment, and is it for us to make it now? */
static bool is_ours(const struct node *node, uint64_t since_s, const struct hash32 *about)
{
    return node->clock.time_s >
           since_s + node->options.grace_s +
               solver_timeout_place(node, about, node->options.grace_s / SPREAD_SHARE);
}

/* ---- planning --------------------------------------------------------------- */

static enum status plan(struct node *node, struct action *action, struct error *error)
{
    struct store *store = node->ports.store;
    uint64_t now_s = node->clock.time_s;
    struct action before;
    enum status status = action_find(store, &before, action->name, error);

    action->due_s = now_s - 1;
    action->late_s = GAME_TIME_MAX;
    /* Refused, and yet due: the store may be older than the ledger, or newer. */
    if (status == STATUS_OK && before.state >= ACTION_REFUSED && now_s > before.due_s + AGAIN_S) {
        TRY(action_forget(store, &before, error));
        return action_plan(store, action, error);
    }
    return status == STATUS_NOT_FOUND ? action_plan(store, action, error) : status;
}

/* A move about a job, or one of its generations. */
static enum status plan_of_job(struct node *node, enum action_kind kind, const struct hash32 *job,
                               uint32_t generation, struct error *error)
{
    struct action action = {.kind = kind, .job = *job, .number = generation};

    node_name(action.name, kind, job, generation);
    return plan(node, &action, error);
}

/* ---- claims that hold it up -------------------------------------------------- */

/* Ends a claim whose turn passed unused long ago, whoever wins by it. That includes a claim that we
 * have lost: its winner may be gone, and everything behind it would wait for ever. */
static enum status end_claim(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_dispute *dispute = row;
    struct action action = {.kind = dispute->overtaken ? ACTION_LAPSE : ACTION_TIMEOUT,
                            .claim = dispute->key};

    if (!dispute->overtaken &&
        (dispute->deadline_s == 0 || !is_ours(node, dispute->deadline_s, &dispute->key))) {
        return STATUS_OK;
    }
    node_name(action.name, action.kind, &dispute->key, dispute->turns);
    return plan(node, &action, error);
}

/* ---- segments ---------------------------------------------------------------- */

static enum action_kind kind_of(enum due_move_kind kind)
{
    switch ((int)kind) {
    case DUE_MOVE_DRAW:
        return ACTION_DRAW;
    case DUE_MOVE_RENEW:
        return ACTION_RENEW;
    case DUE_MOVE_FORFEIT:
        return ACTION_FORFEIT;
    default:
        return ACTION_FINALIZE;
    }
}

static enum status tend_segment(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_segment *segment = row;
    struct job_segment found = store_segment_state(segment);
    struct action action = {.job = segment->job, .segment = segment->hash};
    enum due_move_kind kind;
    uint64_t since_s;

    if (!due_move_of_segment(&kind, &found, &node->clock)) {
        return STATUS_OK;
    }
    since_s =
        kind == DUE_MOVE_RENEW ? job_segment_reveal_end(&found) : job_segment_claim_end(&found);
    since_s = since_s > segment->finalized_s ? since_s : segment->finalized_s;
    if (kind != DUE_MOVE_DRAW && !is_ours(node, since_s, &segment->hash)) {
        return STATUS_OK;
    }
    action.kind = kind_of(kind);
    action.number = segment->rights + segment->unavailables;
    action_name(action.name, action.kind, &segment->hash);
    if (kind == DUE_MOVE_RENEW) { /* of this round */
        size_t size = strlen(action.name);

        (void)snprintf(action.name + size, sizeof(action.name) - size, "/%" PRIu64,
                       segment->start_s);
    }
    return plan(node, &action, error);
}

/* ---- jobs -------------------------------------------------------------------- */

/* Nothing is left to become final, and its time is over. */
static enum status tend_job(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_job *job = row;

    return is_ours(node, job->terms.deadline_s, &job->key)
               ? plan_of_job(node, ACTION_EXPIRE, &job->key, 0, error)
               : STATUS_OK;
}

/* The pot of a conviction: a quarter of it may be ours, and then nobody else needs to come. */
static enum status tend_pot(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_job *job = row;

    return plan_of_job(node, ACTION_PAY, &job->key, job->unpaid, error);
}

#define OUR_MONEY "EXISTS (SELECT 1 FROM entries e WHERE e.job = j.key AND e.ours AND NOT e.gone)"

enum status solver_timeout_pots(struct node *node, struct error *error)
{
    return store_visit(node->ports.store, STORE_JOBS,
                       "j.unpaid <> :none_unpaid AND EXISTS (SELECT 1 FROM disputes d WHERE"
                       " d.job = j.key AND d.generation = j.unpaid AND d.ours AND"
                       " d.outcome = :upheld) AND NOT EXISTS (SELECT 1 FROM disputes d WHERE"
                       " d.job = j.key AND d.generation = j.unpaid AND d.phase <> :claim_closed)",
                       tend_pot, node, error);
}

enum status solver_timeout_round(struct node *node, struct error *error)
{
    struct store *store = node->ports.store;

    TRY(database_run(
        &store->sql, error,
        "DELETE FROM actions WHERE kind IN (:finalize, :forfeit, :renew) AND state ="
        " :action_planned AND NOT EXISTS (SELECT 1 FROM segments s JOIN jobs j ON j.key = s.job"
        " WHERE s.hash = actions.segment AND NOT s.void AND s.idx >= j.finalized)",
        ""));
    TRY(store_visit(store, STORE_DISPUTES,
                    "d.phase <> :claim_closed AND NOT d.ours AND (" OUR_MONEY " OR EXISTS (SELECT"
                    " 1 FROM disputes o WHERE o.job = d.job AND o.ours)) ORDER BY d.deadline_s",
                    end_claim, node, error));
    TRY(store_visit(store, STORE_SEGMENTS,
                    "NOT s.void AND j.phase = :job_running AND s.idx >= j.finalized AND"
                    " s.panel > 0 AND " OUR_MONEY " ORDER BY s.start_s",
                    tend_segment, node, error));
    return store_visit(store, STORE_JOBS,
                       "j.phase IN (:job_open, :job_running) AND " OUR_MONEY " AND NOT EXISTS"
                       " (SELECT 1 FROM segments s WHERE s.job = j.key AND NOT s.void AND"
                       " s.idx >= j.finalized)",
                       tend_job, node, error);
}
