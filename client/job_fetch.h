/*
 * job_fetch.h - `lockstep job fetch`: the trained model, checked against the root on the ledger;
 * and `lockstep job check`: is a lone file such a state?
 */
#ifndef CLIENT_JOB_FETCH_H
#define CLIENT_JOB_FETCH_H

#include "base/cli/command.h"

#define JOB_FETCH_OPTIONS 16
extern const struct option_spec job_fetch_options[JOB_FETCH_OPTIONS];
#define JOB_FETCH_CHECK_OPTIONS 10
extern const struct option_spec job_fetch_check_options[JOB_FETCH_CHECK_OPTIONS];

int job_fetch_run(struct command_context *context);
int job_fetch_check(struct command_context *context);

#endif /* CLIENT_JOB_FETCH_H */
