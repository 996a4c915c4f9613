/*
 * job_open.h - `lockstep job open` and `cancel`: the moves of a client.
 */
#ifndef CLIENT_JOB_OPEN_H
#define CLIENT_JOB_OPEN_H

#include "base/cli/command.h"

#define JOB_OPEN_OPTIONS 26
extern const struct option_spec job_open_options[JOB_OPEN_OPTIONS];
#define JOB_OPEN_CANCEL_OPTIONS 10
extern const struct option_spec job_open_cancel_options[JOB_OPEN_CANCEL_OPTIONS];

int job_open_run(struct command_context *context);
int job_open_cancel(struct command_context *context);

#endif /* CLIENT_JOB_OPEN_H */
