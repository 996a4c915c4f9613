/*
 * node_commands.h - `lockstep prover node` and `prover status`: a solver that takes work by itself.
 */
#ifndef PROVER_COMMANDS_NODE_COMMANDS_H
#define PROVER_COMMANDS_NODE_COMMANDS_H

#include "prover/post/session.h"

#define NODE_COMMANDS_NODE_OPTIONS                                                                 \
    (17 + CHAIN_LEDGER_OPTION_COUNT + SESSION_WALLET_OPTION_COUNT + POLICY_OPTION_COUNT +          \
     POLICY_SOLVER_OPTION_COUNT + SESSION_ACCEPT_OPTION_COUNT)
extern const struct option_spec node_commands_node_options[NODE_COMMANDS_NODE_OPTIONS];

#define NODE_COMMANDS_STATUS_OPTIONS 1
extern const struct option_spec node_commands_status_options[NODE_COMMANDS_STATUS_OPTIONS];

/* For `lockstep doctor`: what the node would take, beside its policy on terms. */
#define NODE_COMMANDS_CHECK_COUNT 2
extern const struct doctor_check node_commands_checks[NODE_COMMANDS_CHECK_COUNT];

int node_commands_node(struct command_context *context);
int node_commands_status(struct command_context *context);

#endif /* PROVER_COMMANDS_NODE_COMMANDS_H */
