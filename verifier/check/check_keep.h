/*
 * check_keep.h - leaves states in the cache behind a child, so that its node can keep and serve
 * them (verifier/store/keep.h): the one that a segment ends in behind a check that proved it, and
 * both that a segment begins and ends with behind a child that fetched them.
 *
 * A child may write to its cache alone: there the files lie under the root of the state until the
 * node takes them. A failure to leave them is no failure of the check.
 */
#ifndef VERIFIER_CHECK_CHECK_KEEP_H
#define VERIFIER_CHECK_CHECK_KEEP_H

#include "proofs/mirror/kept.h"
#include "verifier/check/check_inputs.h"

/* The machine has run the last step of the segment, and its state has the committed root. Sets
 * `kept` or `keep_trouble` of the result; neither, where nothing is to be kept. */
void check_keep(struct checker *checker);

/* Fetches the states that the segment begins and ends with. One that everybody can draw or compute
 * for himself, the first of a job or one that is not finite, is not fetched. */
MUST_CHECK enum status check_states(struct checker *checker, struct error *error);

/* May a state lie in the cache: is it no larger, and leaves it the disk its last GiB? */
MUST_CHECK enum status check_keep_room(const struct checker *checker, uint64_t size_max,
                                       struct error *error);

/* Where the parts lie in the cache. */
MUST_CHECK enum status check_keep_path(char path[FILE_PATH_MAX], const char *cache,
                                       const struct digest *root, enum kept_part part,
                                       struct error *error);

/* The root of the state that the segment to check ends in. */
const struct digest *check_keep_root(const struct check_request *request);

#endif /* VERIFIER_CHECK_CHECK_KEEP_H */
