/* node_views.c - see node_views.h. */
#include "verifier/status/node_views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "base/io/log.h"
#include "base/sheet/sheet_rows.h"
#include "chain/money/money_text.h"
#include "verifier/status/node_snapshot.h"
#include "verifier/store/store_money.h"

/* ---- rows as JSON --------------------------------------------------------- */

static json_t *text_json(const char *text)
{
    char plain[ERROR_TEXT_MAX * 6];

    (void)log_escape(plain, sizeof(plain), text == NULL ? "" : text, 0);
    return json_string(plain);
}

/* A column whose numbers are shown as words. */
struct word_column {
    const char *name; /* NULL: no more */
    const struct store_words *words;
};

static const struct store_words *words_of(const struct word_column *columns, const char *name)
{
    for (; columns != NULL && columns->name != NULL; columns++) {
        if (strcmp(columns->name, name) == 0) {
            return columns->words;
        }
    }
    return NULL;
}

/* NULL is the empty word. */
static json_t *word_json(sqlite3_stmt *row, int column, const struct store_words *words)
{
    int64_t number = sqlite3_column_int64(row, column);

    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        return json_string("");
    }
    return json_string(number >= 0 && number < words->count ? words->words[number] : "unknown");
}

static json_t *column_json(sqlite3_stmt *row, int column, const struct word_column *columns)
{
    const struct store_words *words = words_of(columns, sqlite3_column_name(row, column));
    char hex[HEX_SIZE(HASH32_SIZE)];

    if (words != NULL) {
        return word_json(row, column, words);
    }
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
        return json_integer(sqlite3_column_int64(row, column));
    case SQLITE_TEXT:
        return text_json((const char *)sqlite3_column_text(row, column));
    case SQLITE_BLOB:
        if (sqlite3_column_bytes(row, column) > HASH32_SIZE) {
            return json_null();
        }
        hex_encode(hex, sqlite3_column_blob(row, column),
                   (size_t)sqlite3_column_bytes(row, column));
        return json_string(hex);
    default:
        return json_null();
    }
}

/* All rows of a query, keyed by the names of its columns; without those that begin with "_". */
static enum status rows_json(json_t **rows, struct store *store, const char *query,
                             const struct word_column *columns, struct error *error)
{
    char text[2048];
    sqlite3_stmt *row;
    enum status status = STATUS_OK;

    (void)snprintf(text, sizeof(text), "%s LIMIT %d", query, NODE_VIEW_ROWS_MAX);
    *rows = json_array();
    row = database_query(&store->sql, error, text, "");
    if (row == NULL) {
        return error->status;
    }
    while (status == STATUS_OK) {
        status = database_step(&store->sql, row, error);
        if (status == STATUS_OK) {
            json_t *object = json_object();

            for (int i = 0; i < sqlite3_column_count(row); i++) {
                const char *name = sqlite3_column_name(row, i);

                if (name[0] != '_') {
                    (void)json_object_set_new(object, name, column_json(row, i, columns));
                }
            }
            (void)json_array_append_new(*rows, object);
        }
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- status --------------------------------------------------------------- */

#define COUNT_TASKS                                                                                \
    "(SELECT count(*) FROM tasks t WHERE t.job = j.key AND t.kind = :checks AND t.outcome = "

static const char *const outcomes[] = {"cannot-tell", "proven", "refuted", "fault"};
static const struct store_words outcome_words = {sizeof(outcomes) / sizeof(outcomes[0]), outcomes};

_Static_assert(sizeof(outcomes) / sizeof(outcomes[0]) == CHECK_FAULT + 1, "a word for each");

static const struct word_column job_columns[] = {{"phase", &store_job_phase_words}, {0}};
static const struct word_column task_columns[] = {
    {"state", &store_task_state_words}, {"outcome", &outcome_words}, {0}};
static const struct word_column seat_columns[] = {
    {"phase", &store_seat_phase_words}, {"verdict", &store_verdict_words}, {0}};
static const struct word_column right_columns[] = {{"found", &store_judgement_words}, {0}};
static const struct word_column dispute_columns[] = {
    {"phase", &store_claim_phase_words}, {"state", &store_action_state_words}, {0}};
static const struct word_column move_columns[] = {
    {"move", &store_action_kind_words}, {"state", &store_action_state_words}, {0}};
static const struct word_column claim_columns[] = {
    {"move", &store_action_state_words}, {"phase", &store_claim_phase_words}, {0}};

static const struct {
    const char *key;
    const struct word_column *columns;
    const char *query;
} status_views[] = {
    {"facts", NULL,
     "SELECT name, value FROM facts WHERE name NOT IN ('event_log', 'money')"
     " ORDER BY name"},
    {"jobs", job_columns,
     "SELECT j.key AS job, j.phase, j.finalized, j.committed, " COUNT_TASKS
     ":cannot_tell AND t.state = :task_running) AS being_checked, " COUNT_TASKS
     ":proven) AS proven, " COUNT_TASKS ":refuted) AS refuted, " COUNT_TASKS
     ":cannot_tell AND t.state <> :task_done) AS pending"
     " FROM jobs j ORDER BY j.rowid DESC"},
    {"queue", task_columns, NODE_SNAPSHOT_CHECKS},
    {"unanswered", NULL,
     "SELECT job, idx AS segment, attempts, CASE state WHEN :task_skipped THEN 'skipped' WHEN"
     " :task_running THEN 'being checked again' ELSE 'tried again' END AS state, reason FROM tasks "
     "WHERE kind = :checks AND outcome = :cannot_tell AND (state = :task_skipped OR"
     " attempts > (state = :task_running)) ORDER BY number DESC"},
    {"passed_over", NULL,
     "SELECT s.job, s.idx AS segment, c.reason FROM segments s JOIN choices c ON c.segment = s.hash"
     " WHERE c.choice = :passed_over AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.segment = s.hash"
     " AND t.kind = :checks) ORDER BY s.number DESC"},
    {"panels", NULL,
     "SELECT j.key AS job, (SELECT count(*) FROM entries e WHERE e.job = j.key AND e.ours = 1"
     " AND e.gone = 0) AS entries, (SELECT count(*) FROM entries e WHERE e.job = j.key AND e.ours ="
     " 1 AND e.lost_s > 0) AS lost, (SELECT count(*) FROM entries e WHERE e.job = j.key AND "
     "e.generation"
     " = j.generation AND e.gone = 0) AS panel, coalesce(w.reason, '') AS reason FROM jobs j LEFT "
     "JOIN wishes w ON"
     " w.job = j.key WHERE j.phase <> :job_closed OR EXISTS (SELECT 1 FROM entries e WHERE"
     " e.job = j.key AND e.ours = 1 AND e.gone = 0) ORDER BY j.rowid DESC"},
    {"seats", seat_columns,
     "SELECT s.job, s.idx AS segment, p.place, p.phase, p.verdict, s.rights, s.unseen,"
     " coalesce(n.reason, '') AS reason"
     " FROM seats p JOIN segments s ON s.hash = p.segment JOIN jobs j ON j.key = s.job LEFT JOIN"
     " notes n ON n.segment = p.segment AND n.place = p.place WHERE p.ours = 1"
     " AND (coalesce(n.reason, '') <> '' OR (p.phase <> :seat_closed AND NOT s.void AND s.idx >= "
     "j.finalized))"
     " ORDER BY s.number DESC, p.place"},
    {"rights_of_others", right_columns,
     "SELECT coalesce(n.judgement, :not_judged) AS found, count(*) AS count FROM seats p LEFT JOIN"
     " notes n ON n.segment = p.segment AND n.place = p.place WHERE p.ours = 0 AND p.verdict ="
     " :right GROUP BY 1 ORDER BY 1"},
    {"disputes", dispute_columns,
     "SELECT d.key AS claim, d.idx AS segment, d.step, d.phase, CASE WHEN d.deadline_s = 0 THEN"
     " 'nobody''s' WHEN d.turn = :turn_claimant THEN 'the claimant''s' ELSE 'the solver''s' END AS"
     " turn, d.deadline_s, coalesce(a.name, '') AS move, a.state,"
     " coalesce(a.trouble, '') AS refusal, coalesce(e.tries, 0) AS tries,"
     " coalesce(e.trouble, '') AS trouble FROM disputes d LEFT JOIN actions a ON a.rowid = (SELECT"
     " max(rowid) FROM actions m WHERE m.claim = d.key) LEFT JOIN retries e ON e.claim = d.key"
     " WHERE d.ours = 1 AND d.phase <> :claim_closed ORDER BY d.deadline_s"},
    {"moves", move_columns, NODE_SNAPSHOT_MOVES},
};

static json_t *mirror_json(const struct node_snapshot_mirror *mirror, uint64_t now_s)
{
    char state[64];

    (void)snprintf(state, sizeof(state), mirror->failures > 0 ? "on trial" : "good");
    if (mirror->rests) {
        (void)snprintf(state, sizeof(state), "asked last for %" PRIu64 " s",
                       mirror->rest_until_s > now_s ? mirror->rest_until_s - now_s : 1);
    }
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:s, s:o}", "name", text_json(mirror->name), "good",
                     (json_int_t)mirror->good, "bad", (json_int_t)mirror->bad, "silent",
                     (json_int_t)mirror->silent, "bytes", (json_int_t)mirror->bytes, "state", state,
                     "trouble", text_json(mirror->trouble));
}

/* How a mirror is follows from its failures and from the time, which mirrors.h says. */
static enum status take_mirrors(struct sheet *view, struct store *store, struct error *error)
{
    uint64_t now_s = (uint64_t)time(NULL);
    json_t *rows = json_array();
    sqlite3_stmt *row =
        database_query(&store->sql, error, NODE_SNAPSHOT_MIRRORS " ORDER BY failures, name", "");
    enum status status = row == NULL ? error->status : STATUS_OK;

    while (status == STATUS_OK && json_array_size(rows) < NODE_VIEW_ROWS_MAX) {
        status = database_step(&store->sql, row, error);
        if (status == STATUS_OK) {
            struct node_snapshot_mirror mirror;

            node_snapshot_read_mirror(&mirror, row, now_s * 1000);
            (void)json_array_append_new(rows, mirror_json(&mirror, now_s));
        }
    }
    database_done(&store->sql, row);
    sheet_set(view, "mirrors", rows);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* null: it was not counted yet, or the node has no key. */
static enum status take_money(struct sheet *view, struct store *store, struct error *error)
{
    struct money money;
    enum status status = store_money_get(store, &money, error);

    if (status == STATUS_OK || status == STATUS_NOT_FOUND) {
        sheet_set(view, "money", status == STATUS_OK ? money_json(&money) : json_null());
        return STATUS_OK;
    }
    return status;
}

static void show_status(struct sheet *view)
{
    struct money money;
    struct error none;

    sheet_row_facts(view, status_views[0].key, json_object_get(view->facts, status_views[0].key));
    for (size_t i = 1; i < sizeof(status_views) / sizeof(status_views[0]); i++) {
        sheet_rows(view, status_views[i].key, json_object_get(view->facts, status_views[i].key));
    }
    sheet_rows(view, "mirrors", json_object_get(view->facts, "mirrors"));
    error_init(&none);
    if (money_from_json(&money, json_object_get(view->facts, "money"), &none) == STATUS_OK) {
        sheet_add(view, SHEET_SUBHEADING, NULL, "money");
        money_text_show(view, &money, "  ");
    }
}

enum status node_status_view(struct sheet *view, struct store *store, struct error *error)
{
    for (size_t i = 0; i < sizeof(status_views) / sizeof(status_views[0]); i++) {
        json_t *rows = NULL;
        enum status status =
            rows_json(&rows, store, status_views[i].query, status_views[i].columns, error);

        sheet_set(view, status_views[i].key, rows);
        TRY(status);
    }
    TRY(take_mirrors(view, store, error));
    TRY(take_money(view, store, error));
    show_status(view);
    return STATUS_OK;
}

/* ---- claims --------------------------------------------------------------- */

enum status node_claims_view(struct sheet *view, struct store *store, struct error *error)
{
    json_t *rows = NULL;
    json_t *found = NULL;
    enum status status = rows_json(
        &rows, store,
        "SELECT coalesce(d.key, a.claim) AS claim, a.segment, coalesce(d.step, a.step) AS step,"
        " coalesce(d.pre, a.pre) AS pre_state, coalesce(d.post, a.post) AS post_state, a.state AS "
        "move, a.trouble, coalesce(d.phase, :claim_none) AS phase, CASE "
        "WHEN"
        " d.lost THEN 'bond lost' WHEN d.phase <> :claim_closed OR d.phase IS NULL THEN '' WHEN"
        " d.outcome = :upheld THEN 'upheld' WHEN d.outcome = :refuted_claim THEN 'refuted' ELSE"
        " 'lapsed' END AS outcome, d.deadline_s, coalesce(e.trouble, '') AS dispute FROM actions a"
        " LEFT JOIN disputes d ON (d.ours OR d.lost) AND CASE a.kind WHEN :claim THEN d.subject ="
        " a.claim ELSE d.segment = a.segment END LEFT JOIN retries e ON"
        " e.claim = d.key WHERE a.kind IN (:claim, :alarm) ORDER BY a.rowid DESC",
        claim_columns, error);

    if (status == STATUS_OK) {
        status = rows_json(&found, store,
                           "SELECT job, idx AS segment, result FROM tasks WHERE outcome IN"
                           " (:refuted, :fault) ORDER BY number DESC",
                           NULL, error);
    }
    sheet_set(view, "claims", rows);
    sheet_set(view, "found", found == NULL ? json_array() : found);
    sheet_rows(view, "claims", rows);
    sheet_rows(view, "what was found", found);
    if (json_array_size(rows) == 0 && json_array_size(found) == 0) {
        sheet_print(view, "no claims, and nothing false was found\n");
    }
    return status;
}
