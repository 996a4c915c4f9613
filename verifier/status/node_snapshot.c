/* node_snapshot.c - see node_snapshot.h. */
#include "verifier/status/node_snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/real.h"
#include "verifier/store/mirrors.h"
#include "verifier/store/store_endpoints.h"
#include "verifier/store/store_money.h"

static uint64_t column(sqlite3_stmt *row, int number)
{
    int64_t value = sqlite3_column_int64(row, number);

    return value < 0 ? 0 : (uint64_t)value;
}

static void column_text(char *text, size_t size, sqlite3_stmt *row, int number)
{
    const char *found = (const char *)sqlite3_column_text(row, number);

    (void)snprintf(text, size, "%s", found == NULL ? "" : found);
}

/* Calls take for each row; key NULL: the query has no parameter. */
static enum status each_row(struct node_snapshot *snapshot, struct store *store, const char *query,
                            const struct database_blob *key,
                            void (*take)(struct node_snapshot *snapshot, sqlite3_stmt *row),
                            struct error *error)
{
    sqlite3_stmt *row = key == NULL ? database_query(&store->sql, error, query, "")
                                    : database_query(&store->sql, error, query, "b", key);
    enum status status = row == NULL ? error->status : STATUS_OK;

    while (status == STATUS_OK) {
        status = database_step(&store->sql, row, error);
        if (status == STATUS_OK) {
            take(snapshot, row);
        }
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- counts ------------------------------------------------------------- */

static void take_tasks(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    uint64_t state = column(row, 0);
    uint64_t outcome = column(row, 1);

    if (state >= NODE_SNAPSHOT_TASK_STATES || outcome >= NODE_SNAPSHOT_OUTCOMES) {
        return;
    }
    snapshot->tasks[state] += column(row, 2);
    snapshot->attempts += column(row, 3);
    snapshot->steps_run += column(row, 4);
    snapshot->compute_ns += column(row, 5);
    if (state == TASK_DONE) {
        snapshot->outcomes[outcome] += column(row, 2);
    }
}

static void take_steps_proven(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    snapshot->steps_proven = column(row, 0);
}

static void take_deadline(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    snapshot->next_deadline_s = column(row, 0);
}

static void take_actions(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    uint64_t kind = column(row, 0);
    uint64_t state = column(row, 1);

    if (kind < ACTION_KINDS && state < NODE_SNAPSHOT_ACTION_STATES) {
        snapshot->actions[kind][state] = column(row, 2);
    }
}

/* A refused public move is no loss: somebody else has already made it. Nor is a seat or a claim
 * that somebody else took, or a move that is not needed any more. */
static bool is_no_loss(enum action_kind kind, enum game_refusal_kind refusal)
{
    return kind == ACTION_CHALLENGE || kind == ACTION_DEPART || kind >= ACTION_DRAW ||
           refusal == GAME_FULL || refusal == GAME_CLAIM_EXISTS || refusal == GAME_NOT_NEEDED ||
           refusal == GAME_NOTHING_OWED;
}

static void take_lost(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    uint64_t kind = column(row, 0);
    bool refused = column(row, 1) == ACTION_REFUSED;
    uint64_t refusal = column(row, 2);

    if (kind < ACTION_KINDS &&
        !(refused && is_no_loss((enum action_kind)kind, (enum game_refusal_kind)refusal))) {
        snapshot->lost[kind] += column(row, 3);
    }
}

/* Not counted: moves about void segments, and moves that wait for a lost move. Of a lost dispute
 * the last move counts. */
#define LOST_MOVES                                                                                 \
    "SELECT a.kind, a.state, a.refusal, count(*) FROM actions a"                                   \
    " LEFT JOIN segments s ON s.hash = a.segment LEFT JOIN disputes d ON d.key = a.claim"          \
    " LEFT JOIN actions f ON f.name = a.after"                                                     \
    " WHERE a.state IN (:action_refused, :action_late) AND NOT coalesce(s.void, FALSE)"            \
    " AND coalesce(f.state, :action_planned) NOT IN (:action_refused, :action_late)"               \
    " AND (a.kind NOT IN (:query, :convict) OR (d.lost"                                            \
    " AND NOT EXISTS (SELECT 1 FROM actions m WHERE m.claim = a.claim"                             \
    " AND m.kind IN (:query, :convict) AND m.rowid > a.rowid)))"                                   \
    " GROUP BY a.kind, a.state, a.refusal"

static void take_phases(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    uint64_t phase = column(row, 0);

    if (phase < NODE_SNAPSHOT_PHASES) {
        snapshot->jobs[phase] = column(row, 1);
        snapshot->finalized += column(row, 2);
    }
}

static void take_committed(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    snapshot->committed = column(row, 0);
}

static void take_claim_ends(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    uint64_t *const ends[] = {&snapshot->claims_upheld, &snapshot->claims_refuted,
                              &snapshot->claims_lapsed};
    uint64_t outcome = column(row, 0);

    if (sqlite3_column_type(row, 0) == SQLITE_NULL) {
        snapshot->claims_open += column(row, 1);
    } else if (outcome <= GAME_LAPSED) {
        *ends[outcome] += column(row, 1);
    }
}

static void take_entries(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    snapshot->entries = column(row, 0);
    snapshot->bonds_lost = column(row, 1);
    snapshot->bonds_lost_lately = column(row, 2) + NODE_SNAPSHOT_LATELY_S > snapshot->now_ms / 1000;
}

static void take_missed(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    snapshot->missed = column(row, 0);
}

static void take_missed_seat(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    struct node_snapshot_missed *seat = &snapshot->missed_seat[snapshot->missed_count];

    if (snapshot->missed_count >= NODE_SNAPSHOT_MISSED_MAX ||
        !database_blob_column(row, 0, seat->job.bytes, sizeof(seat->job.bytes))) {
        return;
    }
    snapshot->missed_count++;
    seat->index = (uint32_t)column(row, 1);
    seat->place = (uint32_t)column(row, 2);
    column_text(seat->reason, sizeof(seat->reason), row, 3);
}

/* A verdict that is sealed is known to the verdict database alone. */
static void take_seats(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    uint64_t phase = column(row, 0);
    uint64_t verdict = column(row, 1);

    if (phase < NODE_SNAPSHOT_SEAT_PHASES && verdict < NODE_SNAPSHOT_VERDICTS) {
        snapshot->seats[phase] += column(row, 2);
        snapshot->verdicts[verdict] += column(row, 2);
    }
}

/* A seat that said unseen has said what it could. */
#define MISSED                                                                                     \
    " JOIN notes n ON n.segment = p.segment AND n.place = p.place WHERE p.ours = 1 AND n.reason"   \
    " LIKE 'no verdict%' AND p.phase = :seat_drawn"

static enum status look_at_counts(struct node_snapshot *snapshot, struct store *store,
                                  struct error *error)
{
    static const struct {
        const char *query;
        void (*take)(struct node_snapshot *snapshot, sqlite3_stmt *row);
    } counts[] = {
        {NODE_SNAPSHOT_CHECKS, take_tasks},
        /* A segment may have several tasks, and counts once. */
        {"SELECT sum(steps) FROM (SELECT DISTINCT segment, previous, steps FROM tasks"
         " WHERE kind = :checks AND outcome = :proven)",
         take_steps_proven},
        {"SELECT min(deadline_s) FROM tasks WHERE kind = :checks AND state IN (:task_waiting,"
         " :task_running)",
         take_deadline},
        {NODE_SNAPSHOT_MOVES, take_actions},
        {LOST_MOVES, take_lost},
        {"SELECT phase, count(*), sum(finalized) FROM jobs GROUP BY phase", take_phases},
        {"SELECT coalesce(sum(committed), 0) FROM jobs", take_committed},
        {"SELECT CASE WHEN lost THEN :refuted_claim WHEN phase = :claim_closed THEN outcome END,"
         " count(*) FROM disputes WHERE ours OR lost GROUP BY 1",
         take_claim_ends},
        {"SELECT coalesce(sum(NOT gone), 0), coalesce(sum(lost_s > 0), 0),"
         " coalesce(max(lost_s), 0) FROM entries WHERE ours = 1",
         take_entries},
        {"SELECT count(*) FROM seats p" MISSED, take_missed},
        {"SELECT phase, verdict, count(*) FROM seats WHERE ours = 1 GROUP BY 1, 2", take_seats},
    };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        TRY(each_row(snapshot, store, counts[i].query, NULL, counts[i].take, error));
    }
    return STATUS_OK;
}

static enum status look_at_facts(struct node_snapshot *snapshot, struct store *store,
                                 struct error *error)
{
    static const struct {
        const char *name;
        size_t offset;
    } numbers[] = {
        {"started_ms", offsetof(struct node_snapshot, started_ms)},
        {"alive_ms", offsetof(struct node_snapshot, alive_ms)},
        {"cursor", offsetof(struct node_snapshot, cursor)},
        {"reopened", offsetof(struct node_snapshot, reopened)},
        {"missed_s", offsetof(struct node_snapshot, missed_s)},
        {"verdict_s", offsetof(struct node_snapshot, verdict_s)},
    };

    struct error none;

    error_init(&none);
    snapshot->has_money = store_money_get(store, &snapshot->money, &none) == STATUS_OK;
    TRY(store_text(store, snapshot->owner, "owner", error));
    TRY(store_text(store, snapshot->fault, "fault", error));
    TRY(store_text(store, snapshot->ledger_trouble, "ledger_trouble", error));
    TRY(store_get_endpoints(store, snapshot->endpoints, &snapshot->endpoint_count, error));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t number = 0;

        TRY(store_number(store, &number, numbers[i].name, error));
        *(uint64_t *)((char *)snapshot + numbers[i].offset) = number < 0 ? 0 : (uint64_t)number;
    }
    return STATUS_OK;
}

/* ---- jobs --------------------------------------------------------------- */

static void take_job(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    struct node_snapshot_job *job = &snapshot->job[snapshot->job_count];

    if (snapshot->job_count >= NODE_SNAPSHOT_JOBS_MAX ||
        !database_blob_column(row, 0, job->key.bytes, sizeof(job->key.bytes))) {
        return;
    }
    snapshot->job_count++;
    job->phase = (enum game_phase)column(row, 1);
    job->finalized = (uint32_t)column(row, 2);
    job->steps = column(row, 3);
    job->segment_count = (uint32_t)column(row, 4);
    job->cell_segments =
        (job->segment_count + NODE_SNAPSHOT_CELLS_MAX - 1) / NODE_SNAPSHOT_CELLS_MAX;
    if (job->cell_segments > 0) {
        job->cell_count = (job->segment_count + job->cell_segments - 1) / job->cell_segments;
    }
}

static enum node_snapshot_mark mark_of(bool proven, bool refuted, bool running, uint64_t attempts)
{
    if (refuted) {
        return NODE_SNAPSHOT_REFUTED;
    }
    if (proven) {
        return NODE_SNAPSHOT_PROVEN;
    }
    if (running) {
        return NODE_SNAPSHOT_CHECKING;
    }
    return attempts > 0 ? NODE_SNAPSHOT_UNTOLD : NODE_SNAPSHOT_COMMITTED;
}

/* A segment of the last job. */
static void take_segment(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    struct node_snapshot_job *job = &snapshot->job[snapshot->job_count - 1];
    uint64_t index = column(row, 0);
    enum node_snapshot_mark mark =
        mark_of(column(row, 1) != 0, column(row, 2) != 0, column(row, 5) != 0, column(row, 3));
    struct node_snapshot_cell *cell;

    job->committed++;
    job->proven += mark == NODE_SNAPSHOT_PROVEN;
    job->refuted += mark == NODE_SNAPSHOT_REFUTED;
    job->being_checked += mark == NODE_SNAPSHOT_CHECKING;
    if (index >= job->segment_count) {
        return;
    }
    cell = &job->cells[index / job->cell_segments];
    cell->mark = mark > cell->mark ? mark : cell->mark;
    if (mark == NODE_SNAPSHOT_PROVEN && sqlite3_column_type(row, 4) == SQLITE_INTEGER) {
        const float loss = real_from_bits((uint32_t)column(row, 4));

        cell->has_loss = isfinite(loss);
        cell->loss = cell->has_loss ? (double)loss : 0;
    }
}

/* Jobs under an open claim, then those that run; the newest first. */
static enum status look_at_jobs(struct node_snapshot *snapshot, struct store *store,
                                struct error *error)
{
    uint32_t count;

    TRY(each_row(snapshot, store,
                 "SELECT j.key, j.phase, j.finalized, j.steps, j.segment_count FROM jobs j ORDER BY"
                 " EXISTS (SELECT 1 FROM disputes d WHERE d.job = j.key AND d.phase <>"
                 " :claim_closed) DESC, j.phase = :job_running DESC, j.rowid DESC LIMIT 16",
                 NULL, take_job, error));
    count = snapshot->job_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct database_blob key = {snapshot->job[i].key.bytes,
                                          sizeof(snapshot->job[i].key.bytes)};

        snapshot->job_count = i + 1;
        TRY(each_row(snapshot, store,
                     "SELECT s.idx, coalesce(max(t.outcome = :proven), FALSE),"
                     " coalesce(max(t.outcome IN (:refuted, :fault)), FALSE),"
                     " coalesce(sum(t.attempts), 0), max(iif(t.outcome = :proven,"
                     " json_extract(t.result, '$.loss_bits'), NULL)),"
                     " coalesce(max(t.state = :task_running), FALSE)"
                     " FROM segments s LEFT JOIN tasks t ON t.segment = s.hash AND"
                     " t.previous = s.previous AND t.kind = :checks WHERE s.job = ? AND s.void = 0"
                     " GROUP BY s.idx ORDER BY s.idx",
                     &key, take_segment, error));
    }
    snapshot->job_count = count;
    return STATUS_OK;
}

/* ---- claims, mirrors, throughput ---------------------------------------- */

static void take_claim(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    struct node_snapshot_claim *claim = &snapshot->claim[snapshot->claim_count];

    if (snapshot->claim_count >= NODE_SNAPSHOT_CLAIMS_MAX ||
        !database_blob_column(row, 0, claim->key.bytes, sizeof(claim->key.bytes))) {
        return;
    }
    snapshot->claim_count++;
    claim->index = (uint32_t)column(row, 1);
    claim->step = (uint32_t)column(row, 2);
    claim->move = (enum action_state)column(row, 3);
    claim->phase = (enum game_claim_phase)column(row, 4);
    claim->deadline_s = column(row, 5);
    (void)snprintf(claim->outcome, sizeof(claim->outcome), "%s",
                   sqlite3_column_int(row, 8) != 0 ? "bond lost"
                   : claim->phase == GAME_CLAIM_CLOSED && column(row, 6) <= GAME_LAPSED
                       ? job_outcome_name((enum game_outcome)column(row, 6))
                       : "");
    column_text(claim->trouble, sizeof(claim->trouble), row, 7);
}

void node_snapshot_read_mirror(struct node_snapshot_mirror *mirror, sqlite3_stmt *row,
                               uint64_t now_ms)
{
    const struct mirrors_health health = {.failures = (uint32_t)column(row, 6),
                                          .rest_until_ms = column(row, 7)};

    column_text(mirror->name, sizeof(mirror->name), row, 0);
    mirror->good = column(row, 1);
    mirror->bad = column(row, 2);
    mirror->bytes = column(row, 3);
    column_text(mirror->trouble, sizeof(mirror->trouble), row, 4);
    mirror->silent = column(row, 5);
    mirror->rests = mirrors_rests(&health, now_ms);
    mirror->rest_until_s = health.rest_until_ms / 1000;
    mirror->failures = mirrors_failures(&health, now_ms);
}

static void take_mirror(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    if (snapshot->mirror_count < NODE_SNAPSHOT_MIRRORS_MAX) {
        node_snapshot_read_mirror(&snapshot->mirror[snapshot->mirror_count++], row,
                                  snapshot->now_ms);
    }
}

/* The shortest span that shows all checks, so that a young node has a plot too. */
static void take_span(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    static const uint64_t hours[] = {1, 6, 24, 24 * 7};
    uint64_t first_ms = column(row, 0);
    size_t i = 0;

    while (i < 3 && first_ms != 0 && first_ms + hours[i] * 3600000 < snapshot->now_ms) {
        i++;
    }
    snapshot->bar_ms = hours[i] * 3600000 / NODE_SNAPSHOT_BARS;
}

static void take_ended(struct node_snapshot *snapshot, sqlite3_stmt *row)
{
    uint64_t ended_ms = column(row, 0);
    uint64_t age = snapshot->now_ms > ended_ms ? snapshot->now_ms - ended_ms : 0;
    struct node_snapshot_bar *bar;

    if (age / snapshot->bar_ms >= NODE_SNAPSHOT_BARS) {
        return;
    }
    bar = &snapshot->bars[NODE_SNAPSHOT_BARS - 1 - age / snapshot->bar_ms];
    bar->checks++;
    bar->steps += column(row, 1);
}

static enum status look_at_lists(struct node_snapshot *snapshot, struct store *store,
                                 struct error *error)
{
    TRY(each_row(snapshot, store,
                 "SELECT d.key, d.idx, d.step, coalesce((SELECT a.state FROM actions a WHERE"
                 " a.claim IN (d.key, d.subject) ORDER BY a.rowid DESC LIMIT 1), :action_done),"
                 " d.phase, d.deadline_s, d.outcome, coalesce((SELECT a.trouble FROM actions a"
                 " WHERE a.claim IN (d.key, d.subject) ORDER BY a.rowid DESC LIMIT 1), ''), d.lost"
                 " FROM disputes d WHERE d.ours OR d.lost ORDER BY d.rowid DESC LIMIT 24",
                 NULL, take_claim, error));
    TRY(each_row(snapshot, store,
                 "SELECT s.job, s.idx, p.place, n.reason FROM seats p JOIN segments s ON s.hash ="
                 " p.segment" MISSED " ORDER BY s.rowid DESC LIMIT 16",
                 NULL, take_missed_seat, error));
    TRY(each_row(snapshot, store, NODE_SNAPSHOT_MIRRORS " ORDER BY name LIMIT 32", NULL,
                 take_mirror, error));
    TRY(each_row(snapshot, store, "SELECT min(ended_ms) FROM tasks WHERE kind = :checks", NULL,
                 take_span, error));
    TRY(each_row(snapshot, store,
                 "SELECT ended_ms, coalesce(json_extract(result, '$.steps_run'), 0)"
                 " FROM tasks WHERE kind = :checks AND ended_ms IS NOT NULL",
                 NULL, take_ended, error));
    return STATUS_OK;
}

/* ---- all ---------------------------------------------------------------- */

static enum status look_at_all(struct node_snapshot *snapshot, struct store *store,
                               struct error *error)
{
    TRY(look_at_facts(snapshot, store, error));
    TRY(look_at_counts(snapshot, store, error));
    TRY(look_at_jobs(snapshot, store, error));
    return look_at_lists(snapshot, store, error);
}

enum status node_snapshot_look(struct node_snapshot *snapshot, struct store *store, uint64_t now_ms,
                               struct error *error)
{
    TRY(store_catch_up(store, error));
    memset(snapshot, 0, sizeof(*snapshot));
    snapshot->now_ms = now_ms;
    snapshot->bar_ms = 3600000 / NODE_SNAPSHOT_BARS;
    /* Not store_begin(), which needs the right to write. */
    TRY(database_run(&store->sql, error, "BEGIN", ""));
    return database_end(&store->sql, look_at_all(snapshot, store, error), error);
}

const char *node_snapshot_trouble(const struct node_snapshot *snapshot)
{
    uint64_t sign_ms =
        snapshot->alive_ms > snapshot->started_ms ? snapshot->alive_ms : snapshot->started_ms;

    if (snapshot->fault[0] != '\0') {
        return "this machine's replays disagreed: nothing is signed";
    }
    if (sign_ms + NODE_SNAPSHOT_SILENCE_MS < snapshot->now_ms) {
        return "the node gives no sign of life";
    }
    if (snapshot->ledger_trouble[0] != '\0') {
        return "the ledger cannot be reached";
    }
    if (snapshot->bonds_lost_lately) {
        return "a bond was lost: a right of this node was disproved, so test this machine";
    }
    return snapshot->missed_s > snapshot->verdict_s &&
                   snapshot->missed_s + NODE_SNAPSHOT_MISSED_S > snapshot->now_ms / 1000
               ? "a seat was missed, and there was no verdict since: its reason, and what to do, "
                 "stand below"
               : NULL;
}
