/* store_view.c - jobs and segments, as the ledger's events change them: see store.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/store/store.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})

/* ---- changes ------------------------------------------------------------ */

static enum status forget(struct store *store, struct error *error)
{
    static const char *const tables[] = {"jobs",     "segments", "claims",
                                         "payments", "reveals",  "disputes"};

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "DELETE FROM %s", tables[i]);
        TRY(database_run(&store->sql, error, text, ""));
    }
    return STATUS_OK;
}

static enum status take_opened(struct store *store, const struct job_change *change,
                               struct error *error)
{
    struct game_move move = {.kind = GAME_OPEN, .terms = *change->terms};
    uint8_t bytes[GAME_MOVE_SIZE_MAX];
    size_t size;

    game_move_encode(bytes, &size, &move);
    return database_run(&store->sql, error,
                        "INSERT OR REPLACE INTO jobs (key, client, id, terms, phase)"
                        " VALUES (?, ?, ?, ?, ?)",
                        "bbbbi", BLOB(change->job), BLOB(change->account),
                        BLOB(change->terms->job_id), &(struct database_blob){bytes, size},
                        (int64_t)GAME_PHASE_OPEN);
}

static enum status take_phase(struct store *store, const struct job_change *change,
                              struct error *error)
{
    if (change->voids) {
        TRY(database_run(&store->sql, error,
                         "UPDATE segments SET void = 1 WHERE job = ? AND idx >= ?", "bi",
                         BLOB(change->job), (int64_t)change->index));
    }
    return database_run(&store->sql, error,
                        "UPDATE jobs SET phase = ?, solver = ?, generation = generation + ?"
                        " WHERE key = ?",
                        "ibib", (int64_t)change->phase, BLOB(change->solver),
                        (int64_t)change->convicted, BLOB(change->job));
}

static enum status previous_root(struct store *store, struct digest *root,
                                 const struct job_change *change, struct error *error)
{
    sqlite3_stmt *row;
    enum status status;

    memset(root, 0, sizeof(*root));
    if (change->index == 0) {
        return STATUS_OK;
    }
    TRY(database_prepare(&row, &store->sql, error,
                         "SELECT root FROM segments WHERE job = ? AND idx = ? AND NOT void", "bi",
                         BLOB(change->job), (int64_t)change->index - 1));
    status = database_step(&store->sql, row, error);
    if (status == STATUS_OK && !database_blob_column(row, 0, root->bytes, DIGEST_SIZE)) {
        status = error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status take_committed(struct store *store, const struct job_change *change,
                                  struct error *error)
{
    const struct game_segment *segment = &change->segment;
    struct hash32 hash = game_segment_hash(&change->job, segment);
    struct digest previous;

    TRY(previous_root(store, &previous, change, error));
    return database_run(
        &store->sql, error,
        "INSERT OR REPLACE INTO segments (job, idx, generation, root, steps, time_s, height,"
        " solver, hash, previous, diverged, round_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?)",
        "biibiiibbbii", BLOB(change->job), (int64_t)segment->index, (int64_t)segment->generation,
        BLOB(segment->root), (int64_t)segment->steps, (int64_t)segment->time_s,
        (int64_t)segment->height, BLOB(segment->solver), BLOB(hash), BLOB(previous),
        (int64_t)change->diverged, (int64_t)segment->time_s);
}

static enum status take_drawn(struct store *store, const struct job_change *change,
                              struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE segments SET seed = ?, mandatory = ? WHERE job = ? AND idx = ?"
                        " AND NOT void",
                        "bibi", BLOB(change->seed), (int64_t)change->mandatory, BLOB(change->job),
                        (int64_t)change->index);
}

/* A segment that we passed over is decided again in the new round. */
static enum status take_renewed(struct store *store, const struct job_change *change,
                                struct error *error)
{
    TRY(database_run(
        &store->sql, error,
        "UPDATE segments SET round_s = ?, attested = 0, choice = iif(mine = :not_mine, :undecided,"
        " choice) WHERE job = ? AND idx = ? AND NOT void",
        "ibi", (int64_t)change->start_s, BLOB(change->job), (int64_t)change->index));
    return store_renew_reveals(store, change, error);
}

static enum status take_finalized(struct store *store, const struct job_change *change,
                                  struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE jobs SET finalized = ?, finalized_s = ? WHERE key = ?", "iib",
                        (int64_t)change->index + 1, (int64_t)change->time_s, BLOB(change->job));
}

/* Of our own attestation. The segment may be void, so the oldest that is not settled is meant. */
static enum status take_settled(struct store *store, const struct job_change *change,
                                const struct address *own, struct error *error)
{
    bool paid = address_equal(&change->payee, own);

    if (!address_equal(&change->account, own)) {
        return STATUS_OK;
    }
    TRY(database_run(
        &store->sql, error,
        "UPDATE segments SET mine = iif(?, :settled, :lost) WHERE job = ? AND idx = ? AND mine IN"
        " (:sealed, :revealed) AND generation = (SELECT min(generation) FROM"
        " segments WHERE job = ? AND idx = ? AND mine IN (:sealed, :revealed))",
        "ibibi", (int64_t)paid, BLOB(change->job), (int64_t)change->index, BLOB(change->job),
        (int64_t)change->index));
    return paid ? store_take_payment(store, change, "attestation", change->amount, error)
                : STATUS_OK;
}

static enum status take_attestation(struct store *store, const struct job_change *change,
                                    const struct address *own, struct error *error)
{
    bool seals = change->attestation == JOB_ATTESTATION_SEALED;

    if (change->attestation == JOB_ATTESTATION_SETTLED) {
        return take_settled(store, change, own, error);
    }
    TRY(database_run(&store->sql, error,
                     "UPDATE segments SET attested = attested + ?, revealed = revealed + ?"
                     " WHERE job = ? AND idx = ? AND NOT void",
                     "iibi", (int64_t)change->attested, (int64_t)change->revealed,
                     BLOB(change->job), (int64_t)change->index));
    if (address_equal(&change->account, own)) {
        TRY(database_run(&store->sql, error,
                         seals ? "UPDATE segments SET mine = :sealed, choice = :to_attest"
                                 " WHERE job = ? AND idx = ? AND NOT void"
                               : "UPDATE segments SET mine = :revealed"
                                 " WHERE job = ? AND idx = ? AND NOT void",
                         "bi", BLOB(change->job), (int64_t)change->index));
    }
    return seals ? STATUS_OK : store_take_reveal(store, change, error);
}

enum status store_take_payment(struct store *store, const struct job_change *change,
                               const char *kind, wei amount, struct error *error)
{
    char text[WEI_TEXT_SIZE];

    wei_print_plain(text, amount);
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO payments VALUES (?, ?, ?)",
                        "itt", (int64_t)change->number, kind, text);
}

/* Reading the event log again passes a rewind again: it counts once. */
static enum status take_rewind(struct store *store, const struct job_change *change,
                               struct error *error)
{
    int64_t seen = 0;

    TRY(store_number(store, &seen, "rewound", error));
    if (seen >= (int64_t)change->number) {
        return store_set_number(store, "cursor", (int64_t)change->number, error);
    }
    TRY(forget(store, error));
    TRY(store_set_number(store, "rewound", (int64_t)change->number, error));
    return store_set_number(store, "cursor", 0, error);
}

static enum status take_change(struct store *store, const struct job_change *change,
                               const struct address *own, struct error *error)
{
    switch (change->kind) {
    case JOB_CHANGE_OPENED:
        return take_opened(store, change, error);
    case JOB_CHANGE_PHASE:
        return take_phase(store, change, error);
    case JOB_CHANGE_COMMITTED:
        return take_committed(store, change, error);
    case JOB_CHANGE_DRAWN:
        return take_drawn(store, change, error);
    case JOB_CHANGE_RENEWED:
        return take_renewed(store, change, error);
    case JOB_CHANGE_FINALIZED:
        return take_finalized(store, change, error);
    case JOB_CHANGE_ATTESTATION:
        return take_attestation(store, change, own, error);
    case JOB_CHANGE_WITHDRAWN:
        return address_equal(&change->account, own)
                   ? store_take_payment(store, change, "withdrawal", change->amount, error)
                   : STATUS_OK;
    case JOB_CHANGE_CLAIM_OPENED:
    case JOB_CHANGE_CLAIM_TURN:
    case JOB_CHANGE_CLAIM_QUERIED:
    case JOB_CHANGE_CLAIM_CLOSED:
        return store_take_claim(store, change, own, error);
    case JOB_CHANGE_NONE:
    case JOB_CHANGE_REWIND:
        break;
    }
    return STATUS_OK;
}

enum status store_take(struct store *store, const struct ledger_entry *entry,
                       const struct address *own, struct error *error)
{
    struct job_change change;

    job_change_read(&change, entry);
    if (change.kind == JOB_CHANGE_REWIND) {
        return take_rewind(store, &change, error);
    }
    TRY(take_change(store, &change, own, error));
    return store_set_number(store, "cursor", (int64_t)change.number, error);
}

/* ---- segments ----------------------------------------------------------- */

#define SEGMENT_COLUMNS                                                                            \
    "SELECT s.rowid, s.job, s.idx, s.generation, s.root, s.steps, s.time_s, s.height, s.solver, "  \
    "s.hash,"                                                                                      \
    " s.previous, s.diverged, s.seed, s.round_s, s.attested, s.revealed, s.mine, s.void, "         \
    "s.choice,"                                                                                    \
    " j.terms, j.phase, j.finalized, s.mandatory, j.finalized_s FROM segments s JOIN jobs j"       \
    " ON j.key = s.job"

static enum status read_segment(void *one, sqlite3_stmt *row, struct error *error)
{
    struct store_segment *segment = one;
    struct game_move move;

    memset(segment, 0, sizeof(*segment));
    segment->row = sqlite3_column_int64(row, 0);
    segment->committed.index = (uint32_t)sqlite3_column_int64(row, 2);
    segment->committed.generation = (uint32_t)sqlite3_column_int64(row, 3);
    segment->committed.steps = (uint32_t)sqlite3_column_int64(row, 5);
    segment->committed.time_s = (uint64_t)sqlite3_column_int64(row, 6);
    segment->committed.height = (uint64_t)sqlite3_column_int64(row, 7);
    segment->diverged = sqlite3_column_int(row, 11) != 0;
    segment->round_s = (uint64_t)sqlite3_column_int64(row, 13);
    segment->attested = (uint32_t)sqlite3_column_int64(row, 14);
    segment->revealed = (uint32_t)sqlite3_column_int64(row, 15);
    segment->mine = (enum store_mine)sqlite3_column_int(row, 16);
    segment->is_void = sqlite3_column_int(row, 17) != 0;
    segment->choice = (enum store_choice)sqlite3_column_int(row, 18);
    segment->phase = (enum game_phase)sqlite3_column_int(row, 20);
    segment->finalized = (uint32_t)sqlite3_column_int64(row, 21);
    segment->mandatory = sqlite3_column_int(row, 22) != 0;
    segment->finalized_s = (uint64_t)sqlite3_column_int64(row, 23);
    if (!database_blob_column(row, 1, segment->job.bytes, HASH32_SIZE) ||
        !database_blob_column(row, 4, segment->committed.root.bytes, DIGEST_SIZE) ||
        !database_blob_column(row, 8, segment->committed.solver.bytes, ADDRESS_SIZE) ||
        !database_blob_column(row, 9, segment->hash.bytes, HASH32_SIZE) ||
        !database_blob_column(row, 10, segment->previous.bytes, DIGEST_SIZE) ||
        (sqlite3_column_type(row, 12) != SQLITE_NULL &&
         !database_blob_column(row, 12, segment->seed.bytes, HASH32_SIZE)) ||
        game_move_decode(&move, sqlite3_column_blob(row, 19),
                         (size_t)sqlite3_column_bytes(row, 19)) != STATUS_OK ||
        move.kind != GAME_OPEN) {
        return error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
    }
    segment->terms = move.terms;
    segment->job_id = move.terms.job_id;
    return STATUS_OK;
}

struct job_segment store_segment_state(const struct store_segment *segment)
{
    return (struct job_segment){.terms = &segment->terms,
                                .start_s = segment->round_s,
                                .height = segment->committed.height,
                                .revealed = segment->revealed,
                                .drawn = !hash32_is_zero(&segment->seed),
                                .mandatory = segment->mandatory,
                                .final = segment->committed.index < segment->finalized,
                                .first = segment->committed.index == segment->finalized};
}

/* Collected first: what visits them may change the table. */
enum status store_segments(struct store *store, const char *where,
                           enum status (*visit)(void *context, const struct store_segment *segment,
                                                struct error *error),
                           void *context, struct error *error)
{
    struct store_segment *found = malloc(STORE_VISIT_MAX * sizeof(*found));
    char text[1400];
    uint32_t count = 0;
    enum status status =
        found == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for segments") : STATUS_OK;

    if (status == STATUS_OK) {
        (void)snprintf(text, sizeof(text), SEGMENT_COLUMNS " WHERE %s LIMIT %d", where,
                       STORE_VISIT_MAX);
        status = database_collect(&store->sql, found, &count,
                                  database_query(&store->sql, error, text, ""), sizeof(*found),
                                  STORE_VISIT_MAX, read_segment, error);
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = visit(context, &found[i], error);
    }
    free(found);
    return status;
}

static enum status one_segment(struct store *store, struct store_segment *segment,
                               sqlite3_stmt *row, struct error *error)
{
    enum status status;

    if (row == NULL) {
        return error->status;
    }
    status = database_step(&store->sql, row, error);
    if (status == STATUS_OK) {
        status = read_segment(segment, row, error);
    }
    database_done(&store->sql, row);
    return status;
}

enum status store_segment(struct store *store, struct store_segment *segment,
                          const struct hash32 *job, uint32_t index, struct error *error)
{
    return one_segment(
        store, segment,
        database_query(&store->sql, error,
                       SEGMENT_COLUMNS " WHERE s.job = ? AND s.idx = ? AND NOT s.void", "bi",
                       &(struct database_blob){job->bytes, HASH32_SIZE}, (int64_t)index),
        error);
}

enum status store_segment_by_hash(struct store *store, struct store_segment *segment,
                                  const struct hash32 *hash, struct error *error)
{
    return one_segment(store, segment,
                       database_query(&store->sql, error, SEGMENT_COLUMNS " WHERE s.hash = ?", "b",
                                      &(struct database_blob){hash->bytes, HASH32_SIZE}),
                       error);
}

enum status store_choose(struct store *store, int64_t row, enum store_choice choice,
                         const char *reason, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE segments SET choice = ?, reason = ? WHERE rowid = ?", "iti",
                        (int64_t)choice, reason, row);
}
