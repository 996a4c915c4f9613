/* node_statements.c - see node_statements.h. */
#include "verifier/node/node_statements.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum status node_plan_again(struct node *node, const struct action *action, struct error *error)
{
    struct database *sql = &node->ports.store->sql;
    struct action before;
    enum status status = action_find(node->ports.store, &before, action->name, error);

    if (status == STATUS_NOT_FOUND) {
        return action_plan(node->ports.store, action, error);
    }
    TRY(status);
    /* An earlier round missed it. The ledger takes a name again that it refused. */
    if (before.state == ACTION_REFUSED || before.state == ACTION_LATE) {
        TRY(database_run(sql, error, "DELETE FROM actions WHERE name = ?", "t", action->name));
        return action_plan(node->ports.store, action, error);
    }
    /* It waits, or was sent in that round and may be refused as too late. */
    return database_run(sql, error,
                        "UPDATE actions SET due_s = max(due_s, ?), late_s = max(late_s, ?)"
                        " WHERE name = ? AND state IN (:action_planned, :action_sent)",
                        "iit", (int64_t)action->due_s, (int64_t)action->late_s, action->name);
}

enum status node_plan_claim(struct node *node, const struct action *seal, struct error *error)
{
    struct action claim = *seal;

    claim.kind = ACTION_CLAIM;
    action_name(claim.name, ACTION_CLAIM, &seal->claim);
    (void)snprintf(claim.after, sizeof(claim.after), "%s", seal->name);
    TRY(node_plan_again(node, seal, error));
    return node_plan_again(node, &claim, error);
}

static enum status plan_claim(struct node *node, const struct store_segment *segment,
                              const struct check_result *result, struct error *error)
{
    struct action seal = {.kind = ACTION_SEAL,
                          .segment = segment->hash,
                          .before = result->before,
                          .pre_state = result->pre_state,
                          .post_state = result->post_state,
                          .step = result->step,
                          .late_s = node_claim_end(segment)};

    seal.claim = game_claim_key(ledger_get_own(node->ports.ledger), &segment->hash, result->step,
                                &result->pre_state, &result->post_state);
    action_name(seal.name, ACTION_SEAL, &seal.claim);
    return node_plan_claim(node, &seal, error);
}

const struct check_segment *node_segment_of(const struct check_request *request,
                                            const struct check_result *result)
{
    uint32_t back = request->index - result->index; /* wraps around when it makes no sense */

    return back < request->segment_count ? &request->segments[request->segment_count - 1 - back]
                                         : NULL;
}

enum status node_accuse(struct node *node, const struct hash32 *job,
                        const struct check_request *request, const struct check_result *result,
                        const char **why, struct error *error)
{
    const struct check_segment *checked = node_segment_of(request, result);
    struct store_segment segment;
    struct verdict_db_entry entry;
    enum status status;

    assert(checked != NULL); /* an answer about anything else is no answer: node_checks.c */
    status = store_segment(node->ports.store, &segment, job, result->index, error);
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && !digest_equal(&segment.committed.root, &checked->root))) {
        *why = "the segment does not stand on the ledger any more";
        return STATUS_OK;
    }
    if (status != STATUS_OK || node->options.mode == NODE_OBSERVE) {
        *why = "this node only observes";
        return status;
    }
    if (segment.committed.index < segment.finalized || segment.phase != GAME_PHASE_RUNNING ||
        node->clock.time_s > node_claim_end(&segment)) {
        *why = "the time to claim is over";
        return STATUS_OK;
    }
    entry = node_entry(node, &segment, &result->before);
    entry.step = result->step;
    entry.verdict = VERDICT_DB_REFUTED;
    entry.pre_state = result->pre_state;
    entry.post_state = result->post_state;
    status = verdict_db_enter(node->ports.verdicts, &entry, error);
    if (status == STATUS_REFUSED) {
        log_error(node->ports.log, "verifier", "%s", error->text);
        *why = "the verdict database contradicts";
        return STATUS_OK;
    }
    TRY(status);
    return plan_claim(node, &segment, result, error);
}

/* The name holds the step, since a reorganization may draw another one of the same segment. */
static void name_of_step(char name[LEDGER_NAME_MAX + 1], enum action_kind kind,
                         const struct hash32 *segment, uint32_t step)
{
    size_t size;

    action_name(name, kind, segment);
    size = strlen(name);
    (void)snprintf(name + size, LEDGER_NAME_MAX + 1 - size, "/%" PRIu32, step);
}

enum status node_plan_attestation(struct node *node, const struct store_segment *segment,
                                  uint32_t step, const struct check_result *result,
                                  struct error *error)
{
    struct action attest = {.kind = ACTION_ATTEST,
                            .segment = segment->hash,
                            .before = result->before,
                            .post_state = result->trace_root,
                            .step = step,
                            .late_s = node_attest_end(segment)};
    struct action reveal = attest;

    name_of_step(attest.name, ACTION_ATTEST, &segment->hash, step);
    reveal.kind = ACTION_REVEAL;
    name_of_step(reveal.name, ACTION_REVEAL, &segment->hash, step);
    reveal.due_s = node_attest_end(segment);
    reveal.late_s = node_reveal_end(segment);
    if (segment->mine == STORE_MINE_NOT) {
        (void)snprintf(reveal.after, sizeof(reveal.after), "%s", attest.name);
        TRY(node_plan_again(node, &attest, error));
    }
    return segment->mine <= STORE_MINE_SEALED ? node_plan_again(node, &reveal, error) : STATUS_OK;
}
