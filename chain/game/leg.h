/*
 * leg.h - the rules of a leg as plain functions: what covers a segment, when another round opens,
 * how long it waits, what becomes of it, and what a void burns.
 *
 * The embedded ledger plays by them, programs look ahead by them, and tests/support/network plays
 * whole jobs by them. chain/contracts/Registry.sol has the same in Solidity. Nothing here reads a
 * ledger.
 */
#ifndef CHAIN_GAME_LEG_H
#define CHAIN_GAME_LEG_H

#include "chain/game/game.h"

/* Is it covered? segments: of the job now; leg_start: the first behind the last covered one; late:
 * its seed is. */
bool leg_is_covered(const struct game_terms *terms, const struct game_segment *segment,
                    uint32_t segments, uint32_t leg_start, const struct hash32 *seed, bool late);

/* What was told about a covered segment. */
struct leg_tally {
    uint32_t wanted; /* game_wanted_rights() */
    uint32_t rights;
    uint32_t unseen;
    uint32_t round; /* the last one, from 0 */
    uint32_t drawn; /* seats of all rounds */
    uint32_t to;    /* the first place behind the last round */
    uint32_t panel; /* entries: when all are drawn, no round follows */
    bool vouched;   /* by the keeper: what said unseen counts as silence */
};

/* Seats that the next round takes; 0: the draw has ended. A refusal also ends what is not vouched:
 * that is the caller's. */
uint32_t leg_seats_needed(const struct leg_tally *tally);

/* Claim periods that it waits for after its last round. */
uint32_t leg_waits(const struct leg_tally *tally);

/* Final, or else void? Asked when the draw has ended and the wait is over. */
bool leg_is_final(const struct leg_tally *tally);

/* What one of `rights` rights earns of a pool; late: of a later round than the first. */
wei leg_fee(const struct game_terms *terms, wei pool, uint32_t rights, bool late);

struct leg_void {
    uint32_t priced; /* segments: those that are open, and one more */
    wei stake;       /* burned of it, or paid to seats that said unseen */
    wei escrow;      /* burned */
    wei pool;        /* burned: the stake's match where the escrow has less, and fees */
    wei each; /* to each seat that said unseen, out of the stake: no part of what was trained */
};

/* open: committed and not final; left: not final; unseen: seats of the deciding segment that said
 * so; last: that segment ends the job. */
struct leg_void leg_void(const struct game_terms *terms, wei pool, uint32_t open, uint32_t left,
                         uint32_t unseen, bool last);

#endif /* CHAIN_GAME_LEG_H */
