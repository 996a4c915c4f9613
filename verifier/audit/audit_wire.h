/*
 * audit_wire.h - the result of an audit, as bytes for another process of the same audit.
 */
#ifndef VERIFIER_AUDIT_AUDIT_WIRE_H
#define VERIFIER_AUDIT_AUDIT_WIRE_H

#include "base/buffer.h"
#include "base/reader.h"
#include "verifier/audit/report.h"

#define AUDIT_WIRE_EVIDENCE_MAX (UINT64_C(256) << 20)

/* Appends. report NULL: none is wanted. */
void audit_wire_write(struct buffer *bytes, const struct audit_result *result,
                      const struct report *report);

/* Reads the next one; report NULL exactly when it was written without. Release result on any
 * status. */
MUST_CHECK enum status audit_wire_read(struct audit_result *result, struct report *report,
                                       struct reader *reader, struct error *error);

#endif /* VERIFIER_AUDIT_AUDIT_WIRE_H */
