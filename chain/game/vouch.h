/*
 * vouch.h - the word of a job's keeper about a covered segment: "I have its start and its end, and
 * serve them."
 *
 * It is a typed message (EIP-712), so it means nothing on another chain, to another contract, or
 * about another segment. The keeper hands it to the solver or announces it; anybody may bring it to
 * the ledger by settle. A keeper that is a contract signs in its own way (ERC-1271), which only its
 * chain can read: vouch_ask(). The embedded ledger has no contracts.
 */
#ifndef CHAIN_GAME_VOUCH_H
#define CHAIN_GAME_VOUCH_H

#include "chain/game/ledger.h"
#include "chain/keys/signer.h"

/* Handed over: the hash of the segment, then the signature. */
#define VOUCH_SIZE     (HASH32_SIZE + GAME_VOUCH_SIZE) /* of a key */
#define VOUCH_SIZE_MAX (HASH32_SIZE + GAME_VOUCH_MAX)  /* of a contract */

struct vouch {
    struct hash32 segment; /* its hash */
    size_t size;           /* of the signature */
    uint8_t signature[GAME_VOUCH_MAX];
};

MUST_CHECK enum status vouch_sign(struct vouch *vouch, const struct game_place *place,
                                  const struct hash32 *job, const struct hash32 *segment,
                                  const struct signer *keeper, struct error *error);

/* Has the keeper's key signed it, about a segment of this job? Safe on hostile input. */
MUST_CHECK enum verdict vouch_check(const struct vouch *vouch, const struct game_place *place,
                                    const struct hash32 *job, const struct address *keeper);

/* The same of a keeper that may have code: a chain is asked whether its registry would take it.
 * STATUS_REFUSED: no; another: it could not be asked. */
MUST_CHECK enum status vouch_ask(const struct vouch *vouch, struct ledger *ledger,
                                 const struct hash32 *job, const struct address *keeper,
                                 struct error *error);

/* Its bytes as they are handed over, VOUCH_SIZE_MAX at most; returns how many. */
size_t vouch_write(uint8_t *bytes, const struct vouch *vouch);
/* False: it is too short or too long, or begins like the text of an address. Whether it is
 * anybody's word, vouch_check() and vouch_ask() say. */
bool vouch_read(struct vouch *vouch, const struct game_bytes *bytes);

#endif /* CHAIN_GAME_VOUCH_H */
