/*
 * ranks_tcp.h - the exchange of ranks over TCP: one connection for each two of them.
 *
 * A message whose HMAC is wrong is dropped and counted. While a rank waits for its next word, the
 * system's probes find a machine that is gone in about a minute.
 */
#ifndef PROVER_RANKS_RANKS_TCP_H
#define PROVER_RANKS_RANKS_TCP_H

#include "prover/ranks/ranks_team.h"

/* No rank is there yet: ranks_meet.h connects them. */
MUST_CHECK enum status ranks_tcp_open(struct ranks_team *team, uint32_t rank, uint32_t rank_count,
                                      struct error *error);

#endif /* PROVER_RANKS_RANKS_TCP_H */
