/*
 * own_address.h - does the address that a solver's node announces give what it serves?
 *
 * Asked from here, now and then, as a verifier asks. A router may lead nobody back to his own
 * address, so an answer that does not come is said, and refuses nothing.
 */
#ifndef PROVER_NODE_OWN_ADDRESS_H
#define PROVER_NODE_OWN_ADDRESS_H

#include "base/io/log.h"
#include "proofs/job/job.h"

#define OWN_ADDRESS_TEXT 400

struct own_address {
    uint64_t next_ms;               /* when it is asked next; 0: at once */
    char trouble[OWN_ADDRESS_TEXT]; /* empty: it answered, or was not asked yet */
};

/* Asks for the job file of a job that is served, where it is time. Says in the log what changed. */
void own_address_ask(struct own_address *own, const char *address, const struct job *job,
                     uint64_t now_ms, const struct log *log);

#endif /* PROVER_NODE_OWN_ADDRESS_H */
