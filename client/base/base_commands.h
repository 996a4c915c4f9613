/* base_commands.h - `lockstep base`: a published folder, made ready for a training. */
#ifndef CLIENT_BASE_BASE_COMMANDS_H
#define CLIENT_BASE_BASE_COMMANDS_H

#include "base/cli/command.h"

extern const struct command_group base_commands;

#endif /* CLIENT_BASE_BASE_COMMANDS_H */
