/*
 * contract.h - a player of a stage on a chain that is a contract: it has signed what begins with
 * the hash (ERC-1271).
 *
 * Its account had a key, and makes its moves before it gets code.
 */
#ifndef TESTS_SUPPORT_GAME_CONTRACT_H
#define TESTS_SUPPORT_GAME_CONTRACT_H

#include "tests/support/game/scene.h"

void contract_make(const struct scene *scene, int player);

/* What a keeper that is a contract has signed about a segment, in that many bytes. */
struct vouch contract_vouch(struct scene *scene, uint32_t index, size_t size);

#endif /* TESTS_SUPPORT_GAME_CONTRACT_H */
