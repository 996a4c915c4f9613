/*
 * run_by_key.h - `lockstep prover run KEY` and `probe KEY`: job file and data of a job on a ledger
 * are fetched, and it goes on as if they had been named.
 */
#ifndef PROVER_COMMANDS_RUN_BY_KEY_H
#define PROVER_COMMANDS_RUN_BY_KEY_H

#include "base/cli/command.h"

/* Is the first argument the key of a job, and no file? */
bool run_by_key_wanted(const struct command_context *context);

/* Calls run with the options of context, and with those that name the files. Data and a first state
 * of more than data_most bytes are refused before any is fetched. takes_state: the command has
 * --first-state; else the state is there for the next one. Returns the exit code. */
int run_by_key(struct command_context *context, int (*run)(struct command_context *context),
               uint64_t data_most, bool takes_state);

#endif /* PROVER_COMMANDS_RUN_BY_KEY_H */
