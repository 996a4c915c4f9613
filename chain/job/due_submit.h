/*
 * due_submit.h - sends a due move to the ledger.
 *
 * The name of a move follows from what it is about, so programs with one key send it once.
 */
#ifndef CHAIN_JOB_DUE_SUBMIT_H
#define CHAIN_JOB_DUE_SUBMIT_H

#include "chain/job/due_moves.h"

MUST_CHECK enum status due_submit(char name[LEDGER_NAME_MAX], struct ledger *ledger,
                                  const struct job_record *record, const struct due_move *move,
                                  struct error *error);

#endif /* CHAIN_JOB_DUE_SUBMIT_H */
