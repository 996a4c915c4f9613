/*
 * keep_hand.h - hands a vouch to a solver: PUT CONTACT/vouch/HASH, where HASH is the segment's hash
 * in 64 digits and the body the vouch's bytes. And: does an own mirror answer its callers?
 */
#ifndef CLIENT_KEEPER_KEEP_HAND_H
#define CLIENT_KEEPER_KEEP_HAND_H

#include "base/http/http_reach.h"
#include "chain/game/vouch.h"

/* STATUS_REFUSED: the solver does not want it; STATUS_UNREACHABLE. */
MUST_CHECK enum status keep_hand_put(const char *contact, enum http_reach reach,
                                     const struct vouch *vouch, struct error *error);

/* Does the mirror at this address give the job file, which has so many bytes? */
bool keep_hand_answers(const char *contact, const struct digest *job, uint64_t size);

#endif /* CLIENT_KEEPER_KEEP_HAND_H */
