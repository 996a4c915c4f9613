/*
 * doctor_checks.h - what `lockstep doctor` says of the wallet and of the ledger, as commands
 * without options would find them. Makes nothing, unlocks nothing; asks the ledger for its newest
 * block.
 */
#ifndef CHAIN_COMMANDS_DOCTOR_CHECKS_H
#define CHAIN_COMMANDS_DOCTOR_CHECKS_H

#include "base/cli/command.h"

#define CHAIN_DOCTOR_CHECK_COUNT 2

extern const struct doctor_check chain_doctor_checks[CHAIN_DOCTOR_CHECK_COUNT];

#endif /* CHAIN_COMMANDS_DOCTOR_CHECKS_H */
