/*
 * job_record.h - the state of one job: who plays, which segments stand, how near each is to final.
 *
 * It follows from the events in their order alone (job_change.h), so it is always consistent; two
 * answers from two endpoints may not be. After a reorganization the event log is read again.
 */
#ifndef CHAIN_JOB_JOB_RECORD_H
#define CHAIN_JOB_JOB_RECORD_H

#include "chain/game/ledger.h"
#include "chain/job/job_change.h"
#include "chain/job/job_segment.h"

/* Any more are ignored: each has cost its maker a bond. */
#define JOB_RECORD_ATTESTATIONS_MAX (1u << 20)
#define JOB_RECORD_CLAIMS_MAX       (1u << 16)

struct job_record_attestation {
    struct address account;
    uint32_t index; /* of the segment */
    uint32_t round;
    bool revealed;
    bool settled;
};

struct job_record_claim {
    struct hash32 key;
    struct address claimant;
    struct address attestor; /* zero: the solver is accused */
    uint32_t index;          /* of the segment */
    uint32_t step;           /* of the solver's: within the segment */
    bool open;
    bool upheld; /* when it is not */
    enum game_turn turn;
    uint64_t deadline_s;   /* of the turn */
    uint32_t queried_size; /* of what was queried last; 0: nothing yet */
    uint8_t queried[GAME_QUERIED_MAX];
};

struct job_record_segment {
    struct game_segment committed;
    struct hash32 seed; /* zero: not drawn */
    bool mandatory;     /* drawn to be covered */
    uint64_t start_s;   /* of the round */
    uint32_t round;
    uint32_t attested; /* in this round, and not revealed */
    uint32_t revealed; /* in all rounds */
    uint32_t open_claims;
};

struct job_record {
    struct hash32 key;
    struct address account; /* whose withdrawals are counted */
    enum game_phase phase;  /* GAME_PHASE_NONE: nobody has opened it yet */
    struct address client;
    struct address solver;
    struct game_terms terms;
    uint64_t opened_s;
    uint32_t generation;
    uint32_t segment_count; /* of the whole job */
    uint32_t committed;
    uint32_t finalized;
    uint64_t due_s; /* RUNNING: the next segment must be committed by then */
    bool ended;     /* the last committed segment diverged */
    bool cancelled;
    uint32_t accepts;             /* how often the job was accepted */
    struct address last_accepted; /* the last solver to accept it */
    bool convicted;               /* the last solver was */
    uint64_t changed_height;      /* of the block in which the solver last changed */
    uint64_t withdrawals;
    struct job_record_segment *segments; /* `committed` of them */
    uint32_t segment_room;
    struct job_record_attestation *attestations;
    uint32_t attestation_count;
    uint32_t attestation_room;
    struct job_record_claim *claims;
    uint32_t claim_count;
    uint32_t claim_room;
    uint64_t read;    /* the number of the last entry */
    uint64_t rewound; /* the number of the last rewind */
};

/* account may be NULL. */
void job_record_init(struct job_record *record, const struct hash32 *key,
                     const struct address *account);
void job_record_free(struct job_record *record);

/* Reads the new entries of the event log. */
MUST_CHECK enum status job_record_follow(struct job_record *record, struct ledger *ledger,
                                         struct error *error);

/* One entry, in order, for a caller that reads the event log for many jobs. After a new rewind
 * record->read is 0: read the event log from the beginning. */
MUST_CHECK enum status job_record_take(struct job_record *record, const struct ledger_entry *entry,
                                       struct error *error);
MUST_CHECK enum status job_record_apply(struct job_record *record, const struct job_change *change,
                                        struct error *error);

/* A segment that stands, and what job_segment.h says of it. */
struct job_segment job_record_segment(const struct job_record *record, uint32_t index);
bool job_record_must_be_covered(const struct job_record *record, uint32_t index);
uint64_t job_record_attest_end(const struct job_record *record, uint32_t index);
uint64_t job_record_reveal_end(const struct job_record *record, uint32_t index);
uint64_t job_record_claim_end(const struct job_record *record, uint32_t index);
enum job_segment_wait job_record_waits_for(const struct job_record *record, uint32_t index,
                                           uint64_t now_s);

/* Was the attestor that an open claim accuses convicted by another claim? */
bool job_record_claim_is_moot(const struct job_record *record,
                              const struct job_record_claim *claim);

uint32_t job_record_open_claims(const struct job_record *record);

uint64_t job_record_end(const struct job_record *record); /* job_terms_end() */

#endif /* CHAIN_JOB_JOB_RECORD_H */
