/*
 * ranks_agree.h - before the first step, the ranks make sure that they train one job with one
 * program on one data.
 *
 * Every rank but the first says what it has, or why it cannot: its data are not the job's, its
 * machine has no memory. Rank 0 compares, and tells all the same: they begin, or which rank differs
 * in what.
 */
#ifndef PROVER_RANKS_RANKS_AGREE_H
#define PROVER_RANKS_RANKS_AGREE_H

#include "prover/ranks/ranks_tcp.h"

/* own: STATUS_OK, or why this rank cannot begin, which is returned then. Afterwards all messages
 * carry the job's id. */
MUST_CHECK enum status ranks_agree(struct ranks_tcp *tcp, const struct digest *job,
                                   enum status own, struct error *error);

#endif /* PROVER_RANKS_RANKS_AGREE_H */
