/* node_seats.c - see node_seats.h. */
#include "verifier/node/node_seats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "verifier/dispute/dispute_case.h"
#include "verifier/node/solver_timeout.h"

enum {
    LATE_SHARE = 8,    /* the last part of the seal period: states that are not here are not seen */
    DRAW_SHARE = 32,   /* of the seal period: the last node of a panel draws by then, */
    DRAW_FIRST_S = 24, /* ... behind the solver, which has two blocks for it, */
    DRAW_EACH_S = 12,  /* ... and so far apart for each owner */
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
static enum status decide_verdict(struct node *node, const struct store_segment *segment,
                                  const struct store_seat *seat,
                                  const struct verdict_db_seal *verdict, struct error *error)
{
    enum status status = verdict_db_seal(node->ports.verdicts, verdict, error);

    if (status == STATUS_REFUSED) {
        log_error(node->ports.log, "verifier", "%s", error->text);
        return STATUS_OK;
    }
    TRY(status);
    TRY(store_set_number(node->ports.store, "verdict_s", (int64_t)node->clock.time_s, error));
    return plan_seal(node, segment, seat, error);
}

/* Is a verdict of this segment, as it was committed, in the verdict database? A check whose verdict
 * was lost there is made again. */
static enum status is_vouched(struct node *node, bool *is, const struct store_segment *segment,
                              const struct check_result *result, enum game_verdict verdict,
                              const struct task *task, struct error *error)
{
    struct verdict_db_entry entry = node_entry(node, segment, &result->before);
    enum status status = verdict_db_find(&entry, node->ports.verdicts, error);

    *is = status == STATUS_OK && entry.verdict == verdict &&
          (verdict == GAME_VERDICT_RIGHT || entry.step == result->step);
    return status == STATUS_NOT_FOUND
               ? queue_again(node->ports.store, task, task->deadline_s, error)
               : status;
}

/* *is: the result is a verdict of this segment. It may be about one before it. */
static enum status read_verdict(struct node *node, bool *is, struct verdict_db_seal *verdict,
                                const struct store_segment *segment, const struct store_seat *seat,
                                const struct task *task, struct error *error)
{
    struct check_result *result = NULL;
    enum status status = queue_result(node->ports.store, &result, task, error);

    *is = false;
    *verdict = node_seal(node, segment, seat->place);
    TRY_OUT(status);
    *is = result->outcome == CHECK_PROVEN ? result->has_leaves
                                          : result->index == segment->committed.index;
    verdict->verdict = result->outcome == CHECK_PROVEN ? GAME_VERDICT_RIGHT : GAME_VERDICT_FALSE;
    if (*is) {
        TRY_OUT(is_vouched(node, is, segment, result, verdict->verdict, task, error));
    }
    if (result->outcome == CHECK_PROVEN) {
        check_result_rights(&verdict->leaves, result, &seat->owner, &segment->draw.seed,
                            &segment->hash);
    } else {
        verdict->step = result->step;
    }
out:
    free(result);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static bool is_done(const struct task *task)
{
    return task->state == TASK_DONE &&
           (task->outcome == CHECK_PROVEN || task->outcome == CHECK_REFUTED);
}

/* Sealed before, in the database at least: a crash came before the plan. */
static enum status find_sealed(struct node *node, const struct store_segment *segment,
                               const struct store_seat *seat, struct error *error)
{
    struct verdict_db_seal verdict = node_seal(node, segment, seat->place);

    TRY(verdict_db_find_seal(&verdict, node->ports.verdicts, error));
    return plan_seal(node, segment, seat, error);
}

static enum status say_reason(struct node *node, const struct store_segment *segment,
                              const struct store_seat *seat, const char *reason,
                              struct error *error)
{
    char place[STORE_PLACE_TEXT];

    store_place_text(place, &segment->job, segment->committed.index);
    log_warn(node->ports.log, "verifier", "%s: place %" PRIu32 ": %s", place, seat->place, reason);
    return store_say(node->ports.store, seat, reason, error);
}

/* A right is paid out of the pool: where that is empty, a replay would be for nothing. */
static enum status asks_pool(struct node *node, bool *pays, const struct store_segment *segment,
                             const struct store_seat *seat, struct error *error)
{
    struct ledger_job job;

    *pays = false;
    if (seat->reason[0] != '\0') {
        return STATUS_OK;
    }
    TRY(ledger_get_job(node->ports.ledger, &job, &segment->job, error));
    *pays = job.pool / (segment->draw.seats == 0 ? 1 : segment->draw.seats) >= segment->terms.fee;
    return *pays ? STATUS_OK
                 : say_reason(node, segment, seat,
                              "it is not replayed: the fees of the job do not pay all of its seats",
                              error);
}

/* The states first, since their solver may show them for a while only; then the check. */
static enum status begin_seat(struct node *node, const struct store_segment *segment,
                              const struct store_seat *seat, struct error *error)
{
    struct task wanted = {.kind = TASK_FETCH,
                          .deadline_s = node_seal_end(segment),
                          .expiry_s = node_seal_end(segment)};
    bool pays = false;
    bool full = false;

    TRY(asks_pool(node, &pays, segment, seat, error));
    if (!pays) {
        return STATUS_OK;
    }
    TRY(queue_add(node->ports.store, &full, segment, &wanted, error));
    wanted.kind = TASK_CHECK;
    return queue_add(node->ports.store, &full, segment, &wanted, error);
}

/* Were the states not to be had until now, though this machine's line works? Lack of time, memory
 * or processor is silence. The keeper is among those who were asked. */
static bool is_unseen(const struct node *node, const struct store_segment *segment,
                      const struct task *states)
{
    return states->state != TASK_DONE && states->unavailable && states->line_works &&
           node->clock.time_s + segment->terms.seal_period_s / LATE_SHARE > node_seal_end(segment);
}

static enum status plan_unseen(struct node *node, const struct store_segment *segment,
                               const struct store_seat *seat, const struct task *states,
                               struct error *error)
{
    struct action action = {.kind = ACTION_UNSEEN,
                            .job = segment->job,
                            .segment = segment->hash,
                            .place = seat->place,
                            .late_s = node_seal_end(segment)};
    char reason[STORE_REASON_MAX];
    char text[STORE_REASON_MAX];

    node_name(action.name, ACTION_UNSEEN, &segment->hash, seat->place);
    if (seat->reason[0] == '\0') {
        TRY(queue_reason(node->ports.store, reason, states, error));
        (void)snprintf(text, sizeof(text), "its states were not to be had: %.400s", reason);
        TRY(say_reason(node, segment, seat, text, error));
    }
    return node_plan_again(node, &action, error);
}

/* Has it said unseen, or is it about to? Then no verdict follows. */
static enum status said_unseen(struct node *node, bool *said, const struct store_segment *segment,
                               const struct store_seat *seat, struct error *error)
{
    struct action before;
    char name[LEDGER_NAME_MAX + 1];
    enum status status;

    node_name(name, ACTION_UNSEEN, &segment->hash, seat->place);
    status = action_find(node->ports.store, &before, name, error);
    *said = status == STATUS_OK && (before.state == ACTION_SENT || before.state == ACTION_DONE);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status take_check(struct node *node, bool *sealed, const struct store_segment *segment,
                              const struct store_seat *seat, const struct task *task,
                              struct error *error)
{
    const struct task wanted = {.deadline_s = node_seal_end(segment),
                                .expiry_s = node_seal_end(segment)};
    struct verdict_db_seal verdict;
    bool full = false;

    *sealed = false;
    if (is_done(task)) {
        TRY(read_verdict(node, sealed, &verdict, segment, seat, task, error));
    }
    if (*sealed) {
        return decide_verdict(node, segment, seat, &verdict, error);
    }
    return task->deadline_s > wanted.deadline_s /* a sample, that waited for no place */
               ? queue_add(node->ports.store, &full, segment, &wanted, error)
               : STATUS_OK;
}

static enum status take_place(struct node *node, const struct store_segment *segment,
                              const struct store_seat *seat, struct error *error)
{
    struct store *store = node->ports.store;
    struct task states;
    struct task check;
    bool ended = false;
    enum status status = find_sealed(node, segment, seat, error);

    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    TRY(said_unseen(node, &ended, segment, seat, error));
    if (ended) {
        return STATUS_OK;
    }
    status = queue_find(store, &states, TASK_FETCH, segment, 0, error);
    if (status == STATUS_NOT_FOUND) {
        return begin_seat(node, segment, seat, error);
    }
    TRY(status);
    status = queue_find(store, &check, TASK_CHECK, segment, 0, error);
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && check.state == TASK_SKIPPED && check.attempts == 0)) {
        return begin_seat(node, segment, seat, error);
    }
    TRY(status);
    TRY(take_check(node, &ended, segment, seat, &check, error));
    return !ended && is_unseen(node, segment, &states)
               ? plan_unseen(node, segment, seat, &states, error)
               : STATUS_OK;
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

/* Always the same, and nobody else can guess it. */
static struct hash32 salt_of(const struct node *node, const struct store_segment *segment,
                             uint32_t place)
{
    uint8_t about[2 * HASH32_SIZE + sizeof(place)];

    memcpy(about, segment->hash.bytes, HASH32_SIZE);
    memcpy(about + HASH32_SIZE, segment->draw.seed.bytes, HASH32_SIZE);
    endian_store_be32(about + sizeof(about) - sizeof(place), place);
    return verdict_db_derive(node->ports.verdicts, "the salt of a verdict", about, sizeof(about));
}

/* Is it what this account has sealed on the ledger? */
static bool is_sealed(const struct node *node, const struct store_segment *segment,
                      const struct store_seat *seat, const struct verdict_db_seal *verdict)
{
    const struct hash32 salt = salt_of(node, segment, seat->place);
    const struct hash32 seal =
        game_verdict_seal(&seat->owner, &segment->hash, verdict->verdict, verdict->step,
                          verdict->verdict == GAME_VERDICT_RIGHT ? &verdict->leaves : NULL, &salt);

    return hash32_equal(&seal, &seat->seal);
}

/* The verdict database has lost what was sealed: a check and the secret make it again. *found: it
 * is there now. */
static enum status make_again(struct node *node, bool *found, const struct store_segment *segment,
                              const struct store_seat *seat, struct verdict_db_seal *verdict,
                              struct error *error)
{
    const uint64_t end_s = node_reveal_end(segment);
    struct task wanted = {.kind = TASK_FETCH, .deadline_s = end_s, .expiry_s = end_s};
    struct task check;
    bool full = false;
    enum status status = queue_find(node->ports.store, &check, TASK_CHECK, segment, 0, error);

    if (status == STATUS_OK && is_done(&check)) {
        TRY(read_verdict(node, found, verdict, segment, seat, &check, error));
        if (!*found) {
            return STATUS_OK;
        }
        *found = is_sealed(node, segment, seat, verdict);
        if (*found) {
            TRY(verdict_db_seal(node->ports.verdicts, verdict, error));
            return store_say(node->ports.store, seat, "", error);
        }
        return STATUS_OK;
    }
    if (status != STATUS_NOT_FOUND && (status != STATUS_OK || check.expiry_s >= end_s)) {
        return status;
    }
    TRY(queue_add(node->ports.store, &full, segment, &wanted, error));
    wanted.kind = TASK_CHECK;
    return queue_add(node->ports.store, &full, segment, &wanted, error);
}

/* *found: the verdict that the ledger has a seal of is in the verdict database. */
static enum status find_verdict(struct node *node, bool *found, const struct store_segment *segment,
                                const struct store_seat *seat, struct verdict_db_seal *verdict,
                                struct error *error)
{
    enum status status;

    *verdict = node_seal(node, segment, seat->place);
    *found = false;
    status = verdict_db_find_seal(verdict, node->ports.verdicts, error);
    if (status == STATUS_NOT_FOUND) {
        TRY(make_again(node, found, segment, seat, verdict, error));
        return *found || seat->reason[0] != '\0'
                   ? STATUS_OK
                   : say_reason(
                         node, segment, seat,
                         "the verdict database has lost what was sealed: it is found again by a"
                         " check, to be revealed in time",
                         error);
    }
    TRY(status);
    *found = is_sealed(node, segment, seat, verdict);
    return *found || seat->reason[0] != '\0'
               ? STATUS_OK
               : say_reason(node, segment, seat,
                            "this account has sealed something else on the ledger than the verdict"
                            " database says: nothing is revealed; does another node use this key?",
                            error);
}

static enum status visit_sealed(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_seat *seat = row;
    struct action action = {.job = seat->job, .segment = seat->segment, .place = seat->place};
    struct store_segment segment;
    struct verdict_db_seal verdict;
    bool found = false;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &seat->segment, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    action.late_s = node_reveal_end(&segment);
    if (node->clock.time_s > action.late_s) {
        return STATUS_OK;
    }
    TRY(find_verdict(node, &found, &segment, seat, &verdict, error));
    if (!found) {
        return STATUS_OK;
    }
    action.kind = verdict.verdict == GAME_VERDICT_FALSE ? ACTION_ALARM : ACTION_REVEAL;
    action.due_s = node_seal_end(&segment);
    node_name(action.name, action.kind, &segment.hash, seat->place);
    return node_plan_again(node, &action, error);
}

/* ---- places that were missed ----------------------------------------------------- */

#define WHAT_TO_DO                                                                                 \
    "; if that goes on: keep the node running, check fewer jobs (--entries), or replay faster"     \
    " (--threads, --device)"

/* The last moment at which one was missed: the node is not well until it has a verdict again. */
static enum status note_missed(struct node *node, const struct store_segment *segment,
                               struct error *error)
{
    const int64_t missed_s = (int64_t)node_seal_end(segment);
    int64_t last_s = 0;

    TRY(store_number(node->ports.store, &last_s, "missed_s", error));
    return missed_s > last_s ? store_set_number(node->ports.store, "missed_s", missed_s, error)
                             : STATUS_OK;
}

/* It earns nothing there, and loses nothing: people see why. */
static enum status visit_missed(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_seat *seat = row;
    struct store_segment segment;
    char reason[STORE_REASON_MAX] = "";
    char text[STORE_REASON_MAX];
    struct task task;
    enum status status = store_segment_by_hash(node->ports.store, &segment, &seat->segment, error);

    if (status != STATUS_OK || (seat->is_last && node->clock.time_s <= node_seal_end(&segment))) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    status = queue_find(node->ports.store, &task, TASK_CHECK, &segment, 0, error);
    if (status == STATUS_OK) {
        status = queue_reason(node->ports.store, reason, &task, error);
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    (void)snprintf(text, sizeof(text), "no verdict in time: %.250s" WHAT_TO_DO,
                   reason[0] != '\0'            ? reason
                   : status == STATUS_NOT_FOUND ? "the node was away, or saw the draw too late"
                                                : "its check was not done");
    TRY(note_missed(node, &segment, error));
    return say_reason(node, &segment, seat, text, error);
}

/* ---- draws ---------------------------------------------------------------------- */

/* How long this node looks at the ledger first, so that one draws: the solver, which does it at
 * once, or else one of the panel, each after another while. */
static enum status wait_to_draw(struct node *node, uint64_t *wait_s,
                                const struct store_segment *segment, struct error *error)
{
    const uint64_t most_s = segment->terms.seal_period_s / DRAW_SHARE;
    const uint64_t first_s = most_s / 2 < DRAW_FIRST_S ? most_s / 2 : DRAW_FIRST_S;
    int64_t owners = 0;
    uint64_t span_s;

    TRY(database_number(&node->ports.store->sql, &owners, 0, error,
                        "SELECT count(DISTINCT owner) FROM entries WHERE job = ? AND generation ="
                        " ? AND gone = 0",
                        "bi", &(struct database_blob){segment->job.bytes, HASH32_SIZE},
                        (int64_t)segment->committed.generation));
    span_s = DRAW_EACH_S * (uint64_t)(owners > 1 ? owners - 1 : 0);
    span_s = span_s < most_s - first_s ? span_s : most_s - first_s;
    *wait_s = first_s + solver_timeout_place(node, &segment->hash, span_s);
    return STATUS_OK;
}

/* A segment, or another round of one. In the interest of the panel it draws in order. The wait
 * begins with the block of the seed: in those before it, nobody could draw. */
static enum status visit_undrawn(void *context, const void *row, struct error *error)
{
    struct node *node = context;
    const struct store_segment *segment = row;
    const struct job_segment state = store_segment_state(segment);
    struct action action = {.kind = ACTION_DRAW,
                            .job = segment->job,
                            .segment = segment->hash,
                            .due_height = state.commits.height + node->clock.seed_delay,
                            .late_s = GAME_TIME_MAX};
    struct action before;
    uint64_t wait_s = 0;
    enum status status;

    if (node->clock.height < action.due_height ||
        (state.over &&
         job_segment_waits_for(&state, node->clock.time_s) != JOB_SEGMENT_ROUND_UNDRAWN)) {
        return STATUS_OK;
    }
    node_name(action.name, ACTION_DRAW, &segment->hash, state.over ? segment->draw.round + 1 : 0);
    status = action_find(node->ports.store, &before, action.name, error);
    if (status == STATUS_OK && before.state <= ACTION_SENT) {
        return STATUS_OK;
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    TRY(wait_to_draw(node, &wait_s, segment, error));
    action.due_s = node->clock.time_s + wait_s - 1;
    return node_plan_again(node, &action, error);
}

/* Somebody else was first. */
static enum status forget_draws(struct node *node, struct error *error)
{
    return database_run(&node->ports.store->sql, error,
                        "DELETE FROM actions WHERE kind = :draw AND state = :action_planned AND"
                        " NOT EXISTS (SELECT 1 FROM segments s JOIN jobs j ON j.key = s.job WHERE"
                        " s.hash = actions.segment AND NOT s.void AND (s.idx = j.drawn OR"
                        " (s.over_height > 0 AND s.idx >= j.finalized)))",
                        "");
}

#define OUR_PANEL                                                                                  \
    "EXISTS (SELECT 1 FROM entries e WHERE e.job = s.job AND e.generation = s.generation AND"      \
    " e.ours = 1 AND e.gone = 0)"
/* One that is gone says nothing more. */
#define ENTRY_IS_THERE                                                                             \
    " AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.job = s.job AND e.generation ="              \
    " s.generation AND e.number = p.entry AND e.gone = 1)"

enum status node_seats_round(struct node *node, struct error *error)
{
    struct store *store = node->ports.store;

    TRY(forget_draws(node, error));
    if (!node->options.by_hand) {
        TRY(store_visit(store, STORE_SEGMENTS,
                        "NOT s.void AND (s.idx = j.drawn OR (s.over_height > 0 AND s.idx >="
                        " j.finalized)) AND j.phase = :job_running AND s.panel > 0 AND " OUR_PANEL,
                        visit_undrawn, node, error));
        TRY(store_visit(
            store, STORE_SEATS,
            "p.ours = 1 AND p.phase = :seat_drawn AND p.round = s.round AND NOT s.void AND"
            " s.idx >= j.finalized" ENTRY_IS_THERE,
            visit_drawn, node, error));
        TRY(store_visit(store, STORE_SEATS,
                        "p.ours = 1 AND p.phase = :seat_drawn AND coalesce(n.reason, '') = '' AND"
                        " NOT s.void" ENTRY_IS_THERE,
                        visit_missed, node, error));
    }
    return store_visit(
        store, STORE_SEATS,
        "p.ours = 1 AND p.phase = :seat_sealed AND p.round = s.round AND NOT s.void" ENTRY_IS_THERE,
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

enum status node_seats_send(struct node *node, const struct action *action,
                            const struct store_segment *segment, struct error *error)
{
    struct verdict_db_seal sealed = node_seal(node, segment, action->place);
    struct ledger_verdict verdict = {
        .job = segment->job, .segment = segment->committed, .place = action->place};
    enum status status = verdict_db_find_seal(&sealed, node->ports.verdicts, error);

    if (action->kind == ACTION_UNSEEN && status == STATUS_NOT_FOUND) {
        return ledger_unseen(node->ports.ledger, action->name, &segment->job, &segment->committed,
                             action->place, error);
    }
    if (action->kind == ACTION_UNSEEN && status == STATUS_OK) {
        return error_set(error, STATUS_REFUSED, "the place has a verdict by now");
    }
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
