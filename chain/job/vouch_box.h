/*
 * vouch_box.h - vouches that were handed over, in a folder: one file for each segment, by its
 * hash.
 *
 * The server of a bundle puts them there, and its solver brings them to the ledger by settle: two
 * programs, or one, and a restart loses none. Who puts one has checked it (chain/game/vouch.h).
 */
#ifndef CHAIN_JOB_VOUCH_BOX_H
#define CHAIN_JOB_VOUCH_BOX_H

#include "chain/game/vouch.h"

#define VOUCH_BOX_NAME "vouches" /* of the folder, in a bundle's */

/* Makes the folder where there is none. One that is there is replaced: a signature may be bad. */
MUST_CHECK enum status vouch_box_put(const char *folder, const struct vouch *vouch,
                                     struct error *error);

/* STATUS_NOT_FOUND: nobody has handed one over. */
MUST_CHECK enum status vouch_box_get(struct vouch *vouch, const char *folder,
                                     const struct hash32 *segment, struct error *error);

/* A segment that is final needs none. */
void vouch_box_drop(const char *folder, const struct hash32 *segment);

#endif /* CHAIN_JOB_VOUCH_BOX_H */
