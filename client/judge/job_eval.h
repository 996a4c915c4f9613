/* job_eval.h - `lockstep job eval`: the figures of one state on held-out data. */
#ifndef CLIENT_JUDGE_JOB_EVAL_H
#define CLIENT_JUDGE_JOB_EVAL_H

#include "base/cli/command.h"

#define JOB_EVAL_OPTIONS 7
extern const struct option_spec job_eval_options[JOB_EVAL_OPTIONS];

int job_eval_run(struct command_context *context);

#endif /* CLIENT_JUDGE_JOB_EVAL_H */
