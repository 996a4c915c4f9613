/*
 * poster.h - a thread that owns the solver's ledger, so that no step ever waits for one.
 *
 * It makes a round (solver.h) every few seconds, and at once when it is woken. What it says goes
 * to the log when it changes: no endpoint for an hour is one line.
 */
#ifndef PROVER_POST_POSTER_H
#define PROVER_POST_POSTER_H

#include <stdatomic.h>

#include "base/io/log.h"
#include "prover/post/solver.h"

struct poster;

/*
 * solver is borrowed and, until poster_stop, the thread's; solver_add() may be called. stopping is
 * set by poster_stop: whoever waits for endpoints must look at it (struct ledger_options). With
 * several seconds between two rounds.
 */
MUST_CHECK enum status poster_start(struct poster **poster, struct solver *solver,
                                    atomic_bool *stopping, const struct log *log, double seconds,
                                    struct error *error);

/* A round at once: a segment was added. */
void poster_wake(struct poster *poster);

/* What the last round found, and the processor time that posting took so far. */
void poster_look(struct poster *poster, struct solver_view *view, double *seconds);

/* Ends the thread after the round it is in. NULL is fine. */
void poster_stop(struct poster *poster);

#endif /* PROVER_POST_POSTER_H */
