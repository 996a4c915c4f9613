/*
 * audit_wire.h - what an audit came to, as bytes for another process of the same audit.
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

/* Reads one that begins where the reader stands; report as it was written. The result is released
 * whatever becomes of it. STATUS_BAD_FORMAT: these bytes are none. */
MUST_CHECK enum status audit_wire_read(struct audit_result *result, struct report *report,
                                       struct reader *reader, struct error *error);

#endif /* VERIFIER_AUDIT_AUDIT_WIRE_H */
