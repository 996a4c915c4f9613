/*
 * step_time.h - how long a step of a job takes on a machine: measured on the job itself, or
 * estimated from the products in its tape.
 *
 * A measurement is advice and says nothing about bits. It writes nothing and keeps no state.
 */
#ifndef PROOFS_RUN_STEP_TIME_H
#define PROOFS_RUN_STEP_TIME_H

#include "proofs/run/run.h"

struct step_time {
    double seconds;  /* of a step: the median */
    double hashing;  /* seconds of hashing the state after it */
    uint32_t steps;  /* timed; one more came before them */
    double spread_s; /* between the quickest and the slowest */
};

#define STEP_TIME_STEPS_MAX 64

/*
 * Runs steps from the job's first state for about `seconds`: one to warm up, then at least one and
 * at most STEP_TIME_STEPS_MAX. A first state that is given and not there begins as zeros: the time
 * does not depend on values. STATUS_REFUSED: the data is not the job's.
 */
MUST_CHECK enum status step_time_measure(struct step_time *time, const struct job *job,
                                         const char *const *paths, size_t path_count,
                                         const struct machine_options *machine, double seconds,
                                         struct error *error);

/* The same with a run that is open. Its states are undefined afterwards. */
MUST_CHECK enum status step_time_of_run(struct step_time *time, struct run *run, double seconds,
                                        struct error *error);

/* Multiply-adds of the exact products of a step, or of an operation; causal ones count as half. */
double step_time_products(const struct tape *tape);
double step_time_op_products(const struct op *op);

/* Tokens (or samples) of the batches that one step draws; 0: it draws none. */
uint64_t step_time_tokens(const struct tape *tape);

#endif /* PROOFS_RUN_STEP_TIME_H */
