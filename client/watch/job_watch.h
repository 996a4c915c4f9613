/*
 * job_watch.h - `lockstep job watch`: one job, live: its curve, its segments, its money, and what
 * it waits for.
 */
#ifndef CLIENT_WATCH_JOB_WATCH_H
#define CLIENT_WATCH_JOB_WATCH_H

#include "base/cli/command.h"

#define JOB_WATCH_OPTIONS 15
extern const struct option_spec job_watch_options[JOB_WATCH_OPTIONS];

int job_watch_run(struct command_context *context);

#endif /* CLIENT_WATCH_JOB_WATCH_H */
