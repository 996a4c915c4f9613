/*
 * federate.h - `lockstep job federate`: a training by rounds of many owners, each with a job on its
 * own rows, whose last states are averaged.
 */
#ifndef CLIENT_FEDERATE_FEDERATE_H
#define CLIENT_FEDERATE_FEDERATE_H

#include "base/cli/command.h"

#define FEDERATE_OPTIONS 27
extern const struct option_spec federate_options[FEDERATE_OPTIONS];

int federate_run(struct command_context *context);

#endif /* CLIENT_FEDERATE_FEDERATE_H */
