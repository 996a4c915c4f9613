/*
 * job_open.h - `lockstep job open`: puts a job on a ledger, with the money for its solver.
 */
#ifndef CLIENT_JOB_OPEN_H
#define CLIENT_JOB_OPEN_H

#include "base/cli/command.h"
#include "client/job_terms.h"

#define JOB_OPEN_OPTIONS (13 + JOB_TERMS_OPTION_COUNT)
extern const struct option_spec job_open_options[JOB_OPEN_OPTIONS];

int job_open_run(struct command_context *context);

#endif /* CLIENT_JOB_OPEN_H */
