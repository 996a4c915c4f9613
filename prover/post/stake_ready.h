/*
 * stake_ready.h - can a job that is open be staked on now?
 *
 * Not while it is barred, while its panel is short or still gathers, nor, for a solver that names
 * owners that it knows, where another has more than a third of the panel and none of these has an
 * entry: such a panel can make true work void.
 */
#ifndef PROVER_POST_STAKE_READY_H
#define PROVER_POST_STAKE_READY_H

#include "chain/job/job_record.h"

#define STAKE_READY_TEXT 400

/* known: addresses with commas between them, or a file of one a line; NULL: any panel will do.
 * False: text says why; that changes. */
MUST_CHECK bool stake_ready(char text[STAKE_READY_TEXT], const struct job_record *record,
                            uint64_t now_s, const char *known);

#endif /* PROVER_POST_STAKE_READY_H */
