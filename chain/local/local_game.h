/*
 * local_game.h - the rules of the game in C: the twin of chain/contracts/Registry.sol.
 *
 * Every rule here has the same checks in the same order as there, so that the two refuse for the
 * same reason; tests play the same random histories on both. One move is one call; the caller
 * rolls the store back when it is refused.
 */
#ifndef CHAIN_LOCAL_LOCAL_GAME_H
#define CHAIN_LOCAL_LOCAL_GAME_H

#include "chain/game/game.h"
#include "chain/local/local_store.h"
#include "proofs/dispute/ledger_query.h"

#define LOCAL_EVENTS_MAX 4 /* of one move */

struct local_game {
    struct local_store *store;
    struct address sender;
    struct address referee;
    bool judges; /* the referee is the embedded one: it hears ask, tell and convict */
    uint64_t now_s;
    uint64_t height; /* of the block that this move is in */
    /* The hash of an earlier block, or zero when it is more than 256 blocks old. */
    enum status (*block_hash)(void *context, struct hash32 *hash, uint64_t height);
    void *context;
    /* Set by playing; events also borrow from the move: */
    struct game_event events[LOCAL_EVENTS_MAX];
    uint32_t event_count;
    struct game_refusal refusal;
    uint8_t queried[LEDGER_QUERIED_SIZE_MAX]; /* what an event borrows */
};

/* STATUS_REFUSED: see refusal; the store may hold half of the move. */
MUST_CHECK enum status local_game_play(struct local_game *game, const struct game_move *move);

#endif /* CHAIN_LOCAL_LOCAL_GAME_H */
