/*
 * poster.h - a thread that owns the solver's ledger, so that no step ever waits for one.
 *
 * It makes a round (solver.h) every few seconds, and at once when it is woken. It logs changes
 * only: no endpoint for an hour is one line.
 */
#ifndef PROVER_POST_POSTER_H
#define PROVER_POST_POSTER_H

#include <stdatomic.h>

#include "base/io/log.h"
#include "prover/post/solver.h"

struct poster;

/*
 * Borrows solver; until poster_stop() others may only call solver_add(). poster_stop() sets
 * stopping, which everything that waits for endpoints must watch (struct ledger_options). seconds:
 * between two rounds.
 */
MUST_CHECK enum status poster_start(struct poster **poster, struct solver *solver,
                                    const struct hash32 *job, atomic_bool *stopping,
                                    const struct log *log, double seconds, struct error *error);

/* Makes a round at once: a segment was added. */
void poster_wake(struct poster *poster);

/* What the last round found, and the processor time that posting took so far. */
void poster_look(struct poster *poster, struct solver_view *view, double *seconds);

/* Where the job stood then. */
void poster_show(struct poster *poster, struct job_standing *standing);

/* Ends the thread after its present round. NULL is fine. */
void poster_stop(struct poster *poster);

#endif /* PROVER_POST_POSTER_H */
