/*
 * plan_commands.h - `lockstep verifier plan`.
 */
#ifndef VERIFIER_COMMANDS_PLAN_COMMANDS_H
#define VERIFIER_COMMANDS_PLAN_COMMANDS_H

#include "base/cli/command.h"

#define PLAN_COMMAND_OPTIONS 27
extern const struct option_spec plan_command_options[PLAN_COMMAND_OPTIONS];

int plan_command(struct command_context *context);

#endif /* VERIFIER_COMMANDS_PLAN_COMMANDS_H */
