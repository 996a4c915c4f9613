/*
 * signed_report.h - a report of audits as JSON that stands alone: its author may sign it, and
 * anybody who has the text can check that not a byte was changed.
 *
 * The text is canonical: keys sorted, two blanks of indentation, a line feed at the end. The
 * signature covers all of it but itself. docs/FORMATS.md, section 12.
 */
#ifndef VERIFIER_AUDIT_SIGNED_REPORT_H
#define VERIFIER_AUDIT_SIGNED_REPORT_H

#include <jansson.h>

#include "base/buffer.h"
#include "chain/game/ledger.h"
#include "chain/keys/signer.h"
#include "verifier/audit/audit_views.h"

#define SIGNED_REPORT_SIZE_MAX (16u << 20)

/* What is said of one bundle: the result, its job, and the state at its end; where a ledger is
 * asked, its transactions, or why there are none. NULL: no memory. The bundle may be NULL, when it
 * could not be opened, and the ledger. */
json_t *signed_report_entry(struct audit_view *view, struct bundle *bundle, struct ledger *ledger);

/* Appends the text of a report on these audits, a JSON array. signer NULL: it is not signed. */
MUST_CHECK enum status signed_report_write(struct buffer *text, json_t *audits, const char *date,
                                           const struct signer *signer, struct error *error);

/*
 * Reads a report from anywhere. *signer is zero where it is not signed. STATUS_BAD_FORMAT: the text
 * is no report, or not the canonical text; STATUS_REFUSED: the signature is not the signer's.
 */
MUST_CHECK enum status signed_report_read(json_t **report, struct address *signer, const void *text,
                                          size_t size, struct error *error);

#endif /* VERIFIER_AUDIT_SIGNED_REPORT_H */
