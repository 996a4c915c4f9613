/*
 * job_change.h - `lockstep job close`, `resume`, `stop` and `refuse`: what a client does about a
 * job that is on a ledger.
 */
#ifndef CLIENT_JOB_CHANGE_H
#define CLIENT_JOB_CHANGE_H

#include "base/cli/command.h"

#define JOB_CHANGE_OPTIONS 10
extern const struct option_spec job_change_options[JOB_CHANGE_OPTIONS];
/* Of those that cost money: with --yes. */
#define JOB_CHANGE_PAID_OPTIONS 11
extern const struct option_spec job_change_paid_options[JOB_CHANGE_PAID_OPTIONS];

int job_change_close(struct command_context *context);
int job_change_resume(struct command_context *context);
int job_change_stop(struct command_context *context);
int job_change_refuse(struct command_context *context);

#endif /* CLIENT_JOB_CHANGE_H */
