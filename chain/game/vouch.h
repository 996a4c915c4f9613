/*
 * vouch.h - the word of a job's keeper about a covered segment: "I have its start and its end, and
 * serve them."
 *
 * It is a typed message (EIP-712), so it means nothing on another chain, to another contract, or
 * about another segment. The keeper hands it to the solver or announces it; anybody may bring it to
 * the ledger by settle. A keeper that is a contract signs in its own way, which only its chain
 * reads: this is for keys.
 */
#ifndef CHAIN_GAME_VOUCH_H
#define CHAIN_GAME_VOUCH_H

#include "chain/game/game.h"
#include "chain/keys/signer.h"

#define VOUCH_SIZE (HASH32_SIZE + GAME_VOUCH_SIZE) /* handed over: the segment's hash, then it */

struct vouch {
    struct hash32 segment; /* its hash */
    uint8_t signature[GAME_VOUCH_SIZE];
};

MUST_CHECK enum status vouch_sign(struct vouch *vouch, const struct game_place *place,
                                  const struct hash32 *job, const struct hash32 *segment,
                                  const struct signer *keeper, struct error *error);

/* Is it the keeper's, about a segment of this job? Safe on hostile input. */
MUST_CHECK enum verdict vouch_check(const struct vouch *vouch, const struct game_place *place,
                                    const struct hash32 *job, const struct address *keeper);

void vouch_write(uint8_t bytes[VOUCH_SIZE], const struct vouch *vouch);
/* False: it is of another size. Whether it is anybody's word, vouch_check() says. */
bool vouch_read(struct vouch *vouch, const struct game_bytes *bytes);

#endif /* CHAIN_GAME_VOUCH_H */
