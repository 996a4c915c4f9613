/*
 * serve_commands.h - `lockstep prover serve` and `publish`, for the solver's table.
 */
#ifndef PROVER_COMMANDS_SERVE_COMMANDS_H
#define PROVER_COMMANDS_SERVE_COMMANDS_H

#include "base/cli/command.h"

#define SERVE_COMMANDS_SERVE_OPTIONS   20
#define SERVE_COMMANDS_PUBLISH_OPTIONS 7

extern const struct option_spec serve_commands_serve_options[SERVE_COMMANDS_SERVE_OPTIONS];
extern const struct option_spec serve_commands_publish_options[SERVE_COMMANDS_PUBLISH_OPTIONS];

int serve_commands_serve(struct command_context *context);
int serve_commands_publish(struct command_context *context);

#endif /* PROVER_COMMANDS_SERVE_COMMANDS_H */
