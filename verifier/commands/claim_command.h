/*
 * claim_command.h - `lockstep verifier claim`: a claim by hand, followed to its verdict.
 */
#ifndef VERIFIER_COMMANDS_CLAIM_COMMAND_H
#define VERIFIER_COMMANDS_CLAIM_COMMAND_H

#include "base/cli/command.h"

#define CLAIM_COMMAND_OPTIONS 27
extern const struct option_spec claim_command_options[CLAIM_COMMAND_OPTIONS];

int claim_command(struct command_context *context);

#endif /* VERIFIER_COMMANDS_CLAIM_COMMAND_H */
