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
    return kind == ACTION_FINALIZE || kind == ACTION_EXPIRE || kind == ACTION_RENEW ||
           kind == ACTION_TIMEOUT || kind == ACTION_LAPSE;
}

enum action_state solver_timeout_refused(uint64_t *due_s, const struct node *node,
                                         enum game_refusal_kind refusal)
{
    *due_s = node->clock.time_s;
    switch ((int)refusal) {
    case GAME_WRONG_INDEX:   /* it is final, */
    case GAME_WRONG_PHASE:   /* the job or the claim at an end, */
    case GAME_WRONG_SEGMENT: /* or void, */
    case GAME_NOT_NEEDED:    /* covered since, */
    case GAME_TOO_EARLY:     /* or another round, another turn has begun */
        return ACTION_OVERTAKEN;
    default:
        return ACTION_REFUSED;
    }
}

/* ---- when ------------------------------------------------------------------- */

/* How much later than the first this node moves: another while for each node. */
static uint64_t place_of(const struct node *node, const struct hash32 *about)
{
    struct hash32 hash = verdict_db_derive(
        node->ports.verdicts, "who makes the move of who vanished", about->bytes, HASH32_SIZE);
    uint64_t number = 0;

    for (int i = 0; i < 6; i++) {
        number = number << 8 | hash.bytes[i];
    }
    return number % (node->options.grace_s / SPREAD_SHARE + 1);
}

/* Could anybody have made the move since a moment, and is it for us to make it now? */
static bool is_ours(const struct node *node, uint64_t since_s, const struct hash32 *about)
{
    return node->clock.time_s > since_s + node->options.grace_s + place_of(node, about);
}

/* Only the first segment of a job that is not final waits for the solver; the others wait for
 * it. */
static bool is_due(const struct node *node, const struct store_segment *first)
{
    return is_ours(node, node_claim_end(first), &first->hash) &&
           node->clock.time_s > first->finalized_s + place_of(node, &first->hash);
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

static enum status plan_segment(struct node *node, enum action_kind kind,
                                const struct store_segment *segment, struct error *error)
{
    struct action action = {.kind = kind, .segment = segment->hash};

    action_name(action.name, kind, &segment->hash);
    return plan(node, &action, error);
}

static enum status plan_expiry(struct node *node, const struct store_segment *first,
                               struct error *error)
{
    struct action action = {.kind = ACTION_EXPIRE, .segment = first->hash};

    action_name(action.name, ACTION_EXPIRE, &first->job);
    return plan(node, &action, error);
}

/* A round that no attestor comes to costs as much as one that helps: there are few of them. */
static enum status plan_renewal(struct node *node, const struct store_segment *first,
                                struct error *error)
{
    struct action action = {.kind = ACTION_RENEW, .segment = first->hash};
    char name[LEDGER_NAME_MAX + 1];
    int64_t rounds = 0;
    enum status status = database_number(
        &node->ports.store->sql, &rounds, 0, error,
        "SELECT count(*) FROM actions WHERE kind = ? AND segment = ? AND state <> ?", "ibi",
        (int64_t)ACTION_RENEW, &(struct database_blob){first->hash.bytes, HASH32_SIZE},
        (int64_t)ACTION_OVERTAKEN);

    action_name(name, ACTION_RENEW, &first->hash);
    (void)snprintf(action.name, sizeof(action.name), "%.120s/%" PRIu64, name, first->round_s);
    return status == STATUS_OK && rounds < SOLVER_TIMEOUT_RENEWALS ? plan(node, &action, error)
                                                                   : status;
}

/* ---- claims that hold it up -------------------------------------------------- */

struct holding {
    struct node *node;
    uint32_t first; /* the segment */
    bool all;       /* the job is to expire: any claim is in the way */
    uint32_t on_first;
    uint32_t on_job;
};

/* Ends a claim whose turn passed unused long ago, whoever wins by it. That includes a claim that we
 * have lost: its winner may be gone, and everything behind it would wait for ever. */
static enum status end_claim(void *context, const struct store_dispute *dispute,
                             struct error *error)
{
    struct holding *holding = context;
    struct action action = {.kind = dispute->gone ? ACTION_LAPSE : ACTION_TIMEOUT,
                            .claim = dispute->key};

    holding->on_first += dispute->index == holding->first;
    holding->on_job++;
    if ((dispute->index != holding->first && !holding->all) ||
        !is_ours(holding->node, dispute->deadline_s, &dispute->key)) {
        return STATUS_OK;
    }
    action_name(action.name, action.kind, &dispute->key);
    return plan(holding->node, &action, error);
}

/* ---- a job ------------------------------------------------------------------- */

/* Towards a segment that we have attested. No claim holds this one up. */
static enum status advance(struct node *node, const struct store_segment *first,
                           struct error *error)
{
    struct job_segment segment = store_segment_state(first);
    enum due_move_kind kind;

    if (!due_move_of_segment(&kind, &segment, &node->clock)) {
        return STATUS_OK;
    }
    if (kind == DUE_MOVE_RENEW) {
        return plan_renewal(node, first, error);
    }
    return plan_segment(node, kind == DUE_MOVE_DRAW ? ACTION_DRAW : ACTION_FINALIZE, first, error);
}

/* It has its attestors, or there is time for more. */
static bool can_be_final(const struct node *node, const struct store_segment *first)
{
    struct job_segment segment = store_segment_state(first);

    return job_segment_wants_draw(&segment) || job_segment_is_covered(&segment) ||
           node->clock.time_s <= first->terms.deadline_s;
}

/* first: the job's first segment that is not final. */
static enum status tend(void *context, const struct store_segment *first, struct error *error)
{
    struct node *node = context;
    uint64_t end_s = job_terms_end(&first->terms);
    struct holding holding = {
        .node = node, .first = first->committed.index, .all = is_ours(node, end_s, &first->job)};
    bool due = is_due(node, first);
    struct store_stake stake;
    bool advances;

    if (!due && !holding.all) {
        return STATUS_OK;
    }
    TRY(store_stake(node->ports.store, &stake, &first->job, error));
    if (stake.unsettled == 0) {
        return STATUS_OK;
    }
    advances = stake.revealed && stake.nearest - first->committed.index <= SOLVER_TIMEOUT_REACH &&
               can_be_final(node, first);
    if (advances || holding.all) {
        TRY(store_disputes(node->ports.store, end_claim, &holding, &first->job, error));
    }
    if (advances && due && holding.on_first == 0) {
        return advance(node, first, error);
    }
    return !advances && holding.all && holding.on_job == 0 ? plan_expiry(node, first, error)
                                                           : STATUS_OK;
}

enum status solver_timeout_round(struct node *node, struct error *error)
{
    struct store *store = node->ports.store;

    TRY(database_run(
        &store->sql, error,
        "DELETE FROM actions WHERE kind IN (:finalize, :expire, :renew) AND state = :action_planned"
        " AND NOT EXISTS (SELECT 1 FROM segments s JOIN jobs j ON j.key = s.job WHERE s.hash ="
        " actions.segment AND NOT s.void AND j.phase = :job_running AND s.idx = j.finalized)",
        ""));
    return store_segments(store,
                          "s.idx = j.finalized AND NOT s.void AND j.phase = :job_running AND"
                          " s.job IN (SELECT m.job FROM segments m WHERE m.mine IN"
                          " (:sealed, :revealed) AND NOT m.void) ORDER BY s.round_s",
                          tend, node, error);
}
