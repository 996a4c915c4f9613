/* lineage_run.h - a run: are its data and its base among what was given, and are its steps true? */
#ifndef VERIFIER_LINEAGE_LINEAGE_RUN_H
#define VERIFIER_LINEAGE_LINEAGE_RUN_H

#include "verifier/lineage/lineage_parts.h"

/* Finds each data tensor of the job and its first state among all that was given, by their roots;
 * then runs the steps again. Says what it found. */
MUST_CHECK enum status lineage_run_check(struct lineage *lineage, size_t run, struct error *error);

/* The held-out figures of the state after so many steps, into the certificate. */
void lineage_run_figures(struct lineage *lineage, const struct lineage_item *run, uint64_t steps);

/* The newest checkpoint of a run; STATUS_NOT_FOUND: it has none. */
MUST_CHECK enum status lineage_run_newest(uint64_t *step, struct bundle *bundle,
                                          struct error *error);

#endif /* VERIFIER_LINEAGE_LINEAGE_RUN_H */
