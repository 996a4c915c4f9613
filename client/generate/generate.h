/* generate.h - `lockstep generate`: a model answers. */
#ifndef CLIENT_GENERATE_GENERATE_H
#define CLIENT_GENERATE_GENERATE_H

#include "base/cli/command.h"

extern const struct command_group generate_commands;

#endif /* CLIENT_GENERATE_GENERATE_H */
