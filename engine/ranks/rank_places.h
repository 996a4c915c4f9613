/*
 * rank_places.h - where what stands behind the micro-batches runs, and what travels for it.
 *
 * An operation behind the body that can be cut along its outermost axis, such as an optimizer's, an
 * addition or the sums of rows, runs on the shard of each rank. What it reads and makes is cut
 * alike: such tensors are a family. A family has one list of bounds, at common multiples of rows
 * and leaves; one that is small, or has no two such pieces, is whole on one rank. So is a family
 * that another operation reads or makes whole, such as Muon's products: these are dealt out by
 * size. What only some steps need (engine/plan/lazy.h), a held-out batch, is on one rank as well.
 * All else runs on every rank: it is small, and reads single numbers, or sums of rows.
 *
 * What one rank has a part of and others read whole arrives: all send their parts to all. So the
 * operations stand in stages, with arrivals before each. A state that the body reads is whole on
 * every rank: its next value is made in parts, and arrives. A state that only parts read, such as a
 * moment, is nowhere whole.
 */
#ifndef ENGINE_RANKS_RANK_PLACES_H
#define ENGINE_RANKS_RANK_PLACES_H

#include "engine/ranks/rank_table.h"
#include "engine/ranks/ranks_plan.h"

#define RANK_STAGES_MAX 64

/* Refuses by name a tape whose stages do not end. whole passed rank_tape_check(). */
MUST_CHECK enum status rank_places_build(struct rank_places *places, const struct tape *whole,
                                         uint32_t ranks, struct error *error);
void rank_places_release(struct rank_places *places); /* a zero-filled one is allowed */

/* The first element of a tensor of a family that a rank has; of rank `ranks`, their number. */
uint64_t rank_places_first(const struct rank_places *places, uint32_t tensor, uint32_t rank);

/* Does the operation read the input in the parts that the ranks have? */
bool rank_places_reads_part(const struct rank_places *places, uint32_t op, uint32_t input);

/* The shards of the sums, in elements, and of what arrives before a stage, in bytes. */
MUST_CHECK enum status rank_places_sums(struct ranks_shards *shards,
                                        const struct rank_places *places, struct error *error);
MUST_CHECK enum status rank_places_arrivals(struct ranks_shards *shards,
                                            const struct rank_places *places, uint32_t stage,
                                            struct error *error);

#endif /* ENGINE_RANKS_RANK_PLACES_H */
