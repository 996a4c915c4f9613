/*
 * job_segment.h - one committed segment: its periods, its coverage, and what it waits for.
 *
 * Clients and solvers fill a job_segment in from a job_record, a verifier's node from its database.
 */
#ifndef CHAIN_JOB_JOB_SEGMENT_H
#define CHAIN_JOB_JOB_SEGMENT_H

#include "chain/game/ledger.h"

struct job_segment {
    const struct game_terms *terms; /* of the job; borrowed */
    uint64_t start_s;               /* of the round of attestations */
    uint64_t height;                /* of the block of its commit */
    uint32_t revealed;              /* attestations, in all rounds */
    uint32_t open_claims;
    bool drawn;     /* its seed */
    bool mandatory; /* drawn to be covered */
    bool final;
    bool first; /* of those that are not final */
};

/* The last second in which attestors may seal, may reveal, and anybody may claim. */
uint64_t job_segment_attest_end(const struct job_segment *segment);
uint64_t job_segment_reveal_end(const struct job_segment *segment);
uint64_t job_segment_claim_end(const struct job_segment *segment);

bool job_segment_must_be_covered(const struct job_segment *segment);
/* Enough attestors have revealed, or none are needed. */
bool job_segment_is_covered(const struct job_segment *segment);
/* Whether it must be covered depends on a draw that nobody has made. */
bool job_segment_wants_draw(const struct job_segment *segment);
bool job_segment_can_draw(const struct job_segment *segment, uint64_t height);

/* The last second in which anything can be due in a running job: it can expire after it. */
uint64_t job_terms_end(const struct game_terms *terms);

enum job_segment_wait {
    JOB_SEGMENT_FINAL,       /* nothing: it is final */
    JOB_SEGMENT_DISPUTED,    /* a claim about it is open */
    JOB_SEGMENT_ATTESTING,   /* attestors seal until attest_end */
    JOB_SEGMENT_REVEALING,   /* they reveal until reveal_end */
    JOB_SEGMENT_CLAIM_TIME,  /* claims may come until claim_end */
    JOB_SEGMENT_RENEWAL,     /* too few revealed: anybody may start another round */
    JOB_SEGMENT_UNCOVERED,   /* too few revealed by the deadline: it can never be final */
    JOB_SEGMENT_PREDECESSOR, /* the segments before it must be final first */
    JOB_SEGMENT_DUE,         /* anybody may finalize it */
};
enum job_segment_wait job_segment_waits_for(const struct job_segment *segment, uint64_t now_s);

#endif /* CHAIN_JOB_JOB_SEGMENT_H */
