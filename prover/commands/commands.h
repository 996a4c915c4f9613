/*
 * commands.h - the solver's tables of commands, for lockstep.c.
 */
#ifndef PROVER_COMMANDS_COMMANDS_H
#define PROVER_COMMANDS_COMMANDS_H

#include "base/cli/command.h"

extern const struct command_group prover_commands;
extern const struct command_group bundle_commands;
extern const struct command_group trace_commands;

#endif /* PROVER_COMMANDS_COMMANDS_H */
