/*
 * program.h - the whole program: finds the command, reads its options, runs it. "help" and
 * "doctor" are its own commands.
 */
#ifndef BASE_CLI_PROGRAM_H
#define BASE_CLI_PROGRAM_H

#include "base/cli/command.h"

/* "help" and "doctor"; lockstep.c lists it with the tables of the rooms. */
extern const struct command_group program_commands;

/* Returns the exit code. */
int program_main(const struct command_group *const *groups, size_t group_count, int argc,
                 char **argv);

#endif /* BASE_CLI_PROGRAM_H */
