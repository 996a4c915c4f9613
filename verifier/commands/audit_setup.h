/* audit_setup.h - how an audit replays, by the options of `lockstep audit`. */
#ifndef VERIFIER_COMMANDS_AUDIT_SETUP_H
#define VERIFIER_COMMANDS_AUDIT_SETUP_H

#include "base/cli/command.h"
#include "base/io/progress.h"
#include "verifier/audit/accused.h"
#include "verifier/audit/audit.h"

/* The device and what it stands for: a name that is none is refused before any replay. All is
 * borrowed; sources has room for ACCUSED_SOURCES_MAX. */
MUST_CHECK enum status audit_setup(struct audit_options *audit_options,
                                   struct machine_options *machine, const char **sources,
                                   struct command_context *context, struct progress *progress,
                                   struct stop *stop, struct error *error);

#endif /* VERIFIER_COMMANDS_AUDIT_SETUP_H */
