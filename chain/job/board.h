/*
 * board.h - all jobs of a ledger and where each stands, for solvers that look for work and for
 * pages.
 *
 * A record (job_record.h) of each job, by one pass over the new events, and without a call of a
 * chain for each.
 */
#ifndef CHAIN_JOB_BOARD_H
#define CHAIN_JOB_BOARD_H

#include "chain/job/job_record.h"

#define BOARD_JOBS_MAX 100000u

/* Whose job a claim is about, or of a whole board a segment too: by its hash. */
struct board_key {
    struct hash32 id;
    uint32_t place; /* the number of its job and one; 0: nothing is here */
    uint32_t at;    /* where the job's record has it, or had it before it was void */
};

/* Is told of each entry before its job's record changes by it; of a rewind when the board begins
 * again. job: NULL: the board does not have the job, or it is about none. */
struct board_listener {
    enum status (*hear)(void *context, const struct job_record *job,
                        const struct ledger_entry *entry, struct error *error);
    void *context;
};

struct board {
    struct game_place place;  /* of the ledger; board_follow() sets it, */
    struct currency currency; /* ... and this */
    struct address account; /* of each record (job_record.h); set it and the next before an entry */
    bool whole;             /* each record is */
    struct job_record *jobs; /* in the order of their opening */
    uint32_t count;
    uint32_t room;
    uint32_t most;     /* jobs; 0: BOARD_JOBS_MAX. Each has cost its client an escrow */
    uint32_t left_out; /* opened beyond them, and only counted */
    uint32_t *places;  /* by key: the number of a job and one, or 0 */
    uint32_t place_count;
    struct board_key *keys;
    uint32_t key_room;
    uint32_t key_count;
    struct board_listener listener; /* hear NULL: nobody listens */
    uint64_t read;                  /* the number of the last entry */
    uint64_t rewound;               /* the number of the last rewind of the log */
};

/* A zero-filled board is empty. */
void board_release(struct board *board);

/* Forgets what was read: read the event log from the beginning. The listener hears of a rewind. */
MUST_CHECK enum status board_restart(struct board *board, struct error *error);

/* One entry of the event log. After a new rewind board->read is 0: read it from the beginning. */
MUST_CHECK enum status board_take(struct board *board, const struct ledger_entry *entry,
                                  struct error *error);

/* Reads the new entries of the event log. */
MUST_CHECK enum status board_follow(struct board *board, struct ledger *ledger,
                                    struct error *error);

/* NULL: nobody opened it. Valid until the board follows on. */
const struct job_record *board_find(const struct board *board, const struct hash32 *key);

/* A claim, and of a whole board a segment; *job: whose. NULL: no event told of it. */
const struct job_record_claim *board_claim(const struct board *board, const struct job_record **job,
                                           const struct hash32 *key);
const struct job_record_segment *
board_segment(const struct board *board, const struct job_record **job, const struct hash32 *hash);

/* "open", "expired" (open after its deadline), "running", "done", "closed". */
const char *board_phase(const struct job_record *job, uint64_t now_s);

#endif /* CHAIN_JOB_BOARD_H */
