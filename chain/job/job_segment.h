/*
 * job_segment.h - one committed segment: its periods, its score, and what it waits for.
 *
 * Clients and solvers fill a job_segment in from a job_record, a verifier's node from its database.
 */
#ifndef CHAIN_JOB_JOB_SEGMENT_H
#define CHAIN_JOB_JOB_SEGMENT_H

#include "chain/game/ledger.h"

struct job_segment {
    const struct game_terms *terms; /* of the job; borrowed */
    uint64_t height;                /* of the block of its commit */
    uint64_t start_s;               /* of the last round; of the commit where there is none */
    uint32_t rights;
    uint32_t unavailables;
    uint32_t open_claims;
    uint32_t job_claims; /* open in the whole job */
    bool drawn;          /* its seed */
    bool covered;        /* the panel must say that it is right */
    bool ended;          /* the draw: there is no further round */
    bool final;
    bool first; /* of those that are not final */
};

/* Rights minus unavailables. */
int32_t job_segment_score(const struct job_segment *segment);

/* The last second in which seats seal, in which they reveal, and in which anybody claims. */
uint64_t job_segment_seal_end(const struct job_segment *segment);
uint64_t job_segment_reveal_end(const struct job_segment *segment);
uint64_t job_segment_claim_end(const struct job_segment *segment);

/* Can the seed be drawn with the blocks that are there? */
bool job_segment_can_draw(const struct job_segment *segment, const struct ledger_clock *clock);

enum job_segment_wait {
    JOB_SEGMENT_FINAL,       /* nothing: it is final */
    JOB_SEGMENT_DISPUTED,    /* a claim about it is open, or one about another holds it up */
    JOB_SEGMENT_UNDRAWN,     /* anybody may draw its seed, when its block is there */
    JOB_SEGMENT_SEALING,     /* seats seal their verdicts until seal_end */
    JOB_SEGMENT_REVEALING,   /* and reveal them until reveal_end */
    JOB_SEGMENT_RENEWAL,     /* verdicts are missing: anybody may renew */
    JOB_SEGMENT_CLAIM_TIME,  /* claims may come until claim_end */
    JOB_SEGMENT_PREDECESSOR, /* the segments before it must be final first */
    JOB_SEGMENT_LOST,        /* nobody can get its states: anybody may forfeit it */
    JOB_SEGMENT_DUE,         /* anybody may finalize it */
};
enum job_segment_wait job_segment_waits_for(const struct job_segment *segment, uint64_t now_s);

/* "sealing": for programs. */
const char *job_segment_wait_word(enum job_segment_wait wait);

#endif /* CHAIN_JOB_JOB_SEGMENT_H */
