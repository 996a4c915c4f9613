/* store_view.c - jobs and segments, as the ledger's events change them: see store.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/job/job_card.h"
#include "verifier/store/store.h"
#include "verifier/store/store_words.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})
#define KEY(value)  (&(struct database_blob){(value)->bytes, HASH32_SIZE})

/* ---- reading ----------------------------------------------------------------------- */

/* The terms are kept as the move that opened the job. */
static enum status read_terms(struct game_terms *terms, sqlite3_stmt *row, int column,
                              struct error *error)
{
    struct game_move move;

    if (game_move_decode(&move, sqlite3_column_blob(row, column),
                         (size_t)sqlite3_column_bytes(row, column)) != STATUS_OK ||
        move.kind != GAME_OPEN) {
        return store_damaged(error);
    }
    *terms = move.terms;
    return STATUS_OK;
}

/* What the reducer keeps of a job, but what nobody asks here: entries, ended, opened_s, and what a
 * void burned. */
#define STATE_COLUMNS                                                                              \
    "j.phase, j.solver, j.generation, j.finalized, j.unpaid, j.due_s, j.segments, j.drawn,"        \
    " j.leg_start, j.refused_until_s, j.barred, j.committed"
#define STATE_COUNT 12

static enum status read_state(struct job_reduced *job, sqlite3_stmt *row, int at,
                              struct error *error)
{
    *job = (struct job_reduced){
        .phase = (enum game_phase)sqlite3_column_int(row, at),
        .generation = (uint32_t)sqlite3_column_int64(row, at + 2),
        .finalized = (uint32_t)sqlite3_column_int64(row, at + 3),
        .unpaid = (uint32_t)sqlite3_column_int64(row, at + 4),
        .due_s = (uint64_t)sqlite3_column_int64(row, at + 5),
        .segments = (uint32_t)sqlite3_column_int64(row, at + 6),
        .drawn = (uint32_t)sqlite3_column_int64(row, at + 7),
        .leg_start = (uint32_t)sqlite3_column_int64(row, at + 8),
        .refused_until_s = (uint64_t)sqlite3_column_int64(row, at + 9),
        .barred = sqlite3_column_int(row, at + 10) != 0,
        .committed = (uint32_t)sqlite3_column_int64(row, at + 11),
    };
    return sqlite3_column_type(row, at + 1) == SQLITE_NULL ||
                   database_blob_column(row, at + 1, job->solver.bytes, ADDRESS_SIZE)
               ? STATUS_OK
               : store_damaged(error);
}

/* A segment that is not drawn has no seed in the table. */
enum status store_read_draw(struct job_reduced_segment *draw, sqlite3_stmt *row, int at,
                            struct error *error)
{
    *draw = (struct job_reduced_segment){
        .covered = sqlite3_column_int(row, at + 1) != 0,
        .leg_start = (uint32_t)sqlite3_column_int64(row, at + 2),
        .start_s = (uint64_t)sqlite3_column_int64(row, at + 3),
        .round = (uint32_t)sqlite3_column_int64(row, at + 4),
        .to = (uint32_t)sqlite3_column_int64(row, at + 5),
        .rights = (uint32_t)sqlite3_column_int64(row, at + 6),
        .unseen = (uint32_t)sqlite3_column_int64(row, at + 7),
        .vouched = sqlite3_column_int(row, at + 8) != 0,
        .over_height = (uint64_t)sqlite3_column_int64(row, at + 9),
        .over_s = (uint64_t)sqlite3_column_int64(row, at + 10),
    };
    return sqlite3_column_type(row, at) == SQLITE_NULL ||
                   database_blob_column(row, at, draw->seed.bytes, HASH32_SIZE)
               ? STATUS_OK
               : store_damaged(error);
}

/* ---- changes of a job --------------------------------------------------------- */

static enum status take_opened(struct store *store, const struct game_event *event,
                               struct error *error)
{
    struct game_move move = {.kind = GAME_OPEN, .terms = event->terms};
    uint8_t bytes[GAME_MOVE_SIZE_MAX];
    size_t size;

    game_move_encode(bytes, &size, &move);
    return database_run(&store->sql, error,
                        "INSERT OR REPLACE INTO jobs (key, client, id, keeper, terms, phase,"
                        " segments, unpaid) VALUES (?, ?, ?, ?, ?, :job_open, ?, :none_unpaid)",
                        "bbbbbi", BLOB(event->job), BLOB(event->account), BLOB(event->terms.job_id),
                        BLOB(event->terms.keeper), &(struct database_blob){bytes, size},
                        (int64_t)game_segment_count(&event->terms));
}

/* The keeper announces a vouch in place of an address: *is. The solver that brings it checks it
 * first. */
static enum status take_vouch(struct store *store, bool *is, const struct game_event *event,
                              struct error *error)
{
    struct vouch vouch;
    int64_t is_keeper = 0;

    *is = event->kind == GAME_ANNOUNCED && vouch_read(&vouch, &event->contact);
    if (!*is) {
        return STATUS_OK;
    }
    TRY(database_number(&store->sql, &is_keeper, 0, error,
                        "SELECT count(*) FROM jobs WHERE key = ? AND keeper = ?", "bb",
                        BLOB(event->job), BLOB(event->account)));
    return is_keeper == 0
               ? STATUS_OK
               : database_run(&store->sql, error, "INSERT OR REPLACE INTO vouches VALUES (?, ?)",
                              "bb", BLOB(vouch.segment),
                              &(struct database_blob){vouch.signature, vouch.size});
}

static enum status take_contact(struct store *store, const struct ledger_entry *entry,
                                struct error *error)
{
    const struct game_event *event = &entry->event;
    char url[GAME_CONTACT_MAX + 1];
    bool is_vouch = false;

    TRY(take_vouch(store, &is_vouch, event, error));
    if (is_vouch) {
        return STATUS_OK;
    }
    job_card_address(url, &event->contact);
    if (url[0] == '\0') {
        return STATUS_OK;
    }
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO contacts VALUES (?, ?, ?, ?)",
                        "bbti", BLOB(event->job), BLOB(event->account), url,
                        (int64_t)entry->number);
}

/* STATUS_NOT_FOUND: a job that this log does not open. */
static enum status read_reduced(struct store *store, struct job_reduced *job,
                                struct game_terms *terms, const struct hash32 *key,
                                struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &store->sql, error, "SELECT " STATE_COLUMNS ", j.terms FROM jobs j WHERE j.key = ?",
        "b", KEY(key));

    if (status == STATUS_OK) {
        status = read_state(job, row, 0, error);
    }
    if (status == STATUS_OK) {
        status = read_terms(terms, row, STATE_COUNT, error);
    }
    database_done(&store->sql, row);
    return status;
}

static enum status write_reduced(struct store *store, const struct job_reduced *job,
                                 const struct hash32 *key, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE jobs SET phase = ?, solver = ?, generation = ?, finalized = ?,"
                        " unpaid = ?, due_s = ?, segments = ?, drawn = ?, leg_start = ?,"
                        " refused_until_s = ?, barred = ?, committed = ? WHERE key = ?",
                        "ibiiiiiiiiiib", (int64_t)job->phase, BLOB(job->solver),
                        (int64_t)job->generation, (int64_t)job->finalized, (int64_t)job->unpaid,
                        (int64_t)job->due_s, (int64_t)job->segments, (int64_t)job->drawn,
                        (int64_t)job->leg_start, (int64_t)job->refused_until_s,
                        (int64_t)job->barred, (int64_t)job->committed, KEY(key));
}

/* The seats of the segments from `from` on that stand, and are before `to`, have ended. */
static enum status end_seats(struct store *store, const struct hash32 *job, int64_t from,
                             int64_t to, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE seats SET phase = :seat_closed WHERE phase IN (:seat_sealed,"
                        " :seat_revealed) AND segment IN (SELECT hash FROM"
                        " segments WHERE job = ? AND idx >= ? AND idx < ? AND NOT void)",
                        "bii", KEY(job), from, to);
}

static enum status void_from(struct store *store, const struct hash32 *job, uint32_t index,
                             struct error *error)
{
    TRY(end_seats(store, job, index, INT64_MAX, error));
    return database_run(&store->sql, error,
                        "UPDATE segments SET void = 1 WHERE job = ? AND idx >= ?", "bi", KEY(job),
                        (int64_t)index);
}

/* What the job becomes; what is void by it. */
static enum status reduce(struct store *store, const struct ledger_entry *entry,
                          struct error *error)
{
    const struct game_event *event = &entry->event;
    struct game_terms terms;
    struct job_reduced before;
    struct job_reduced job;
    enum status status = STATUS_OK;

    if (!job_reduced_is_changed_by(event->kind)) {
        return STATUS_OK;
    }
    status = read_reduced(store, &before, &terms, &event->job, error);
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    job = before;
    job_reduced_take(&job, &terms, entry);
    TRY(write_reduced(store, &job, &event->job, error));
    return job.committed < before.committed ? void_from(store, &event->job, job.committed, error)
                                            : STATUS_OK;
}

/* ---- changes of a segment ----------------------------------------------------- */

static enum status previous_root(struct store *store, struct digest *root,
                                 const struct game_event *event, struct error *error)
{
    sqlite3_stmt *row;
    enum status status;

    memset(root, 0, sizeof(*root));
    if (event->segment.index == 0) {
        return STATUS_OK;
    }
    status = database_first(&row, &store->sql, error,
                            "SELECT root FROM segments WHERE job = ? AND idx = ? AND NOT void",
                            "bi", BLOB(event->job), (int64_t)event->segment.index - 1);
    if (status == STATUS_OK && !database_blob_column(row, 0, root->bytes, DIGEST_SIZE)) {
        status = store_damaged(error);
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status take_committed(struct store *store, const struct game_event *event,
                                  struct error *error)
{
    const struct game_segment *segment = &event->segment;
    struct hash32 hash = game_segment_hash(&event->job, segment);
    struct digest previous;

    TRY(previous_root(store, &previous, event, error));
    return database_run(
        &store->sql, error,
        "INSERT OR REPLACE INTO segments (job, idx, generation, root, steps, time_s, height,"
        " solver, panel, diverged, hash, previous, states, start_s, choice) VALUES (?, ?, ?, ?, ?,"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce((SELECT choice FROM choices WHERE segment = ?),"
        " :not_chosen))",
        "biibiiibiibbbib", BLOB(event->job), (int64_t)segment->index, (int64_t)segment->generation,
        BLOB(segment->root), (int64_t)segment->steps, (int64_t)segment->time_s,
        (int64_t)segment->height, BLOB(segment->solver), (int64_t)segment->panel,
        (int64_t)segment->diverged, BLOB(hash), BLOB(previous),
        &(struct database_blob){event->states.hashes, event->states.count * sizeof(struct digest)},
        (int64_t)segment->time_s, BLOB(hash));
}

static enum status take_finalized(struct store *store, const struct ledger_entry *entry,
                                  struct error *error)
{
    const struct game_event *event = &entry->event;

    TRY(end_seats(store, &event->job, event->index + INT64_C(1) - event->count,
                  event->index + INT64_C(1), error));
    return database_run(&store->sql, error, "UPDATE jobs SET finalized_s = ? WHERE key = ?", "ib",
                        (int64_t)entry->time_s, BLOB(event->job));
}

static enum status take_closed(struct store *store, const struct ledger_entry *entry,
                               struct error *error)
{
    return database_run(&store->sql, error, "UPDATE jobs SET closed_s = ? WHERE key = ?", "ib",
                        (int64_t)entry->time_s, BLOB(entry->event.job));
}

/* ---- entries of the log --------------------------------------------------------- */

static enum status take_of_job(struct store *store, const struct ledger_entry *entry,
                               const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_COMMITTED:
        return take_committed(store, event, error);
    case GAME_FINALIZED:
        return take_finalized(store, entry, error);
    case GAME_CLOSED:
        return take_closed(store, entry, error);
    default:
        return store_take_panel(store, entry, own, error);
    }
}

enum status store_take_event(struct store *store, const struct ledger_entry *entry,
                             const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    if (event->kind == GAME_CLAIMED || job_event_is_of_claim(event->kind)) {
        return store_take_claim(store, entry, own, error);
    }
    TRY(take_contact(store, entry, error));
    if (event->kind == GAME_OPENED) {
        return take_opened(store, event, error);
    }
    if (event->kind == GAME_DRAWN) { /* its leg begins where the job says before the draw */
        TRY(take_of_job(store, entry, own, error));
        return reduce(store, entry, error);
    }
    TRY(reduce(store, entry, error));
    return take_of_job(store, entry, own, error);
}

/* ---- rows ----------------------------------------------------------------------- */

#define JOB_COLUMNS                                                                                \
    "SELECT " STATE_COLUMNS ", j.key, j.client, j.terms, (SELECT count(*) FROM entries e WHERE"    \
    " e.job = j.key AND e.generation = j.generation), (SELECT count(*) FROM entries e WHERE"       \
    " e.job = j.key AND e.generation = j.generation AND NOT e.gone AND e.ours),"                   \
    " coalesce(w.wish, 0), w.header, j.finalized_s FROM jobs j LEFT JOIN wishes w ON w.job = "     \
    "j.key"

static enum status read_job(void *one, sqlite3_stmt *row, struct error *error)
{
    enum { KEY_AT = STATE_COUNT, CLIENT, TERMS, ENTRIES, OURS, WISH, HEADER, FINALIZED_S };
    struct store_job *job = one;

    memset(job, 0, sizeof(*job));
    TRY(read_state(&job->state, row, 0, error));
    TRY(read_terms(&job->terms, row, TERMS, error));
    job->state.entries = (uint32_t)sqlite3_column_int64(row, ENTRIES);
    job->ours = (uint32_t)sqlite3_column_int64(row, OURS);
    job->wish = (enum store_wish)sqlite3_column_int(row, WISH);
    job->has_header = database_blob_column(row, HEADER, job->header, sizeof(job->header));
    job->finalized_s = (uint64_t)sqlite3_column_int64(row, FINALIZED_S);
    return database_blob_column(row, KEY_AT, job->key.bytes, HASH32_SIZE) &&
                   database_blob_column(row, CLIENT, job->client.bytes, ADDRESS_SIZE)
               ? STATUS_OK
               : store_damaged(error);
}

#define ENTRY_COLUMNS                                                                              \
    "SELECT e.job, e.generation, e.number, e.enlisted FROM entries e JOIN jobs j ON j.key = e.job"

static enum status read_entry(void *one, sqlite3_stmt *row, struct error *error)
{
    struct store_entry *entry = one;

    memset(entry, 0, sizeof(*entry));
    entry->generation = (uint32_t)sqlite3_column_int64(row, 1);
    entry->number = (uint32_t)sqlite3_column_int64(row, 2);
    entry->enlisted = (uint64_t)sqlite3_column_int64(row, 3);
    return database_blob_column(row, 0, entry->job.bytes, HASH32_SIZE) ? STATUS_OK
                                                                       : store_damaged(error);
}

#define SEGMENT_COLUMNS                                                                            \
    "SELECT " STATE_COLUMNS ", " STORE_DRAW_COLUMNS ", s.rowid, s.job, s.idx, s.generation,"       \
    " s.root, s.steps, s.time_s, s.height, s.solver, s.panel, s.diverged, s.hash, s.previous,"     \
    " s.void, coalesce((SELECT c.choice FROM choices c WHERE c.segment = s.hash), :not_chosen),"   \
    " j.terms, j.client, j.finalized_s, (SELECT count(*) FROM disputes d WHERE"                    \
    " d.segment = s.hash AND d.phase <> :claim_closed), (SELECT count(*) FROM disputes d WHERE"    \
    " d.job = s.job AND d.phase <> :claim_closed AND d.generation = j.generation), (SELECT"        \
    " count(*) FROM seats p WHERE p.segment = s.hash), EXISTS (SELECT 1 FROM vouches v WHERE"      \
    " v.segment = s.hash) FROM segments s JOIN jobs j ON j.key = s.job"

static enum status read_segment(void *one, sqlite3_stmt *row, struct error *error)
{
    enum {
        ROW = STATE_COUNT + STORE_DRAW_COUNT,
        JOB,
        INDEX,
        GENERATION,
        ROOT,
        STEPS,
        TIME_S,
        HEIGHT,
        SOLVER,
        PANEL,
        DIVERGED,
        HASH,
        PREVIOUS,
        IS_VOID,
        CHOICE,
        TERMS,
        CLIENT,
        FINALIZED_S,
        CLAIMS,
        JOB_CLAIMS,
        SEATS,
        VOUCH,
    };
    struct store_segment *segment = one;
    struct game_segment *committed = &segment->committed;

    memset(segment, 0, sizeof(*segment));
    TRY(read_state(&segment->state, row, 0, error));
    TRY(store_read_draw(&segment->draw, row, STATE_COUNT, error));
    TRY(read_terms(&segment->terms, row, TERMS, error));
    segment->row = sqlite3_column_int64(row, ROW);
    committed->index = (uint32_t)sqlite3_column_int64(row, INDEX);
    committed->generation = (uint32_t)sqlite3_column_int64(row, GENERATION);
    committed->steps = (uint32_t)sqlite3_column_int64(row, STEPS);
    committed->time_s = (uint64_t)sqlite3_column_int64(row, TIME_S);
    committed->height = (uint64_t)sqlite3_column_int64(row, HEIGHT);
    committed->panel = (uint32_t)sqlite3_column_int64(row, PANEL);
    committed->diverged = sqlite3_column_int(row, DIVERGED) != 0;
    segment->draw.seats = (uint32_t)sqlite3_column_int64(row, SEATS);
    segment->is_void = sqlite3_column_int(row, IS_VOID) != 0;
    segment->choice = (enum store_choice)sqlite3_column_int(row, CHOICE);
    segment->finalized_s = (uint64_t)sqlite3_column_int64(row, FINALIZED_S);
    segment->open_claims = (uint32_t)sqlite3_column_int64(row, CLAIMS);
    segment->job_claims = (uint32_t)sqlite3_column_int64(row, JOB_CLAIMS);
    segment->vouch_known = sqlite3_column_int(row, VOUCH) != 0;
    segment->job_id = segment->terms.job_id;
    return database_blob_column(row, JOB, segment->job.bytes, HASH32_SIZE) &&
                   database_blob_column(row, ROOT, committed->root.bytes, DIGEST_SIZE) &&
                   database_blob_column(row, SOLVER, committed->solver.bytes, ADDRESS_SIZE) &&
                   database_blob_column(row, HASH, segment->hash.bytes, HASH32_SIZE) &&
                   database_blob_column(row, PREVIOUS, segment->previous.bytes, DIGEST_SIZE) &&
                   database_blob_column(row, CLIENT, segment->client.bytes, ADDRESS_SIZE)
               ? STATUS_OK
               : store_damaged(error);
}

struct job_segment store_segment_state(const struct store_segment *segment)
{
    struct job_segment found = job_segment_of(&segment->terms, &segment->state, &segment->committed,
                                              &segment->draw, segment->vouch_known);

    found.open_claims = segment->open_claims;
    found.job_claims = segment->job_claims;
    return found;
}

/* ---- visiting --------------------------------------------------------------------- */

static const struct {
    const char *columns;
    size_t size;
    enum status (*read)(void *one, sqlite3_stmt *row, struct error *error);
} tables[] = {
    [STORE_JOBS] = {JOB_COLUMNS, sizeof(struct store_job), read_job},
    [STORE_ENTRIES] = {ENTRY_COLUMNS, sizeof(struct store_entry), read_entry},
    [STORE_SEGMENTS] = {SEGMENT_COLUMNS, sizeof(struct store_segment), read_segment},
    [STORE_SEATS] = {store_seat_columns, sizeof(struct store_seat), store_read_seat},
    [STORE_DISPUTES] = {store_dispute_columns, sizeof(struct store_dispute), store_read_dispute},
};

/* Collected first: what visits them may change the table. */
enum status store_visit(struct store *store, enum store_table table, const char *where,
                        store_visitor *visit, void *context, struct error *error)
{
    size_t size = tables[table].size;
    char *found = malloc(STORE_VISIT_MAX * size);
    char text[2400];
    uint32_t count = 0;
    enum status status =
        found == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for rows") : STATUS_OK;

    if (status == STATUS_OK) {
        (void)snprintf(text, sizeof(text), "%s WHERE %s LIMIT %d", tables[table].columns, where,
                       STORE_VISIT_MAX);
        status = database_collect(&store->sql, found, &count,
                                  database_query(&store->sql, error, text, ""), size,
                                  STORE_VISIT_MAX, tables[table].read, error);
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = visit(context, found + i * size, error);
    }
    free(found);
    return status;
}

/* row: with its parameters bound; NULL: it could not be prepared. */
static enum status one_row(struct store *store, void *found, enum store_table table,
                           sqlite3_stmt *row, struct error *error)
{
    enum status status;

    if (row == NULL) {
        return error->status;
    }
    status = database_step(&store->sql, row, error);
    if (status == STATUS_OK) {
        status = tables[table].read(found, row, error);
    }
    database_done(&store->sql, row);
    return status;
}

enum status store_job(struct store *store, struct store_job *job, const struct hash32 *key,
                      struct error *error)
{
    return one_row(
        store, job, STORE_JOBS,
        database_query(&store->sql, error, JOB_COLUMNS " WHERE j.key = ?", "b", KEY(key)), error);
}

enum status store_segment(struct store *store, struct store_segment *segment,
                          const struct hash32 *job, uint32_t index, struct error *error)
{
    return one_row(store, segment, STORE_SEGMENTS,
                   database_query(&store->sql, error,
                                  SEGMENT_COLUMNS " WHERE s.job = ? AND s.idx = ? AND NOT s.void",
                                  "bi", KEY(job), (int64_t)index),
                   error);
}

/* Of those that became void since, the last of an earlier or the same generation. */
enum status store_segment_before(struct store *store, struct store_segment *found,
                                 const struct store_segment *segment, uint32_t index,
                                 struct error *error)
{
    return one_row(store, found, STORE_SEGMENTS,
                   database_query(&store->sql, error,
                                  SEGMENT_COLUMNS " WHERE s.job = ? AND s.idx = ? AND"
                                                  " s.generation <= ? AND s.rowid <= ? ORDER BY"
                                                  " s.generation DESC, s.rowid DESC LIMIT 1",
                                  "biii", BLOB(segment->job), (int64_t)index,
                                  (int64_t)segment->committed.generation, segment->row),
                   error);
}

enum status store_segment_by_hash(struct store *store, struct store_segment *segment,
                                  const struct hash32 *hash, struct error *error)
{
    return one_row(
        store, segment, STORE_SEGMENTS,
        database_query(&store->sql, error, SEGMENT_COLUMNS " WHERE s.hash = ?", "b", KEY(hash)),
        error);
}

enum status store_seat(struct store *store, struct store_seat *seat, const struct hash32 *segment,
                       uint32_t place, struct error *error)
{
    char text[1200];

    (void)snprintf(text, sizeof(text), "%s WHERE p.segment = ? AND p.place = ?",
                   store_seat_columns);
    return one_row(store, seat, STORE_SEATS,
                   database_query(&store->sql, error, text, "bi", KEY(segment), (int64_t)place),
                   error);
}

enum status store_dispute(struct store *store, struct store_dispute *dispute,
                          const struct hash32 *key, struct error *error)
{
    char text[1200];

    (void)snprintf(text, sizeof(text), "%s WHERE d.key = ?", store_dispute_columns);
    return one_row(store, dispute, STORE_DISPUTES,
                   database_query(&store->sql, error, text, "b", KEY(key)), error);
}

enum status store_states(struct store *store, struct digest states[GAME_STATES_MAX],
                         const struct store_segment *segment, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &store->sql, error, "SELECT states FROM segments WHERE rowid = ?", "i", segment->row);

    if (status == STATUS_OK &&
        (segment->committed.steps > GAME_STATES_MAX ||
         !database_blob_column(row, 0, states, segment->committed.steps * sizeof(*states)))) {
        status = store_damaged(error);
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? store_damaged(error) : status;
}

/* ---- what the node thinks ----------------------------------------------------------- */

enum status store_wish(struct store *store, const struct hash32 *job, enum store_wish wish,
                       const char *reason, struct error *error)
{
    return database_run(&store->sql, error,
                        "INSERT INTO wishes (job, wish, reason) VALUES (?, ?, ?) ON CONFLICT (job)"
                        " DO UPDATE SET wish = excluded.wish, reason = excluded.reason",
                        "bit", KEY(job), (int64_t)wish, reason);
}

enum status store_set_header(struct store *store, const struct hash32 *job,
                             const uint8_t header[GAME_JOB_HEADER_SIZE], struct error *error)
{
    return database_run(&store->sql, error,
                        "INSERT INTO wishes (job, header) VALUES (?, ?) ON CONFLICT (job)"
                        " DO UPDATE SET header = excluded.header",
                        "bb", KEY(job), &(struct database_blob){header, GAME_JOB_HEADER_SIZE});
}

enum status store_vouch(struct store *store, struct vouch *vouch, const struct hash32 *segment,
                        struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, &store->sql, error, "SELECT signature FROM vouches WHERE segment = ?",
                       "b", KEY(segment));

    vouch->segment = *segment;
    if (status == STATUS_OK) {
        vouch->size = (size_t)sqlite3_column_bytes(row, 0);
        if (vouch->size > GAME_VOUCH_MAX ||
            !database_blob_column(row, 0, vouch->signature, vouch->size)) {
            status = store_damaged(error);
        }
    }
    database_done(&store->sql, row);
    return status;
}

enum status store_choose(struct store *store, int64_t row, enum store_choice choice,
                         const char *reason, struct error *error)
{
    TRY(database_run(&store->sql, error,
                     "INSERT OR REPLACE INTO choices SELECT hash, ?, ? FROM segments WHERE"
                     " rowid = ?",
                     "iti", (int64_t)choice, reason, row));
    return database_run(&store->sql, error, "UPDATE segments SET choice = ? WHERE rowid = ?", "ii",
                        (int64_t)choice, row);
}

static enum status read_url(void *one, sqlite3_stmt *row, struct error *error)
{
    (void)error;
    (void)snprintf(one, GAME_CONTACT_MAX + 1, "%s", (const char *)sqlite3_column_text(row, 0));
    return STATUS_OK;
}

enum status store_contacts(struct store *store, struct store_contacts *contacts,
                           const struct hash32 *job, struct error *error)
{
    return database_collect(
        &store->sql, contacts->urls, &contacts->count,
        database_query(&store->sql, error,
                       "SELECT c.url FROM contacts c JOIN jobs j ON j.key = c.job WHERE c.job = ?"
                       " AND (c.owner IN (j.client, j.solver, j.keeper) OR EXISTS (SELECT 1 FROM"
                       " entries e WHERE e.job = c.job AND e.owner = c.owner AND (NOT e.gone OR"
                       " e.generation = j.generation))) ORDER BY c.owner = j.solver DESC,"
                       " c.owner = j.keeper DESC, c.owner = j.client DESC, (SELECT max(s.idx) FROM"
                       " seats p JOIN segments s ON s.hash = p.segment WHERE s.job = c.job AND"
                       " p.owner = c.owner AND p.verdict = :right) DESC, c.number DESC",
                       "b", KEY(job)),
        sizeof(contacts->urls[0]), STORE_CONTACTS_MAX, read_url, error);
}
