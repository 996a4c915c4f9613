/*
 * job_collect.h - `lockstep job collect`: makes due moves and withdraws.
 */
#ifndef CLIENT_JOB_COLLECT_H
#define CLIENT_JOB_COLLECT_H

#include "base/cli/command.h"

#define JOB_COLLECT_OPTIONS 12
extern const struct option_spec job_collect_options[JOB_COLLECT_OPTIONS];

int job_collect_run(struct command_context *context);

#endif /* CLIENT_JOB_COLLECT_H */
