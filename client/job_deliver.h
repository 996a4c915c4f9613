/*
 * job_deliver.h - `lockstep job acknowledge`, `ask-panel` and `rewind`: what a client does about
 * the states that it paid for.
 */
#ifndef CLIENT_JOB_DELIVER_H
#define CLIENT_JOB_DELIVER_H

#include "base/cli/command.h"

#define JOB_DELIVER_OPTIONS 10
extern const struct option_spec job_deliver_options[JOB_DELIVER_OPTIONS];
#define JOB_DELIVER_REWIND_OPTIONS 12
extern const struct option_spec job_deliver_rewind_options[JOB_DELIVER_REWIND_OPTIONS];

int job_deliver_acknowledge(struct command_context *context);
int job_deliver_ask_panel(struct command_context *context);
int job_deliver_rewind(struct command_context *context);

#endif /* CLIENT_JOB_DELIVER_H */
