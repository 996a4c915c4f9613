/*
 * dispute_case.h - what a claim shows of a step: the case, with the paths of both states.
 *
 * The ledger has the states of every segment, so the case follows from the node's database. Only
 * the header of the job comes from a check that had the job.
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_CASE_H
#define VERIFIER_DISPUTE_DISPUTE_CASE_H

#include "verifier/store/store.h"

/* The claim that a step of the segment is false. STATUS_NOT_FOUND: the segment before it, or the
 * job's header, is not here. */
MUST_CHECK enum status dispute_case(struct game_case *shown, struct store *store,
                                    const struct store_segment *segment, uint32_t step,
                                    struct error *error);

#endif /* VERIFIER_DISPUTE_DISPUTE_CASE_H */
