/*
 * job_record.h - the state of one job: who plays, which segments stand, how near each is to final.
 *
 * It follows from the events in their order alone, so it is always consistent; two answers from two
 * endpoints may not be. After a reorganization the event log is read again.
 *
 * Clients and solvers need what stands. A verifier's node also asks for what is over (`whole`):
 * void segments, seats of segments that are final or void, panels of before, the states of each
 * segment, and where parties are found.
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
#define JOB_RECORD_FORMER_MAX (1u << 20)

#define JOB_RECORD_SEEN_MAX 16

struct job_record_segment {
    struct game_segment committed;
    struct job_reduced_segment draw;
    struct hash32 hash;
    struct digest previous; /* the root of the segment before it; zero for the first */
    uint64_t number;        /* of its event: no other segment of the log has it */
    struct digest *states;  /* committed.steps of them; NULL: the record is not whole */
    bool is_void;
    uint32_t seated; /* places of this round, */
    uint32_t sealed; /* and how many of them sealed a verdict */
    uint32_t open_claims;
    bool has_vouch; /* that is valid: the keeper announced it, or gave it to us */
    bool has_word;  /* of the keeper that no key has signed: its contract is still to be asked */
};

/* A place that was drawn. */
struct job_record_seat {
    uint32_t index;        /* of its segment, */
    struct hash32 segment; /* and the hash of that */
    uint32_t place;
    struct address owner;
    uint32_t round;
    struct job_reduced_seat state;
    struct hash32 seal;        /* what its owner sealed; zero: nothing yet */
    struct game_leaves leaves; /* of a right that was revealed, */
    struct hash32 salt;        /* ... and its salt */
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
    uint64_t number;       /* of the event of its first claimant */
    struct hash32 segment; /* its hash */
    struct hash32 subject;
    struct digest trace_root; /* what the solver answered */
    uint32_t outsiders_ever;  /* also those whose clock has run out */
    bool ours;                /* the record's account is among the claimants that are left, */
    bool lost;                /* or was, until its clock ran out */
    uint64_t lost_s;
    wei bond; /* that the account paid */
};

/* An entry in a panel. */
struct job_record_entry {
    struct address owner;
    bool gone; /* its bond was paid out, or lost */
    uint32_t generation;
    uint32_t number;   /* an entry that departs from an open panel gives it to the last one */
    uint64_t enlisted; /* its own number, which stays */
    uint64_t lost_s;   /* when a right of it was disproved; 0: none was */
};

/* The address at which a party said last that it is found. */
struct job_record_contact {
    struct address owner;
    char url[GAME_CONTACT_MAX + 1];
    uint64_t number; /* of the event */
};

#define JOB_RECORD_CONTACTS_MAX (1u << 16)

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
        seen[JOB_RECORD_SEEN_MAX];    /* who last found a segment right, the latest first: */
    uint32_t seen_count;              /* they had its states */
    struct job_record_entry *entries; /* the panel of this generation: state.entries of them */
    uint32_t entry_room;
    struct job_record_entry *former; /* in panels of before: of the account, and not gone; */
    uint32_t former_count;           /* ... whole: of all */
    uint32_t former_room;
    uint64_t enlisted;                   /* entries of the account that ever were */
    struct job_record_segment *segments; /* state.committed of them */
    uint32_t segment_room;
    struct job_record_seat *seats; /* of segments that stand and are not final */
    uint32_t seat_count;
    uint32_t seat_room;
    bool whole; /* set before the first entry; else the next three are empty: */
    struct job_record_segment *voids; /* in the order in which they became void */
    uint32_t void_count;
    uint32_t void_room;
    struct job_record_seat *ended; /* seats of segments that are final or void */
    uint32_t ended_count;
    uint32_t ended_room;
    struct job_record_contact *contacts;
    uint32_t contact_count;
    uint32_t contact_room;
    uint64_t finalized_s; /* the last segment that is; 0: none is */
    uint64_t closed_s;
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

/* Is it the present solver, the keeper or the client, or has it an entry in the panel, or a bond in
 * one of before? */
bool job_record_has_part(const struct job_record *record, const struct address *owner);

/* Where who has a part in the job is found, if an event of the job says so. */
MUST_CHECK enum status job_record_take_contact(struct job_record *record,
                                               const struct ledger_entry *entry,
                                               struct error *error);

/* NULL: the party has not said. */
const struct job_record_contact *job_record_contact(const struct job_record *record,
                                                    const struct address *owner);

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

/* Of all claimants of claims that are open: each raises the bond of the next outsider. */
uint32_t job_record_outsiders(const struct job_record *record);

bool job_record_claim_is_open(const struct job_record_claim *claim);

/* Makes room for one more of size bytes each. */
MUST_CHECK enum status job_record_grow(void **items, uint32_t *room, uint32_t count, size_t size,
                                       struct error *error);

/* Does it lead the claim, or wait to take over? Seats are known by their entries, and not here. */
bool job_record_is_claimant(const struct job_record_claim *claim, const struct address *account);

/* Has a claim with a lower rank convicted its solver, before that answered this one? */
bool job_record_claim_is_overtaken(const struct job_record *record,
                                   const struct job_record_claim *claim);

#endif /* CHAIN_JOB_JOB_RECORD_H */
