/*
 * help.h - everything that is told about commands, made from their tables: --help at 80 columns,
 * the manual page and the completion of bash. Writes to the stream it is given and nothing else.
 */
#ifndef BASE_HELP_H
#define BASE_HELP_H

#include <stdio.h>

#include "base/command.h"

#define HELP_COLUMNS 80

void help_program(FILE *out, const struct command_group *const *groups, size_t group_count);
void help_group(FILE *out, const struct command_group *group);
void help_command(FILE *out, const struct command_group *group, const struct command *command);

/* The manual page of the whole program, as roff source. */
void help_man(FILE *out, const struct command_group *const *groups, size_t group_count);

/* A completion script to be read by bash. */
void help_completion(FILE *out, const struct command_group *const *groups, size_t group_count);

#endif /* BASE_HELP_H */
