/*
 * allow_list.h - the accounts that a job admits as solvers or verifiers, as a Merkle root.
 *
 * A leaf is keccak256(abi.encode(account)). A node is keccak256 of its two children, the lower
 * first, so a path needs no directions. A child without a neighbour rises unhashed.
 */
#ifndef CHAIN_GAME_ALLOW_LIST_H
#define CHAIN_GAME_ALLOW_LIST_H

#include "chain/game/game.h"

#define ALLOW_LIST_ACCOUNTS_MAX 65536

/* Is the account under the root? Zero admits everybody, by an empty path. */
bool allow_list_admits(const struct hash32 *root, const struct address *account,
                       const struct game_hashes *path);

/* 0 < count <= ALLOW_LIST_ACCOUNTS_MAX. The order counts. */
void allow_list_root(struct hash32 *root, const struct address *accounts, uint32_t count);

/* path has room for GAME_ALLOW_MAX siblings; *sibling_count of them are written. */
void allow_list_path(struct digest path[GAME_ALLOW_MAX], uint32_t *sibling_count,
                     const struct address *accounts, uint32_t count, uint32_t index);

#endif /* CHAIN_GAME_ALLOW_LIST_H */
