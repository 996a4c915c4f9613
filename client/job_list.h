/*
 * job_list.h - `lockstep job list`, and `job show` of a job on a ledger.
 */
#ifndef CLIENT_JOB_LIST_H
#define CLIENT_JOB_LIST_H

#include "client/job_policy.h"

#define JOB_LIST_OPTIONS (10 + JOB_POLICY_OPTION_COUNT)
extern const struct option_spec job_list_options[JOB_LIST_OPTIONS];

int job_list_run(struct command_context *context);

/* Needs CHAIN_LEDGER_OPTIONS; the argument is a key. */
int job_list_show(struct command_context *context);

#endif /* CLIENT_JOB_LIST_H */
