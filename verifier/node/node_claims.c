/* node_claims.c - see node_claims.h. */
#include "verifier/node/node_claims.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/node/solver_timeout.h"

enum {
    CHALLENGE_SHARE = 4, /* of the claim time: how far apart nodes challenge the same right */
};

/* ---- claims ------------------------------------------------------------------- */

const struct check_segment *node_segment_of(const struct check_request *request,
                                            const struct check_result *result)
{
    uint32_t back = request->index - result->index; /* wraps around when it makes no sense */

    return back < request->segment_count ? &request->segments[request->segment_count - 1 - back]
                                         : NULL;
}

/* Others may claim the same: a node that joins them takes over when they sleep. */
enum status node_plan_claim(struct node *node, const struct action *claim, uint32_t seal_number,
                            struct error *error)
{
    struct action seal = *claim;
    struct action made = *claim;

    seal.kind = claim->kind == ACTION_CHALLENGE ? ACTION_SEAL_CHALLENGE : ACTION_SEAL_CLAIM;
    node_name(seal.name, seal.kind, &claim->claim, seal_number);
    (void)snprintf(made.after, sizeof(made.after), "%s", seal.name);
    TRY(node_plan_again(node, &seal, error));
    return node_plan_again(node, &made, error);
}

static enum status claim_step(struct node *node, const struct store_segment *segment,
                              const struct check_result *result, struct error *error)
{
    struct action claim = {.kind = ACTION_CLAIM,
                           .job = segment->job,
                           .segment = segment->hash,
                           .claim = game_subject_hash(&segment->hash, result->step,
                                                      &result->pre_state, &result->post_state),
                           .before = result->before,
                           .pre_state = result->pre_state,
                           .post_state = result->post_state,
                           .step = result->step,
                           .late_s =
                               segment->job_claims > 0 ? GAME_TIME_MAX : node_claim_end(segment)};
    bool disputed = false;
    bool mine = false;

    TRY(store_is_disputed(node->ports.store, &disputed, &mine, &claim.claim, error));
    if (mine) {
        return STATUS_OK;
    }
    TRY(store_outsiders(node->ports.store, &claim.number, &segment->job, error));
    action_name(claim.name, ACTION_CLAIM, &claim.claim);
    return node_plan_claim(node, &claim, 0, error);
}

enum status node_seal_again(struct node *node, const struct action *claim, struct error *error)
{
    const char *number = strrchr(claim->after, '/');
    uint32_t last = number == NULL ? 0 : (uint32_t)strtoul(number + 1, NULL, 10);

    TRY(action_forget(node->ports.store, claim, error));
    return node_plan_claim(node, claim, last + 1, error);
}

static bool is_over(const struct node *node, const struct store_segment *segment)
{
    return segment->is_void || segment->committed.index < segment->state.finalized ||
           segment->state.phase != GAME_PHASE_RUNNING ||
           (node->clock.time_s > node_claim_end(segment) && segment->job_claims == 0);
}

/* Is there a place of ours whose verdict will be an alarm? */
static enum status has_place(struct node *node, bool *has, const struct store_segment *segment,
                             struct error *error)
{
    int64_t count = 0;
    enum status status = database_number(
        &node->ports.store->sql, &count, 0, error,
        "SELECT count(*) FROM seats p JOIN segments s ON s.hash = p.segment WHERE s.hash = ? AND"
        " p.ours = 1 AND p.round = s.round AND (p.phase = :seat_sealed OR (p.phase = :seat_drawn "
        "AND"
        " ?))",
        "bi", &(struct database_blob){segment->hash.bytes, HASH32_SIZE},
        (int64_t)(node->clock.time_s <= node_seal_end(segment)));

    *has = count > 0;
    return status;
}

enum status node_accuse(struct node *node, const struct task *task,
                        const struct check_request *request, const struct check_result *result,
                        const char **why, struct error *error)
{
    struct store_segment segment;
    struct verdict_db_entry entry;
    bool has = false;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &task->segment, error);

    assert(node_segment_of(request, result) != NULL); /* see node_checks.c */
    if (status == STATUS_OK && result->index != task->index) {
        status = store_segment_before(node->ports.store, &segment, &segment, result->index, error);
    }
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK &&
         !digest_equal(&segment.committed.root, &node_segment_of(request, result)->root))) {
        *why = "the segment does not stand on the ledger any more";
        return STATUS_OK;
    }
    if (status != STATUS_OK || node->options.mode == NODE_OBSERVE) {
        *why = "this node only observes";
        return status;
    }
    if (is_over(node, &segment)) {
        *why = "the time to claim is over";
        return STATUS_OK;
    }
    entry = node_entry(node, &segment, &result->before);
    entry.verdict = GAME_VERDICT_FALSE;
    entry.step = result->step;
    entry.pre_state = result->pre_state;
    entry.post_state = result->post_state;
    status = verdict_db_enter(node->ports.verdicts, &entry, error);
    if (status == STATUS_REFUSED) {
        log_error(node->ports.log, "verifier", "%s", error->text);
        *why = "the verdict database contradicts";
        return STATUS_OK;
    }
    TRY(status);
    TRY(has_place(node, &has, &segment, error));
    return has ? STATUS_OK : claim_step(node, &segment, result, error);
}

/* ---- rights of others ----------------------------------------------------------- */

/* The first leaf that is another; GAME_LEAVES: none is. */
static uint32_t find_false(const struct store_seat *seat, const struct check_result *result,
                           const struct store_segment *segment)
{
    struct game_leaves leaves;
    uint32_t at = 0;

    check_result_rights(&leaves, result, &seat->owner, &segment->draw.seed, &segment->hash);
    while (at < GAME_LEAVES && memcmp(leaves.tags[at], seat->leaves.tags[at], GAME_TAG_SIZE) == 0) {
        at++;
    }
    return at;
}

/* The leaf is shown with its proof: that takes another replay, which the liar pays. */
static enum status want_proof(struct node *node, const struct store_seat *seat,
                              const struct store_segment *segment, uint32_t which,
                              struct error *error)
{
    const struct task task = {
        .proven = which + 1, .extra = true, .deadline_s = GAME_TIME_MAX, .expiry_s = GAME_TIME_MAX};
    struct action action = {.kind = ACTION_CHALLENGE,
                            .job = segment->job,
                            .segment = segment->hash,
                            .place = seat->place,
                            .number = which,
                            .claim = game_challenge_hash(&segment->hash, seat->place, which),
                            .late_s = GAME_TIME_MAX};
    const uint64_t wait_s = segment->terms.claim_period_s / CHALLENGE_SHARE;
    struct task found;
    bool full = false;
    enum status status =
        queue_find(node->ports.store, &found, TASK_CHECK, segment, which + 1, error);

    if (status == STATUS_NOT_FOUND) {
        return queue_add(node->ports.store, &full, segment, &task, error);
    }
    TRY(status);
    if (found.state != TASK_DONE || found.outcome != CHECK_PROVEN) {
        return STATUS_OK;
    }
    if (node->clock.time_s <=
        node_reveal_end(segment) + solver_timeout_place(node, &action.claim, wait_s)) {
        return STATUS_OK; /* another may come first: then the seat is closed by its challenge */
    }
    node_name(action.name, ACTION_CHALLENGE, &segment->hash, seat->place);
    TRY(node_plan_claim(node, &action, 0, error));
    return store_judge(node->ports.store, seat, STORE_FALSE, error);
}

static enum status judge_right(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_seat *seat = row;
    struct check_result *result = NULL;
    struct store_segment segment;
    struct task task;
    uint32_t which;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &seat->segment, error);

    if (status == STATUS_OK) {
        status = queue_find(node->ports.store, &task, TASK_CHECK, &segment, 0, error);
    }
    if (status == STATUS_OK) {
        status = queue_result(node->ports.store, &result, &task, error);
    }
    if (status != STATUS_OK || !result->has_leaves) {
        free(result);
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    which = find_false(seat, result, &segment);
    free(result);
    if (which == GAME_LEAVES) {
        return store_judge(node->ports.store, seat, STORE_TRUE, error);
    }
    return node->options.mode == NODE_OBSERVE
               ? store_judge(node->ports.store, seat, STORE_FALSE, error)
               : want_proof(node, seat, &segment, which, error);
}

/* Only what was replayed here anyway. A right can be challenged until its segment is final. */
enum status node_judge_rights(struct node *node, struct error *error)
{
    return store_visit(
        node->ports.store, STORE_SEATS,
        "coalesce(n.judgement, :not_judged) = :not_judged AND p.verdict = :right AND p.phase = "
        ":seat_revealed AND"
        " p.ours = 0 AND NOT s.void AND s.seed IS NOT NULL AND EXISTS (SELECT 1 FROM entries e "
        "WHERE e.job = s.job"
        " AND e.generation = s.generation AND e.number = p.entry AND e.gone = 0) AND EXISTS "
        "(SELECT 1 FROM tasks t WHERE"
        " t.segment = s.hash AND t.seed = s.seed AND t.proven = 0 AND t.kind = :checks AND"
        " t.state = :task_done AND t.outcome = :proven)",
        judge_right, node, error);
}
