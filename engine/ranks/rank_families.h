/*
 * rank_families.h - the first half of the table of ranks: which tensors behind the body are cut
 * alike, which operations run on shards, and which families are whole on one rank.
 */
#ifndef ENGINE_RANKS_RANK_FAMILIES_H
#define ENGINE_RANKS_RANK_FAMILIES_H

#include "base/error.h"
#include "engine/ranks/rank_table.h"

/* Sets ops (but their stages), families, family, bounds, cut and sums; in_body is set. */
MUST_CHECK enum status rank_families_build(struct rank_places *places, struct error *error);

/* Does an operation stand behind the micro-batches, and their joins? */
bool rank_families_behind(const struct tape *whole, uint32_t op);

/* Marks the tensors that operations before these read. */
void rank_families_in_body(bool *in_body, const struct tape *whole);

#endif /* ENGINE_RANKS_RANK_FAMILIES_H */
