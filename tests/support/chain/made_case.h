/*
 * made_case.h - a job whose states a test makes up, and claims about them: the ledger checks that a
 * claim's states were committed, and nobody computes them.
 */
#ifndef TESTS_SUPPORT_CHAIN_MADE_CASE_H
#define TESTS_SUPPORT_CHAIN_MADE_CASE_H

#include "chain/game/ledger.h"

/* A header of nothing but this first state, and the id of its job. */
void made_case_header(uint8_t header[GAME_JOB_HEADER_SIZE], struct digest *job_id,
                      const struct digest *first_state);

/* The state after a step of the job. */
struct digest made_case_state(uint64_t step);

/* Those of a segment; states has room for count. */
struct game_hashes made_case_states(struct digest *states, uint64_t first, uint32_t count);

/* The claim that a step of a segment is false, of a job with this header and such states. previous:
 * NULL for segment 0. segment_steps: of the job. */
void made_case(struct game_case *made, const struct game_terms *terms, const struct address *client,
               const struct game_segment *segment, const struct game_segment *previous,
               uint32_t step, const struct digest *first_state);

#endif /* TESTS_SUPPORT_CHAIN_MADE_CASE_H */
