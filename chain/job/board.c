/* board.c - see board.h. */
#include "chain/job/board.h"

#include <stdlib.h>
#include <string.h>

#include "chain/job/job_event.h"

#define PLACES_FIRST 1024u
#define KEYS_FIRST   64u

/* Nothing was read: the ledger, the listener and the limit stay. */
static void forget_jobs(struct board *board)
{
    for (uint32_t i = 0; i < board->count; i++) {
        job_record_free(&board->jobs[i]);
    }
    free(board->jobs);
    free(board->places);
    free(board->keys);
    board->jobs = NULL;
    board->places = NULL;
    board->keys = NULL;
    board->count = board->room = board->left_out = board->place_count = 0;
    board->key_room = board->key_count = 0;
    board->read = 0;
}

void board_release(struct board *board)
{
    forget_jobs(board);
    memset(board, 0, sizeof(*board));
}

/* ---- finding ------------------------------------------------------------------- */

/* Where the key is, or would be. Keys are hashes: their first bytes spread as well as any. */
static uint32_t place_of(const struct board *board, const struct hash32 *key)
{
    uint32_t at;

    memcpy(&at, key->bytes, sizeof(at));
    for (at &= board->place_count - 1; board->places[at] != 0;
         at = (at + 1) & (board->place_count - 1)) {
        if (hash32_equal(&board->jobs[board->places[at] - 1].key, key)) {
            break;
        }
    }
    return at;
}

static struct job_record *find(const struct board *board, const struct hash32 *key)
{
    uint32_t number = board->count == 0 ? 0 : board->places[place_of(board, key)];

    return number == 0 ? NULL : &board->jobs[number - 1];
}

const struct job_record *board_find(const struct board *board, const struct hash32 *key)
{
    return find(board, key);
}

static enum status make_room(struct board *board, struct error *error)
{
    uint32_t room = board->room == 0 ? PLACES_FIRST / 2 : 2 * board->room;
    struct job_record *jobs;
    uint32_t *places;

    if (board->jobs != NULL && board->count < board->room) {
        return STATUS_OK;
    }
    jobs = realloc(board->jobs, room * sizeof(*jobs));
    board->jobs = jobs == NULL ? board->jobs : jobs;
    places = calloc(2 * (size_t)room, sizeof(*places));
    if (jobs == NULL || places == NULL) {
        free(places);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the jobs of the ledger");
    }
    free(board->places);
    board->room = room;
    board->places = places;
    board->place_count = 2 * room;
    for (uint32_t i = 0; i < board->count; i++) {
        places[place_of(board, &jobs[i].key)] = i + 1;
    }
    return STATUS_OK;
}

/* ---- events --------------------------------------------------------------------- */

static enum status add(struct board *board, const struct ledger_entry *entry, struct error *error)
{
    if (find(board, &entry->event.job) != NULL) {
        return STATUS_OK;
    }
    if (board->count == (board->most == 0 ? BOARD_JOBS_MAX : board->most)) {
        board->left_out++;
        return STATUS_OK;
    }
    TRY(make_room(board, error));
    job_record_init(&board->jobs[board->count], &entry->event.job, &board->account);
    board->jobs[board->count].whole = board->whole;
    board->jobs[board->count].place = board->place;
    board->jobs[board->count].currency = board->currency;
    board->places[place_of(board, &entry->event.job)] = board->count + 1;
    return job_record_take(&board->jobs[board->count++], entry, error);
}

/* Where the key is, or would be. */
static struct board_key *key_of(struct board_key *keys, uint32_t room, const struct hash32 *id)
{
    uint32_t at;

    memcpy(&at, id->bytes, sizeof(at));
    for (at &= room - 1; keys[at].place != 0 && !hash32_equal(&keys[at].id, id);) {
        at = (at + 1) & (room - 1);
    }
    return &keys[at];
}

static enum status make_key_room(struct board *board, struct error *error)
{
    uint32_t room = board->key_room == 0 ? KEYS_FIRST : 2 * board->key_room;
    struct board_key *keys;

    if (2 * board->key_count < board->key_room) {
        return STATUS_OK;
    }
    keys = calloc(room, sizeof(*keys));
    if (keys == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the claims of the ledger");
    }
    for (uint32_t i = 0; i < board->key_room; i++) {
        if (board->keys[i].place != 0) {
            *key_of(keys, room, &board->keys[i].id) = board->keys[i];
        }
    }
    free(board->keys);
    board->keys = keys;
    board->key_room = room;
    return STATUS_OK;
}

/* What comes under a known key joins what is there. */
static enum status add_key(struct board *board, const struct hash32 *id,
                           const struct job_record *job, uint32_t at, struct error *error)
{
    struct board_key *key;

    TRY(make_key_room(board, error));
    key = key_of(board->keys, board->key_room, id);
    if (key->place == 0) {
        board->key_count++;
        *key = (struct board_key){.id = *id, .place = (uint32_t)(job - board->jobs) + 1, .at = at};
    }
    return STATUS_OK;
}

/* NULL: none. */
static const struct board_key *find_key(const struct board *board, const struct hash32 *id)
{
    const struct board_key *key =
        board->key_room == 0 ? NULL : key_of(board->keys, board->key_room, id);

    return key == NULL || key->place == 0 ? NULL : key;
}

/* The job that an event is about; NULL: the board does not have it. */
static struct job_record *find_of(const struct board *board, const struct game_event *event)
{
    const struct board_key *key;

    if (!job_event_is_of_claim(event->kind)) {
        return find(board, &event->job);
    }
    key = find_key(board, &event->claim);
    return key == NULL ? NULL : &board->jobs[key->place - 1];
}

static enum status tell(const struct board *board, const struct job_record *job,
                        const struct ledger_entry *entry, struct error *error)
{
    const struct board_listener *listener = &board->listener;

    return listener->hear == NULL ? STATUS_OK
                                  : listener->hear(listener->context, job, entry, error);
}

enum status board_restart(struct board *board, struct error *error)
{
    const struct ledger_entry rewind = {.kind = LEDGER_REWIND, .number = board->rewound};

    forget_jobs(board);
    return tell(board, NULL, &rewind, error);
}

/* What was removed is told by none: the board begins again. */
static enum status take_rewind(struct board *board, const struct ledger_entry *entry,
                               struct error *error)
{
    if (entry->number <= board->rewound) {
        return STATUS_OK;
    }
    board->rewound = entry->number;
    return board_restart(board, error);
}

enum status board_take(struct board *board, const struct ledger_entry *entry, struct error *error)
{
    struct job_record *job;

    board->read = entry->number;
    if (entry->kind == LEDGER_REWIND) {
        return take_rewind(board, entry, error);
    }
    job = find_of(board, &entry->event);
    TRY(tell(board, job, entry, error));
    if (entry->event.kind == GAME_OPENED) {
        return add(board, entry, error);
    }
    if (job == NULL) {
        return STATUS_OK;
    }
    if (entry->event.kind == GAME_CLAIMED) {
        TRY(add_key(board, &entry->event.claim, job, job->claim_count, error));
    }
    TRY(job_record_take(job, entry, error));
    if (entry->event.kind == GAME_COMMITTED && board->whole) {
        const uint32_t at = job->state.committed - 1;

        return add_key(board, &job->segments[at].hash, job, at, error);
    }
    return STATUS_OK;
}

enum status board_follow(struct board *board, struct ledger *ledger, struct error *error)
{
    struct ledger_entry entry;
    enum status status;

    board->place = *ledger_get_game(ledger);
    board->currency = *ledger_get_currency(ledger);
    while ((status = ledger_next(ledger, &entry, board->read, 0, error)) == STATUS_OK) {
        TRY(board_take(board, &entry, error));
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- what follows ---------------------------------------------------------------- */

const struct job_record_claim *board_claim(const struct board *board, const struct job_record **job,
                                           const struct hash32 *key)
{
    const struct board_key *found = find_key(board, key);

    if (found == NULL) {
        return NULL;
    }
    *job = &board->jobs[found->place - 1];
    return found->at < (*job)->claim_count && hash32_equal(&(*job)->claims[found->at].key, key)
               ? &(*job)->claims[found->at]
               : NULL;
}

const struct job_record_segment *
board_segment(const struct board *board, const struct job_record **job, const struct hash32 *hash)
{
    const struct board_key *found = find_key(board, hash);

    if (found == NULL) {
        return NULL;
    }
    *job = &board->jobs[found->place - 1];
    if (found->at < (*job)->state.committed &&
        hash32_equal(&(*job)->segments[found->at].hash, hash)) {
        return &(*job)->segments[found->at];
    }
    for (uint32_t i = 0; i < (*job)->void_count; i++) {
        if (hash32_equal(&(*job)->voids[i].hash, hash)) {
            return &(*job)->voids[i];
        }
    }
    return NULL;
}

const char *board_phase(const struct job_record *job, uint64_t now_s)
{
    switch (job->state.phase) {
    case GAME_PHASE_OPEN:
        return now_s > job->terms.deadline_s ? "expired" : "open";
    case GAME_PHASE_RUNNING:
        return "running";
    case GAME_PHASE_CLOSED:
        return job->state.finalized == job->state.segments || job->state.ended ? "done" : "closed";
    case GAME_PHASE_NONE:
        break;
    }
    return "unknown";
}
