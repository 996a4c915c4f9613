/* queue.c - see queue.h. */
#include "verifier/store/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})

/* After so many failed tries a job comes behind the others. */
#define POISON_FROM 3

/* ---- checks -------------------------------------------------------------- */

/* A check that waits or runs already needs no new place. */
static enum status find_room(struct store *store, bool *full, const struct store_segment *segment,
                             const struct task *task, struct error *error)
{
    int64_t without = 0;
    enum status status = database_number(
        &store->sql, &without, 0, error,
        "SELECT coalesce(sum(job = ?2), 0) >= ?1 - count(*) AND NOT EXISTS (SELECT 1 FROM tasks"
        " WHERE segment = ?3 AND previous = ?4 AND seed = ?5 AND proven = ?6 AND kind = ?7 AND"
        " state IN (:task_waiting, :task_running)) FROM tasks WHERE state = :task_waiting",
        "ibbbbii", (int64_t)store->tasks_max, BLOB(segment->job), BLOB(segment->hash),
        BLOB(segment->previous), BLOB(segment->draw.seed), (int64_t)task->proven,
        (int64_t)task->kind);

    *full = without != 0;
    return status;
}

enum status queue_add(struct store *store, bool *full, const struct store_segment *segment,
                      const struct task *task, struct error *error)
{
    enum status status = find_room(store, full, segment, task, error);

    if (status != STATUS_OK || *full) {
        return status;
    }
    /* A reorganization, or an earlier round, may have ended it without a verdict. */
    return database_run(
        &store->sql, error,
        "INSERT INTO tasks (kind, job, idx, segment, previous, steps, seed, proven, extra,"
        " deadline_s, expiry_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (segment,"
        " previous, seed, proven, kind) DO UPDATE SET deadline_s = excluded.deadline_s, expiry_s = "
        "excluded.expiry_s,"
        " next_ms = iif(state = :task_skipped, 0, next_ms),"
        " state = iif(state = :task_skipped, :task_waiting, state)",
        "ibibbibiiii", (int64_t)task->kind, BLOB(segment->job), (int64_t)segment->committed.index,
        BLOB(segment->hash), BLOB(segment->previous), (int64_t)segment->committed.steps,
        BLOB(segment->draw.seed), (int64_t)task->proven, (int64_t)task->extra,
        (int64_t)task->deadline_s, (int64_t)task->expiry_s);
}

enum status queue_again(struct store *store, const struct task *task, uint64_t deadline_s,
                        struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE tasks SET state = :task_waiting, next_ms = 0, deadline_s = ?,"
                        " expiry_s = ? WHERE number = ? AND state = :task_done",
                        "iii", (int64_t)deadline_s, (int64_t)deadline_s, task->number);
}

struct store_segment queue_trial_of(const struct store_job *job)
{
    return (struct store_segment){.job = job->key, .hash = job->key};
}

#define TASK_COLUMNS                                                                               \
    "SELECT t.number, t.job, t.idx, t.segment, t.previous, t.seed, t.proven, t.extra, t.attempts," \
    " t.deadline_s, t.expiry_s, t.state, t.outcome, t.unavailable, t.line_works, t.kind"           \
    " FROM tasks t "

static enum status read_task(struct store *store, struct task *task, sqlite3_stmt *row,
                             struct error *error)
{
    enum status status;

    memset(task, 0, sizeof(*task));
    if (row == NULL) {
        return error->status;
    }
    status = database_step(&store->sql, row, error);
    if (status == STATUS_OK) {
        task->number = sqlite3_column_int64(row, 0);
        task->index = (uint32_t)sqlite3_column_int64(row, 2);
        task->proven = (uint32_t)sqlite3_column_int64(row, 6);
        task->extra = sqlite3_column_int(row, 7) != 0;
        task->attempts = (uint32_t)sqlite3_column_int64(row, 8);
        task->deadline_s = (uint64_t)sqlite3_column_int64(row, 9);
        task->expiry_s = (uint64_t)sqlite3_column_int64(row, 10);
        task->state = (enum task_state)sqlite3_column_int(row, 11);
        task->outcome = (enum check_outcome)sqlite3_column_int(row, 12);
        task->unavailable = sqlite3_column_int(row, 13) != 0;
        task->line_works = sqlite3_column_int(row, 14) != 0;
        task->kind = (enum task_kind)sqlite3_column_int(row, 15);
        if (task->kind >= TASK_KINDS ||
            !database_blob_column(row, 1, task->job.bytes, HASH32_SIZE) ||
            !database_blob_column(row, 3, task->segment.bytes, HASH32_SIZE) ||
            !database_blob_column(row, 4, task->previous.bytes, DIGEST_SIZE) ||
            !database_blob_column(row, 5, task->seed.bytes, HASH32_SIZE)) {
            status = error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
        }
    }
    database_done(&store->sql, row);
    return status;
}

enum status queue_find(struct store *store, struct task *task, enum task_kind kind,
                       const struct store_segment *segment, uint32_t proven, struct error *error)
{
    return read_task(store, task,
                     database_query(&store->sql, error,
                                    TASK_COLUMNS "WHERE t.segment = ? AND t.previous = ? AND"
                                                 " t.seed = ? AND t.proven = ? AND t.kind = ?",
                                    "bbbii", BLOB(segment->hash), BLOB(segment->previous),
                                    BLOB(segment->draw.seed), (int64_t)proven, (int64_t)kind),
                     error);
}

enum status queue_reason(struct store *store, char *text, const struct task *task,
                         struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &store->sql, error, "SELECT reason FROM tasks WHERE number = ?", "i", task->number);

    (void)snprintf(text, STORE_REASON_MAX, "%s",
                   status == STATUS_OK ? (const char *)sqlite3_column_text(row, 0) : "");
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status queue_result(struct store *store, struct check_result **result, const struct task *task,
                         struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        "SELECT result FROM tasks WHERE number = ? AND"
                                        " state = :task_done",
                                        "i", task->number);

    *result = NULL;
    if (status == STATUS_OK) {
        *result = malloc(sizeof(**result));
        status = *result == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for a result")
                                 : check_result_parse(*result, sqlite3_column_text(row, 0),
                                                      (size_t)sqlite3_column_bytes(row, 0), error);
    }
    database_done(&store->sql, row);
    return status;
}

enum status queue_next(struct store *store, struct task *task, uint64_t now_ms, uint32_t of_job_max,
                       bool states_only, struct error *error)
{
    return read_task(
        store, task,
        database_query(
            &store->sql, error,
            TASK_COLUMNS
            "WHERE t.next_ms NOT BETWEEN ?1 + 1 AND ?1 + ?2 AND t.state = :task_waiting AND"
            " (t.kind = :fetch OR (NOT ? AND (SELECT count(*) FROM tasks r WHERE r.job = t.job AND"
            " r.state = :task_running) < ?)) ORDER BY t.kind = :fetch DESC, (SELECT "
            "coalesce(sum(f.attempts), 0) FROM tasks f WHERE f.job = t.job AND"
            " f.outcome = :cannot_tell AND f.state <> :task_running) >= ?, t.deadline_s, t.number"
            " LIMIT 1",
            "iiiii", (int64_t)now_ms, (int64_t)QUEUE_WAIT_MS_MAX, (int64_t)states_only,
            (int64_t)of_job_max, (int64_t)POISON_FROM),
        error);
}

enum status queue_get(struct store *store, struct task *task, int64_t number, struct error *error)
{
    return read_task(
        store, task,
        database_query(&store->sql, error, TASK_COLUMNS "WHERE t.number = ?", "i", number), error);
}

enum status queue_begin(struct store *store, const struct task *task, uint64_t now_ms,
                        struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE tasks SET state = :task_running, attempts = attempts + 1,"
                        " begun_ms = ? WHERE number = ?",
                        "ii", (int64_t)now_ms, task->number);
}

enum status queue_finish(struct store *store, const struct task *task,
                         const struct check_result *result, enum task_state state, uint64_t now_ms,
                         uint64_t next_ms, struct error *error)
{
    json_t *object = check_result_json(result);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    enum status status =
        database_run(&store->sql, error,
                     "UPDATE tasks SET state = ?, outcome = ?, reason = ?, result = ?, next_ms = ?,"
                     " ended_ms = ?, unavailable = ?, line_works = ? WHERE number = ?",
                     "iittiiiii", (int64_t)state, (int64_t)result->outcome, result->reason, text,
                     (int64_t)next_ms, (int64_t)now_ms, (int64_t)result->unavailable,
                     (int64_t)result->line_works, task->number);

    free(text);
    json_decref(object);
    return status;
}

enum status queue_recover(struct store *store, struct error *error)
{
    return database_run(
        &store->sql, error,
        "UPDATE tasks SET state = :task_waiting, next_ms = 0 WHERE state = :task_running", "");
}

enum status queue_forget_fault(struct store *store, struct error *error)
{
    return database_run(
        &store->sql, error,
        "UPDATE tasks SET state = :task_waiting, next_ms = 0 WHERE state = :task_done"
        " AND outcome = :fault",
        "");
}

enum status queue_expire(struct store *store, uint64_t now_s, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE tasks SET state = :task_skipped, reason = CASE reason WHEN '' THEN"
                        " 'its time was over before it was begun' ELSE 'its time is over; last: '"
                        " || reason END WHERE state = :task_waiting AND expiry_s < ?",
                        "i", (int64_t)now_s);
}

/* ---- moves --------------------------------------------------------------- */

/* The segment that a move is about, or whose claim it is about. */
static bool find_place(char place[STORE_PLACE_TEXT], struct store *store,
                       const struct action *action)
{
    struct store_segment segment;
    struct store_dispute dispute;
    struct error ignored;

    error_init(&ignored);
    if (store_segment_by_hash(store, &segment, &action->segment, &ignored) == STATUS_OK) {
        store_place_text(place, &segment.job, segment.committed.index);
        return true;
    }
    if (store_dispute(store, &dispute, &action->claim, &ignored) == STATUS_OK) {
        store_place_text(place, &dispute.job, dispute.index);
        return true;
    }
    if (!hash32_is_zero(&action->job)) {
        store_job_text(place, &action->job);
        return true;
    }
    return false;
}

void action_text(char text[ACTION_TEXT], struct store *store, const struct action *action,
                 enum action_state state)
{
    static const char *const done[ACTION_KINDS] = {
        "enlisted",    "departed",         "sealed",     "revealed",     "alarmed",
        "said unseen", "challenge sealed", "challenged", "claim sealed", "claimed",
        "queried",     "convicted",        "withdrawn",  "announced",    "drawn",
        "timed out",   "lapsed",           "paid",       "settled",      "released"};
    static const char *const ends[ACTION_STATES] = {"planned", "sent",     "done",
                                                    "refused", "too late", "made by somebody else"};
    char place[STORE_PLACE_TEXT] = "";
    bool placed = find_place(place, store, action);

    if (state == ACTION_DONE) {
        (void)snprintf(text, ACTION_TEXT, "%s%s%s", place, placed ? ": " : "", done[action->kind]);
    } else {
        (void)snprintf(text, ACTION_TEXT, "%s%s%s: %s", place, placed ? ": " : "",
                       action_kind_name(action->kind), ends[state]);
    }
}

void action_name(char name[LEDGER_NAME_MAX + 1], enum action_kind kind, const struct hash32 *about)
{
    char text[HEX_SIZE(HASH32_SIZE)];

    hex_encode(text, about->bytes, HASH32_SIZE);
    (void)snprintf(name, LEDGER_NAME_MAX + 1, "%s/%s", action_kind_name(kind), text);
}

enum status action_plan(struct store *store, const struct action *action, struct error *error)
{
    return database_run(
        &store->sql, error,
        "INSERT OR IGNORE INTO actions (name, kind, job, segment, claim, before, pre, post, place,"
        " number, generation, step, due_s, due_height, late_s, after) VALUES (?, ?, ?, ?, ?, ?,"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "tibbbbbbiiiiiiit", action->name, (int64_t)action->kind, BLOB(action->job),
        BLOB(action->segment), BLOB(action->claim), BLOB(action->before), BLOB(action->pre_state),
        BLOB(action->post_state), (int64_t)action->place, (int64_t)action->number,
        (int64_t)action->generation, (int64_t)action->step, (int64_t)action->due_s,
        (int64_t)action->due_height, (int64_t)action->late_s, action->after);
}

#define ACTION_COLUMNS                                                                             \
    "SELECT name, kind, job, segment, claim, before, pre, post, place, number, step, due_s,"       \
    " due_height, late_s, after, state, tries, refusal, generation FROM actions "

static enum status read_action(void *one, sqlite3_stmt *row, struct error *error)
{
    struct action *action = one;
    int kind = sqlite3_column_int(row, 1);
    int state = sqlite3_column_int(row, 15);
    int refusal = sqlite3_column_int(row, 17);

    memset(action, 0, sizeof(*action));
    if (refusal < 0 || refusal >= GAME_REFUSAL_KINDS || kind < 0 || kind >= ACTION_KINDS ||
        state < 0 || state >= ACTION_STATES ||
        !database_blob_column(row, 2, action->job.bytes, HASH32_SIZE) ||
        !database_blob_column(row, 3, action->segment.bytes, HASH32_SIZE) ||
        !database_blob_column(row, 4, action->claim.bytes, HASH32_SIZE) ||
        !database_blob_column(row, 5, action->before.bytes, DIGEST_SIZE) ||
        !database_blob_column(row, 6, action->pre_state.bytes, DIGEST_SIZE) ||
        !database_blob_column(row, 7, action->post_state.bytes, DIGEST_SIZE)) {
        return error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
    }
    (void)snprintf(action->name, sizeof(action->name), "%s",
                   (const char *)sqlite3_column_text(row, 0));
    (void)snprintf(action->after, sizeof(action->after), "%s",
                   (const char *)sqlite3_column_text(row, 14));
    action->kind = (enum action_kind)kind;
    action->state = (enum action_state)state;
    action->place = (uint32_t)sqlite3_column_int64(row, 8);
    action->number = (uint32_t)sqlite3_column_int64(row, 9);
    action->step = (uint32_t)sqlite3_column_int64(row, 10);
    action->due_s = (uint64_t)sqlite3_column_int64(row, 11);
    action->due_height = (uint64_t)sqlite3_column_int64(row, 12);
    action->late_s = (uint64_t)sqlite3_column_int64(row, 13);
    action->tries = (uint32_t)sqlite3_column_int64(row, 16);
    action->refusal = (enum game_refusal_kind)refusal;
    action->generation = (uint32_t)sqlite3_column_int64(row, 18);
    return STATUS_OK;
}

enum status action_find(struct store *store, struct action *action, const char *name,
                        struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, &store->sql, error, ACTION_COLUMNS "WHERE name = ?", "t", name);

    if (status == STATUS_OK) {
        status = read_action(action, row, error);
    }
    database_done(&store->sql, row);
    return status;
}

/* Moves of a dispute and claims come first: a turn or a claim that is late is lost. */
enum status action_list(struct store *store, struct action *actions, uint32_t *count,
                        enum action_state state, uint64_t now_s, uint64_t height,
                        struct error *error)
{
    sqlite3_stmt *row = database_query(
        &store->sql, error,
        ACTION_COLUMNS
        "WHERE state = ? AND due_s < ? AND due_height <= ? ORDER BY kind IN"
        " (:seal, :reveal, :alarm, :unseen, :seal_claim, :claim, :query, :convict) DESC,"
        " late_s LIMIT ?",
        "iiii", (int64_t)state, (int64_t)now_s, (int64_t)height, (int64_t)QUEUE_ACTIONS_MAX);

    return database_collect(&store->sql, actions, count, row, sizeof(*actions), QUEUE_ACTIONS_MAX,
                            read_action, error);
}

enum status action_list_done(struct store *store, struct action *actions, uint32_t *count,
                             const char *after, struct error *error)
{
    sqlite3_stmt *row =
        database_query(&store->sql, error,
                       ACTION_COLUMNS "WHERE state = :action_done AND name > ? ORDER BY name"
                                      " LIMIT ?",
                       "ti", after, (int64_t)QUEUE_ACTIONS_MAX);

    return database_collect(&store->sql, actions, count, row, sizeof(*actions), QUEUE_ACTIONS_MAX,
                            read_action, error);
}

enum status action_set(struct store *store, const struct action *action, enum action_state state,
                       uint64_t due_s, const char *trouble, struct error *error)
{
    return database_run(
        &store->sql, error,
        "UPDATE actions SET state = ?, due_s = ?, trouble = ?, tries = ?, refusal = ?"
        " WHERE name = ?",
        "iitiit", (int64_t)state, (int64_t)due_s, trouble, (int64_t)action->tries,
        (int64_t)action->refusal, action->name);
}

enum status action_adjust(struct store *store, const struct action *action, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE actions SET number = ?, due_s = ?, late_s = ? WHERE name = ?",
                        "iiit", (int64_t)action->number, (int64_t)action->due_s,
                        (int64_t)action->late_s, action->name);
}

enum status action_forget(struct store *store, const struct action *action, struct error *error)
{
    return database_run(&store->sql, error, "DELETE FROM actions WHERE name = ?", "t",
                        action->name);
}

#define OF_TURN " WHERE claim = ? AND number = ? AND kind IN (:query, :convict)"

enum status action_of_turn(struct store *store, struct action *action, uint32_t *count,
                           const struct hash32 *claim, uint32_t turn, struct error *error)
{
    const struct database_blob key = {claim->bytes, HASH32_SIZE};
    int64_t rows = 0;
    enum status status =
        database_number(&store->sql, &rows, 0, error, "SELECT count(*) FROM actions" OF_TURN, "bi",
                        &key, (int64_t)turn);
    sqlite3_stmt *row;

    *count = (uint32_t)rows;
    if (status != STATUS_OK || rows == 0) {
        return status == STATUS_OK ? STATUS_NOT_FOUND : status;
    }
    status = database_first(&row, &store->sql, error,
                            ACTION_COLUMNS OF_TURN " ORDER BY rowid DESC LIMIT 1", "bi", &key,
                            (int64_t)turn);
    if (status == STATUS_OK) {
        status = read_action(action, row, error);
    }
    database_done(&store->sql, row);
    return status;
}

enum status action_count_acquitted(struct store *store, uint32_t *count, const struct hash32 *claim,
                                   uint32_t turn, struct error *error)
{
    int64_t rows = 0;
    enum status status = database_number(&store->sql, &rows, 0, error,
                                         "SELECT count(*) FROM actions" OF_TURN
                                         " AND state = :action_refused AND refusal = ?",
                                         "bii", &(struct database_blob){claim->bytes, HASH32_SIZE},
                                         (int64_t)turn, (int64_t)GAME_NOT_GUILTY);

    *count = (uint32_t)rows;
    return status;
}
