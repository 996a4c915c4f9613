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

#include "prover/ranks/ranks_team.h"

#define RANKS_BYTE_ORDER   0x01020304u
#define RANKS_VERSION_SIZE 64

enum {
    RANKS_TAG_HAVE = 0x4841,
    RANKS_TAG_VERDICT = 0x5645,
};

/* What a rank has, and what rank 0 says: as it lies in memory, which byte_order tells. */
struct ranks_word {
    uint32_t byte_order;
    uint32_t status;
    struct digest job;
    char version[RANKS_VERSION_SIZE];
    char text[ERROR_TEXT_MAX];
    char advice[ERROR_ADVICE_MAX];
};

/* own: STATUS_OK, or why this rank cannot begin, which is returned then. Afterwards all messages
 * carry the job's id. */
MUST_CHECK enum status ranks_agree(struct ranks_team *team, const struct digest *job,
                                   enum status own, struct error *error);

#endif /* PROVER_RANKS_RANKS_AGREE_H */
