/*
 * serve_commands.h - `lockstep prover serve` and `publish`, for the solver's table.
 */
#ifndef PROVER_COMMANDS_SERVE_COMMANDS_H
#define PROVER_COMMANDS_SERVE_COMMANDS_H

#include "base/cli/command.h"

#define SERVE_OPTION_COUNT   13
#define PUBLISH_OPTION_COUNT 7

extern const struct option_spec serve_options_table[SERVE_OPTION_COUNT];
extern const struct option_spec publish_options_table[PUBLISH_OPTION_COUNT];

int run_serve(struct command_context *context);
int run_publish(struct command_context *context);

#endif /* PROVER_COMMANDS_SERVE_COMMANDS_H */
