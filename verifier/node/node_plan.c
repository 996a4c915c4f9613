/* node_plan.c - see node_plan.h. */
#include "verifier/node/node_plan.h"

#include <stdio.h>

#include "verifier/node/node_claims.h"
#include "verifier/node/node_panel.h"
#include "verifier/node/node_seats.h"
#include "verifier/node/solver_timeout.h"

#define QUEUE_IS_FULL "the queue is full"

/* ---- samples ------------------------------------------------------------------ */

static const char *why_not(const struct node *node, const struct store_segment *segment)
{
    if (segment->state.phase != GAME_PHASE_RUNNING ||
        segment->committed.index < segment->state.finalized) {
        return "it was final, or its job at an end, when it was seen";
    }
    if (address_equal(&segment->committed.solver, ledger_get_own(node->ports.ledger))) {
        return "it is our own";
    }
    return node_draws(node, "extra", segment->hash.bytes, HASH32_SIZE, node->options.extra)
               ? NULL
               : "no place in it, and not in this node's share";
}

/* It is checked after its draw, so that the rights of others can be compared for nothing. */
static enum status choose_segment(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_segment *segment = row;
    const struct task task = {
        .extra = true, .deadline_s = node_claim_end(segment), .expiry_s = node_claim_end(segment)};
    const char *why = why_not(node, segment);
    bool full = false;

    if (why != NULL) {
        return store_choose(node->ports.store, &segment->hash, STORE_CHOICE_PASS, why, error);
    }
    TRY(queue_add(node->ports.store, &full, segment, &task, error));
    return store_choose(node->ports.store, &segment->hash,
                        full ? STORE_CHOICE_NONE : STORE_CHOICE_EXTRA,
                        full ? QUEUE_IS_FULL : "a secret sample", error);
}

/* A round looks at some segments only. Those that found no room come last, in random order, so that
 * they do not keep out a segment whose job has room. Somebody draws a segment at once as a rule.
 * Where nobody does, it is checked without its seed. */
static enum status sample_segments(struct node *node, struct error *error)
{
    const int draws = node->options.mode != NODE_OBSERVE;
    char where[600];

    (void)snprintf(
        where, sizeof(where),
        "s.void = 0 AND NOT EXISTS (SELECT 1 FROM choices c WHERE c.segment = s.hash AND c.choice"
        " <> :not_chosen) AND (s.seed IS NOT NULL OR s.panel = 0 OR"
        " (s.height + 3 < %lld AND NOT EXISTS (SELECT 1 FROM entries e WHERE"
        " e.job = s.job AND e.generation = s.generation AND e.ours = 1 AND e.gone = 0 AND %d)))"
        " ORDER BY EXISTS (SELECT 1 FROM choices c WHERE c.segment = s.hash AND c.reason = "
        "'" QUEUE_IS_FULL "'), random()",
        (long long)node->clock.height, draws);
    return store_visit(node->ports.store, STORE_SEGMENTS, where, choose_segment, node, error);
}

/* ---- money -------------------------------------------------------------------- */

static enum status plan_withdrawal(struct node *node, struct error *error)
{
    struct action action = {.kind = ACTION_WITHDRAW, .late_s = GAME_TIME_MAX};
    int64_t pending = 0;
    int64_t number = 0;
    wei purse = 0;
    wei owed = 0;
    enum status status = database_number(
        &node->ports.store->sql, &pending, 0, error,
        "SELECT count(*) FROM actions WHERE kind = ? AND state IN (:action_planned, :action_sent)",
        "i", (int64_t)ACTION_WITHDRAW);

    if (status != STATUS_OK || pending > 0 || node->options.withdraw_at == 0) {
        return status;
    }
    status = ledger_get_account(node->ports.ledger, &purse, &owed,
                                ledger_get_own(node->ports.ledger), error);
    if (status != STATUS_OK || owed < node->options.withdraw_at) {
        return status == STATUS_UNREACHABLE ? STATUS_OK : status;
    }
    TRY(store_number(node->ports.store, &number, "withdrawals", error));
    TRY(store_set_number(node->ports.store, "withdrawals", number + 1, error));
    /* A number alone could name another withdrawal of a node whose database was lost. */
    (void)snprintf(action.name, sizeof(action.name), "withdraw/%lld/%llu", (long long)number,
                   (unsigned long long)node->clock.time_s);
    return action_plan(node->ports.store, &action, error);
}

static enum status plan_all(struct node *node, struct error *error)
{
    bool signs = node->options.mode != NODE_OBSERVE;

    node->purse_is_known = node->gas_price_is_known = false;
    if (signs) {
        TRY(node_panel_round(node, error));
        TRY(node_seats_round(node, error));
    }
    if (!node->options.by_hand) {
        TRY(sample_segments(node, error));
    }
    if (!node->fault) {
        TRY(node_judge_rights(node, error));
    }
    if (signs && !node->options.by_hand) {
        TRY(solver_timeout_round(node, error));
    }
    if (signs) {
        TRY(solver_timeout_pots(node, error));
        TRY(plan_withdrawal(node, error));
    }
    return queue_expire(node->ports.store, node->clock.time_s, error);
}

enum status node_plan(struct node *node, struct error *error)
{
    TRY(store_begin(node->ports.store, error));
    return store_end(node->ports.store, plan_all(node, error), error);
}
