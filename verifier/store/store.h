/*
 * store.h - the node's database: the ledger as the node saw it, its checks, and its moves.
 *
 * One sqlite3 file with a write-ahead log, which other processes may read meanwhile. It has a
 * version; opening an older file brings it up to date.
 *
 * Jobs, segments, claims and payments follow from the ledger's events alone: after a reorganization
 * they are dropped and read again. Tasks are about roots, whatever block these are in, and stay. A
 * loss of power may undo the last changes, all of them after some moment: the node then does the
 * same work again, to the same verdicts (verdict_db.h), under the same names. The name of an action
 * follows from its content, so a crash between plan and send neither loses nor doubles a move.
 */
#ifndef VERIFIER_STORE_STORE_H
#define VERIFIER_STORE_STORE_H

#include "base/io/database.h"
#include "chain/game/ledger.h"
#include "chain/job/job_change.h"
#include "chain/job/job_segment.h"
#include "verifier/check/check_wire.h"
#include "verifier/store/store_words.h"

#define STORE_REASON_MAX 512
#define STORE_VISIT_MAX  256 /* segments at a time; the next round visits the rest */
#define STORE_CLAIMS_MAX 64
#define STORE_TASKS_MAX  100000 /* checks that wait at a time */

struct store {
    struct database sql;
    uint32_t tasks_max;      /* store_open() makes it STORE_TASKS_MAX */
    int64_t reveals_visited; /* by store_open_reveals(), up to this row; 0: from the first */
};

enum store_mode {
    STORE_WRITE,
    STORE_READ,
};

/* STATUS_NOT_FOUND: no file to read. STATUS_REFUSED: its version is newer than ours. */
MUST_CHECK enum status store_open(struct store *store, const char *path, enum store_mode mode,
                                  struct error *error);
void store_close(struct store *store); /* a zero-filled one is fine */

/* Changes between the two are on disk together or not at all. */
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

/* Enters one event, or forgets everything at a rewind, and moves the cursor. */
MUST_CHECK enum status store_take(struct store *store, const struct ledger_entry *entry,
                                  const struct address *own, struct error *error);

struct store_segment {
    int64_t row;
    struct hash32 job;
    struct game_segment committed;
    struct hash32 hash;
    struct digest previous; /* the root of the segment before it; zero for the first */
    struct hash32 seed;     /* zero: not drawn */
    uint64_t round_s;
    uint32_t attested;
    uint32_t revealed;
    bool diverged;
    bool is_void; /* its solver was convicted, or its job expired */
    enum store_mine mine;
    enum store_choice choice;
    struct digest job_id;
    struct game_terms terms;
    enum game_phase phase; /* of the job */
    uint32_t finalized;    /* of the job's segments, */
    uint64_t finalized_s;  /* the last of them then; 0: none is */
    bool mandatory; /* the draw demands attestations of it; unset where the terms demand all */
};

/* What chain/job says of it, with no claims open. Borrows the terms. */
struct job_segment store_segment_state(const struct store_segment *segment);

/* Calls visit for each segment that `where` picks (SQL over s: segments, j: jobs), in order. */
MUST_CHECK enum status store_segments(struct store *store, const char *where,
                                      enum status (*visit)(void *context,
                                                           const struct store_segment *segment,
                                                           struct error *error),
                                      void *context, struct error *error);

/* "job 7c25 segment 10", for logs. */
#define STORE_PLACE_TEXT 48
void store_place_text(char text[STORE_PLACE_TEXT], const struct hash32 *job, uint32_t index);

/* The segment that stands at an index; STATUS_NOT_FOUND: none. */
MUST_CHECK enum status store_segment(struct store *store, struct store_segment *segment,
                                     const struct hash32 *job, uint32_t index, struct error *error);
MUST_CHECK enum status store_segment_by_hash(struct store *store, struct store_segment *segment,
                                             const struct hash32 *hash, struct error *error);
MUST_CHECK enum status store_choose(struct store *store, int64_t row, enum store_choice choice,
                                    const char *reason, struct error *error);

/* Does a claim of ours stand against this job's present solver? */
MUST_CHECK enum status store_job_is_claimed(struct store *store, bool *claimed,
                                            const struct hash32 *job, struct error *error);

struct store_claim {
    struct hash32 key;
    struct hash32 job;
    struct hash32 segment;
    uint32_t index;
    uint32_t step;
    struct digest pre_state;
    struct digest post_state;
    uint64_t deadline_s;
    enum game_claim_phase phase;
    enum game_turn turn;
    uint32_t generation;
    struct address attestor; /* zero: the solver is accused, and the states are the claimed ones */
    bool accused;            /* somebody else's claim, against us */
    uint8_t queried[GAME_QUERIED_MAX]; /* the last query to us */
    size_t queried_size;               /* 0: none yet */
};

/* Claims that are not closed: ours, and those against our attestations. */
MUST_CHECK enum status store_open_claims(struct store *store,
                                         enum status (*visit)(void *context,
                                                              const struct store_claim *claim,
                                                              struct error *error),
                                         void *context, struct error *error);

MUST_CHECK enum status store_claim(struct store *store, struct store_claim *claim,
                                   const struct hash32 *key, struct error *error);

/* "upheld", "refuted", "lapsed"; empty while it is open. */
MUST_CHECK enum status store_claim_outcome(struct store *store, char *outcome, size_t size,
                                           const struct hash32 *key, struct error *error);

/* Failed tries to find the next move of a claim; the child starts again at next_ms. All zero: none
 * failed since the last success. */
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

/* ---- claims of everybody ---- */

/* An open claim about a segment that stands. */
struct store_dispute {
    struct hash32 key;
    uint32_t index; /* of the segment */
    uint64_t deadline_s;
    bool gone; /* another claim convicted the accused attestor */
};

MUST_CHECK enum status store_disputes(struct store *store,
                                      enum status (*visit)(void *context,
                                                           const struct store_dispute *dispute,
                                                           struct error *error),
                                      void *context, const struct hash32 *job, struct error *error);

/* Our attestations in a job whose segments are not final yet. */
struct store_stake {
    uint32_t unsettled; /* attestations */
    bool revealed;      /* at least one of them is; */
    uint32_t nearest;   /* the first revealed one is about this segment */
};
MUST_CHECK enum status store_stake(struct store *store, struct store_stake *stake,
                                   const struct hash32 *job, struct error *error);

/* ---- what others attested ---- */

struct store_reveal {
    int64_t row;
    struct hash32 segment;
    struct address attestor;
    struct digest root;
    bool stands; /* it was not convicted */
    enum store_audit audit;
};

/* Reveals without a decision, some at a time; the next call goes on behind them, so all get their
 * turn. */
MUST_CHECK enum status store_open_reveals(struct store *store,
                                          enum status (*visit)(void *context,
                                                               const struct store_reveal *reveal,
                                                               struct error *error),
                                          void *context, struct error *error);
MUST_CHECK enum status store_reveal(struct store *store, struct store_reveal *reveal,
                                    const struct hash32 *segment, const struct address *attestor,
                                    struct error *error);
/* A reveal of the segment whose check is in the queue and whose attestor drew step. */
MUST_CHECK enum status store_audited(struct store *store, struct store_reveal *reveal,
                                     const struct store_segment *segment, uint32_t step,
                                     struct error *error);
MUST_CHECK enum status store_judge_reveal(struct store *store, const struct store_reveal *reveal,
                                          enum store_audit audit, const char *reason,
                                          struct error *error);

/* ---- parts of store_take() ---- */

MUST_CHECK enum status store_take_claim(struct store *store, const struct job_change *change,
                                        const struct address *own, struct error *error);
/* kind: "attestation", "claim" for money that we got; "withdrawal". */
MUST_CHECK enum status store_take_payment(struct store *store, const struct job_change *change,
                                          const char *kind, wei amount, struct error *error);
MUST_CHECK enum status store_take_reveal(struct store *store, const struct job_change *change,
                                         struct error *error);
/* In a new round those who revealed in an earlier one may be accused again. */
MUST_CHECK enum status store_renew_reveals(struct store *store, const struct job_change *change,
                                           struct error *error);

#endif /* VERIFIER_STORE_STORE_H */
