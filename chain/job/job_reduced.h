/*
 * job_reduced.h - what events make of a job, its segments, its places and its claims: the only
 * place that says so.
 *
 * job_record.h keeps these values, for every reader, and asks job_segment_of() what follows.
 * Nothing here allocates or looks beyond its arguments.
 */
#ifndef CHAIN_JOB_JOB_REDUCED_H
#define CHAIN_JOB_JOB_REDUCED_H

#include "chain/job/job_event.h"

#define JOB_REDUCED_PAID UINT32_MAX /* no pot waits */

struct job_reduced {
    enum game_phase phase;
    struct address solver; /* zero: nobody; of a closed job the last one */
    uint32_t generation;
    uint32_t segments; /* of the job: the client can stop it earlier */
    uint32_t committed;
    uint32_t drawn;     /* segments are drawn in order: so many were */
    uint32_t leg_start; /* the first segment behind the last covered one */
    uint32_t finalized;
    uint32_t entries;  /* of this generation's panel */
    uint32_t unpaid;   /* the generation of a conviction whose pot is not paid */
    uint64_t opened_s; /* when it became open, or was resumed */
    uint64_t due_s;    /* RUNNING: the next segment must be committed by then; 0: no time runs */
    uint64_t refused_until_s; /* 0: nobody refused */
    wei missing_escrow;       /* burned by a void: the client puts it back to go on */
    wei missing_pool;         /* ... */
    bool ended;               /* the last committed segment diverged */
    bool barred;              /* until the client resumes */
};

/* Can an event of this kind change it? */
bool job_reduced_is_changed_by(enum game_event_kind kind);
/* Is what is DRAWN or FINALIZED a segment that stands, and is not final? */
bool job_reduced_fits(const struct job_reduced *job, const struct game_event *event);
/* The event fits. Segments from job->committed on are void afterwards. terms: of the job. Of a
 * segment that is DRAWN, let job_reduced_take_segment() see the job as it was before. */
void job_reduced_take(struct job_reduced *job, const struct game_terms *terms,
                      const struct ledger_entry *entry);

/* A segment that stands. After its commit all is zero but start_s. */
struct job_reduced_segment {
    struct hash32 seed; /* zero: not drawn, or the job has no seats */
    bool covered;
    uint32_t leg_start; /* of a covered one: the first segment of its leg */
    uint64_t start_s;   /* of the last round, or of the commit */
    uint32_t round;
    uint32_t to;    /* the first place that no round has reached */
    uint32_t seats; /* that were drawn, in all rounds: the reader counts them */
    uint32_t rights;
    uint32_t unseen;      /* seats that could not get its states, and rights that were disproved */
    bool vouched;         /* the ledger has noted the keeper's word */
    uint64_t over_height; /* of the block that closed the last round, for another; 0: none did */
    uint64_t over_s;      /* ... */
};

/* DRAWN, ROUND_OVER, ROUND, REVEALED, SAID_UNSEEN, VOUCHED. leg_start: of the job. */
void job_reduced_take_segment(struct job_reduced_segment *segment, uint32_t leg_start,
                              const struct game_event *event);

/* A place that was drawn. */
struct job_reduced_seat {
    uint32_t entry;
    enum game_seat_phase phase; /* NONE: drawn, nothing sealed */
    enum game_verdict verdict;  /* that was revealed */
};

/* An event about its place. A right that was disproved counts as one that had no states. */
void job_reduced_take_seat(struct job_reduced_seat *seat, struct job_reduced_segment *segment,
                           const struct game_event *event);

struct job_reduced_claim {
    enum game_claim_phase phase;
    enum game_turn turn;
    struct address lead;
    uint64_t deadline_s; /* of the turn; 0: it waits, or is over */
    uint32_t turns;      /* that began */
    uint64_t rank;
    enum game_outcome outcome; /* CLOSED */
};

/* The claim of its first claimant, at CLAIMED. */
struct job_reduced_claim job_reduced_claim_of(const struct game_event *event);

/* CLAIMED by one more claimant, TURN_PASSED, RULED. */
void job_reduced_take_claim(struct job_reduced_claim *claim, const struct game_event *event);

#endif /* CHAIN_JOB_JOB_REDUCED_H */
