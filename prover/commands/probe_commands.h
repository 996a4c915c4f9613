/*
 * probe_commands.h - `lockstep prover probe`.
 */
#ifndef PROVER_COMMANDS_PROBE_COMMANDS_H
#define PROVER_COMMANDS_PROBE_COMMANDS_H

#include "base/cli/command.h"

#define PROBE_COMMANDS_OPTIONS 23
extern const struct option_spec probe_commands_options[PROBE_COMMANDS_OPTIONS];

int probe_commands_probe(struct command_context *context);

#endif /* PROVER_COMMANDS_PROBE_COMMANDS_H */
