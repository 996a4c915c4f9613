/* profile.h - the seconds of our steps, by kind of operation and by shape. */
#ifndef BENCH_SUPPORT_PROFILE_H
#define BENCH_SUPPORT_PROFILE_H

#include "engine/plan/backend.h"

struct profile {
    const struct tape *tape; /* borrowed */
    double *seconds;         /* per operation; NULL: off */
};

/* Of the tape that the watched machine runs, which may be a rewrite; until then nothing is counted.
 * Without memory the profile stays off. */
void profile_init(struct profile *profile, const struct tape *tape);
void profile_release(struct profile *profile);

/* Makes machines opened with these options report to the profile. */
void profile_watch(struct profile *profile, struct machine_options *options);

/* Drops the seconds so far. Call it after the first step, whose pages are cold. */
void profile_clear(struct profile *profile);

/* Prints seconds of one step by kind, then the most expensive shapes, to stdout. */
void profile_print(const struct profile *profile, const char *title, int steps);

#endif /* BENCH_SUPPORT_PROFILE_H */
