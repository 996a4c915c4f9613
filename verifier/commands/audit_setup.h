/* audit_setup.h - how an audit replays, by the options of `lockstep audit`. */
#ifndef VERIFIER_COMMANDS_AUDIT_SETUP_H
#define VERIFIER_COMMANDS_AUDIT_SETUP_H

#include "base/cli/command.h"
#include "base/io/progress.h"
#include "chain/game/ledger.h"
#include "verifier/audit/accused.h"
#include "verifier/audit/audit.h"

/* The device and what it stands for: a name that is none is refused before any replay. All is
 * borrowed; sources has room for ACCUSED_SOURCES_MAX. */
MUST_CHECK enum status audit_setup(struct audit_options *audit_options,
                                   struct machine_options *machine, const char **sources,
                                   struct command_context *context, struct progress *progress,
                                   struct stop *stop, struct error *error);

/* --transactions: the ledger that is asked too; none without it. */
MUST_CHECK enum status audit_open_ledger(struct ledger **ledger,
                                         const struct command_context *context,
                                         struct error *error);

/* The exit code of an answer. */
int audit_code_of(enum audit_answer answer);
/* Of two: refuted beats cannot tell, which beats proven. */
int audit_worse_code(int a, int b);
/* Reports a failure, which is no finding. */
int audit_fail(struct command_context *context, const struct error *error);

#endif /* VERIFIER_COMMANDS_AUDIT_SETUP_H */
