/*
 * store_view.c - jobs, segments and places as the node sees them: what the board has of them, and
 * what the node thinks. See store.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/store/store.h"
#include "verifier/store/store_words.h"

#define BLOB(value) (&(struct database_blob){(value).bytes, sizeof((value).bytes)})
#define KEY(value)  (&(struct database_blob){(value)->bytes, HASH32_SIZE})

/* ---- one of them ------------------------------------------------------------------- */

static uint32_t count_ours(const struct store *store, const struct job_record *record)
{
    const struct address *own = &store->board->account;
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->state.entries && !address_is_zero(own); i++) {
        count += !record->entries[i].gone && address_equal(&record->entries[i].owner, own);
    }
    return count;
}

enum status store_job(struct store *store, struct store_job *job, const struct hash32 *key,
                      struct error *error)
{
    const struct job_record *record = board_find(store->board, key);
    sqlite3_stmt *row;
    enum status status;

    memset(job, 0, sizeof(*job));
    if (record == NULL) {
        return STATUS_NOT_FOUND;
    }
    job->key = record->key;
    job->client = record->client;
    job->terms = record->terms;
    job->state = record->state;
    job->finalized_s = record->finalized_s;
    job->closed_s = record->closed_s;
    job->enlisted = record->enlisted;
    job->ours = count_ours(store, record);
    status = database_first(&row, &store->sql, error,
                            "SELECT wish, header FROM wishes WHERE job = ?", "b", KEY(key));
    if (status == STATUS_OK) {
        job->wish = (enum store_wish)sqlite3_column_int(row, 0);
        job->has_header = database_blob_column(row, 1, job->header, sizeof(job->header));
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static uint32_t count_claims(const struct job_record *record, const struct hash32 *segment)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->claim_count; i++) {
        count += job_record_claim_is_open(&record->claims[i]) &&
                 hash32_equal(&record->claims[i].segment, segment);
    }
    return count;
}

static enum status view_segment(struct store *store, struct store_segment *segment,
                                const struct job_record *record,
                                const struct job_record_segment *of, struct error *error)
{
    int64_t choice = 0;

    memset(segment, 0, sizeof(*segment));
    segment->number = of->number;
    segment->job = record->key;
    segment->committed = of->committed;
    segment->hash = of->hash;
    segment->previous = of->previous;
    segment->draw = of->draw;
    segment->vouch_known = of->has_vouch || of->has_word;
    segment->open_claims = count_claims(record, &of->hash);
    segment->job_claims = job_record_open_claims(record);
    segment->is_void = of->is_void;
    segment->job_id = record->terms.job_id;
    segment->terms = record->terms;
    segment->client = record->client;
    segment->state = record->state;
    segment->finalized_s = record->finalized_s;
    TRY(database_number(&store->sql, &choice, STORE_CHOICE_NONE, error,
                        "SELECT choice FROM choices WHERE segment = ?", "b", BLOB(of->hash)));
    segment->choice = (enum store_choice)choice;
    return STATUS_OK;
}

enum status store_segment(struct store *store, struct store_segment *segment,
                          const struct hash32 *job, uint32_t index, struct error *error)
{
    const struct job_record *record = board_find(store->board, job);

    return record == NULL || index >= record->state.committed
               ? STATUS_NOT_FOUND
               : view_segment(store, segment, record, &record->segments[index], error);
}

/* Is it at the index, committed before the other, and later than the best so far? */
static bool is_nearer(const struct job_record_segment *segment,
                      const struct job_record_segment *best, const struct store_segment *than,
                      uint32_t index)
{
    const struct game_segment *committed = &segment->committed;

    return committed->index == index && committed->generation <= than->committed.generation &&
           segment->number <= than->number &&
           (best == NULL || committed->generation > best->committed.generation ||
            (committed->generation == best->committed.generation &&
             segment->number > best->number));
}

/* Of those that became void since, the last of an earlier or the same generation. */
enum status store_segment_before(struct store *store, struct store_segment *found,
                                 const struct store_segment *segment, uint32_t index,
                                 struct error *error)
{
    const struct job_record *record = board_find(store->board, &segment->job);
    const struct job_record_segment *best = NULL;

    if (record == NULL) {
        return STATUS_NOT_FOUND;
    }
    if (index < record->state.committed &&
        is_nearer(&record->segments[index], best, segment, index)) {
        best = &record->segments[index];
    }
    for (uint32_t i = 0; i < record->void_count; i++) {
        best = is_nearer(&record->voids[i], best, segment, index) ? &record->voids[i] : best;
    }
    return best == NULL ? STATUS_NOT_FOUND : view_segment(store, found, record, best, error);
}

enum status store_segment_by_hash(struct store *store, struct store_segment *segment,
                                  const struct hash32 *hash, struct error *error)
{
    const struct job_record *record;
    const struct job_record_segment *of = board_segment(store->board, &record, hash);

    return of == NULL ? STATUS_NOT_FOUND : view_segment(store, segment, record, of, error);
}

struct job_segment store_segment_state(const struct store_segment *segment)
{
    struct job_segment found = job_segment_of(&segment->terms, &segment->state, &segment->committed,
                                              &segment->draw, segment->vouch_known);

    found.open_claims = segment->open_claims;
    found.job_claims = segment->job_claims;
    return found;
}

enum status store_states(struct store *store, struct digest states[GAME_STATES_MAX],
                         const struct store_segment *segment, struct error *error)
{
    const struct job_record *record;
    const struct job_record_segment *of = board_segment(store->board, &record, &segment->hash);

    if (of == NULL || of->states == NULL || of->committed.steps > GAME_STATES_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "the ledger does not name a state of each step");
    }
    memcpy(states, of->states, of->committed.steps * sizeof(*states));
    return STATUS_OK;
}

enum status store_vouch(struct store *store, struct vouch *vouch, const struct hash32 *segment,
                        struct error *error)
{
    const struct job_record *record;
    const struct job_record_segment *of = board_segment(store->board, &record, segment);

    (void)error;
    if (of == NULL || !(of->has_vouch || of->has_word) || of->is_void ||
        of->committed.index < record->state.finalized) {
        return STATUS_NOT_FOUND;
    }
    *vouch = *job_record_vouch(record, of->committed.index);
    return STATUS_OK;
}

static const struct job_record_seat *find_seat(const struct job_record_seat *seats, uint32_t count,
                                               const struct hash32 *segment, uint32_t place)
{
    for (uint32_t i = 0; i < count; i++) {
        if (seats[i].place == place && hash32_equal(&seats[i].segment, segment)) {
            return &seats[i];
        }
    }
    return NULL;
}

/* What the node thinks of it. */
static enum status read_note(struct store *store, struct store_seat *seat, struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        database_first(&row, &store->sql, error,
                       "SELECT judgement, reason FROM notes WHERE segment = ? AND place = ?", "bi",
                       BLOB(seat->segment), (int64_t)seat->place);

    if (status == STATUS_OK) {
        seat->judgement = (enum store_judgement)sqlite3_column_int(row, 0);
        (void)snprintf(seat->reason, sizeof(seat->reason), "%s",
                       (const char *)sqlite3_column_text(row, 1));
    }
    database_done(&store->sql, row);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status store_seat(struct store *store, struct store_seat *seat, const struct hash32 *segment,
                       uint32_t place, struct error *error)
{
    const struct address *own = &store->board->account;
    const struct job_record *record;
    const struct job_record_segment *at = board_segment(store->board, &record, segment);
    const struct job_record_seat *of =
        at == NULL ? NULL : find_seat(record->seats, record->seat_count, segment, place);

    memset(seat, 0, sizeof(*seat));
    if (at != NULL && of == NULL) {
        of = find_seat(record->ended, record->ended_count, segment, place);
    }
    if (of == NULL) {
        return STATUS_NOT_FOUND;
    }
    seat->segment = of->segment;
    seat->job = record->key;
    seat->index = of->index;
    seat->place = of->place;
    seat->owner = of->owner;
    seat->ours = !address_is_zero(own) && address_equal(&of->owner, own);
    seat->is_last = of->round == at->draw.round;
    seat->state = of->state;
    seat->leaves = of->leaves;
    seat->salt = of->salt;
    seat->seal = of->seal;
    return read_note(store, seat, error);
}

enum status store_dispute(struct store *store, struct store_dispute *dispute,
                          const struct hash32 *key, struct error *error)
{
    const struct job_record *record;
    const struct job_record_claim *of = board_claim(store->board, &record, key);

    (void)error;
    memset(dispute, 0, sizeof(*dispute));
    if (of == NULL) {
        return STATUS_NOT_FOUND;
    }
    dispute->key = of->key;
    dispute->job = record->key;
    dispute->segment = of->segment;
    dispute->subject = of->subject;
    dispute->index = of->index;
    dispute->generation = of->generation;
    dispute->step = of->step;
    dispute->pre_state = of->pre_state;
    dispute->post_state = of->post_state;
    dispute->state = of->state;
    dispute->trace_root = of->trace_root;
    dispute->ours = of->ours;
    dispute->overtaken = job_record_claim_is_overtaken(record, of);
    return STATUS_OK;
}

/* ---- visiting --------------------------------------------------------------------- */

static bool read_key(struct hash32 *key, sqlite3_stmt *row)
{
    return database_blob_column(row, 0, key->bytes, HASH32_SIZE);
}

static enum status view_row(struct store *store, void *one, enum store_table table,
                            sqlite3_stmt *row, struct error *error)
{
    struct store_entry *entry;
    struct hash32 key;

    if (!read_key(&key, row)) {
        return store_damaged(error);
    }
    switch (table) {
    case STORE_JOBS:
        return store_job(store, one, &key, error);
    case STORE_ENTRIES:
        entry = one;
        *entry = (struct store_entry){.job = key,
                                      .generation = (uint32_t)sqlite3_column_int64(row, 1),
                                      .number = (uint32_t)sqlite3_column_int64(row, 2),
                                      .enlisted = (uint64_t)sqlite3_column_int64(row, 3)};
        return STATUS_OK;
    case STORE_SEGMENTS:
        return store_segment_by_hash(store, one, &key, error);
    case STORE_SEATS:
        return store_seat(store, one, &key, (uint32_t)sqlite3_column_int64(row, 1), error);
    case STORE_DISPUTES:
        return store_dispute(store, one, &key, error);
    }
    return store_damaged(error);
}

static const struct {
    const char *rows;
    size_t size;
} tables[] = {
    [STORE_JOBS] = {"SELECT j.key FROM jobs j LEFT JOIN wishes w ON w.job = j.key",
                    sizeof(struct store_job)},
    [STORE_ENTRIES] = {"SELECT e.job, e.generation, e.number, e.enlisted FROM entries e JOIN jobs j"
                       " ON j.key = e.job",
                       sizeof(struct store_entry)},
    [STORE_SEGMENTS] = {"SELECT s.hash FROM segments s JOIN jobs j ON j.key = s.job",
                        sizeof(struct store_segment)},
    [STORE_SEATS] = {"SELECT p.segment, p.place FROM seats p JOIN segments s ON s.hash = p.segment"
                     " JOIN jobs j ON j.key = s.job LEFT JOIN notes n ON n.segment = p.segment AND"
                     " n.place = p.place",
                     sizeof(struct store_seat)},
    [STORE_DISPUTES] = {"SELECT d.key FROM disputes d JOIN jobs j ON j.key = d.job",
                        sizeof(struct store_dispute)},
};

static enum status collect_rows(struct store *store, char *found, uint32_t *count,
                                enum store_table table, const char *where, struct error *error)
{
    char text[2400];
    sqlite3_stmt *row;
    enum status status;

    *count = 0;
    (void)snprintf(text, sizeof(text), "%s WHERE %s LIMIT %d", tables[table].rows, where,
                   STORE_VISIT_MAX);
    row = database_query(&store->sql, error, text, "");
    if (row == NULL) {
        return error->status;
    }
    while ((status = database_step(&store->sql, row, error)) == STATUS_OK) {
        TRY_OUT(view_row(store, found + *count * tables[table].size, table, row, error));
        ++*count;
    }
    status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
out:
    database_done(&store->sql, row);
    return status;
}

/* Collected first: what visits them may change what the node keeps. */
enum status store_visit(struct store *store, enum store_table table, const char *where,
                        store_visitor *visit, void *context, struct error *error)
{
    size_t size = tables[table].size;
    char *found = malloc(STORE_VISIT_MAX * size);
    uint32_t count = 0;
    enum status status = found == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for rows")
                                       : collect_rows(store, found, &count, table, where, error);

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = visit(context, found + i * size, error);
    }
    free(found);
    return status;
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

enum status store_choose(struct store *store, const struct hash32 *segment,
                         enum store_choice choice, const char *reason, struct error *error)
{
    return database_run(&store->sql, error, "INSERT OR REPLACE INTO choices VALUES (?, ?, ?)",
                        "bit", KEY(segment), (int64_t)choice, reason);
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

/* ---- addresses ------------------------------------------------------------------------ */

struct ranked {
    const struct job_record_contact *contact;
    uint32_t party; /* the present solver, the keeper, the client; others last */
    uint32_t seen;  /* how lately its seat said right: 0 is last */
};

static struct ranked rank_contact(const struct job_record *record,
                                  const struct job_record_contact *contact)
{
    struct ranked ranked = {.contact = contact};

    for (uint32_t i = 0; i < record->seen_count; i++) {
        if (address_equal(&record->seen[i], &contact->owner)) {
            ranked.seen = record->seen_count - i;
        }
    }
    ranked.party = address_equal(&contact->owner, &record->state.solver)   ? 3
                   : address_equal(&contact->owner, &record->terms.keeper) ? 2
                   : address_equal(&contact->owner, &record->client)       ? 1
                                                                           : 0;
    return ranked;
}

static int better_first(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;

    if (a->party != b->party) {
        return a->party > b->party ? -1 : 1;
    }
    if (a->seen != b->seen) {
        return a->seen > b->seen ? -1 : 1;
    }
    return (a->contact->number < b->contact->number) - (a->contact->number > b->contact->number);
}

enum status store_contacts(struct store *store, struct store_contacts *contacts,
                           const struct hash32 *job, struct error *error)
{
    const struct job_record *record = board_find(store->board, job);
    struct ranked *ranked;

    contacts->count = 0;
    if (record == NULL || record->contact_count == 0) {
        return STATUS_OK;
    }
    ranked = malloc(record->contact_count * sizeof(*ranked));
    if (ranked == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the addresses of a job");
    }
    for (uint32_t i = 0; i < record->contact_count; i++) {
        ranked[i] = rank_contact(record, &record->contacts[i]);
    }
    qsort(ranked, record->contact_count, sizeof(*ranked), better_first);
    for (uint32_t i = 0; i < record->contact_count && contacts->count < STORE_CONTACTS_MAX; i++) {
        if (job_record_has_part(record, &ranked[i].contact->owner)) {
            memcpy(contacts->urls[contacts->count++], ranked[i].contact->url,
                   sizeof(contacts->urls[0]));
        }
    }
    free(ranked);
    return STATUS_OK;
}
