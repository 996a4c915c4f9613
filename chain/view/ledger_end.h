/* ledger_end.h - how the try of an owner in a round ended, by the events of its job. */
#ifndef CHAIN_VIEW_LEDGER_END_H
#define CHAIN_VIEW_LEDGER_END_H

#include "chain/job/job_record.h"
#include "proofs/rounds/round_record.h"

/* Is the last segment final? */
bool ledger_end_is_final(const struct job_record *record);

/* What ails the job; NONE: nothing, it goes its way or is final. A job whose solver was convicted
 * or late waits for another one, until its deadline. */
enum round_end ledger_end_trouble(const struct job_record *record);

/* The chain and the registry of a ledger, as an agreement names its place. */
void ledger_end_place(char place[ROUNDS_PLACE_MAX + 1], const struct ledger *ledger);

#endif /* CHAIN_VIEW_LEDGER_END_H */
