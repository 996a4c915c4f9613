/*
 * audit_evidence.h - `lockstep audit --evidence`: judges portable evidence files by themselves.
 *
 * A file shows that somebody committed to a step that contradicts itself. That the accused posted
 * those roots is what a ledger knows: the answer names them, for whoever wants to compare.
 */
#ifndef VERIFIER_COMMANDS_AUDIT_EVIDENCE_H
#define VERIFIER_COMMANDS_AUDIT_EVIDENCE_H

#include "base/cli/command.h"

/* The command's whole work: the arguments are evidence files. 1: some file convicts; 2: some file
 * proves nothing; 0: all are sound and show nothing wrong. */
int audit_evidence(struct command_context *context);

#endif /* VERIFIER_COMMANDS_AUDIT_EVIDENCE_H */
