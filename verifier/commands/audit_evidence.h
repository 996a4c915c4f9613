/*
 * audit_evidence.h - `lockstep audit --verify-evidence`: judges portable evidence files by themselves.
 *
 * A file shows that a committed step contradicts itself. Only a ledger knows whether the accused
 * posted those roots: the answer names them, so that anybody can compare.
 */
#ifndef VERIFIER_COMMANDS_AUDIT_EVIDENCE_H
#define VERIFIER_COMMANDS_AUDIT_EVIDENCE_H

#include "base/cli/command.h"

/* The whole command: the arguments are evidence files. Returns 1: some file convicts; 2: some file
 * proves nothing; 0: all are sound and show nothing wrong. */
int audit_evidence(struct command_context *context);

#endif /* VERIFIER_COMMANDS_AUDIT_EVIDENCE_H */
