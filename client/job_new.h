/*
 * job_new.h - `lockstep job new`, and `job show` of a file.
 */
#ifndef CLIENT_JOB_NEW_H
#define CLIENT_JOB_NEW_H

#include "base/cli/command.h"

#define JOB_NEW_SHOW_OPTIONS 10
extern const struct option_spec job_new_show_options[JOB_NEW_SHOW_OPTIONS];

int job_new_run(struct command_context *context);
int job_new_show(struct command_context *context); /* a file, or the key of a job on a ledger */

#endif /* CLIENT_JOB_NEW_H */
