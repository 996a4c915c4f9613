/*
 * made_states.h - states that no training made: enough of them to play the game with.
 *
 * Each has a real root over real leaves, so that a segment can be committed to, a claim can show
 * its states, and a false right can be challenged.
 */
#ifndef TESTS_SUPPORT_GAME_MADE_STATES_H
#define TESTS_SUPPORT_GAME_MADE_STATES_H

#include "base/buffer.h"
#include "chain/game/game.h"

#define MADE_STATES 40 /* of one shape */
#define MADE_LIES   12 /* from here on: the states of lies, each that much behind the true one */

/* What one state leaves of the one before. */
enum made_shape {
    MADE_FULL,   /* nothing: three tensors of five leaves change whole */
    MADE_TINY,   /* nothing: it is one leaf */
    MADE_SPARSE, /* all but one element of a leaf */
    MADE_FROZEN, /* all; a lie changes one element */
    MADE_SHAPES,
};

/* The number of a state: those of MADE_FULL are 0, 1, 2 ... */
static inline uint32_t made_state(enum made_shape shape, uint32_t number)
{
    return (uint32_t)shape * MADE_STATES + number;
}

/* Is this leaf of a state another in the next? */
bool made_leaf_changes(enum made_shape shape, uint32_t tensor, uint64_t leaf);

/* Which tensors and leaves there are. */
uint32_t made_tensors(enum made_shape shape);
uint64_t made_leaves(enum made_shape shape, uint32_t tensor);

/* The root of a state, and its number; where several states are equal the first; MADE_SHAPES *
 * MADE_STATES for another root. */
struct digest made_state_root(uint32_t state);
uint32_t made_state_of(const struct digest *root);

/* The leaf `which` that a seed draws of a segment of made states. */
void made_right(struct game_right *right, uint8_t leaf[MERKLE_LEAF_SIZE], const struct hash32 *seed,
                const struct game_hashes *states, uint32_t which);

/* And what an honest verdict says of it. */
struct hash32 made_right_hash(const struct address *owner, const struct hash32 *seed,
                              const struct hash32 *segment_hash, const struct game_hashes *states,
                              uint32_t which);

/* Appends the leaf that this one is about, and its proof (docs/FORMATS.md, 9.7). */
void made_leaf_proof(struct buffer *bytes, const struct hash32 *seed,
                     const struct game_hashes *states, uint32_t which);

/* A case about step `step` of a segment with these states. previous: of the segment before, or
 * NULL. header: of the job. */
void made_states_case(struct game_case *shown, const uint8_t header[GAME_JOB_HEADER_SIZE],
                      const struct game_segment *segment, const struct game_hashes *states,
                      const struct game_segment *previous,
                      const struct game_hashes *previous_states, uint32_t step);

/* The header of a job with this first state, and its id. */
void made_job(uint8_t header[GAME_JOB_HEADER_SIZE], struct digest *job_id, uint32_t first_state);
/* The terms name that id and the roots of that header; nothing else of them is touched. */
void made_job_terms(struct game_terms *terms, uint32_t first_state);

#endif /* TESTS_SUPPORT_GAME_MADE_STATES_H */
