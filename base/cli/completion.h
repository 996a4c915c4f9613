/*
 * completion.h - completion scripts for bash, zsh and fish, made from the tables of commands.
 * Writes to the stream it is given and nothing else.
 */
#ifndef BASE_CLI_COMPLETION_H
#define BASE_CLI_COMPLETION_H

#include <stdio.h>

#include "base/cli/command.h"

void completion_bash(FILE *out, const struct command_group *const *groups, size_t group_count);
void completion_zsh(FILE *out, const struct command_group *const *groups, size_t group_count);
void completion_fish(FILE *out, const struct command_group *const *groups, size_t group_count);

#endif /* BASE_CLI_COMPLETION_H */
