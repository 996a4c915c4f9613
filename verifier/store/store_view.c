/* store_view.c - the ledger as its events told it: see store.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/store/store.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})

/* ---- events ------------------------------------------------------------- */

static enum status forget(struct store *store, struct error *error)
{
    static const char *const tables[] = {"jobs",     "segments", "claims",
                                         "payments", "reveals",  "disputes"};
    enum status status = STATUS_OK;

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && status == STATUS_OK; i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "DELETE FROM %s", tables[i]);
        status = database_run(&store->sql, error, text, "");
    }
    return status;
}

static enum status take_opened(struct store *store, const struct game_event *event,
                               struct error *error)
{
    struct game_move move = {.kind = GAME_OPEN, .terms = event->terms};
    uint8_t bytes[GAME_MOVE_SIZE_MAX];
    size_t size;

    game_move_encode(bytes, &size, &move);
    return database_run(&store->sql, error,
                        "INSERT OR REPLACE INTO jobs (key, client, id, terms, phase)"
                        " VALUES (?, ?, ?, ?, ?)",
                        "bbbbi", BLOB(event->job), BLOB(event->account), BLOB(event->terms.job_id),
                        &(struct database_blob){bytes, size}, (int64_t)GAME_PHASE_OPEN);
}

static enum status set_phase(struct store *store, const struct game_event *event,
                             enum game_phase phase, struct error *error)
{
    return database_run(&store->sql, error, "UPDATE jobs SET phase = ?, solver = ? WHERE key = ?",
                        "ibb", (int64_t)phase, BLOB(event->account), BLOB(event->job));
}

static enum status previous_root(struct store *store, struct digest *root,
                                 const struct game_event *event, struct error *error)
{
    sqlite3_stmt *row;
    enum status status;

    memset(root, 0, sizeof(*root));
    if (event->segment.index == 0) {
        return STATUS_OK;
    }
    row = database_query(&store->sql, error,
                         "SELECT root FROM segments WHERE job = ? AND idx = ? AND NOT void", "bi",
                         BLOB(event->job), (int64_t)event->segment.index - 1);
    if (row == NULL) {
        return STATUS_IO;
    }
    status = database_step(&store->sql, row, error);
    if (status == STATUS_OK && !database_blob_column(row, 0, root->bytes, DIGEST_SIZE)) {
        status = error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status take_committed(struct store *store, const struct ledger_entry *entry,
                                  struct error *error)
{
    const struct game_event *event = &entry->event;
    struct game_segment segment = event->segment;
    struct digest previous;
    struct hash32 hash;
    enum status status = previous_root(store, &previous, event, error);

    segment.height = entry->height;
    hash = game_segment_hash(&event->job, &segment);
    if (status != STATUS_OK) {
        return status;
    }
    return database_run(
        &store->sql, error,
        "INSERT OR REPLACE INTO segments (job, idx, generation, root, steps, time_s, height,"
        " solver, hash, previous, diverged, round_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?)",
        "biibiiibbbii", BLOB(event->job), (int64_t)segment.index, (int64_t)segment.generation,
        BLOB(segment.root), (int64_t)segment.steps, (int64_t)segment.time_s,
        (int64_t)segment.height, BLOB(segment.solver), BLOB(hash), BLOB(previous),
        (int64_t)event->flag, (int64_t)segment.time_s);
}

/* Changes the segment that stands at the event's index. */
static enum status change_segment(struct store *store, const struct game_event *event,
                                  const char *change, struct error *error)
{
    char text[256];

    (void)snprintf(text, sizeof(text),
                   "UPDATE segments SET %s WHERE job = ? AND idx = ? AND NOT void", change);
    return database_run(&store->sql, error, text, "bi", BLOB(event->job), (int64_t)event->index);
}

static enum status take_drawn(struct store *store, const struct game_event *event,
                              struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE segments SET seed = ?, mandatory = ? WHERE job = ? AND idx = ?"
                        " AND NOT void",
                        "bibi", BLOB(event->seal), (int64_t)event->flag, BLOB(event->job),
                        (int64_t)event->index);
}

/* A new round begins: seals that were not shown in the old one are lost, ours too. */
static enum status take_renewed(struct store *store, const struct game_event *event,
                                struct error *error)
{
    enum status status = database_run(
        &store->sql, error,
        "UPDATE segments SET round_s = ?, attested = 0, choice = iif(mine = :not_mine, :undecided,"
        " choice) WHERE job = ? AND idx = ? AND NOT void",
        "ibi", (int64_t)event->time_s, BLOB(event->job), (int64_t)event->index);

    return status == STATUS_OK ? store_renew_reveals(store, event, error) : status;
}

static enum status take_conviction(struct store *store, const struct game_event *event, bool again,
                                   struct error *error)
{
    enum status status =
        database_run(&store->sql, error, "UPDATE segments SET void = 1 WHERE job = ? AND idx >= ?",
                     "bi", BLOB(event->job), (int64_t)event->index);

    if (status == STATUS_OK && again) {
        status = database_run(&store->sql, error,
                              "UPDATE jobs SET generation = generation + 1 WHERE key = ?", "b",
                              BLOB(event->job));
    }
    return status == STATUS_OK
               ? set_phase(store, event, again ? GAME_PHASE_OPEN : GAME_PHASE_CLOSED, error)
               : status;
}

enum status store_take_payment(struct store *store, const struct ledger_entry *entry,
                               const char *kind, wei amount, struct error *error)
{
    char text[WEI_TEXT_SIZE];

    wei_print_plain(text, amount);
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO payments VALUES (?, ?, ?)",
                        "itt", (int64_t)entry->number, kind, text);
}

/* ---- all events --------------------------------------------------------- */

static enum status take_attestation(struct store *store, const struct ledger_entry *entry,
                                    const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;
    bool ours = address_equal(&event->account, own);
    enum status status;

    switch ((int)event->kind) {
    case GAME_ATTESTED:
        return change_segment(store, event,
                              ours ? "attested = attested + 1, mine = :sealed, choice = :to_attest"
                                   : "attested = attested + 1",
                              error);
    case GAME_REVEALED:
        status = change_segment(
            store, event,
            ours ? "attested = attested - 1, revealed = revealed + 1, mine = :revealed"
                 : "attested = attested - 1, revealed = revealed + 1",
            error);
        return status == STATUS_OK ? store_take_reveal(store, event, error) : status;
    default: /* SETTLED: the segment may be void */
        if (!ours) {
            return STATUS_OK;
        }
        status =
            database_run(&store->sql, error,
                         "UPDATE segments SET mine = :settled WHERE job = ? AND idx = ? AND mine IN"
                         " (:sealed, :revealed) AND generation = (SELECT min(generation) FROM"
                         " segments WHERE job = ? AND idx = ? AND mine IN (:sealed, :revealed))",
                         "bibi", BLOB(event->job), (int64_t)event->index, BLOB(event->job),
                         (int64_t)event->index);
        if (status == STATUS_OK && address_equal(&event->other, own)) {
            status = store_take_payment(store, entry, "attestation", event->amount, error);
        }
        return status;
    }
}

static enum status take_event(struct store *store, const struct ledger_entry *entry,
                              const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_OPENED:
        return take_opened(store, event, error);
    case GAME_ACCEPTED:
        return set_phase(store, event, GAME_PHASE_RUNNING, error);
    case GAME_CANCELLED:
        return set_phase(store, event, GAME_PHASE_CLOSED, error);
    case GAME_RELEASED:
        return set_phase(store, event, GAME_PHASE_OPEN, error);
    case GAME_COMMITTED:
        return take_committed(store, entry, error);
    case GAME_DRAWN:
        return take_drawn(store, event, error);
    case GAME_ATTESTED:
    case GAME_REVEALED:
    case GAME_SETTLED:
        return take_attestation(store, entry, own, error);
    case GAME_RENEWED:
        return take_renewed(store, event, error);
    case GAME_CONVICTED:
        return take_conviction(store, event, true, error);
    case GAME_CLOSED:
        return take_conviction(store, event, false, error);
    case GAME_FINALIZED:
        return database_run(&store->sql, error,
                            "UPDATE jobs SET finalized = ?, finalized_s = ? WHERE key = ?", "iib",
                            (int64_t)event->index + 1, (int64_t)entry->time_s, BLOB(event->job));
    case GAME_WITHDRAWN:
        return address_equal(&event->account, own)
                   ? store_take_payment(store, entry, "withdrawal", event->amount, error)
                   : STATUS_OK;
    default:
        return store_take_claim(store, entry, own, error);
    }
}

enum status store_take(struct store *store, const struct ledger_entry *entry,
                       const struct address *own, struct error *error)
{
    enum status status;

    if (entry->kind == LEDGER_REWIND) {
        int64_t seen = 0;

        /* Reading anew passes the rewind again; it was dealt with. */
        status = store_number(store, &seen, "rewound", error);
        if (status == STATUS_OK && seen < (int64_t)entry->number) {
            status = forget(store, error);
            if (status == STATUS_OK) {
                status = store_set_number(store, "rewound", (int64_t)entry->number, error);
            }
            return status == STATUS_OK ? store_set_number(store, "cursor", 0, error) : status;
        }
    } else {
        status = take_event(store, entry, own, error);
    }
    return status == STATUS_OK ? store_set_number(store, "cursor", (int64_t)entry->number, error)
                               : status;
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
        return STATUS_IO;
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
