/*
 * rank_families.h - the first half of rank_places.h: which tensors behind the body are cut alike,
 * which operations run on shards, and which families are whole on one rank.
 */
#ifndef ENGINE_RANKS_RANK_FAMILIES_H
#define ENGINE_RANKS_RANK_FAMILIES_H

#include "engine/ranks/rank_places.h"

/* Sets ops (but their stages), families, family, bounds, cut and sums of zero-filled places. */
MUST_CHECK enum status rank_families_build(struct rank_places *places, struct error *error);

/* Does an operation stand behind the micro-batches, and their joins? */
bool rank_families_behind(const struct tape *whole, uint32_t op);

/* Does an operation before these read the tensor? */
bool rank_families_in_body(const struct tape *whole, uint32_t tensor);

#endif /* ENGINE_RANKS_RANK_FAMILIES_H */
