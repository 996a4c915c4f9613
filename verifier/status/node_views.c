/* node_views.c - see node_views.h. */
#include "verifier/status/node_views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/log.h"
#include "verifier/status/view_table.h"

/* ---- rows as JSON --------------------------------------------------------- */

static json_t *text_json(const char *text)
{
    char plain[ERROR_TEXT_MAX * 6];

    (void)log_escape(plain, sizeof(plain), text == NULL ? "" : text, 0);
    return json_string(plain);
}

static json_t *column_json(sqlite3_stmt *row, int column)
{
    char hex[HEX_SIZE(HASH32_SIZE)];

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

/* All rows of a query, keyed by the names of its columns. */
static enum status rows_json(json_t **rows, struct store *store, const char *query,
                             struct error *error)
{
    char text[2048];
    sqlite3_stmt *row;
    enum status status = STATUS_OK;

    (void)snprintf(text, sizeof(text), "%s LIMIT %d", query, NODE_VIEW_ROWS_MAX);
    *rows = json_array();
    row = database_query(&store->sql, error, text, "");
    if (row == NULL) {
        return STATUS_IO;
    }
    while (status == STATUS_OK) {
        status = database_step(&store->sql, row, error);
        if (status == STATUS_OK) {
            json_t *object = json_object();

            for (int i = 0; i < sqlite3_column_count(row); i++) {
                (void)json_object_set_new(object, sqlite3_column_name(row, i), column_json(row, i));
            }
            (void)json_array_append_new(*rows, object);
        }
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- status --------------------------------------------------------------- */

static const struct {
    const char *key;
    const char *query;
} status_views[] = {
    {"facts", "SELECT name, value FROM facts ORDER BY name"},
    {"jobs",
     "SELECT j.key AS job, CASE j.phase WHEN 1 THEN 'open' WHEN 2 THEN 'running' ELSE 'closed' END"
     " AS phase, j.finalized, (SELECT count(*) FROM segments s WHERE s.job = j.key AND NOT s.void)"
     " AS committed, (SELECT count(*) FROM tasks t WHERE t.job = j.key AND t.outcome = 1)"
     " AS proven, (SELECT count(*) FROM tasks t WHERE t.job = j.key AND t.outcome = 2) AS refuted,"
     " (SELECT count(*) FROM tasks t WHERE t.job = j.key AND t.outcome = 0 AND t.state <> 2)"
     " AS pending FROM jobs j ORDER BY j.rowid DESC"},
    {"queue",
     "SELECT CASE state WHEN 0 THEN 'waiting' WHEN 1 THEN 'running' WHEN 2 THEN 'done' ELSE"
     " 'skipped' END AS state, CASE WHEN outcome = 0 AND state < 2 THEN '' ELSE CASE outcome WHEN "
     "1 THEN 'proven' WHEN 2 THEN 'refuted' WHEN 3 THEN"
     " 'fault' ELSE 'cannot-tell' END END AS outcome, count(*) AS count FROM tasks GROUP BY state,"
     " outcome ORDER BY 1, 2"},
    {"not_told",
     "SELECT job, idx AS segment, attempts, CASE state WHEN 3 THEN 'skipped' ELSE 'tried again'"
     " END AS state, reason FROM tasks WHERE outcome = 0 AND (state = 3 OR attempts > 0)"
     " ORDER BY number DESC"},
    {"passed_over",
     "SELECT job, idx AS segment, reason FROM segments WHERE choice = 3 ORDER BY rowid DESC"},
    {"attested_by_others",
     "SELECT CASE doubt WHEN 0 THEN 'new' WHEN 1 THEN 'to be compared' WHEN 2 THEN 'true' WHEN 3"
     " THEN 'passed over' ELSE 'false' END AS found, reason, count(*) AS count FROM reveals"
     " GROUP BY doubt, reason ORDER BY doubt, reason"},
    {"disputes",
     "SELECT c.key AS claim, c.idx AS segment, c.step, CASE c.accused WHEN 1 THEN 'we are accused'"
     " WHEN 0 THEN CASE hex(c.attestor) WHEN '0000000000000000000000000000000000000000' THEN"
     " 'against the solver' ELSE 'against an attestor' END END AS who, CASE c.phase WHEN 1 THEN"
     " 'called' ELSE 'tried' END AS phase, CASE c.turn = c.accused WHEN 1 THEN 'ours' ELSE"
     " 'theirs' END AS turn, c.deadline_s, coalesce(a.name, '') AS move, coalesce(CASE a.state"
     " WHEN 0 THEN 'planned' WHEN 1 THEN 'sent' WHEN 2 THEN 'done' WHEN 3 THEN 'refused' ELSE"
     " 'late' END, '') AS state, coalesce(a.trouble, '') AS refusal, coalesce(e.tries, 0) AS tries,"
     " coalesce(e.trouble, '') AS trouble FROM claims c LEFT JOIN actions a ON a.rowid = (SELECT"
     " max(rowid) FROM actions m WHERE m.claim = c.key) LEFT JOIN efforts e ON e.claim = c.key"
     " WHERE c.phase <> 3 ORDER BY c.deadline_s"},
    {"moves",
     "SELECT CASE kind WHEN 0 THEN 'draw' WHEN 1 THEN 'attest' WHEN 2 THEN 'reveal' WHEN 3 THEN"
     " 'settle' WHEN 4 THEN 'seal' WHEN 5 THEN 'claim' WHEN 6 THEN 'timeout' WHEN 7 THEN 'lapse'"
     " WHEN 8 THEN 'withdraw' WHEN 9 THEN 'ask' WHEN 10 THEN 'convict' WHEN 11 THEN 'tell' WHEN 12"
     " THEN 'finalize' WHEN 13 THEN 'expire' ELSE 'renew' END AS move,"
     " CASE state WHEN 0 THEN 'planned' WHEN 1 THEN 'sent' WHEN 2 THEN 'done' WHEN 3 THEN 'refused'"
     " WHEN 4 THEN 'late' ELSE 'overtaken' END AS state, count(*) AS count,"
     " max(trouble) AS trouble FROM actions GROUP BY kind, state ORDER BY kind, state"},
    {"unsettled",
     "SELECT s.job, sum(s.mine = 1) AS sealed, sum(s.mine = 2) AS revealed, j.finalized,"
     " (SELECT count(*) FROM segments c WHERE c.job = s.job AND NOT c.void) AS committed, (SELECT"
     " count(*) FROM disputes d JOIN segments o ON o.hash = d.segment WHERE o.job = s.job AND"
     " NOT o.void AND d.open) AS claims FROM segments s JOIN jobs j ON j.key = s.job WHERE"
     " s.mine IN (1, 2) GROUP BY s.job ORDER BY j.rowid DESC"},
    {"mirrors",
     "SELECT name, good, bad, silent, bytes, CASE WHEN rest_until_ms > now THEN 'asked last for ' "
     "||"
     " ((rest_until_ms - now + 999) / 1000) || ' s' WHEN failures > 0 THEN 'on trial' ELSE 'good' "
     "END AS"
     " state, trouble FROM mirrors, (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS now)"
     " ORDER BY failures, name"},
};

/* Sums of amounts, which are larger than what sqlite can add. */
static enum status sum_payments(json_t *object, struct store *store, struct error *error)
{
    static const char *const kinds[] = {"attestation", "claim", "withdrawal"};
    enum status status = STATUS_OK;
    json_t *sums = json_object();

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && status == STATUS_OK; i++) {
        sqlite3_stmt *row = database_query(
            &store->sql, error, "SELECT amount FROM payments WHERE kind = ?", "t", kinds[i]);
        char text[WEI_TEXT_SIZE];
        wei sum = 0;

        status = row == NULL ? STATUS_IO : STATUS_OK;
        while (status == STATUS_OK) {
            wei amount = 0;

            status = database_step(&store->sql, row, error);
            if (status == STATUS_OK &&
                wei_parse(&amount, (const char *)sqlite3_column_text(row, 0)) == STATUS_OK) {
                sum += amount;
            }
        }
        database_done(&store->sql, row);
        status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
        wei_print_plain(text, sum);
        (void)json_object_set_new(sums, kinds[i], json_string(text));
    }
    (void)json_object_set_new(object, "earned_wei", sums);
    return status;
}

enum status node_status_view(json_t **made, struct store *store, struct error *error)
{
    json_t *object = json_object();
    enum status status =
        object == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory to tell") : STATUS_OK;

    for (size_t i = 0; i < sizeof(status_views) / sizeof(status_views[0]) && status == STATUS_OK;
         i++) {
        json_t *rows = NULL;

        status = rows_json(&rows, store, status_views[i].query, error);
        (void)json_object_set_new(object, status_views[i].key, rows);
    }
    if (status == STATUS_OK) {
        status = sum_payments(object, store, error);
    }
    if (status != STATUS_OK) {
        json_decref(object);
        return status;
    }
    *made = object;
    return STATUS_OK;
}

/* ---- for people ----------------------------------------------------------- */

static void print_earned(FILE *out, const char *what, const json_t *made, const char *kind)
{
    char text[WEI_TEXT_SIZE];
    wei amount = 0;

    if (wei_parse(&amount, json_string_value(json_object_get(json_object_get(made, "earned_wei"),
                                                             kind))) == STATUS_OK) {
        wei_print(text, amount);
        (void)fprintf(out, "  %-15s %s\n", what, text);
    }
}

void node_status_print(FILE *out, const json_t *made)
{
    view_facts_print(out, status_views[0].key, json_object_get(made, status_views[0].key));
    for (size_t i = 1; i < sizeof(status_views) / sizeof(status_views[0]); i++) {
        view_table_print(out, status_views[i].key, json_object_get(made, status_views[i].key));
    }
    (void)fprintf(out, "earned\n");
    print_earned(out, "attestations", made, "attestation");
    print_earned(out, "claims", made, "claim");
    print_earned(out, "withdrawn", made, "withdrawal");
}

/* ---- claims --------------------------------------------------------------- */

enum status node_claims_view(json_t **made, struct store *store, struct error *error)
{
    json_t *rows = NULL;
    json_t *found = NULL;
    enum status status = rows_json(
        &rows, store,
        "SELECT a.claim, a.segment, a.step, nullif(a.attestor, zeroblob(20)) AS"
        " attestor, a.pre AS pre_state, a.post AS post_state,"
        " CASE a.state WHEN 0 THEN 'planned' WHEN 1 THEN 'sent' WHEN 2 THEN 'done' WHEN 3 THEN"
        " 'refused' ELSE 'late' END AS move, a.trouble, CASE c.phase WHEN 1 THEN 'called' WHEN 2"
        " THEN 'tried' WHEN 3 THEN 'closed' ELSE 'not on the ledger yet' END AS phase,"
        " coalesce(c.outcome, '') AS outcome, c.deadline_s, coalesce(e.trouble, '') AS dispute FROM"
        " actions a LEFT JOIN claims c ON c.key = a.claim LEFT JOIN efforts e ON e.claim = a.claim"
        " WHERE a.kind = 5 ORDER BY a.rowid DESC",
        error);

    if (status == STATUS_OK) {
        status = rows_json(&found, store,
                           "SELECT job, idx AS segment, result FROM tasks WHERE outcome IN (2, 3)"
                           " ORDER BY number DESC",
                           error);
    }
    if (status != STATUS_OK) {
        json_decref(rows);
        json_decref(found);
        return status;
    }
    *made = json_pack("{s:o, s:o}", "claims", rows, "found", found);
    return *made != NULL ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "no memory to tell");
}

void node_claims_print(FILE *out, const json_t *made)
{
    view_table_print(out, "claims", json_object_get(made, "claims"));
    view_table_print(out, "what was found", json_object_get(made, "found"));
    if (json_array_size(json_object_get(made, "claims")) == 0 &&
        json_array_size(json_object_get(made, "found")) == 0) {
        (void)fprintf(out, "no claims, and nothing false was found\n");
    }
}
