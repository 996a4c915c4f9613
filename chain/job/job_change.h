/*
 * job_change.h - what an entry of the event log changes in the state of a job.
 *
 * This is the one place that knows what each event means. job_record applies changes in memory, the
 * verifier's store in its database, its watch in a list of claims; none looks at events again.
 */
#ifndef CHAIN_JOB_JOB_CHANGE_H
#define CHAIN_JOB_JOB_CHANGE_H

#include "chain/game/ledger.h"

enum job_change_kind {
    JOB_CHANGE_NONE, /* of no job: a seal, or what a reply said */
    JOB_CHANGE_REWIND,
    JOB_CHANGE_OPENED,
    JOB_CHANGE_PHASE,
    JOB_CHANGE_COMMITTED,
    JOB_CHANGE_DRAWN,
    JOB_CHANGE_RENEWED, /* a new round: seals that were not revealed are lost */
    JOB_CHANGE_FINALIZED,
    JOB_CHANGE_ATTESTATION,
    JOB_CHANGE_WITHDRAWN,
    JOB_CHANGE_CLAIM_OPENED,
    /* These name a claim and no job. */
    JOB_CHANGE_CLAIM_TURN,
    JOB_CHANGE_CLAIM_QUERIED,
    JOB_CHANGE_CLAIM_CLOSED,
};

enum job_attestation_state {
    JOB_ATTESTATION_NONE = 0,
    JOB_ATTESTATION_SEALED,
    JOB_ATTESTATION_REVEALED,
    JOB_ATTESTATION_SETTLED,
};

enum job_claim_outcome {
    JOB_CLAIM_OPEN = 0,
    JOB_CLAIM_UPHELD,
    JOB_CLAIM_REFUTED,
    JOB_CLAIM_LAPSED, /* its accused was gone already */
};

/* Fields that a kind does not name are zero, unless the event fills them. */
struct job_change {
    enum job_change_kind kind;
    uint64_t number; /* of the entry */
    uint64_t height; /* of its block; REWIND: the last that stays */
    uint64_t time_s; /* of its block */
    struct hash32 job;
    uint32_t index;         /* of the segment */
    struct address account; /* client, solver, attestor, claimant or owner: who moved */
    wei amount;             /* ATTESTATION (settled), WITHDRAWN */

    const struct game_terms *terms; /* OPENED; borrowed from the entry */

    /* PHASE */
    enum game_phase phase;
    struct address solver; /* that holds the job now; zero: nobody */
    uint64_t due_s;        /* of the next segment, where one is accepted */
    bool voids;            /* segments from index on, with their attestations and claims */
    bool convicted;        /* the solver was: the next generation begins */
    bool cancelled;

    struct game_segment segment; /* COMMITTED */
    bool diverged;               /* COMMITTED: the training ends with it */
    struct hash32 seed;          /* DRAWN */
    bool mandatory;              /* DRAWN: the segment must be covered */
    uint64_t start_s;            /* RENEWED: of the round */

    /* ATTESTATION, of account */
    enum job_attestation_state attestation;
    int attested;             /* how many more seals wait to be revealed; -1: one less */
    int revealed;             /* how many more are revealed */
    struct digest trace_root; /* REVEALED */
    struct address payee;     /* SETTLED */

    /* CLAIM_* */
    struct hash32 claim;
    struct address attestor; /* CLAIM_OPENED: the accused; zero: the solver is */
    uint32_t step;           /* CLAIM_OPENED against the solver: within the segment */
    struct digest pre_state;
    struct digest post_state;
    enum game_claim_phase claim_phase;
    enum game_turn turn;
    uint64_t deadline_s;       /* of the turn */
    struct game_bytes queried; /* CLAIM_QUERIED; borrowed from the entry */
    enum job_claim_outcome outcome;
};

void job_change_read(struct job_change *change, const struct ledger_entry *entry);

/* "upheld", "refuted", "lapsed"; "" while it is open. */
const char *job_claim_outcome_name(enum job_claim_outcome outcome);

#endif /* CHAIN_JOB_JOB_CHANGE_H */
