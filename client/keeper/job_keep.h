/*
 * job_keep.h - `lockstep job keep`: the keeper of a job as a service; and the same beside what
 * `job serve` serves.
 */
#ifndef CLIENT_KEEPER_JOB_KEEP_H
#define CLIENT_KEEPER_JOB_KEEP_H

#include "base/io/notify.h"
#include "chain/view/job_page.h"
#include "client/keeper/keeper.h"

#define JOB_KEEP_OPTIONS 22
extern const struct option_spec job_keep_options[JOB_KEEP_OPTIONS];

int job_keep_run(struct command_context *context);

#endif /* CLIENT_KEEPER_JOB_KEEP_H */
