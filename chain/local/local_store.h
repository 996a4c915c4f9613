/*
 * local_store.h - the state of the embedded ledger, in one sqlite3 file.
 *
 * Records have a kind and a key and are kept as ABI words, as in the contract's storage; a missing
 * record reads as zeros. Behind its words each has a mark, a hash of kind, key and words, which
 * each reading checks. The caller begins and commits (ledger_local.c). Several processes may share
 * the file.
 */
#ifndef CHAIN_LOCAL_LOCAL_STORE_H
#define CHAIN_LOCAL_LOCAL_STORE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/io/database.h"
#include "chain/game/game.h"

struct local_job {
    struct address solver;
    uint32_t phase; /* enum game_phase */
    uint32_t generation;
    uint32_t committed;
    uint32_t drawn;     /* segments are drawn in order: so many were */
    uint32_t leg_start; /* the first segment behind the last covered one */
    uint32_t finalized;
    uint64_t due_s; /* 0: no time runs */
    struct address client;
    uint32_t segments;
    uint32_t open_claims; /* live disputes of this generation */
    uint32_t entries;     /* of the panel of this generation, also those that are gone */
    bool ended;
    bool barred; /* until the client resumes */
    uint64_t opened_at_s;
    uint64_t refused_until_s; /* 0: nobody refused */
    wei pool;                 /* pays the fees */
    wei missing_escrow;       /* what a void burned */
    wei missing_pool;
    struct game_terms terms;
};

struct local_entry {
    struct address owner;
    bool gone; /* its bond was paid or taken */
};

/* Of a covered segment. */
struct local_tally {
    uint64_t start_s;   /* of the last round, or the commit's where nobody checks */
    uint32_t leg_start; /* the first segment of its leg */
    uint32_t panel;     /* entries that can be drawn */
    uint32_t round;
    uint32_t first; /* places of the first round */
    uint32_t from;  /* the places of the last round */
    uint32_t to;
    uint32_t drawn; /* seats of all rounds */
    uint32_t rights;
    uint32_t unseen; /* seats that said so, and rights that were disproved */
    bool covered;
    bool vouched;         /* by the keeper */
    struct hash32 seed;   /* of the first round */
    struct hash32 places; /* four bits each, enum local_place */
};

/* Of a round behind the first: it has a seed of its own. */
struct local_round {
    uint64_t height; /* of the block in which settle closed the round before; 0: it did not */
    uint64_t time_s; /* ... */
    struct hash32 seed;
    uint32_t from; /* its first place; 0: not drawn */
};

enum local_place {
    LOCAL_PLACE_SKIPPED,
    LOCAL_PLACE_DRAWN, /* sealed, where its seat has a seal */
    LOCAL_PLACE_RIGHT,
    LOCAL_PLACE_UNSEEN,
    LOCAL_PLACE_CLOSED, /* an alarm, or a right that was disproved */
};

/* One subject of dispute, and its claimants. */
struct local_dispute {
    struct address solver;
    uint32_t phase; /* enum game_claim_phase */
    uint32_t turn;  /* enum game_turn */
    uint32_t outcome;
    uint32_t generation;
    uint64_t since_s; /* whose turn it is, it is from here */
    bool diverged;
    uint64_t rank;
    uint32_t clock_s;
    uint32_t solver_left_s;
    uint32_t lead_left_s;
    uint32_t queries; /* of this lead */
    uint32_t first;   /* of the claimants that are left: the lead */
    uint32_t count;
    wei query_fee;
    struct hash32 job;
    struct hash32 segment; /* its hash */
    struct hash32 subject;
    struct digest trace_root;
    struct digest batch_root; /* of the micro-batch that was queried last */
    /* keccak256 of what was queried; after a reply of parts, partial_sums_reply_hash(). */
    struct hash32 said;
};

struct local_claimant {
    struct address owner;
    wei bond;
    bool seat; /* an alarm */
};

/* The disputes of one generation of a job. */
struct local_docket {
    wei pot;       /* the stake of its solver, until it is paid */
    uint64_t best; /* the least rank that was upheld */
    uint32_t open;
    uint32_t opened; /* by outsiders */
    uint32_t active;
    uint32_t outsiders;
    bool convicted;
    struct address winner; /* of the best */
    uint32_t alarm;        /* the next in each queue */
    uint32_t other;
    uint32_t alarm_count;
    uint32_t other_count;
};

struct local_account {
    wei purse; /* its own money */
    wei owed;  /* what it may withdraw */
};

/* What a record is, and the type that belongs to it. */
enum local_kind {
    LOCAL_JOB,      /* struct local_job, by the job's key */
    LOCAL_SEGMENT,  /* struct hash32 of the segment that stands, by job and index */
    LOCAL_ENTRY,    /* struct local_entry, by job, generation and number */
    LOCAL_TALLY,    /* struct local_tally, by the hash of a segment */
    LOCAL_SEAT,     /* struct hash32: half of a seal, by segment and place */
    LOCAL_ACCOUNT,  /* struct local_account, by local_key_of_account() */
    LOCAL_BURNED,   /* wei, by the zero hash */
    LOCAL_SEAL,     /* uint64_t: the height of a claim's seal, 0: none */
    LOCAL_DISPUTE,  /* struct local_dispute, by the claim's key */
    LOCAL_CLAIMANT, /* struct local_claimant, by the claim's key and its number */
    LOCAL_SUBJECT,  /* uint32_t: how often it was refuted */
    LOCAL_DOCKET,   /* struct local_docket, by job and generation */
    LOCAL_ALARMS,   /* struct hash32: a claim in a queue, by job, generation and number */
    LOCAL_OTHERS,   /* ... */
    LOCAL_ROUND,    /* struct local_round, by segment and number */
    LOCAL_FIXED, /* uint64_t: the block that seeds come from, by local_key_of_commits(); 0: none */
    LOCAL_KINDS,
};

struct local_store {
    struct database *sql; /* borrowed */
    struct error *error;
};

/* Makes the table if it is missing. STATUS_REFUSED: the file has the game of another edition. */
MUST_CHECK enum status local_store_open(struct local_store *store, struct database *sql,
                                        struct error *error);

#define LOCAL_MARK_SIZE 8

#define LOCAL_DAMAGE_ADVICE                                                                        \
    "put a copy of before in its place (docs/OPERATIONS.md, Backups), or make a new ledger: "      \
    "'lockstep ledger init'"

void local_store_mark(uint8_t mark[LOCAL_MARK_SIZE], enum local_kind kind, const void *key,
                      size_t key_size, const void *words, size_t words_size);

struct hash32 local_key_of_account(const struct address *account);
/* Of the commits of a block, by its height and time. */
struct hash32 local_key_of_commits(uint64_t height, uint64_t time_s);

/* number is 0 where the key has none. A missing record reads as zeros. */
MUST_CHECK enum status local_get(struct local_store *store, void *record, enum local_kind kind,
                                 const struct hash32 *key, uint64_t number);
MUST_CHECK enum status local_put(struct local_store *store, const void *record,
                                 enum local_kind kind, const struct hash32 *key, uint64_t number);

#endif /* CHAIN_LOCAL_LOCAL_STORE_H */
