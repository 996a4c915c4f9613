/*
 * job_ledger_commands.h - inside prover/: the client's commands that speak to a ledger.
 */
#ifndef CLIENT_JOB_LEDGER_COMMANDS_H
#define CLIENT_JOB_LEDGER_COMMANDS_H

#include "base/cli/command.h"

#define JOB_OPEN_OPTIONS 25
extern const struct option_spec job_open_options[JOB_OPEN_OPTIONS];
#define JOB_LIST_OPTIONS 8
extern const struct option_spec job_list_options[JOB_LIST_OPTIONS];
#define JOB_MOVE_OPTIONS 10
extern const struct option_spec job_move_options[JOB_MOVE_OPTIONS];
#define JOB_COLLECT_OPTIONS 12
extern const struct option_spec job_collect_options[JOB_COLLECT_OPTIONS];

int job_ledger_open(struct command_context *context);
int job_ledger_list(struct command_context *context);
int job_ledger_cancel(struct command_context *context);
int job_ledger_collect(struct command_context *context);

/* 'job show' of a key; its options hold CHAIN_LEDGER_OPTIONS. */
int job_ledger_show(struct command_context *context);

#endif /* CLIENT_JOB_LEDGER_COMMANDS_H */
