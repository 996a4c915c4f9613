/*
 * watch_keep.h - keeps the end states of a job's segments in a folder, and serves them, so that a
 * model does not vanish with its solver.
 *
 * A thread brings the ends that it is told, in that order, checked piece by piece against their
 * roots on the ledger, into the layout of the published tree (docs/FORMATS.md, section 11). Once a
 * newer state is whole, the oldest over the bound goes. What fails is said in the view, and tried
 * again.
 */
#ifndef CLIENT_WATCH_WATCH_KEEP_H
#define CLIENT_WATCH_WATCH_KEEP_H

#include "base/io/log.h"
#include "chain/job/job_states.h"
#include "client/watch/watch_mirrors.h"
#include "proofs/mirror/serve.h"

#define WATCH_KEEP_STATES_MAX 256 /* the last ones; no more are kept */

struct watch_keep;

struct watch_keep_options {
    struct watch_sight *sight; /* borrowed, like all here */
    struct stop *stop;         /* open; ends a transfer too */
    const char *area;          /* of what is logged: "watch" */
    const struct log *log;     /* NULL: only the view says it */
    const struct game_terms *terms;
    const char *folder;
    const char *place;  /* ADDRESS:PORT; NULL: serves nothing */
    uint64_t bytes_max; /* of states that are whole */
};

MUST_CHECK enum status watch_keep_open(struct watch_keep **keep,
                                       const struct watch_keep_options *options,
                                       struct error *error);
void watch_keep_close(struct watch_keep *keep); /* NULL is fine; request the stop before */

/* What stands on the ledger now, what matters most first, and who may have it. */
void watch_keep_tell(struct watch_keep *keep, const struct job_states_place *places, uint32_t count,
                     const struct mirror_set *mirrors);

/* Is that state here, whole and checked? */
bool watch_keep_has(struct watch_keep *keep, const struct job_states_place *place);

const char *watch_keep_url(const struct watch_keep *keep); /* of its server; "": it has none */
bool watch_keep_can_be_called(
    const struct watch_keep *keep); /* is that the address of one machine? */

/* Bytes of the job file that it serves; 0: it has none yet. */
uint64_t watch_keep_job_size(const struct watch_keep *keep);

/* Has it tried to bring all that it was told of? */
bool watch_keep_rest(struct watch_keep *keep);

struct serve_counts watch_keep_counts(struct watch_keep *keep);

#endif /* CLIENT_WATCH_WATCH_KEEP_H */
