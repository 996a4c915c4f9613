/*
 * job_record.h - the state of one job: who plays, which segments stand, how near each is to final.
 *
 * It follows from the events in their order alone, so it is always consistent; two answers from two
 * endpoints may not be. After a reorganization the event log is read again.
 */
#ifndef CHAIN_JOB_JOB_RECORD_H
#define CHAIN_JOB_JOB_RECORD_H

#include "chain/game/ledger.h"
#include "chain/job/job_card.h"
#include "chain/job/job_reduced.h"
#include "chain/job/job_segment.h"

/* Any more are ignored: each has cost its maker a bond. */
#define JOB_RECORD_SEATS_MAX  (1u << 20)
#define JOB_RECORD_CLAIMS_MAX (1u << 16)
#define JOB_RECORD_BONDS_MAX  (1u << 20)

#define JOB_RECORD_SEEN_MAX 16

struct job_record_segment {
    struct game_segment committed;
    struct job_reduced_segment draw;
    uint32_t seated; /* places of this round, */
    uint32_t sealed; /* and how many of them sealed a verdict */
    uint32_t open_claims;
    bool has_vouch; /* that is valid: the keeper announced it, or gave it to us */
    bool has_word;  /* of the keeper that no key has signed: its contract is still to be asked */
};

/* A place that was drawn, of a segment that stands and is not final. */
struct job_record_seat {
    struct game_segment segment;
    uint32_t place;
    struct address owner;
    uint32_t round;
    struct job_reduced_seat state;
};

struct job_record_claim {
    struct hash32 key;
    uint32_t index; /* of the segment */
    uint32_t generation;
    uint32_t step; /* within the segment */
    struct digest pre_state;
    struct digest post_state;
    struct address solver; /* the accused */
    struct address
        outsiders[GAME_OUTSIDERS_MAX]; /* among the claimants whose clock has not run out */
    uint32_t outsider_count;
    struct job_reduced_claim state;
    uint32_t queried_size; /* of what was queried last; 0: nothing yet */
    uint8_t queried[GAME_QUERIED_MAX];
};

/* An entry of the record's account in a panel of before: its bond can be taken back. */
struct job_record_bond {
    uint32_t generation;
    uint32_t entry;
};

struct job_record {
    struct hash32 key;
    struct address account;   /* whose withdrawals and bonds are counted */
    struct game_place place;  /* where the game is played: without it no vouch is valid */
    struct currency currency; /* of all amounts; the reader sets it with the place */
    struct job_reduced state; /* phase GAME_PHASE_NONE: nobody has opened it yet */
    struct address client;
    struct game_terms terms;
    struct job_card card; /* what the client says of the job; for people */
    uint64_t accepted_s;
    struct address refuser;       /* who last refused */
    wei earned;                   /* by all solvers */
    wei pool;                     /* for fees */
    wei burned_stake;             /* of all solvers: by voids and releases */
    wei burned_escrow;            /* of the client: by voids */
    wei burned_pool;              /* ... */
    bool stopped;                 /* the client ended it early */
    uint32_t accepts;             /* how often the job was accepted */
    struct address last_accepted; /* the last solver to accept it */
    bool convicted;               /* the last solver was */
    uint64_t changed_height;      /* of the block in which the solver last changed */
    uint64_t vouched_s;           /* when the keeper last vouched; 0: never */
    uint64_t word_s;              /* when it last announced what its contract is to be asked */
    uint64_t withdrawals;
    struct address
        seen[JOB_RECORD_SEEN_MAX]; /* who last found a segment right, the latest first: */
    uint32_t seen_count;           /* they had its states */
    struct job_entry *entries;     /* the panel of this generation: state.entries of them */
    uint32_t entry_room;
    struct job_record_bond *bonds; /* of the account, in panels of before */
    uint32_t bond_count;
    uint32_t bond_room;
    struct job_record_segment *segments; /* state.committed of them */
    uint32_t segment_room;
    struct job_record_seat *seats;
    uint32_t seat_count;
    uint32_t seat_room;
    struct vouch *vouches; /* the last of each open segment, by its index; NULL: none yet */
    struct job_record_claim *claims;
    uint32_t claim_count;
    uint32_t claim_room;
    uint64_t read;    /* the number of the last entry */
    uint64_t rewound; /* the number of the last rewind of the log */
};

/* account may be NULL. */
void job_record_init(struct job_record *record, const struct hash32 *key,
                     const struct address *account);
void job_record_free(struct job_record *record);

/* Reads the new entries of the event log. */
MUST_CHECK enum status job_record_follow(struct job_record *record, struct ledger *ledger,
                                         struct error *error);

/* One entry, in order, for a caller that reads the event log for many jobs, and has set
 * record->place. After a new rewind record->read is 0: read the event log from the beginning. */
MUST_CHECK enum status job_record_take(struct job_record *record, const struct ledger_entry *entry,
                                       struct error *error);

/* A segment that stands, and what job_segment.h says of it. */
struct job_segment job_record_segment(const struct job_record *record, uint32_t index);

/* ---- the keeper's word: record_vouches.c ---- */

/* Is a segment of that hash open? */
bool job_record_is_open(const struct job_record *record, const struct hash32 *segment);

/* A vouch that was handed to us. STATUS_REFUSED: it is not the keeper's, or about no segment that
 * is open; another: the keeper is a contract, and could not be asked. A reorganization forgets
 * it. */
MUST_CHECK enum status job_record_add_vouch(struct job_record *record, struct ledger *ledger,
                                            const struct vouch *vouch, struct error *error);

/* What an ANNOUNCED event says: a vouch that a key has signed counts at once, another one when
 * job_record_follow() has read all and asked the keeper's contract. */
MUST_CHECK enum status job_record_take_word(struct job_record *record,
                                            const struct ledger_entry *entry, struct error *error);
void job_record_ask_words(struct job_record *record, struct ledger *ledger);

/* Of a segment with one. */
const struct vouch *job_record_vouch(const struct job_record *record, uint32_t index);

enum job_segment_wait job_record_waits_for(const struct job_record *record, uint32_t index,
                                           uint64_t now_s);

/* Segments that a void could take: committed, not final, and behind the legs in front that the
 * keeper vouched for, as far as the record knows. */
uint32_t job_record_unvouched(const struct job_record *record);

/* Claims that are open about segments that stand. */
uint32_t job_record_open_claims(const struct job_record *record);

bool job_record_claim_is_open(const struct job_record_claim *claim);

/* Does it lead the claim, or wait to take over? Seats are known by their entries, and not here. */
bool job_record_is_claimant(const struct job_record_claim *claim, const struct address *account);

/* Has a claim with a lower rank convicted its solver, before that answered this one? */
bool job_record_claim_is_overtaken(const struct job_record *record,
                                   const struct job_record_claim *claim);

#endif /* CHAIN_JOB_JOB_RECORD_H */
