/*
 * ranks_meet.h - how the ranks of a run find each other over TCP, and know that all hold one
 * secret.
 *
 * Rank 0 listens. The others call it, answer its challenge under the secret, and are told where the
 * rest are; then each two connect in the same way. A caller without the secret is dropped and
 * counted. All messages after that are sealed with a key of this meeting alone, so what was sent in
 * another one is worth nothing.
 */
#ifndef PROVER_RANKS_RANKS_MEET_H
#define PROVER_RANKS_RANKS_MEET_H

#include "prover/ranks/ranks_team.h"

#define RANKS_PLACE_MAX 256 /* "node7.cluster:7590" as text */

/* Listens at "HOST:PORT": at an address of this machine, or at all of them where HOST is a name;
 * port 0: any that is free. *at: the place as the other
 * ranks call it. */
MUST_CHECK enum status ranks_meet_listen(int *listener, char at[RANKS_PLACE_MAX], const char *place,
                                         struct error *error);

/* Of rank 0: borrows the listener. stop: a descriptor that becomes readable to end the wait; -1:
 * none. */
MUST_CHECK enum status ranks_meet_all(struct ranks_team *team, int listener, const char *secret,
                                      int stop, struct error *error);

/* Of every other rank: at is rank 0's place, with a name or an address. */
MUST_CHECK enum status ranks_meet_call(struct ranks_team *team, const char *at, const char *secret,
                                       struct error *error);

#endif /* PROVER_RANKS_RANKS_MEET_H */
