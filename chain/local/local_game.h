/*
 * local_game.h - the rules of the game in C: the twin of chain/contracts/Registry.sol.
 *
 * Every rule has the same checks in the same order as there, so both refuse for the same reason;
 * tests play the same random histories on both. One call plays one move; the caller rolls the store
 * back if it is refused.
 */
#ifndef CHAIN_LOCAL_LOCAL_GAME_H
#define CHAIN_LOCAL_LOCAL_GAME_H

#include "chain/local/local_rules.h"

/* STATUS_REFUSED: see refusal; the store may hold half of the move. */
MUST_CHECK enum status local_game_play(struct local_game *game, const struct game_move *move);

#endif /* CHAIN_LOCAL_LOCAL_GAME_H */
