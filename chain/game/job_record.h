/*
 * job_record.h - one job as a ledger's event log tells it: who plays, which segments stand and
 * how far each is on its way to being final.
 *
 * Everything here follows from events in their order, so it is never ahead of itself as two answers
 * of two endpoints can be. A reorganization is followed by reading the event log anew.
 */
#ifndef CHAIN_GAME_JOB_RECORD_H
#define CHAIN_GAME_JOB_RECORD_H

#include "chain/game/ledger.h"

/* More of them than this are passed over: each has cost its maker a bond. */
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
    uint64_t deadline_s; /* of the turn */
    uint32_t asked_size; /* of the last question, as ASKED said it; 0: none yet */
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
    uint64_t due_s; /* RUNNING: until when the next segment must be there */
    bool ended;     /* the last one committed diverged */
    bool cancelled;
    uint32_t accepts;             /* how often the job was accepted */
    struct address last_accepted; /* and by whom, the last time */
    bool convicted;               /* whoever it was */
    uint64_t changed_height;      /* of the block in which it last got a solver, or lost one */
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

/* Reads what the event log has that is new. */
MUST_CHECK enum status job_record_follow(struct job_record *record, struct ledger *ledger,
                                         struct error *error);

/* For whoever reads the event log itself, for many jobs at once: one entry, in order. After a
 * rewind that is new, record->read is 0: the event log is to be read anew. */
MUST_CHECK enum status job_record_take(struct job_record *record, const struct ledger_entry *entry,
                                       struct error *error);

/* What is known of a standing segment. */
bool job_record_must_be_covered(const struct job_record *record, uint32_t index);
uint64_t job_record_attest_end(const struct job_record *record, uint32_t index);
uint64_t job_record_reveal_end(const struct job_record *record, uint32_t index);
uint64_t job_record_claim_end(const struct job_record *record, uint32_t index);

/* Is the attestor that an open claim accuses gone, convicted by another claim? */
bool job_record_claim_is_moot(const struct job_record *record,
                              const struct job_record_claim *claim);

uint32_t job_record_open_claims(const struct job_record *record);

/* From when on a job that runs can expire: after the last second in which anything could be due. */
uint64_t job_record_end(const struct job_record *record);

/* What a segment waits for. */
enum job_record_wait {
    JOB_RECORD_FINAL,       /* nothing: it is final */
    JOB_RECORD_DISPUTED,    /* the end of a claim */
    JOB_RECORD_ATTESTING,   /* attestors may come, until attest_end */
    JOB_RECORD_REVEALING,   /* and reveal, until reveal_end */
    JOB_RECORD_CLAIM_TIME,  /* claims may come, until claim_end */
    JOB_RECORD_RENEWAL,     /* too few have revealed: another round, which anybody may start */
    JOB_RECORD_UNCOVERED,   /* the deadline: it can no longer be covered, and never be final */
    JOB_RECORD_PREDECESSOR, /* the segments before it are to be final first */
    JOB_RECORD_DUE,         /* somebody who calls finalize */
};
enum job_record_wait job_record_waits_for(const struct job_record *record, uint32_t index,
                                          uint64_t now_s);

#endif /* CHAIN_GAME_JOB_RECORD_H */
