/*
 * ledger_commands.h - the commands of a solver that train nothing.
 */
#ifndef PROVER_COMMANDS_LEDGER_COMMANDS_H
#define PROVER_COMMANDS_LEDGER_COMMANDS_H

#include "base/cli/command.h"
#include "prover/post/session.h"
#include "prover/train/train.h"

#define LEDGER_COMMANDS_STATUS_OPTIONS 10
extern const struct option_spec ledger_commands_status_options[LEDGER_COMMANDS_STATUS_OPTIONS];

/* The first ones are for commit only, the last is for collect only. */
#define LEDGER_COMMANDS_COMMIT_ONLY                                                                \
    (1 + POLICY_OPTION_COUNT + POLICY_SOLVER_OPTION_COUNT + SESSION_ACCEPT_OPTION_COUNT)
#define LEDGER_COMMANDS_POST_OPTIONS (15 + LEDGER_COMMANDS_COMMIT_ONLY)
extern const struct option_spec ledger_commands_post_options[LEDGER_COMMANDS_POST_OPTIONS];

#define LEDGER_COMMANDS_RESPOND_OPTIONS 21
extern const struct option_spec ledger_commands_respond_options[LEDGER_COMMANDS_RESPOND_OPTIONS];

int ledger_commands_status(struct command_context *context);
int ledger_commands_commit(struct command_context *context);
int ledger_commands_collect(struct command_context *context);
int ledger_commands_respond(struct command_context *context);

/* Reports how a run ended. session NULL: without a ledger. */
int ledger_commands_report(struct command_context *context, struct bundle *bundle,
                           struct session *session, const struct train_result *result,
                           struct error *error);

#endif /* PROVER_COMMANDS_LEDGER_COMMANDS_H */
