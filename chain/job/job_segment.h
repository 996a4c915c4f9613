/*
 * job_segment.h - one committed segment: its periods, and what it waits for.
 *
 * Its parts are in a job_record.
 * What a leg's rules say is in chain/game/leg.h.
 */
#ifndef CHAIN_JOB_JOB_SEGMENT_H
#define CHAIN_JOB_JOB_SEGMENT_H

#include "chain/game/ledger.h"
#include "chain/game/leg.h"
#include "chain/job/job_reduced.h"

struct job_segment {
    const struct game_terms *terms; /* of the job; borrowed */
    struct leg_tally tally;         /* vouched: noted on the ledger, or known to us */
    struct game_commits commits;    /* what is drawn next: its own, or the end of a round */
    uint32_t panel;                 /* entries at its commit; 0: its draw needs no seed */
    uint64_t start_s;               /* of the last round; of the commit where there is none */
    uint64_t refused_until_s;       /* of the job; 0: nobody refused */
    uint32_t open_claims;
    uint32_t job_claims; /* open in the whole job */
    bool drawn;          /* its seed, and those of all before */
    bool next;           /* to be drawn: all before were */
    bool over;           /* a round is: the next one is to be drawn */
    bool covered;        /* the panel looks at it: its leg ends here */
    bool noted;          /* on the ledger: the keeper has vouched for it */
    bool final;
    bool first; /* its leg comes next: what was before is final. Of an uncovered one: and it is the
                 * first of a tail that nobody looks at */
};

/* Of a segment that stands, by what the reducer keeps of it and of its job. has_vouch: the keeper's
 * vouch is known to us. Borrows the terms. The caller sets the claims. */
struct job_segment job_segment_of(const struct game_terms *terms, const struct job_reduced *job,
                                  const struct game_segment *committed,
                                  const struct job_reduced_segment *draw, bool has_vouch);

/* The last second in which seats seal, and in which they reveal. */
uint64_t job_segment_seal_end(const struct job_segment *segment);
uint64_t job_segment_reveal_end(const struct job_segment *segment);
/* The last second of the claim time: it grows where states were not seen. */
uint64_t job_segment_claim_end(const struct job_segment *segment);

/* Can the seed be drawn with the blocks that are there? */
bool job_segment_can_draw(const struct job_segment *segment, const struct ledger_clock *clock);

/* Does a refusal hold it, so that it is void when claims have had their time? */
bool job_segment_is_held(const struct job_segment *segment);

enum job_segment_wait {
    JOB_SEGMENT_FINAL,         /* nothing: it is final */
    JOB_SEGMENT_DISPUTED,      /* claims are open, and hold it up */
    JOB_SEGMENT_UNDRAWN,       /* anybody may draw its seed, when its block is there */
    JOB_SEGMENT_ROUND_UNDRAWN, /* the same, of the next round */
    JOB_SEGMENT_UNCOVERED,     /* nobody looks at it: it goes the way of the next covered one */
    JOB_SEGMENT_SEALING,       /* seats seal their verdicts until seal_end */
    JOB_SEGMENT_REVEALING,     /* and reveal them until reveal_end */
    JOB_SEGMENT_ROUND,         /* verdicts are missing: settle closes the round */
    JOB_SEGMENT_VOUCH,         /* it was refused: settle notes the vouch that saves it */
    JOB_SEGMENT_HELD,          /* it was refused: claims may come until refused_until */
    JOB_SEGMENT_CLAIM_TIME,    /* claims may come until claim_end */
    JOB_SEGMENT_LEG_BEFORE,    /* the legs before it end first */
    JOB_SEGMENT_LOST,          /* settle makes it void: nobody says that its states are served */
    JOB_SEGMENT_DUE,           /* settle makes its leg final */
};
enum job_segment_wait job_segment_waits_for(const struct job_segment *segment, uint64_t now_s);

/* Is settle due? */
bool job_segment_settles(enum job_segment_wait wait);

/* "sealing": for programs. */
const char *job_segment_wait_word(enum job_segment_wait wait);

#endif /* CHAIN_JOB_JOB_SEGMENT_H */
