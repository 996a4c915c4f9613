/*
 * data_commands.h - `lockstep data`.
 */
#ifndef DATA_COMMANDS_DATA_COMMANDS_H
#define DATA_COMMANDS_DATA_COMMANDS_H

#include "base/cli/command.h"

extern const struct command_group data_commands;

#endif /* DATA_COMMANDS_DATA_COMMANDS_H */
