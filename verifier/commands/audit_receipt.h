/*
 * audit_receipt.h - `lockstep audit RECEIPT... --base FOLDER`: is an answer what the model gives?
 *
 * One step of the model over each receipt's row decides it (proofs/receipt/receipt_check.h).
 */
#ifndef VERIFIER_COMMANDS_AUDIT_RECEIPT_H
#define VERIFIER_COMMANDS_AUDIT_RECEIPT_H

#include "base/cli/command.h"

/* Is an argument a receipt, or --base given? */
bool audit_receipt_wanted(const struct command_context *context);

/* The whole command. Returns 0: all are proven; 1: some is refuted; 2: of some there is no answer,
 * and none is refuted. */
int audit_receipts(struct command_context *context);

#endif /* VERIFIER_COMMANDS_AUDIT_RECEIPT_H */
