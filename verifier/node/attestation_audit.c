/* attestation_audit.c - see attestation_audit.h. */
#include "verifier/node/attestation_audit.h"

#include <stdlib.h>
#include <string.h>

#include "verifier/node/node_statements.h"

/* Why nothing can come of looking at it; NULL: something can. */
static const char *why_not(const struct node *node, const struct store_reveal *reveal,
                           const struct store_segment *segment)
{
    const struct address *own = ledger_get_own(node->ports.ledger);

    if (address_equal(&reveal->attestor, own)) {
        return "it is our own";
    }
    if (segment->is_void) {
        return "its segment is void";
    }
    if (segment->phase != GAME_PHASE_RUNNING || segment->committed.index < segment->finalized) {
        return "its segment is final, or its job at an end";
    }
    if (node->clock.time_s > node_claim_end(segment)) {
        return "the time to accuse it is over";
    }
    if (address_equal(&segment->committed.solver, own)) {
        return "its segment is our own";
    }
    return NULL;
}

/* Is it in the share of reveals that nobody can foresee? */
static bool is_drawn(const struct node *node, const struct store_reveal *reveal)
{
    uint8_t about[HASH32_SIZE + ADDRESS_SIZE];

    memcpy(about, reveal->segment.bytes, HASH32_SIZE);
    memcpy(about + HASH32_SIZE, reveal->attestor.bytes, ADDRESS_SIZE);
    return node_draws(node, "audit", about, sizeof(about), node->options.audit_share);
}

enum status attestation_audit_accuse(struct node *node, const struct store_reveal *reveal,
                                     const struct store_segment *segment, uint32_t step,
                                     const struct check_result *result, struct error *error)
{
    struct verdict_db_entry entry = node_entry(node, segment, &result->before);
    struct action seal = {.kind = ACTION_SEAL,
                          .segment = segment->hash,
                          .before = result->before,
                          .pre_state = reveal->root,
                          .post_state = result->trace_root,
                          .attestor = reveal->attestor,
                          .step = step,
                          .late_s = node_claim_end(segment)};
    enum status status;

    if (node->options.mode == NODE_OBSERVE) {
        return store_judge_reveal(node->ports.store, reveal, STORE_AUDIT_FALSE,
                                  "it is false; this node only observes", error);
    }
    entry.step = step;
    entry.verdict = VERDICT_DB_PROVEN;
    entry.trace_root = result->trace_root;
    status = verdict_db_enter(node->ports.verdicts, &entry, error);
    if (status == STATUS_REFUSED) {
        log_error(node->ports.log, "verifier", "%s", error->text);
        return store_judge_reveal(node->ports.store, reveal, STORE_AUDIT_PASS,
                                  "the verdict database contradicts", error);
    }
    TRY(status);
    seal.claim =
        game_accusation_key(ledger_get_own(node->ports.ledger), &segment->hash, &reveal->attestor);
    action_name(seal.name, ACTION_SEAL, &seal.claim);
    TRY(node_plan_claim(node, &seal, error));
    return store_judge_reveal(node->ports.store, reveal, STORE_AUDIT_FALSE,
                              "it is false, and accused", error);
}

/* Puts the replay that is needed into the queue: the first one, or one that confirms it. */
static enum status want_check(struct node *node, const struct store_reveal *reveal,
                              const struct store_segment *segment, uint32_t step,
                              struct error *error)
{
    const struct task task = {.traced = true,
                              .traced_step = step,
                              .extra = true,
                              .deadline_s = node_claim_end(segment),
                              .expiry_s = node_claim_end(segment)};
    bool full = false;

    TRY(queue_add(node->ports.store, &full, segment, &task, error));
    if (full) {
        return STATUS_OK; /* it stays undecided until there is room */
    }
    if (reveal->audit == STORE_AUDIT_NEW) { /* an earlier round may have given it up */
        TRY(queue_revive(node->ports.store, segment, &task, error));
    }
    TRY(queue_recheck(node->ports.store, segment, &task, error));
    return reveal->audit == STORE_AUDIT_QUEUED
               ? STATUS_OK
               : store_judge_reveal(node->ports.store, reveal, STORE_AUDIT_QUEUED, "to be compared",
                                    error);
}

static enum status compare(struct node *node, const struct store_reveal *reveal,
                           const struct store_segment *segment, struct error *error)
{
    uint32_t step = game_sampled_step(&segment->seed, &reveal->attestor, segment->committed.steps);
    struct check_result *result = NULL;
    enum status status = queue_answer(node->ports.store, &result, segment, step, error);

    if (status == STATUS_NOT_FOUND) {
        return reveal->audit == STORE_AUDIT_QUEUED || is_drawn(node, reveal)
                   ? want_check(node, reveal, segment, step, error)
                   : store_judge_reveal(node->ports.store, reveal, STORE_AUDIT_PASS,
                                        "not in this node's share", error);
    }
    TRY(status);
    if (digest_equal(&result->trace_root, &reveal->root)) {
        status = store_judge_reveal(node->ports.store, reveal, STORE_AUDIT_TRUE,
                                    "the same was found here", error);
    } else if (result->confirmed) {
        status = attestation_audit_accuse(node, reveal, segment, step, result, error);
    } else {
        status = want_check(node, reveal, segment, step, error);
    }
    free(result);
    return status;
}

static enum status look(void *context, const struct store_reveal *reveal, struct error *error)
{
    struct node *node = context;
    struct store_segment segment;
    const char *why;
    bool claimed = false;
    enum status status =
        store_segment_by_hash(node->ports.store, &segment, &reveal->segment, error);

    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK; /* reorganized away */
    }
    TRY(status);
    TRY(store_job_is_claimed(node->ports.store, &claimed, &segment.job, error));
    why = claimed ? "this node has a claim against its job" : why_not(node, reveal, &segment);
    if (why != NULL) {
        return store_judge_reveal(node->ports.store, reveal, STORE_AUDIT_PASS, why, error);
    }
    return compare(node, reveal, &segment, error);
}

enum status attestation_audit_round(struct node *node, struct error *error)
{
    return node->fault ? STATUS_OK : store_open_reveals(node->ports.store, look, node, error);
}
