/*
 * commands.h - the table of the client's commands, for lockstep.c.
 */
#ifndef CLIENT_COMMANDS_H
#define CLIENT_COMMANDS_H

#include "base/cli/command.h"

extern const struct command_group job_commands;

#endif /* CLIENT_COMMANDS_H */
