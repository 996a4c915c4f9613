/*
 * data_show.h - `lockstep data show`.
 */
#ifndef DATA_COMMANDS_DATA_SHOW_H
#define DATA_COMMANDS_DATA_SHOW_H

#include "base/cli/command.h"

/* Of commands that read packed rows again. */
#define DATA_TOKENIZER_OPTION                                                                      \
    {                                                                                              \
        .name = "tokenizer", .heading = "data", .often = true, .kind = OPTION_TEXT,                \
        .value = "FOLDER",                                                                         \
        .help = "the tokenizer's folder, where it is no longer where the manifest says"            \
    }

#define DATA_SHOW_OPTIONS 5
extern const struct option_spec data_show_options[DATA_SHOW_OPTIONS];

int data_show_run(struct command_context *context);

#endif /* DATA_COMMANDS_DATA_SHOW_H */
