/* mirrors.c - see mirrors.h. */
#include "verifier/store/mirrors.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/backoff.h"

/* ---- one mirror --------------------------------------------------------- */

bool mirrors_rests(const struct mirrors_health *health, uint64_t now_ms)
{
    return health->rest_until_ms > now_ms && health->rest_until_ms - now_ms <= MIRRORS_REST_MS_MAX;
}

uint32_t mirrors_failures(const struct mirrors_health *health, uint64_t now_ms)
{
    uint64_t hours =
        now_ms > health->rest_until_ms ? (now_ms - health->rest_until_ms) / MIRRORS_FORGET_MS : 0;

    return hours < health->failures ? health->failures - (uint32_t)hours : 0;
}

void mirrors_failed(struct mirrors_health *health, uint64_t now_ms)
{
    uint32_t before = mirrors_failures(health, now_ms);

    if (mirrors_rests(health, now_ms)) {
        return; /* several checks, and their retries, meet one outage */
    }
    health->failures = before < MIRRORS_FAILURES_MAX ? before + 1 : MIRRORS_FAILURES_MAX;
    health->rest_until_ms = now_ms + backoff_pause(MIRRORS_REST_MS, MIRRORS_REST_MS_MAX, before);
}

void mirrors_served(struct mirrors_health *health, uint64_t now_ms)
{
    health->failures = mirrors_failures(health, now_ms) / 2;
    health->rest_until_ms = now_ms;
}

/* ---- all of them -------------------------------------------------------- */

static enum status read_health(struct mirrors_health *health, struct store *store, const char *name,
                               struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, &store->sql, error,
                       "SELECT failures, rest_until_ms FROM mirrors WHERE name = ?", "t", name);

    *health = (struct mirrors_health){0};
    if (status == STATUS_OK) {
        health->failures = (uint32_t)sqlite3_column_int64(row, 0);
        health->rest_until_ms = (uint64_t)sqlite3_column_int64(row, 1);
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Is a asked before b? Equals keep the order of the configuration. */
static bool goes_before(const struct mirrors_health *a, const struct mirrors_health *b,
                        uint64_t now_ms)
{
    bool a_rests = mirrors_rests(a, now_ms);
    bool b_rests = mirrors_rests(b, now_ms);

    return a_rests != b_rests ? b_rests : mirrors_failures(a, now_ms) < mirrors_failures(b, now_ms);
}

enum status mirrors_choose(struct store *store, struct check_request *request,
                           const char *const *configured, size_t count, size_t named,
                           uint64_t now_ms, struct error *error)
{
    struct mirrors_health health[CHECK_MIRRORS_MAX] = {{0}};
    bool taken[CHECK_MIRRORS_MAX] = {false};

    count = count < CHECK_MIRRORS_MAX ? count : CHECK_MIRRORS_MAX;
    for (size_t i = 0; i < count; i++) {
        TRY(read_health(&health[i], store, configured[i], error));
    }
    request->mirror_count = 0;
    request->mirrors_tired = 0;
    request->strangers = 0;
    while (request->mirror_count < count) {
        size_t best = count;

        for (size_t i = 0; i < count; i++) {
            if (!taken[i] && (best == count || goes_before(&health[i], &health[best], now_ms))) {
                best = i;
            }
        }
        taken[best] = true;
        request->strangers |= (uint32_t)(best >= named) << request->mirror_count;
        request->mirrors_tired += mirrors_rests(&health[best], now_ms);
        (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s",
                       configured[best]);
    }
    return STATUS_OK;
}

static void log_change(const struct log *log, const char *name, const struct mirror_note *note,
                       const struct mirrors_health *before, const struct mirrors_health *after,
                       uint64_t now_ms)
{
    if (mirrors_rests(before, now_ms) && mirrors_rests(after, now_ms)) {
        return;
    }
    if (mirrors_rests(after, now_ms)) {
        log_warn(log, "verifier", "mirror %.300s: asked last for %" PRIu64 " s: %s", name,
                 (after->rest_until_ms - now_ms) / 1000, note->trouble);
    } else if (before->failures > 0) {
        log_info(log, "verifier", "mirror %.300s: serves well again", name);
    }
}

static enum status note_one(struct store *store, const char *name, const struct mirror_note *note,
                            uint64_t now_ms, const struct log *log, struct error *error)
{
    struct mirrors_health before;
    struct mirrors_health after;

    TRY(read_health(&before, store, name, error));

    after = before;
    if (note->bad > 0 || note->silent > 0) {
        mirrors_failed(&after, now_ms);
    } else {
        mirrors_served(&after, now_ms);
    }
    TRY(database_run(&store->sql, error,
                     "INSERT INTO mirrors (name, good, bad, silent, bytes, trouble, failures,"
                     " rest_until_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE"
                     " SET good = good + excluded.good, bad = bad + excluded.bad, silent = silent +"
                     " excluded.silent, bytes = bytes + excluded.bytes, trouble = CASE"
                     " excluded.trouble WHEN '' THEN trouble ELSE excluded.trouble END, failures ="
                     " excluded.failures, rest_until_ms = excluded.rest_until_ms",
                     "tiiiitii", name, (int64_t)note->good, (int64_t)note->bad,
                     (int64_t)note->silent, (int64_t)note->bytes, note->trouble,
                     (int64_t)after.failures, (int64_t)after.rest_until_ms));
    log_change(log, name, note, &before, &after, now_ms);
    return STATUS_OK;
}

enum status mirrors_refused(struct store *store, const char *name, const char *why,
                            const struct log *log, struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, &store->sql, error,
                       "SELECT 1 FROM mirrors WHERE name = ? AND trouble = ?", "tt", name, why);

    database_done(&store->sql, row);
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    log_warn(log, "verifier", "contact %.300s is not called: %s", name, why);
    return database_run(&store->sql, error,
                        "INSERT INTO mirrors (name, trouble) VALUES (?, ?) ON CONFLICT (name)"
                        " DO UPDATE SET trouble = excluded.trouble",
                        "tt", name, why);
}

enum status mirrors_note(struct store *store, const struct check_request *request,
                         const struct check_result *result, uint64_t now_ms, const struct log *log,
                         struct error *error)
{
    for (uint32_t i = 0; i < result->mirror_count && i < request->mirror_count; i++) {
        const struct mirror_note *note = &result->mirrors[i];

        if (note->refused) {
            TRY(mirrors_refused(store, request->mirrors[i], note->trouble, log, error));
        } else if ((note->good | note->bad | note->silent) != 0) {
            TRY(note_one(store, request->mirrors[i], note, now_ms, log, error));
        }
    }
    return STATUS_OK;
}
