/*
 * audit_report.h - the reports of `lockstep audit` as JSON: written, signed, and checked with
 * `--verify-report`.
 */
#ifndef VERIFIER_COMMANDS_AUDIT_REPORT_H
#define VERIFIER_COMMANDS_AUDIT_REPORT_H

#include "base/cli/command.h"
#include "chain/keys/signer.h"

/* Does a report at this path have to be JSON? NULL: no. */
bool audit_report_is_json(const char *path);

/* Writes the report, whole or not at all. audits: of signed_report_entry(). signer NULL: without a
 * signature. */
MUST_CHECK enum status audit_report_write(const char *path, json_t *audits,
                                          const struct signer *signer, struct error *error);

/* The whole command: the arguments are reports. Returns 0: all are signed and as they were signed;
 * 1: one was changed; 2: one is not signed, or cannot be read. */
int audit_report_verify(struct command_context *context);

#endif /* VERIFIER_COMMANDS_AUDIT_REPORT_H */
