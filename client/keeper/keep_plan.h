/*
 * keep_plan.h - what a keeper owes a segment now. Plain functions of what the ledger says, what the
 * keeper has, and how it was told to act; nothing here reads a clock.
 */
#ifndef CLIENT_KEEPER_KEEP_PLAN_H
#define CLIENT_KEEPER_KEEP_PLAN_H

#include "chain/job/job_segment.h"

/* How it was told to act. */
struct keep_policy {
    bool refuses;
    bool replays;
};

/* What it knows of a segment beside the ledger's word. */
struct keep_known {
    bool has_states;      /* start and end, whole and checked */
    bool late;            /* ... but not before the first round was over */
    bool has_start;       /* from there a replay computes the end, */
    bool start_comes;     /* ... or the start is an end that one computes */
    bool known_right;     /* an owner whom the user knows revealed right */
    bool replayed;        /* the replay gave an answer, */
    bool is_false;        /* ... and this one */
    uint64_t first_end_s; /* the reveal's end of its first round */
    uint64_t well_s;      /* since when ledger and own mirror answered without a gap, by its time;
                           * 0: one of them does not */
};

struct keep_needs {
    bool states;
    bool vouch;  /* to be signed, and handed over */
    bool bring;  /* by our own settle: without the vouch it could end badly now */
    bool replay; /* the panel leaves a question, or nobody gives the end */
    bool refuse;
};

/* Nothing for a segment that is not drawn, not covered, or final. */
struct keep_needs keep_plan(const struct job_segment *segment, const struct keep_known *known,
                            const struct keep_policy *policy, uint64_t now_s);

#endif /* CLIENT_KEEPER_KEEP_PLAN_H */
