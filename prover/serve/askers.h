/*
 * askers.h - who may ask about the trace of a bundle that is staked on a ledger, and about what;
 * and whose vouches are taken in.
 *
 * Asked may be only about a step that an open claim or alarm is about, by a party of the job: its
 * client, its panel, its solver, and the claimants that lead such a claim or have joined it. So
 * nobody gets the leaves of a verdict without the work, and strangers cost the solver nothing.
 *
 * Many threads may ask at once.
 */
#ifndef PROVER_SERVE_ASKERS_H
#define PROVER_SERVE_ASKERS_H

#include "chain/game/ask.h"
#include "chain/game/ledger.h"
#include "chain/game/vouch.h"

struct askers;

/* options without a signer; what they borrow must last. A ledger that is away now is tried again
 * with each ask. */
MUST_CHECK enum status askers_open(struct askers **askers, const struct ledger_options *options,
                                   const struct hash32 *job, struct error *error);
void askers_close(struct askers *askers); /* NULL is fine */

/* Reads what is new on the ledger. Trouble waits for the next time. */
void askers_follow(struct askers *askers);

/*
 * Whose ask is it? text: as chain/game/ask.h writes it, NULL where there is none; step: of the job.
 * STATUS_REFUSED says why it is not answered, STATUS_UNREACHABLE: nobody can tell now.
 */
MUST_CHECK enum status askers_admit(struct askers *askers, struct address *party, const char *text,
                                    uint64_t step, uint64_t now_s, struct error *error);

/* Has the keeper of the job signed it, about a segment that is not final? STATUS_REFUSED
 * and STATUS_UNREACHABLE as above. */
MUST_CHECK enum status askers_admit_vouch(struct askers *askers, const struct vouch *vouch,
                                          struct error *error);

#endif /* PROVER_SERVE_ASKERS_H */
