/* node_plan.c - see node_plan.h. */
#include "verifier/node/node_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/node/attestation_audit.h"
#include "verifier/node/node_policy.h"
#include "verifier/node/node_statements.h"
#include "verifier/node/solver_timeout.h"

enum {
    SETTLE_AGAIN_S = 30, /* there is no hurry */
};

#define QUEUE_IS_FULL "the queue is full"
#define NO_ROOM       "no room for its bond: "

/* A round looks at some segments only. Those that found no room come last, in random order, so that
 * they do not keep out a segment whose job has room. */
#define IN_TURN                                                                                    \
    "CASE WHEN s.reason = '" QUEUE_IS_FULL "' OR s.reason LIKE '" NO_ROOM                          \
    "%' THEN abs(random() / 2) ELSE -1 END"

/* ---- choosing ------------------------------------------------------------ */

static bool falls_into(const struct node *node, const struct store_segment *segment,
                       const char *words, double share)
{
    return node_draws(node, words, segment->hash.bytes, HASH32_SIZE, share);
}

static const char *why_not_at_all(const struct node *node, const struct store_segment *segment)
{
    if (segment->phase != GAME_PHASE_RUNNING || segment->committed.index < segment->finalized) {
        return "it was final, or its job at an end, when it was seen";
    }
    if (node->clock.time_s > node_claim_end(segment)) {
        return "its claim time was over when it was seen";
    }
    if (address_equal(&segment->committed.solver, ledger_get_own(node->ports.ledger))) {
        return "it is our own";
    }
    return NULL;
}

static const char *why_not_attest(const struct node *node, const struct store_segment *segment)
{
    if (node->options.mode != NODE_ACT) {
        return "this node does not attest";
    }
    if (segment->mine != STORE_MINE_NOT) {
        return "it was attested before";
    }
    if (segment->terms.attestors == 0) {
        return "its job pays no attestors";
    }
    if (segment->attested + segment->revealed >= segment->terms.attestors) {
        return "it has all the attestors that are paid";
    }
    if (node->clock.time_s > node_attest_end(segment)) {
        return "attesting was over when it was seen";
    }
    return falls_into(node, segment, "attest", node->options.share) ? NULL
                                                                    : "not in this node's share";
}

static enum status add_extra(struct node *node, const struct store_segment *segment,
                             const char *why, struct error *error)
{
    const struct task task = {
        .extra = true, .deadline_s = node_claim_end(segment), .expiry_s = node_claim_end(segment)};
    char reason[STORE_REASON_MAX];
    bool full = false;

    TRY(queue_add(node->ports.store, &full, segment, &task, error));
    if (full) { /* it stays undecided until there is room */
        return store_choose(node->ports.store, segment->row, segment->choice, QUEUE_IS_FULL, error);
    }
    /* A reorganization may have taken it away while its check was waiting. */
    TRY(queue_revive(node->ports.store, segment, &task, error));
    (void)snprintf(reason, sizeof(reason), "a secret sample; not attested: %s", why);
    return store_choose(node->ports.store, segment->row, STORE_EXTRA, reason, error);
}

/* One for which there is no room now stays undecided: other bonds come back. */
static enum status choose_to_attest(struct node *node, const struct store_segment *segment,
                                    char why[STORE_REASON_MAX], struct error *error)
{
    struct policy_refusal refusal;
    enum status status = node_policy_choose(node, &refusal, segment, error);

    why[0] = '\0';
    if (status == STATUS_UNREACHABLE) {
        return STATUS_OK; /* the next round looks at the account again */
    }
    TRY(status);
    if (refusal.term == POLICY_AGREED) {
        return store_choose(node->ports.store, segment->row, STORE_ATTEST, "to be attested", error);
    }
    if (!refusal.for_now) {
        (void)snprintf(why, STORE_REASON_MAX, "the policy: %s", refusal.text);
        return STATUS_OK;
    }
    (void)snprintf(why, STORE_REASON_MAX, NO_ROOM "%s", refusal.text);
    status = store_choose(node->ports.store, segment->row, segment->choice, why, error);
    why[0] = '\0';
    return status;
}

static enum status choose(void *context, const struct store_segment *segment, struct error *error)
{
    struct node *node = context;
    const char *why = why_not_at_all(node, segment);
    char refusal[STORE_REASON_MAX];
    bool claimed = false;

    if (why != NULL) {
        return store_choose(node->ports.store, segment->row, STORE_PASS, why, error);
    }
    TRY(store_job_is_claimed(node->ports.store, &claimed, &segment->job, error));
    if (claimed) {
        return store_choose(node->ports.store, segment->row, STORE_PASS,
                            "this node has a claim against its job", error);
    }
    why = why_not_attest(node, segment);
    if (why == NULL) {
        TRY(choose_to_attest(node, segment, refusal, error));
        if (refusal[0] == '\0') {
            return STATUS_OK;
        }
        why = refusal;
    }
    if (falls_into(node, segment, "extra", node->options.extra)) {
        return add_extra(node, segment, why, error);
    }
    return store_choose(node->ports.store, segment->row, STORE_PASS, why, error);
}

/* ---- samples whose step must be drawn, or is ------------------------------ */

/* A segment whose step nobody drew in time cannot be attested; it is checked all the same. */
static enum status ask_for_draw(void *context, const struct store_segment *segment,
                                struct error *error)
{
    struct node *node = context;
    struct action action = {.kind = ACTION_DRAW,
                            .segment = segment->hash,
                            .due_height = segment->committed.height + 1,
                            .late_s = node_attest_end(segment)};

    if (node->clock.time_s > action.late_s) {
        return add_extra(node, segment, "its step was not drawn in time", error);
    }
    action_name(action.name, ACTION_DRAW, &segment->hash);
    return node_plan_again(node, &action, error);
}

/* What was found about a step stands in the queue. If the database was lost since the seal, it
 * stands in the verdict database. */
static enum status find_answer(struct node *node, struct check_result **result,
                               const struct store_segment *segment, uint32_t step,
                               struct error *error)
{
    const struct digest unknown = {{0}};
    struct verdict_db_entry entry = node_entry(node, segment, &unknown);
    enum status status = queue_answer(node->ports.store, result, segment, step, error);

    if (status != STATUS_NOT_FOUND || segment->mine != STORE_MINE_SEALED) {
        return status;
    }
    entry.step = step;
    TRY(verdict_db_find_proven(&entry, node->ports.verdicts, error));
    *result = calloc(1, sizeof(**result));
    if (*result == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a result");
    }
    (*result)->before = entry.before;
    (*result)->trace_root = entry.trace_root;
    return STATUS_OK;
}

/* Queues the check of the step that was drawn, without a result of an earlier round. */
static enum status queue_sample(struct node *node, bool *full, const struct store_segment *segment,
                                const struct task *task, struct error *error)
{
    TRY(queue_add(node->ports.store, full, segment, task, error));
    return *full ? STATUS_OK : queue_revive(node->ports.store, segment, task, error);
}

static enum status add_sample(void *context, const struct store_segment *segment,
                              struct error *error)
{
    struct node *node = context;
    const struct task task = {.traced = true,
                              .traced_step = game_sampled_step(&segment->seed,
                                                               ledger_get_own(node->ports.ledger),
                                                               segment->committed.steps),
                              .deadline_s = node_attest_end(segment),
                              .expiry_s = node_claim_end(segment)};
    struct check_result *result = NULL;
    bool full = false;
    enum status status = find_answer(node, &result, segment, task.traced_step, error);

    if (status == STATUS_NOT_FOUND) {
        status = queue_sample(node, &full, segment, &task, error);
    } else if (result != NULL) {
        status = node_plan_attestation(node, segment, task.traced_step, result, error);
    }
    free(result);
    TRY(status);
    return store_choose(node->ports.store, segment->row, full ? segment->choice : STORE_SAMPLED,
                        full ? QUEUE_IS_FULL : "to be attested", error);
}

/* A reorganization may have put the settlement before what must come first; it is tried again. */
static enum status settle(void *context, const struct store_segment *segment, struct error *error)
{
    struct node *node = context;
    struct action action = {
        .kind = ACTION_SETTLE, .segment = segment->hash, .late_s = GAME_TIME_MAX};
    struct action before;
    enum status status;

    action_name(action.name, ACTION_SETTLE, &segment->hash);
    status = action_find(node->ports.store, &before, action.name, error);
    if (status == STATUS_NOT_FOUND) {
        return action_plan(node->ports.store, &action, error);
    }
    TRY(status);
    if (before.state != ACTION_REFUSED) {
        return STATUS_OK;
    }
    before.tries++;
    return action_set(node->ports.store, &before, ACTION_PLANNED,
                      node->clock.time_s + SETTLE_AGAIN_S, "", error);
}

/* ---- money --------------------------------------------------------------- */

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
    static const struct {
        const char *where;
        enum status (*visit)(void *context, const struct store_segment *segment,
                             struct error *error);
        bool signs;
    } plans[] = {
        {"s.choice = :undecided AND NOT s.void ORDER BY " IN_TURN
         ", s.attested + s.revealed, s.round_s",
         choose, false},
        {"s.choice = :to_attest AND s.seed IS NULL AND NOT s.void", ask_for_draw, true},
        {"s.choice = :to_attest AND s.seed IS NOT NULL AND NOT s.void AND s.mine IN (:not_mine,"
         " :sealed) ORDER BY " IN_TURN,
         add_sample, true},
        {"((s.mine = :revealed AND (s.void OR s.idx < j.finalized)) OR (s.mine = :sealed AND "
         "s.void))"
         " AND NOT EXISTS (SELECT 1 FROM actions a WHERE a.segment = s.hash AND a.kind = :settle "
         "AND"
         " a.state <> :action_refused)",
         settle, true},
    };
    bool signs = node->options.mode != NODE_OBSERVE;

    node->purse_is_known = false;
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        bool of_itself = plans[i].visit != settle;

        if ((!plans[i].signs || signs) && !(of_itself && node->options.by_hand)) {
            TRY(store_segments(node->ports.store, plans[i].where, plans[i].visit, node, error));
        }
    }
    if (!node->options.by_hand) {
        TRY(attestation_audit_round(node, error));
    }
    if (!node->options.by_hand && signs) {
        TRY(solver_timeout_round(node, error));
    }
    if (signs) {
        TRY(plan_withdrawal(node, error));
    }
    return queue_expire(node->ports.store, node->clock.time_s, error);
}

enum status node_plan(struct node *node, struct error *error)
{
    TRY(store_begin(node->ports.store, error));
    return store_end(node->ports.store, plan_all(node, error), error);
}
