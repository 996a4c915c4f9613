/*
 * ask_turns.h - whose turn it is, where many parties ask one machine.
 *
 * Each party has one query that waits. The one whose last turn is longest ago comes next, and each
 * has so many turns at once and so many a second. So a party that floods the machine waits for the
 * others.
 *
 * Many threads may take turns at once.
 */
#ifndef PROVER_SERVE_ASK_TURNS_H
#define PROVER_SERVE_ASK_TURNS_H

#include <stdint.h>

#include "base/error.h"
#include "chain/codec/address.h"

#define ASK_TURNS_PARTIES_MAX 256  /* that are remembered */
#define ASK_TURNS_SHARE       1024 /* turns of a party at once, */
#define ASK_TURNS_SHARE_S     2    /* and how many more in each second */

struct ask_turns;
struct ask_turns_party;

MUST_CHECK enum status ask_turns_open(struct ask_turns **turns, struct error *error);
void ask_turns_close(struct ask_turns *turns); /* NULL is fine */

/* *party: waits from now on. account: zero is anybody; all of them are one party, without a share.
 * STATUS_OVER_LIMIT: it waits already, or had its share. */
MUST_CHECK enum status ask_turns_enter(struct ask_turns *turns, struct ask_turns_party **party,
                                       const struct address *account, struct error *error);

/* Returns when it is the party's turn, which lasts until ask_turns_leave(). STATUS_OVER_LIMIT: it
 * was not within so many seconds, and the party waits no more. */
MUST_CHECK enum status ask_turns_wait(struct ask_turns *turns, struct ask_turns_party *party,
                                      uint32_t seconds, struct error *error);
void ask_turns_leave(struct ask_turns *turns, struct ask_turns_party *party);

#endif /* PROVER_SERVE_ASK_TURNS_H */
