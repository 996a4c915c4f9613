/*
 * rounds_audit.h - is a training by rounds what its records say? From headers and states, offline.
 *
 * Of each round: the record belongs to this agreement and follows the record before it; it names
 * all owners, in their order; the job of each is the given one, begun with the mean before; the
 * state of each has the root that the record says; the mean is of these states, in this order, and
 * its step is run again; the next round begins with it. An owner that is left out has a reason, and
 * the quorum holds. Bundles of owners that lie in the folder are run again too.
 *
 * That a state is the one that a job came to is the ledger's word, where there is a ledger: it is
 * taken on trust, or asked, as is the reason for which an owner is left out.
 */
#ifndef VERIFIER_ROUNDS_ROUNDS_AUDIT_H
#define VERIFIER_ROUNDS_ROUNDS_AUDIT_H

#include "chain/game/ledger.h"
#include "verifier/audit/audit.h"
#include "verifier/rounds/rounds_result.h"

/* Audits the folder; options: how steps are run again. ledger: asked too; NULL: nobody is. A
 * failure is none of the folder's. Release the findings also then. */
MUST_CHECK enum status rounds_audit_run(struct rounds_result *result, const char *folder,
                                        const struct audit_options *options, struct ledger *ledger,
                                        struct error *error);

#endif /* VERIFIER_ROUNDS_ROUNDS_AUDIT_H */
