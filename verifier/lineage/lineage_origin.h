/*
 * lineage_origin.h - the files of which the program of a run was made, such as a base's
 * config.json: the job binds their SHA-256 (proofs/job/job_notes.h). They say how weights compute,
 * which no root of weights does.
 */
#ifndef VERIFIER_LINEAGE_LINEAGE_ORIGIN_H
#define VERIFIER_LINEAGE_LINEAGE_ORIGIN_H

#include "verifier/lineage/lineage_parts.h"

/* Compares those that were given with what the job of the run names. Call it when the run's base is
 * known. */
void lineage_origin_check(struct lineage *lineage, struct lineage_item *run);

/* Has the item the files that the job names of such an item? True too where it names none. */
bool lineage_origin_is(const struct lineage_item *item, const struct job *job);

#endif /* VERIFIER_LINEAGE_LINEAGE_ORIGIN_H */
