/* node_seats.c - see node_seats.h. */
#include "verifier/node/node_seats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "verifier/dispute/dispute_case.h"

enum {
    LATE_SHARE = 8, /* the last part of the seal period, in which nothing found is a verdict */
    LATE_LEAST_S = 4,
};

/* ---- sealing -------------------------------------------------------------------- */

static enum status plan_seal(struct node *node, const struct store_segment *segment,
                             const struct store_seat *seat, struct error *error)
{
    struct action action = {.kind = ACTION_SEAL,
                            .job = segment->job,
                            .segment = segment->hash,
                            .place = seat->place,
                            .late_s = node_seal_end(segment)};

    node_name(action.name, ACTION_SEAL, &segment->hash, seat->place);
    return node_plan_again(node, &action, error);
}

/* A database that knows another verdict of the place keeps it. */
static enum status decide(struct node *node, const struct store_segment *segment,
                          const struct store_seat *seat, const struct verdict_db_seal *verdict,
                          struct error *error)
{
    enum status status = verdict_db_seal(node->ports.verdicts, verdict, error);

    if (status == STATUS_REFUSED) {
        log_error(node->ports.log, "verifier", "%s", error->text);
        return STATUS_OK;
    }
    TRY(status);
    return plan_seal(node, segment, seat, error);
}

/* Is a verdict of this segment, as it was committed, in the verdict database? */
static enum status is_vouched(struct node *node, bool *is, const struct store_segment *segment,
                              const struct check_result *result, enum game_verdict verdict,
                              struct error *error)
{
    struct verdict_db_entry entry = node_entry(node, segment, &result->before);
    enum status status = verdict_db_find(&entry, node->ports.verdicts, error);

    *is = status == STATUS_OK && entry.verdict == verdict &&
          (verdict == GAME_VERDICT_RIGHT || entry.step == result->step);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* *is: the result is a verdict of this segment. It may be about one before it. */
static enum status seal_result(struct node *node, bool *is, const struct store_segment *segment,
                               const struct store_seat *seat, const struct task *task,
                               struct error *error)
{
    struct verdict_db_seal verdict = node_seal(node, segment, seat->place);
    struct check_result *result = NULL;
    enum status status = queue_result(node->ports.store, &result, task, error);

    TRY_OUT(status);
    verdict.verdict = result->outcome == CHECK_PROVEN ? GAME_VERDICT_RIGHT : GAME_VERDICT_FALSE;
    TRY_OUT(is_vouched(node, is, segment, result, verdict.verdict, error));
    *is = *is && (result->outcome == CHECK_PROVEN ? result->has_leaves
                                                  : result->index == segment->committed.index);
    if (!*is) {
        goto out;
    }
    if (result->outcome == CHECK_PROVEN) {
        check_result_rights(&verdict.leaves, result, &seat->owner, &segment->seed, &segment->hash);
    } else {
        verdict.step = result->step;
    }
    /* The panel of a closed job says only whether its last state can be had. */
    if (result->outcome == CHECK_PROVEN || segment->phase == GAME_PHASE_RUNNING) {
        status = decide(node, segment, seat, &verdict, error);
    }
out:
    free(result);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Late, and the last try found nothing. One that runs may have found it. Behind a segment that is
 * false there is nothing either. */
static bool is_unavailable(const struct node *node, const struct store_segment *segment,
                           const struct task *task)
{
    uint64_t margin_s = segment->terms.seal_period_s / LATE_SHARE;
    bool nothing = task->state == TASK_DONE ? task->outcome == CHECK_REFUTED : task->unavailable;

    margin_s = margin_s > LATE_LEAST_S ? margin_s : LATE_LEAST_S;
    return nothing && node->clock.time_s + (task->state == TASK_RUNNING ? margin_s / 2 : margin_s) >
                          node_seal_end(segment);
}

/* Sealed before, in the database at least: a crash came before the plan. */
static enum status find_sealed(struct node *node, const struct store_segment *segment,
                               const struct store_seat *seat, struct error *error)
{
    struct verdict_db_seal verdict = node_seal(node, segment, seat->place);

    TRY(verdict_db_find_seal(&verdict, node->ports.verdicts, error));
    return plan_seal(node, segment, seat, error);
}

static enum status take_place(struct node *node, const struct store_segment *segment,
                              const struct store_seat *seat, struct error *error)
{
    const struct task wanted = {.deadline_s = node_seal_end(segment),
                                .expiry_s = node_seal_end(segment)};
    struct verdict_db_seal verdict = node_seal(node, segment, seat->place);
    struct task task;
    bool full = false;
    bool is = false;
    enum status status = find_sealed(node, segment, seat, error);

    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    status = queue_find(node->ports.store, &task, segment, 0, error);
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && task.state == TASK_SKIPPED && task.attempts == 0)) {
        return queue_add(node->ports.store, &full, segment, &wanted, error);
    }
    TRY(status);
    if (task.state == TASK_DONE &&
        (task.outcome == CHECK_PROVEN || task.outcome == CHECK_REFUTED)) {
        TRY(seal_result(node, &is, segment, seat, &task, error));
        if (is) {
            return STATUS_OK;
        }
    }
    if (task.deadline_s > wanted.deadline_s) { /* it was a sample, and waited for no place */
        return queue_add(node->ports.store, &full, segment, &wanted, error);
    }
    if (!is_unavailable(node, segment, &task)) {
        return STATUS_OK;
    }
    verdict.verdict = GAME_VERDICT_UNAVAILABLE;
    return decide(node, segment, seat, &verdict, error);
}

static enum status visit_drawn(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_seat *seat = row;
    struct store_segment segment;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &seat->segment, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    return node->clock.time_s > node_seal_end(&segment) ? STATUS_OK
                                                        : take_place(node, &segment, seat, error);
}

/* ---- revealing ------------------------------------------------------------------ */

static enum status visit_sealed(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_seat *seat = row;
    struct action action = {.job = seat->job, .segment = seat->segment, .place = seat->place};
    struct store_segment segment;
    struct verdict_db_seal verdict;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &seat->segment, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    verdict = node_seal(node, &segment, seat->place);
    status = verdict_db_find_seal(&verdict, node->ports.verdicts, error);
    if (status != STATUS_OK) { /* the file was lost since: nobody knows what was sealed */
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    action.kind = verdict.verdict == GAME_VERDICT_FALSE ? ACTION_ALARM : ACTION_REVEAL;
    action.due_s = node_seal_end(&segment);
    action.late_s = node_reveal_end(&segment);
    node_name(action.name, action.kind, &segment.hash, seat->place);
    return node->clock.time_s > action.late_s ? STATUS_OK : node_plan_again(node, &action, error);
}

/* ---- draws ---------------------------------------------------------------------- */

/* It is in the interest of the panel: draws at once. */
static enum status visit_undrawn(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_segment *segment = row;
    struct action action = {.kind = ACTION_DRAW,
                            .job = segment->job,
                            .segment = segment->hash,
                            .due_height = segment->committed.height + node->clock.seed_delay,
                            .late_s = GAME_TIME_MAX};

    action_name(action.name, ACTION_DRAW, &segment->hash);
    return node_plan_again(node, &action, error);
}

#define OUR_PANEL "EXISTS (SELECT 1 FROM entries e WHERE e.job = s.job AND e.ours AND NOT e.gone)"
/* One that is gone says nothing more. */
#define ENTRY_IS_THERE                                                                             \
    " AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.job = s.job AND e.number = p.entry AND"      \
    " e.gone)"

enum status node_seats_round(struct node *node, struct error *error)
{
    struct store *store = node->ports.store;

    if (!node->options.by_hand) {
        TRY(store_visit(store, STORE_SEGMENTS,
                        "NOT s.void AND s.seed IS NULL AND (j.phase = :job_running OR (j.phase ="
                        " :job_closed AND NOT j.delivered AND s.idx + 1 = j.finalized)) AND"
                        " s.panel > 0 AND " OUR_PANEL,
                        visit_undrawn, node, error));
        TRY(store_visit(store, STORE_SEATS,
                        "p.ours AND p.phase = :seat_drawn AND p.round = s.round AND NOT s.ended AND"
                        " NOT s.void",
                        visit_drawn, node, error));
    }
    return store_visit(
        store, STORE_SEATS,
        "p.ours AND p.phase = :seat_sealed AND p.round = s.round AND NOT s.void" ENTRY_IS_THERE,
        visit_sealed, node, error);
}

/* ---- sending -------------------------------------------------------------------- */

static enum status raise_alarm(struct node *node, const struct action *action,
                               const struct store_segment *segment,
                               const struct ledger_verdict *verdict, struct error *error)
{
    struct game_case *shown = calloc(1, sizeof(*shown));
    enum status status;

    if (shown == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an alarm");
    }
    TRY_OUT(dispute_case(shown, node->ports.store, segment, verdict->step, error));
    status = ledger_alarm(node->ports.ledger, action->name, verdict, shown, error);
out:
    free(shown);
    return status;
}

/* Always the same, and nobody else can guess it. */
static struct hash32 salt_of(const struct node *node, const struct store_segment *segment,
                             uint32_t place)
{
    uint8_t about[2 * HASH32_SIZE + sizeof(place)];

    memcpy(about, segment->hash.bytes, HASH32_SIZE);
    memcpy(about + HASH32_SIZE, segment->seed.bytes, HASH32_SIZE);
    endian_store_be32(about + sizeof(about) - sizeof(place), place);
    return verdict_db_derive(node->ports.verdicts, "the salt of a verdict", about, sizeof(about));
}

enum status node_seats_send(struct node *node, const struct action *action,
                            const struct store_segment *segment, struct error *error)
{
    struct verdict_db_seal sealed = node_seal(node, segment, action->place);
    struct ledger_verdict verdict = {
        .job = segment->job, .segment = segment->committed, .place = action->place};
    enum status status = verdict_db_find_seal(&sealed, node->ports.verdicts, error);

    if (status == STATUS_NOT_FOUND) {
        return error_set(error, STATUS_REFUSED, "the verdict database has no verdict of the place");
    }
    TRY(status);
    verdict.verdict = sealed.verdict;
    verdict.step = sealed.step;
    verdict.leaves = sealed.leaves;
    verdict.salt = salt_of(node, segment, action->place);
    switch ((int)action->kind) {
    case ACTION_SEAL:
        return ledger_seal(node->ports.ledger, action->name, &verdict, error);
    case ACTION_REVEAL:
        return ledger_reveal(node->ports.ledger, action->name, &verdict, error);
    default:
        return raise_alarm(node, action, segment, &verdict, error);
    }
}
