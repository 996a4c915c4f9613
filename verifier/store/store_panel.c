/* store_panel.c - panels and the verdicts of their places, as events change them: see store.h. */
#include <string.h>

#include "verifier/store/store_words.h"

#include "verifier/store/store.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})

/* ---- the panel ---------------------------------------------------------------- */

static enum status take_enlisted(struct store *store, const struct game_event *event,
                                 const struct address *own, struct error *error)
{
    for (uint32_t i = 0; i < event->count && i < GAME_PANEL_MAX; i++) {
        TRY(database_run(&store->sql, error,
                         "INSERT OR REPLACE INTO entries (job, number, owner, ours)"
                         " VALUES (?, ?, ?, ?)",
                         "bibi", BLOB(event->job), (int64_t)event->entry + i, BLOB(event->account),
                         (int64_t)address_equal(&event->account, own)));
    }
    return STATUS_OK;
}

static enum status take_left(struct store *store, const struct ledger_entry *entry,
                             struct error *error)
{
    if (entry->event.kind == GAME_GONE) {
        return database_run(&store->sql, error,
                            "UPDATE entries SET gone = 1 WHERE job = ? AND number = ?", "bi",
                            BLOB(entry->event.job), (int64_t)entry->event.entry);
    }
    return database_run(
        &store->sql, error,
        "UPDATE entries SET left_s = ?, generation = (SELECT generation FROM jobs WHERE key = job),"
        " until = (SELECT count(*) FROM segments s WHERE s.job = entries.job AND NOT s.void)"
        " WHERE job = ? AND number = ?",
        "ibi", (int64_t)entry->time_s, BLOB(entry->event.job), (int64_t)entry->event.entry);
}

/* ---- the draw ----------------------------------------------------------------- */

/* A segment that stands, and its row. STATUS_NOT_FOUND: none does. */
static enum status read_draw(struct store *store, struct job_reduced_segment *draw, int64_t *number,
                             const struct game_event *event, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &store->sql, error,
        "SELECT rowid, seed, covered, ended, start_s, round, rights, unavailables FROM segments"
        " WHERE job = ? AND idx = ? AND NOT void",
        "bi", BLOB(event->job), (int64_t)event->index);

    memset(draw, 0, sizeof(*draw));
    if (status == STATUS_OK) {
        *number = sqlite3_column_int64(row, 0);
        draw->covered = sqlite3_column_int(row, 2) != 0;
        draw->ended = sqlite3_column_int(row, 3) != 0;
        draw->start_s = (uint64_t)sqlite3_column_int64(row, 4);
        draw->round = (uint32_t)sqlite3_column_int64(row, 5);
        draw->rights = (uint32_t)sqlite3_column_int64(row, 6);
        draw->unavailables = (uint32_t)sqlite3_column_int64(row, 7);
        if (sqlite3_column_type(row, 1) != SQLITE_NULL &&
            !database_blob_column(row, 1, draw->seed.bytes, HASH32_SIZE)) {
            status = store_damaged(error);
        }
    }
    database_done(&store->sql, row);
    return status;
}

/* A segment that is not drawn has no seed in the table. */
static enum status write_draw(struct store *store, const struct job_reduced_segment *draw,
                              int64_t number, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE segments SET seed = nullif(?, zeroblob(32)), covered = ?,"
                        " ended = ?, start_s = ?, round = ?, rights = ?, unavailables = ? WHERE"
                        " rowid = ?",
                        "biiiiiii", BLOB(draw->seed), (int64_t)draw->covered, (int64_t)draw->ended,
                        (int64_t)draw->start_s, (int64_t)draw->round, (int64_t)draw->rights,
                        (int64_t)draw->unavailables, number);
}

static enum status reduce_segment(struct store *store, const struct game_event *event,
                                  struct error *error)
{
    struct job_reduced_segment draw;
    int64_t number;
    enum status status = read_draw(store, &draw, &number, event, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    job_reduced_take_segment(&draw, event);
    return write_draw(store, &draw, number, error);
}

/* What job_round_places() asks, of the tables. */
struct place_walk {
    struct store *store;
    const struct store_segment *segment;
    struct error *error;
    enum status status;
};

static bool find_entry(void *context, struct job_entry *entry, uint32_t number)
{
    struct place_walk *seating = context;
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, &seating->store->sql, seating->error,
                       "SELECT owner, gone, left_s FROM entries WHERE job = ? AND number = ?", "bi",
                       BLOB(seating->segment->job), (int64_t)number);

    if (status == STATUS_OK) {
        entry->gone = sqlite3_column_int(row, 1) != 0;
        entry->left = sqlite3_column_int64(row, 2) != 0;
        status = database_blob_column(row, 0, entry->owner.bytes, ADDRESS_SIZE)
                     ? STATUS_OK
                     : store_damaged(seating->error);
    }
    database_done(&seating->store->sql, row);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        seating->status = status;
    }
    return status == STATUS_OK;
}

static bool is_seated(void *context, uint32_t number)
{
    struct place_walk *seating = context;
    int64_t count = 0;
    enum status status =
        database_number(&seating->store->sql, &count, 0, seating->error,
                        "SELECT count(*) FROM seats WHERE segment = ? AND entry = ?", "bi",
                        BLOB(seating->segment->hash), (int64_t)number);

    if (status != STATUS_OK) {
        seating->status = status;
    }
    return count > 0;
}

static enum status seat_all(struct store *store, const struct store_segment *segment,
                            const struct game_event *event, const struct address *own,
                            struct error *error)
{
    struct place_walk seating = {store, segment, error, STATUS_OK};
    const struct job_panel panel = {
        .context = &seating, .find = find_entry, .is_seated = is_seated};
    struct job_place places[GAME_PLACES_MAX];
    uint32_t count = job_round_places(places, &segment->seed, &segment->committed, event->from,
                                      event->to, &panel);

    TRY(seating.status);
    for (uint32_t i = 0; i < count; i++) {
        TRY(database_run(&store->sql, error,
                         "INSERT OR REPLACE INTO seats (segment, place, entry, owner, ours, round)"
                         " VALUES (?, ?, ?, ?, ?, ?)",
                         "biibii", BLOB(segment->hash), (int64_t)places[i].place,
                         (int64_t)places[i].entry, BLOB(places[i].owner),
                         (int64_t)address_equal(&places[i].owner, own), (int64_t)event->round));
    }
    return STATUS_OK;
}

static enum status take_round(struct store *store, const struct game_event *event,
                              const struct address *own, struct error *error)
{
    struct store_segment segment;
    enum status status = store_segment(store, &segment, &event->job, event->index, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    TRY(reduce_segment(store, event, error));
    return seat_all(store, &segment, event, own, error);
}

/* ---- verdicts ----------------------------------------------------------------- */

#define OF_STANDING                                                                                \
    " WHERE place = ? AND segment = (SELECT hash FROM segments WHERE job = ? AND idx = ?"          \
    " AND NOT void)"

static enum status read_place(struct store *store, struct job_reduced_seat *seat,
                              const struct game_event *event, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &store->sql, error, "SELECT entry, phase, verdict FROM seats" OF_STANDING, "ibi",
        (int64_t)event->place, BLOB(event->job), (int64_t)event->index);

    memset(seat, 0, sizeof(*seat));
    if (status == STATUS_OK) {
        seat->entry = (uint32_t)sqlite3_column_int64(row, 0);
        seat->phase = (enum game_seat_phase)sqlite3_column_int(row, 1);
        seat->verdict = (enum game_verdict)sqlite3_column_int(row, 2);
    }
    database_done(&store->sql, row);
    return status;
}

/* An event about a place of a segment that stands. */
static enum status reduce_seat(struct store *store, const struct game_event *event,
                               struct error *error)
{
    struct job_reduced_segment draw;
    struct job_reduced_seat seat;
    int64_t number = 0;
    enum status status = read_draw(store, &draw, &number, event, error);

    if (status == STATUS_OK) {
        status = read_place(store, &seat, event, error);
    }
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    job_reduced_take_seat(&seat, &draw, event);
    TRY(write_draw(store, &draw, number, error));
    return database_run(&store->sql, error, "UPDATE seats SET phase = ?, verdict = ?" OF_STANDING,
                        "iiibi", (int64_t)seat.phase, (int64_t)seat.verdict, (int64_t)event->place,
                        BLOB(event->job), (int64_t)event->index);
}

/* Whoever challenges a right shows its leaves. */
static enum status take_revealed(struct store *store, const struct game_event *event,
                                 struct error *error)
{
    TRY(reduce_segment(store, event, error));
    TRY(reduce_seat(store, event, error));
    return database_run(&store->sql, error, "UPDATE seats SET leaves = ?, salt = ?" OF_STANDING,
                        "bbibi", &(struct database_blob){event->leaves.tags, sizeof(event->leaves)},
                        BLOB(event->seal), (int64_t)event->place, BLOB(event->job),
                        (int64_t)event->index);
}

/* Also a right of a segment that is void or final ends: nobody challenges it again. */
static enum status take_disproved(struct store *store, const struct game_event *event,
                                  struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        "SELECT 1 FROM segments WHERE hash = ? AND NOT void", "b",
                                        BLOB(event->seal));

    database_done(&store->sql, row);
    if (status == STATUS_OK) {
        status = reduce_seat(store, event, error);
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    return database_run(&store->sql, error,
                        "UPDATE seats SET phase = :seat_closed WHERE place = ? AND segment = ?",
                        "ib", (int64_t)event->place, BLOB(event->seal));
}

/* The fee of a right. */
static enum status take_settled(struct store *store, const struct ledger_entry *entry,
                                const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    TRY(reduce_seat(store, event, error));
    return event->amount > 0 && address_equal(&event->account, own)
               ? store_take_payment(store, entry, "seat", event->amount, error)
               : STATUS_OK;
}

enum status store_take_panel(struct store *store, const struct ledger_entry *entry,
                             const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_ENLISTED:
        return take_enlisted(store, event, own, error);
    case GAME_LEFT:
    case GAME_GONE:
        return take_left(store, entry, error);
    case GAME_DRAWN:
        return reduce_segment(store, event, error);
    case GAME_ROUND:
        return take_round(store, event, own, error);
    case GAME_SEALED_VERDICT:
    case GAME_ABSENT:
        return reduce_seat(store, event, error);
    case GAME_REVEALED:
        return take_revealed(store, event, error);
    case GAME_DISPROVED:
        return take_disproved(store, event, error);
    case GAME_SETTLED:
        return take_settled(store, entry, own, error);
    default:
        return STATUS_OK;
    }
}

/* ---- places, as they stand ------------------------------------------------------ */

const char store_seat_columns[] =
    "SELECT p.segment, s.job, s.idx, p.place, p.entry, p.owner, p.ours, p.round = s.round AND NOT"
    " s.ended, p.phase, p.verdict, p.leaves, p.judgement, p.salt FROM seats p JOIN segments s ON"
    " s.hash = p.segment JOIN jobs j ON j.key = s.job";

enum status store_read_seat(void *one, sqlite3_stmt *row, struct error *error)
{
    struct store_seat *seat = one;

    memset(seat, 0, sizeof(*seat));
    seat->index = (uint32_t)sqlite3_column_int64(row, 2);
    seat->place = (uint32_t)sqlite3_column_int64(row, 3);
    seat->entry = (uint32_t)sqlite3_column_int64(row, 4);
    seat->ours = sqlite3_column_int(row, 6) != 0;
    seat->is_last = sqlite3_column_int(row, 7) != 0;
    seat->phase = (enum game_seat_phase)sqlite3_column_int(row, 8);
    seat->verdict = (enum game_verdict)sqlite3_column_int(row, 9);
    seat->judgement = (enum store_judgement)sqlite3_column_int(row, 11);
    return database_blob_column(row, 0, seat->segment.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 1, seat->job.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 5, seat->owner.bytes, ADDRESS_SIZE) &&
                   (sqlite3_column_type(row, 10) == SQLITE_NULL ||
                    (database_blob_column(row, 10, &seat->leaves, sizeof(seat->leaves)) &&
                     database_blob_column(row, 12, seat->salt.bytes, HASH32_SIZE)))
               ? STATUS_OK
               : store_damaged(error);
}

enum status store_judge(struct store *store, const struct store_seat *seat,
                        enum store_judgement judgement, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE seats SET judgement = ? WHERE segment = ? AND place = ?", "ibi",
                        (int64_t)judgement, BLOB(seat->segment), (int64_t)seat->place);
}
