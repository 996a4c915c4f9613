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
    return kind >= ACTION_DRAW;
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
    case GAME_ENGAGED:        /* its round closed by another, */
    case GAME_STANDS_REFUSED: /* it was refused since, */
    case GAME_NOT_LAPSED:
    case GAME_NOT_PAID:
    case GAME_CLAIMS_OPEN: /* a claim came, */
    case GAME_TOO_EARLY:   /* or another round, another turn has begun */
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

static enum status plan_move(struct node *node, struct action *action, struct error *error)
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
    return plan_move(node, &action, error);
}

/* ---- claims that hold it up -------------------------------------------------- */

/* Ends a claim whose turn passed unused long ago, no matter who wins by it. That includes a claim
 * that we have lost: its winner may be gone, and everything behind it would wait for ever. */
static enum status end_claim(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_dispute *dispute = row;
    struct action action = {.kind = dispute->overtaken ? ACTION_LAPSE : ACTION_TIMEOUT,
                            .claim = dispute->key};

    if (!dispute->overtaken && (dispute->state.deadline_s == 0 ||
                                !is_ours(node, dispute->state.deadline_s, &dispute->key))) {
        return STATUS_OK;
    }
    node_name(action.name, action.kind, &dispute->key, dispute->state.turns);
    return plan_move(node, &action, error);
}

/* ---- segments ---------------------------------------------------------------- */

/* Since when could a segment be settled? */
static uint64_t due_since(const struct store_segment *segment, const struct job_segment *state,
                          enum job_segment_wait wait)
{
    uint64_t since_s = wait == JOB_SEGMENT_ROUND    ? job_segment_reveal_end(state)
                       : wait == JOB_SEGMENT_VOUCH  ? 0
                       : job_segment_is_held(state) ? segment->state.refused_until_s
                                                    : job_segment_claim_end(state);

    return since_s > segment->finalized_s || wait == JOB_SEGMENT_ROUND ? since_s
                                                                       : segment->finalized_s;
}

/* A round that is over holds up a fee of ours where we have said right: no grace is given for it,
 * nor for a vouch that a refusal waits for. */
static enum status hurries_round(struct node *node, bool *hurry,
                                 const struct store_segment *segment, enum job_segment_wait wait,
                                 struct error *error)
{
    int64_t rights = 0;

    TRY(database_number(&node->ports.store->sql, &rights, 0, error,
                        "SELECT count(*) FROM seats WHERE segment = ? AND ours = 1 AND"
                        " phase = :seat_revealed",
                        "b", &(struct database_blob){segment->hash.bytes, HASH32_SIZE}));
    *hurry = wait == JOB_SEGMENT_VOUCH || (wait == JOB_SEGMENT_ROUND && rights > 0);
    return STATUS_OK;
}

/* Each round, and what a vouch changes, is a move of its own. */
static enum status tend_segment(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_segment *segment = row;
    struct action action = {.kind = ACTION_SETTLE, .job = segment->job, .segment = segment->hash};
    const struct job_segment state = store_segment_state(segment);
    const enum job_segment_wait wait = job_segment_waits_for(&state, node->clock.time_s);
    bool hurry = false;
    uint64_t since_s;

    if (!job_segment_settles(wait)) {
        return STATUS_OK;
    }
    TRY(hurries_round(node, &hurry, segment, wait, error));
    since_s = due_since(segment, &state, wait);
    if (hurry ? node->clock.time_s <=
                    since_s + solver_timeout_place(node, &segment->hash,
                                                   segment->terms.reveal_period_s / SPREAD_SHARE)
              : !is_ours(node, since_s, &segment->hash)) {
        return STATUS_OK;
    }
    node_name(action.name, ACTION_SETTLE, &segment->hash, segment->draw.round);
    (void)snprintf(action.name + strlen(action.name), sizeof(action.name) - strlen(action.name),
                   "/%s", job_segment_wait_word(wait));
    return plan_move(node, &action, error);
}

enum status solver_timeout_settle(struct node *node, const struct action *action,
                                  const struct store_segment *segment, struct error *error)
{
    struct ledger *ledger = node->ports.ledger;
    struct vouch vouch;
    struct game_bytes bytes;
    struct error why; /* a word that is not the keeper's is no failure */
    enum status status = segment->draw.vouched
                             ? STATUS_NOT_FOUND
                             : store_vouch(node->ports.store, &vouch, &segment->hash, error);

    if (status == STATUS_OK) {
        error_init(&why);
        status = vouch_ask(&vouch, ledger, &segment->job, &segment->terms.keeper, &why);
        bytes = (struct game_bytes){vouch.signature, vouch.size};
        if (status != STATUS_OK && status != STATUS_REFUSED) {
            *error = why;
            return status;
        }
    } else if (status != STATUS_NOT_FOUND) {
        return status;
    }
    return ledger_settle(ledger, action->name, &segment->job, &segment->committed,
                         status == STATUS_OK ? &bytes : NULL, error);
}

/* ---- jobs -------------------------------------------------------------------- */

/* A solver that is late, or was refused when nothing was open: it would hold our bonds for ever. */
static enum status tend_job(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_job *job = row;
    const bool refused = job->state.refused_until_s != 0;
    const uint64_t since_s = refused ? job->state.refused_until_s : job->state.due_s;

    return since_s != 0 && (!refused || job->state.committed == job->state.finalized) &&
                   is_ours(node, since_s, &job->key)
               ? plan_of_job(node, ACTION_RELEASE, &job->key, job->state.generation, error)
               : STATUS_OK;
}

/* The pot of a conviction: a quarter of it may be ours, and then nobody else needs to come. */
static enum status tend_pot(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_job *job = row;

    return plan_of_job(node, ACTION_PAY, &job->key, job->state.unpaid, error);
}

#define OUR_MONEY                                                                                  \
    "EXISTS (SELECT 1 FROM entries e WHERE e.job = j.key AND e.generation = j.generation AND"      \
    " e.ours = 1 AND e.gone = 0)"

enum status solver_timeout_pots(struct node *node, struct error *error)
{
    return store_visit(node->ports.store, STORE_JOBS,
                       "j.unpaid <> :none_unpaid AND EXISTS (SELECT 1 FROM disputes d WHERE"
                       " d.job = j.key AND d.generation = j.unpaid AND d.ours = 1 AND"
                       " d.outcome = :upheld) AND NOT EXISTS (SELECT 1 FROM disputes d WHERE"
                       " d.job = j.key AND d.generation = j.unpaid AND d.phase <> :claim_closed)",
                       tend_pot, node, error);
}

enum status solver_timeout_round(struct node *node, struct error *error)
{
    struct store *store = node->ports.store;

    TRY(database_run(&store->sql, error,
                     "DELETE FROM actions WHERE kind = :settle AND state = :action_planned AND NOT"
                     " EXISTS (SELECT 1 FROM segments s JOIN jobs j ON j.key = s.job WHERE s.hash ="
                     " actions.segment AND NOT s.void AND s.idx >= j.finalized)",
                     ""));
    TRY(store_visit(store, STORE_DISPUTES,
                    "d.phase <> :claim_closed AND d.ours = 0 AND (" OUR_MONEY " OR EXISTS (SELECT"
                    " 1 FROM disputes o WHERE o.job = d.job AND o.ours = 1)) ORDER BY d.deadline_s",
                    end_claim, node, error));
    TRY(store_visit(store, STORE_SEGMENTS,
                    "s.void = 0 AND j.phase = :job_running AND s.idx >= j.finalized AND"
                    " s.idx < j.drawn AND (s.covered OR j.refused_until_s > 0) AND " OUR_MONEY
                    " ORDER BY s.idx",
                    tend_segment, node, error));
    return store_visit(store, STORE_JOBS,
                       "j.phase = :job_running AND j.leg_start = j.finalized AND j.drawn ="
                       " j.committed AND NOT EXISTS (SELECT 1 FROM disputes d WHERE d.job = j.key "
                       "AND d.generation ="
                       " j.generation AND d.phase <> :claim_closed) AND " OUR_MONEY,
                       tend_job, node, error);
}
