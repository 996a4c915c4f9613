/*
 * store.h - what a node knows: the ledger as it saw it, its checks, and its moves.
 *
 * Its own is one sqlite3 file with a write-ahead log, which other processes may read meanwhile. It
 * has a version, and sums over its tables (chain/sums): a damaged one is moved to PATH.damaged,
 * and the node begins a new one.
 *
 * Jobs, panels, segments and claims are those of a whole board (chain/job/board.h), which
 * statements read as tables (store_tables.h). They follow from the ledger's events alone: who opens
 * a store reads them again, and so does a node after a reorganization, which also drops what it
 * thought of segments. Tasks and actions stay. A loss of power may undo the last changes, all of
 * them after some moment: the node then does the same work again, to the same verdicts
 * (verdict_db.h), under the same names. The name of an action follows from its content, so a crash
 * between plan and send neither loses nor doubles a move.
 */
#ifndef VERIFIER_STORE_STORE_H
#define VERIFIER_STORE_STORE_H

#include "base/io/database.h"
#include "chain/game/ledger.h"
#include "chain/job/board.h"
#include "verifier/check/check_wire.h"
#include "verifier/store/store_words.h"

#define STORE_REASON_MAX 512
#define STORE_VISIT_MAX  256    /* rows at a time; the next round visits the rest */
#define STORE_TASKS_MAX  100000 /* checks that wait at a time */

enum store_mode {
    STORE_WRITE,
    STORE_READ,
};

struct store {
    struct database sql;
    struct database log; /* STORE_READ: the ledger's, which the node follows */
    enum store_mode mode;
    struct board *board;           /* the ledger as the node saw it */
    bool taken;                    /* ... has changed since store_begin() */
    uint32_t tasks_max;            /* store_open() makes it STORE_TASKS_MAX */
    char damage[STORE_REASON_MAX]; /* what became of a damaged file; empty: it was sound */
};

/* STATUS_NOT_FOUND: no file to read. STATUS_REFUSED: its version is another than ours. */
MUST_CHECK enum status store_open(struct store *store, const char *path, enum store_mode mode,
                                  struct error *error);
void store_close(struct store *store); /* a zero-filled one is fine */

/* Changes between the two are on disk together or not at all. Where they are not, what was seen of
 * the ledger is forgotten too: it is read again. */
MUST_CHECK enum status store_begin(struct store *store, struct error *error);
MUST_CHECK enum status store_end(struct store *store, enum status status, struct error *error);

/* Changes until now survive a loss of power. Not inside a transaction. */
MUST_CHECK enum status store_secure(struct store *store, struct error *error);

/* ---- facts by name ---- */

MUST_CHECK enum status store_number(struct store *store, int64_t *number, const char *name,
                                    struct error *error); /* 0 when it is not there */
MUST_CHECK enum status store_set_number(struct store *store, const char *name, int64_t number,
                                        struct error *error);
MUST_CHECK enum status store_count(struct store *store, const char *name, int64_t more,
                                   struct error *error);
/* text has room for STORE_REASON_MAX; empty when it is not there. */
MUST_CHECK enum status store_text(struct store *store, char *text, const char *name,
                                  struct error *error);
MUST_CHECK enum status store_set_text(struct store *store, const char *name, const char *text,
                                      struct error *error);

/* ---- the ledger as the node saw it ---- */

/* The last entry of the event log that was taken; 0: none yet, as in a node that has just started.
 * How far the node ever was is the fact "cursor": entries up to it were heard before. */
uint64_t store_position(const struct store *store);

/* Enters one event, or forgets everything at a rewind, and moves the position. */
MUST_CHECK enum status store_take(struct store *store, const struct ledger_entry *entry,
                                  const struct address *own, struct error *error);

/* Where those who only look find the events; NULL: nowhere. */
MUST_CHECK enum status store_set_event_log(struct store *store, const char *path,
                                           struct error *error);
/* STORE_READ: takes what the node has taken since. store_open() did so already. STATUS_UNREACHABLE:
 * the event log is gone. */
MUST_CHECK enum status store_catch_up(struct store *store, struct error *error);

struct store_job {
    struct hash32 key;
    struct address client;
    struct game_terms terms;
    struct job_reduced state;
    uint64_t finalized_s; /* the last segment that is; 0: none is */
    uint64_t closed_s;
    uint64_t enlisted; /* entries of ours that ever were */
    uint32_t ours;     /* ... that are not gone */
    enum store_wish wish;
    bool has_header; /* of the job: a check has found it */
    uint8_t header[GAME_JOB_HEADER_SIZE];
};

/* An entry in a panel. */
struct store_entry {
    struct hash32 job;
    uint32_t generation;
    uint32_t number;   /* now: it may move while the job is open */
    uint64_t enlisted; /* its own number, which stays */
};

struct store_segment {
    uint64_t number; /* of the event */
    struct hash32 job;
    struct game_segment committed;
    struct hash32 hash;
    struct digest previous; /* the root of the segment before it; zero for the first */
    struct job_reduced_segment draw;
    bool vouch_known; /* the keeper has announced one */
    uint32_t open_claims;
    uint32_t job_claims;
    bool is_void;
    enum store_choice choice;
    struct digest job_id;
    struct game_terms terms;
    struct address client;
    struct job_reduced state; /* of the job */
    uint64_t finalized_s;     /* the last of them then; 0: none is */
};

/* A place that was drawn. */
struct store_seat {
    struct hash32 segment; /* its hash */
    struct hash32 job;
    uint32_t index;
    uint32_t place;
    struct address owner;
    bool ours;
    bool is_last; /* of the segment's rounds: verdicts can be sealed or revealed */
    struct job_reduced_seat state;
    struct game_leaves leaves; /* of a right that was revealed, */
    struct hash32 salt;        /* ... and its salt */
    struct hash32 seal;        /* what its owner sealed */
    enum store_judgement judgement;
    char reason[STORE_REASON_MAX]; /* why ours says nothing, or unseen; empty: none */
};

/* One dispute; several claimants may have joined it. */
struct store_dispute {
    struct hash32 key;
    struct hash32 job;
    struct hash32 segment; /* its hash */
    struct hash32 subject;
    uint32_t index;
    uint32_t generation;
    uint32_t step;
    struct digest pre_state;
    struct digest post_state;
    struct job_reduced_claim state;
    struct digest trace_root; /* what the solver answered */
    bool ours;                /* we are among the claimants that are left */
    bool overtaken;           /* by a conviction with a lower rank, before the solver answered */
};

enum store_table {
    STORE_JOBS,     /* j */
    STORE_ENTRIES,  /* e, with j */
    STORE_SEGMENTS, /* s, with j */
    STORE_SEATS,    /* p, with s and j */
    STORE_DISPUTES, /* d, with j */
};

/* row is a store_job, store_entry, store_segment, store_seat or store_dispute. */
typedef enum status store_visitor(void *context, const void *row, struct error *error);

/* Calls visit for each row that `where` picks (SQL over the tables' letters), in order. */
MUST_CHECK enum status store_visit(struct store *store, enum store_table table, const char *where,
                                   store_visitor *visit, void *context, struct error *error);

/* STATUS_NOT_FOUND: none. store_segment: the one that stands at an index. */
MUST_CHECK enum status store_job(struct store *store, struct store_job *job,
                                 const struct hash32 *key, struct error *error);
MUST_CHECK enum status store_segment(struct store *store, struct store_segment *segment,
                                     const struct hash32 *job, uint32_t index, struct error *error);
/* The one at an index that a segment was committed after. */
MUST_CHECK enum status store_segment_before(struct store *store, struct store_segment *found,
                                            const struct store_segment *segment, uint32_t index,
                                            struct error *error);
MUST_CHECK enum status store_segment_by_hash(struct store *store, struct store_segment *segment,
                                             const struct hash32 *hash, struct error *error);
MUST_CHECK enum status store_seat(struct store *store, struct store_seat *seat,
                                  const struct hash32 *segment, uint32_t place,
                                  struct error *error);
MUST_CHECK enum status store_dispute(struct store *store, struct store_dispute *dispute,
                                     const struct hash32 *key, struct error *error);

/* The states that a segment was committed with: committed.steps of them. */
MUST_CHECK enum status store_states(struct store *store, struct digest states[GAME_STATES_MAX],
                                    const struct store_segment *segment, struct error *error);

/* What chain/job says of it. Borrows the terms. */
struct job_segment store_segment_state(const struct store_segment *segment);

/* "job 7c25 segment 10", for logs. */
#define STORE_PLACE_TEXT 48
/* "job 0x51dc0a7f": the digits that each command takes for the whole key. */
void store_job_text(char text[STORE_PLACE_TEXT], const struct hash32 *job);
void store_place_text(char text[STORE_PLACE_TEXT], const struct hash32 *job, uint32_t index);

MUST_CHECK enum status store_wish(struct store *store, const struct hash32 *job,
                                  enum store_wish wish, const char *reason, struct error *error);
MUST_CHECK enum status store_choose(struct store *store, const struct hash32 *segment,
                                    enum store_choice choice, const char *reason,
                                    struct error *error);
MUST_CHECK enum status store_judge(struct store *store, const struct store_seat *seat,
                                   enum store_judgement judgement, struct error *error);
/* Why a seat of ours says nothing, or unseen. */
MUST_CHECK enum status store_say(struct store *store, const struct store_seat *seat,
                                 const char *reason, struct error *error);
MUST_CHECK enum status store_set_header(struct store *store, const struct hash32 *job,
                                        const uint8_t header[GAME_JOB_HEADER_SIZE],
                                        struct error *error);

/* What the keeper announced about a segment that is open. STATUS_NOT_FOUND: nothing. */
MUST_CHECK enum status store_vouch(struct store *store, struct vouch *vouch,
                                   const struct hash32 *segment, struct error *error);

/* Outsiders that have a live claim in a job: they raise the bond of the next. */
MUST_CHECK enum status store_outsiders(struct store *store, uint32_t *count,
                                       const struct hash32 *job, struct error *error);

/* Is there a dispute about this subject that is open, or was upheld? mine: of ours. */
MUST_CHECK enum status store_is_disputed(struct store *store, bool *disputed, bool *mine,
                                         const struct hash32 *subject, struct error *error);

/* How finding a move for a claim goes: how often in a row it failed, and when to try again. */
struct store_retry {
    uint32_t tries;
    uint64_t next_ms;
};

MUST_CHECK enum status store_retry(struct store *store, struct store_retry *retry,
                                   const struct hash32 *claim, struct error *error);
MUST_CHECK enum status store_set_retry(struct store *store, const struct hash32 *claim,
                                       const struct store_retry *retry, const char *trouble,
                                       struct error *error);
MUST_CHECK enum status store_end_retry(struct store *store, const struct hash32 *claim,
                                       struct error *error);

/* ---- addresses at which the parties of a job are found ---- */

#define STORE_CONTACTS_MAX 8 /* of one job */

struct store_contacts {
    uint32_t count;
    char urls[STORE_CONTACTS_MAX][GAME_CONTACT_MAX + 1];
};

/* Those of the present solver, the keeper and the client first, then of seats that said right, then
 * of the panel. */
MUST_CHECK enum status store_contacts(struct store *store, struct store_contacts *contacts,
                                      const struct hash32 *job, struct error *error);

/* ---- a part of store_open() ---- */

MUST_CHECK enum status store_make_seen(struct store *store, struct error *error);

#endif /* VERIFIER_STORE_STORE_H */
