/* model_commands.h - `lockstep model`: what a model's files are. */
#ifndef CLIENT_GENERATE_MODEL_COMMANDS_H
#define CLIENT_GENERATE_MODEL_COMMANDS_H

#include "base/cli/command.h"

extern const struct command_group model_commands;

#endif /* CLIENT_GENERATE_MODEL_COMMANDS_H */
