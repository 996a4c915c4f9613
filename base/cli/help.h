/*
 * help.h - --help at 80 columns and the manual pages, made from the tables of commands. Writes to
 * the stream it is given and nothing else.
 */
#ifndef BASE_CLI_HELP_H
#define BASE_CLI_HELP_H

#include <stdio.h>

#include "base/cli/command.h"

#define HELP_COLUMNS 80

void help_program(FILE *out, const struct command_group *const *groups, size_t group_count);
void help_group(FILE *out, const struct command_group *group);
/* Without all: only the options that most people need, where a command has many. */
void help_command(FILE *out, const struct command_group *group, const struct command *command,
                  bool all);

/* The manual page of the whole program, as roff source. */
void help_man(FILE *out, const struct command_group *const *groups, size_t group_count);

/* The page of one command; name is what it is called: "lockstep-verifier-node". */
#define HELP_PAGE_NAME_MAX 96
void help_man_command(FILE *out, const struct command_group *group, const struct command *command);
void help_man_name(char name[HELP_PAGE_NAME_MAX], const struct command_group *group,
                   const struct command *command);

#endif /* BASE_CLI_HELP_H */
