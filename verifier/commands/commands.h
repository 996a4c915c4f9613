/*
 * commands.h - the verifier's tables of commands, for the front door.
 */
#ifndef VERIFIER_COMMANDS_COMMANDS_H
#define VERIFIER_COMMANDS_COMMANDS_H

#include "base/cli/command.h"

extern const struct command_group audit_commands;
extern const struct command_group verifier_commands;
extern const struct command_group watch_commands;

#endif /* VERIFIER_COMMANDS_COMMANDS_H */
