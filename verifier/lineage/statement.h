/*
 * statement.h - a proven lineage as an in-toto statement: the model's files as subjects, and a SLSA
 * provenance that names base, data and tokenizer. docs/FORMATS.md, section 16.
 */
#ifndef VERIFIER_LINEAGE_STATEMENT_H
#define VERIFIER_LINEAGE_STATEMENT_H

#include "base/buffer.h"
#include "verifier/lineage/lineage.h"

#define STATEMENT_MEDIA    "application/vnd.in-toto+json" /* what an envelope calls it */
#define STATEMENT_SIZE_MAX (16u << 20)

/* Appends it, keys sorted, without blanks: the same files have the same statement. STATUS_REFUSED:
 * the lineage is not proven, or has no model whose files could be subjects. */
MUST_CHECK enum status statement_write(struct buffer *text, const struct lineage *lineage,
                                       struct error *error);

#endif /* VERIFIER_LINEAGE_STATEMENT_H */
