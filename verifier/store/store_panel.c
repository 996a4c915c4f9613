/* store_panel.c - panels and the verdicts of their places, as events change them: see store.h. */
#include <stdio.h>
#include <string.h>

#include "verifier/store/store_words.h"

#include "verifier/store/store.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})

/* ---- the panel ---------------------------------------------------------------- */

static enum status take_enlisted(struct store *store, const struct ledger_entry *entry,
                                 const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    for (uint32_t i = 0; i < event->count && i < GAME_ENLIST_MAX; i++) {
        TRY(database_run(
            &store->sql, error,
            "INSERT OR REPLACE INTO entries (job, generation, number, owner, ours, enlisted)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            "biibii", BLOB(event->job), (int64_t)event->generation, (int64_t)event->entry + i,
            BLOB(event->account), (int64_t)address_equal(&event->account, own),
            (int64_t)(entry->number * GAME_ENLIST_MAX + i)));
    }
    return !address_equal(&event->account, own)
               ? STATUS_OK
               : database_run(&store->sql, error,
                              "UPDATE jobs SET enlisted = enlisted + ? WHERE key = ?", "ib",
                              (int64_t)event->count, BLOB(event->job));
}

/* While a job is open, an entry that departs vanishes, and MOVED closes the gap. */
static enum status take_gone(struct store *store, const struct game_event *event,
                             struct error *error)
{
    TRY(database_run(&store->sql, error,
                     "UPDATE entries SET gone = 1 WHERE job = ? AND generation = ? AND number = ?",
                     "bii", BLOB(event->job), (int64_t)event->generation, (int64_t)event->entry));
    return database_run(&store->sql, error,
                        "DELETE FROM entries WHERE job = ? AND generation = ? AND number = ? AND"
                        " EXISTS (SELECT 1 FROM jobs j WHERE j.key = entries.job AND"
                        " j.phase = :job_open AND j.generation = entries.generation)",
                        "bii", BLOB(event->job), (int64_t)event->generation, (int64_t)event->entry);
}

static enum status take_moved(struct store *store, const struct game_event *event,
                              struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE OR REPLACE entries SET number = ? WHERE job = ? AND generation = ?"
                        " AND number = ?",
                        "ibii", (int64_t)event->to, BLOB(event->job), (int64_t)event->generation,
                        (int64_t)event->entry);
}

/* ---- the draw ----------------------------------------------------------------- */

/* A segment that stands, and its row. STATUS_NOT_FOUND: none does. */
static enum status read_draw(struct store *store, struct job_reduced_segment *draw, int64_t *number,
                             const struct game_event *event, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(&row, &store->sql, error,
                                        "SELECT " STORE_DRAW_COLUMNS ", s.rowid FROM segments s"
                                        " WHERE s.job = ? AND s.idx = ? AND NOT s.void",
                                        "bi", BLOB(event->job), (int64_t)event->index);

    if (status == STATUS_OK) {
        *number = sqlite3_column_int64(row, STORE_DRAW_COUNT);
        status = store_read_draw(draw, row, 0, error);
    }
    database_done(&store->sql, row);
    return status;
}

static enum status write_draw(struct store *store, const struct job_reduced_segment *draw,
                              int64_t number, struct error *error)
{
    return database_run(&store->sql, error,
                        "UPDATE segments SET seed = nullif(?, zeroblob(32)), covered = ?,"
                        " start_s = ?, round = ?, places = ?, rights = ?, unseen = ?, vouched = ?,"
                        " leg_start = ?, over_height = ?, over_s = ? WHERE rowid = ?",
                        "biiiiiiiiiii", BLOB(draw->seed), (int64_t)draw->covered,
                        (int64_t)draw->start_s, (int64_t)draw->round, (int64_t)draw->to,
                        (int64_t)draw->rights, (int64_t)draw->unseen, (int64_t)draw->vouched,
                        (int64_t)draw->leg_start, (int64_t)draw->over_height, (int64_t)draw->over_s,
                        number);
}

static enum status reduce_segment(struct store *store, const struct game_event *event,
                                  struct error *error)
{
    struct job_reduced_segment draw;
    int64_t leg_start = 0;
    int64_t number;
    enum status status = read_draw(store, &draw, &number, event, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    TRY(database_number(&store->sql, &leg_start, 0, error,
                        "SELECT leg_start FROM jobs WHERE key = ?", "b", BLOB(event->job)));
    job_reduced_take_segment(&draw, (uint32_t)leg_start, event);
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
                       "SELECT owner, gone FROM entries WHERE job = ? AND generation = ? AND"
                       " number = ?",
                       "bii", BLOB(seating->segment->job),
                       (int64_t)seating->segment->committed.generation, (int64_t)number);

    if (status == STATUS_OK) {
        entry->gone = sqlite3_column_int(row, 1) != 0;
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
    uint32_t count =
        job_round_places(places, &event->seal, &segment->committed, event->from, event->to, &panel);

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

static enum status take_sealed(struct store *store, const struct game_event *event,
                               struct error *error)
{
    TRY(reduce_seat(store, event, error));
    return database_run(&store->sql, error, "UPDATE seats SET seal = ?" OF_STANDING, "bibi",
                        BLOB(event->seal), (int64_t)event->place, BLOB(event->job),
                        (int64_t)event->index);
}

/* A challenger of a right shows its leaves. */
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

/* Also a right of a segment that is void or final ends: nobody challenges it again. Its bond is
 * lost. */
static enum status take_disproved(struct store *store, const struct ledger_entry *entry,
                                  struct error *error)
{
    const struct game_event *event = &entry->event;
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
    TRY(database_run(&store->sql, error,
                     "UPDATE entries SET lost_s = ? WHERE job = ? AND number = ? AND generation ="
                     " (SELECT generation FROM segments WHERE hash = ?)",
                     "ibib", (int64_t)entry->time_s, BLOB(event->job), (int64_t)event->entry,
                     BLOB(event->seal)));
    return database_run(&store->sql, error,
                        "UPDATE seats SET phase = :seat_closed WHERE place = ? AND segment = ?",
                        "ib", (int64_t)event->place, BLOB(event->seal));
}

enum status store_take_panel(struct store *store, const struct ledger_entry *entry,
                             const struct address *own, struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_ENLISTED:
        return take_enlisted(store, entry, own, error);
    case GAME_GONE:
        return take_gone(store, event, error);
    case GAME_MOVED:
        return take_moved(store, event, error);
    case GAME_DRAWN:
    case GAME_ROUND_OVER:
    case GAME_VOUCHED:
        return reduce_segment(store, event, error);
    case GAME_ROUND:
        return take_round(store, event, own, error);
    case GAME_SEALED_VERDICT:
        return take_sealed(store, event, error);
    case GAME_SAID_UNSEEN:
        TRY(reduce_segment(store, event, error));
        return reduce_seat(store, event, error);
    case GAME_REVEALED:
        return take_revealed(store, event, error);
    case GAME_DISPROVED:
        return take_disproved(store, entry, error);
    default:
        return STATUS_OK;
    }
}

/* ---- places, as they stand ------------------------------------------------------ */

const char store_seat_columns[] =
    "SELECT p.segment, s.job, s.idx, p.place, p.entry, p.owner, p.ours, p.round = s.round,"
    " p.phase, p.verdict, p.leaves, coalesce(n.judgement, :not_judged), p.salt,"
    " coalesce(n.reason, ''), p.seal FROM seats p JOIN segments s ON s.hash = p.segment JOIN jobs j"
    " ON j.key = s.job LEFT JOIN notes n ON n.segment = p.segment AND n.place = p.place";

enum status store_read_seat(void *one, sqlite3_stmt *row, struct error *error)
{
    struct store_seat *seat = one;

    memset(seat, 0, sizeof(*seat));
    seat->index = (uint32_t)sqlite3_column_int64(row, 2);
    seat->place = (uint32_t)sqlite3_column_int64(row, 3);
    seat->state.entry = (uint32_t)sqlite3_column_int64(row, 4);
    seat->ours = sqlite3_column_int(row, 6) != 0;
    seat->is_last = sqlite3_column_int(row, 7) != 0;
    seat->state.phase = (enum game_seat_phase)sqlite3_column_int(row, 8);
    seat->state.verdict = (enum game_verdict)sqlite3_column_int(row, 9);
    seat->judgement = (enum store_judgement)sqlite3_column_int(row, 11);
    (void)snprintf(seat->reason, sizeof(seat->reason), "%s",
                   (const char *)sqlite3_column_text(row, 13));
    return database_blob_column(row, 0, seat->segment.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 1, seat->job.bytes, HASH32_SIZE) &&
                   database_blob_column(row, 5, seat->owner.bytes, ADDRESS_SIZE) &&
                   (sqlite3_column_type(row, 10) == SQLITE_NULL ||
                    (database_blob_column(row, 10, &seat->leaves, sizeof(seat->leaves)) &&
                     database_blob_column(row, 12, seat->salt.bytes, HASH32_SIZE))) &&
                   (sqlite3_column_type(row, 14) == SQLITE_NULL ||
                    database_blob_column(row, 14, seat->seal.bytes, HASH32_SIZE))
               ? STATUS_OK
               : store_damaged(error);
}

enum status store_judge(struct store *store, const struct store_seat *seat,
                        enum store_judgement judgement, struct error *error)
{
    return database_run(&store->sql, error,
                        "INSERT INTO notes (segment, place, judgement) VALUES (?, ?, ?) ON CONFLICT"
                        " (segment, place) DO UPDATE SET judgement = excluded.judgement",
                        "bii", BLOB(seat->segment), (int64_t)seat->place, (int64_t)judgement);
}

enum status store_say(struct store *store, const struct store_seat *seat, const char *reason,
                      struct error *error)
{
    return database_run(&store->sql, error,
                        "INSERT INTO notes (segment, place, reason) VALUES (?, ?, ?) ON CONFLICT"
                        " (segment, place) DO UPDATE SET reason = excluded.reason",
                        "bit", BLOB(seat->segment), (int64_t)seat->place, reason);
}
