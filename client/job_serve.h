/*
 * job_serve.h - `lockstep job serve`: offers a job file and its data to solvers and verifiers, and
 * takes in what solvers push.
 */
#ifndef CLIENT_JOB_SERVE_H
#define CLIENT_JOB_SERVE_H

#include "base/cli/command.h"

#define JOB_SERVE_OPTIONS 29
extern const struct option_spec job_serve_options[JOB_SERVE_OPTIONS];

int job_serve_run(struct command_context *context);

#endif /* CLIENT_JOB_SERVE_H */
