/* audit_rounds.h - `lockstep audit FOLDER` of rounds that `lockstep job federate` made. */
#ifndef VERIFIER_COMMANDS_AUDIT_ROUNDS_H
#define VERIFIER_COMMANDS_AUDIT_ROUNDS_H

#include "base/cli/command.h"

/* Is an argument a folder of rounds? */
bool audit_rounds_wanted(const struct command_context *context);

/* The whole command. Returns 0: all are proven; 1: some is refuted; 2: of some there is no answer,
 * and none is refuted. */
int audit_rounds(struct command_context *context);

#endif /* VERIFIER_COMMANDS_AUDIT_ROUNDS_H */
