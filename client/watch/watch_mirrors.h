/*
 * watch_mirrors.h - a thread that asks the mirrors of a job for what the ledger does not say: the
 * job file, and what each step of a committed segment said.
 *
 * The job file is believed by its id. No root binds losses: the curve is the word of the mirror
 * that gave it, and the view says so. A mirror that is slow holds up this thread alone.
 */
#ifndef CLIENT_WATCH_WATCH_MIRRORS_H
#define CLIENT_WATCH_WATCH_MIRRORS_H

#include <pthread.h>

#include "chain/view/job_view.h"

/* What is shown, and the lock that everybody takes who reads or changes it. */
struct watch_sight {
    pthread_mutex_t lock;
    struct job_view view;
};

struct watch_mirrors;

struct watch_mirrors_options {
    struct watch_sight *sight; /* borrowed, like all here */
    struct stop *stop;         /* open; ends a transfer too */
    const struct game_terms *terms;
    const struct mirror_set *mirrors; /* the first ones, and how long they may be silent */
    double poll_s;
};

MUST_CHECK enum status watch_mirrors_open(struct watch_mirrors **mirrors,
                                          const struct watch_mirrors_options *options,
                                          struct error *error);
void watch_mirrors_close(struct watch_mirrors *mirrors); /* NULL is fine; request the stop before */

/* What the ledger says now: how many segments are committed, and in which generation. */
void watch_mirrors_tell(struct watch_mirrors *mirrors, const struct job_record *record);

/* More places where the job may be found. */
void watch_mirrors_add(struct watch_mirrors *mirrors, const struct mirror_set *set);

/* Has it asked every mirror for all that it was told of? */
bool watch_mirrors_rest(struct watch_mirrors *mirrors);

#endif /* CLIENT_WATCH_WATCH_MIRRORS_H */
