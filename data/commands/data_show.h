/*
 * data_show.h - `lockstep data show`.
 */
#ifndef DATA_COMMANDS_DATA_SHOW_H
#define DATA_COMMANDS_DATA_SHOW_H

#include "base/cli/command.h"

#define DATA_SHOW_OPTIONS 5
extern const struct option_spec data_show_options[DATA_SHOW_OPTIONS];

int data_show_run(struct command_context *context);

#endif /* DATA_COMMANDS_DATA_SHOW_H */
