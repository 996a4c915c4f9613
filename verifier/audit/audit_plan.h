/*
 * audit_plan.h - which steps of a journal an audit replays, and by which checks: stretches of
 * chosen segments, dealt out to lanes; each lane is replayed by one check after the other, from the
 * newest state that there is.
 */
#ifndef VERIFIER_AUDIT_AUDIT_PLAN_H
#define VERIFIER_AUDIT_AUDIT_PLAN_H

#include "proofs/bundle/bundle.h"
#include "verifier/check/check_wire.h"

/* Steps that are judged one after another, [next, end) of them still to be done. */
struct audit_lane {
    const uint64_t *segments; /* chosen ones, in order; borrowed from the plan */
    uint64_t segment_count;
    uint64_t segment; /* number of the one in which `next` lies */
    uint64_t next;
    uint64_t at;     /* the state before this step lies in the cache; UINT64_MAX: none does */
    uint64_t budget; /* steps of the next check, at most */
};

struct audit_plan {
    struct bundle *bundle; /* borrowed */
    uint64_t journaled;
    uint64_t diverged;  /* UINT64_MAX: the run did not */
    uint64_t *segments; /* the chosen ones, in order */
    uint64_t segment_count;
    uint64_t steps; /* in them */
    uint64_t *checkpoints;
    uint64_t checkpoint_count;
};

/* Chooses `sample` segments by the seed, all where it is 0. */
MUST_CHECK enum status audit_plan_open(struct audit_plan *plan, struct bundle *bundle,
                                       uint64_t sample, uint64_t sample_seed, struct error *error);
void audit_plan_close(struct audit_plan *plan); /* a zero-filled one is allowed */

/* Do all of these steps lie in chosen segments? */
bool audit_plan_has(const struct audit_plan *plan, uint64_t from, uint64_t end);

/* Lane `index` of count, in the order of the steps. */
struct audit_lane audit_plan_lane(const struct audit_plan *plan, uint32_t index, uint32_t count);

bool audit_lane_is_done(const struct audit_lane *lane);

/* What a check replays: steps [from, end), of which those from `counted` on are the lane's. */
struct audit_stretch {
    uint64_t from;
    uint64_t counted;
    uint64_t end;
    bool keeps; /* the next one begins where this ends, and no checkpoint is there */
};

struct audit_stretch audit_plan_next(const struct audit_plan *plan, const struct audit_lane *lane);

/* Fills in the places of the request, which stands for the rest. */
MUST_CHECK enum status audit_plan_request(struct check_request *request,
                                          const struct audit_plan *plan,
                                          const struct audit_stretch *stretch, struct error *error);

/* The stretch is true. kept: the state that it ends in lies in the cache. */
void audit_plan_done(const struct audit_plan *plan, struct audit_lane *lane,
                     const struct audit_stretch *stretch, bool kept, uint64_t nanoseconds);

/* The state that the stretch begins with is not to be had. True: there is an older one to try. */
bool audit_plan_go_back(struct audit_plan *plan, struct audit_lane *lane,
                        const struct audit_stretch *stretch);

#endif /* VERIFIER_AUDIT_AUDIT_PLAN_H */
