/* board.c - see board.h. */
#include "chain/job/board.h"

#include <stdlib.h>
#include <string.h>

#include "chain/job/job_event.h"

#define PLACES_FIRST 1024u
#define CLAIMS_FIRST 64u

/* Nothing was read: the ledger, the listener and the limit stay. */
static void forget_jobs(struct board *board)
{
    for (uint32_t i = 0; i < board->count; i++) {
        job_record_free(&board->jobs[i]);
    }
    free(board->jobs);
    free(board->places);
    free(board->claims);
    board->jobs = NULL;
    board->places = NULL;
    board->claims = NULL;
    board->count = board->room = board->left_out = board->place_count = 0;
    board->claim_room = board->claim_count = 0;
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
    job_record_init(&board->jobs[board->count], &entry->event.job, NULL);
    board->jobs[board->count].place = board->place;
    board->jobs[board->count].currency = board->currency;
    board->places[place_of(board, &entry->event.job)] = board->count + 1;
    return job_record_take(&board->jobs[board->count++], entry, error);
}

/* Where the claim is, or would be. */
static struct board_claim *claim_of(struct board_claim *claims, uint32_t room,
                                    const struct hash32 *id)
{
    uint32_t at;

    memcpy(&at, id->bytes, sizeof(at));
    for (at &= room - 1; claims[at].place != 0 && !hash32_equal(&claims[at].id, id);) {
        at = (at + 1) & (room - 1);
    }
    return &claims[at];
}

static enum status make_claim_room(struct board *board, struct error *error)
{
    uint32_t room = board->claim_room == 0 ? CLAIMS_FIRST : 2 * board->claim_room;
    struct board_claim *claims;

    if (2 * board->claim_count < board->claim_room) {
        return STATUS_OK;
    }
    claims = calloc(room, sizeof(*claims));
    if (claims == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the claims of the ledger");
    }
    for (uint32_t i = 0; i < board->claim_room; i++) {
        if (board->claims[i].place != 0) {
            *claim_of(claims, room, &board->claims[i].id) = board->claims[i];
        }
    }
    free(board->claims);
    board->claims = claims;
    board->claim_room = room;
    return STATUS_OK;
}

static enum status add_claim(struct board *board, const struct ledger_entry *entry,
                             const struct job_record *job, struct error *error)
{
    struct board_claim *claim;

    TRY(make_claim_room(board, error));
    claim = claim_of(board->claims, board->claim_room, &entry->event.claim);
    board->claim_count += claim->place == 0;
    claim->id = entry->event.claim;
    claim->place = (uint32_t)(job - board->jobs) + 1;
    return STATUS_OK;
}

/* The job that an event is about; NULL: the board does not have it. */
static struct job_record *find_of(const struct board *board, const struct game_event *event)
{
    uint32_t place = 0;

    if (!job_event_is_of_claim(event->kind)) {
        return find(board, &event->job);
    }
    if (board->claim_room > 0) {
        place = claim_of(board->claims, board->claim_room, &event->claim)->place;
    }
    return place == 0 ? NULL : &board->jobs[place - 1];
}

static enum status tell(const struct board *board, const struct job_record *job,
                        const struct ledger_entry *entry, struct error *error)
{
    const struct board_listener *listener = &board->listener;

    return listener->hear == NULL ? STATUS_OK
                                  : listener->hear(listener->context, job, entry, error);
}

/* What was removed is told by none: the board begins again. */
static enum status take_rewind(struct board *board, const struct ledger_entry *entry,
                               struct error *error)
{
    if (entry->number <= board->rewound) {
        return STATUS_OK;
    }
    forget_jobs(board);
    board->rewound = entry->number;
    return tell(board, NULL, entry, error);
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
        TRY(add_claim(board, entry, job, error));
    }
    return job_record_take(job, entry, error);
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
