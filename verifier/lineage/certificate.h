/*
 * certificate.h - what a lineage found, as one sheet: for text, for --json and for a page.
 *
 * It says what was proven, what was refuted, what could not be told, what is taken on trust and
 * what is missing, with the held-out figures, and each file by its SHA-256 and our root. It has
 * no time and no name of a machine: the same files have the same certificate. docs/FORMATS.md,
 * section 16.
 */
#ifndef VERIFIER_LINEAGE_CERTIFICATE_H
#define VERIFIER_LINEAGE_CERTIFICATE_H

#include "base/sheet/sheet.h"
#include "verifier/lineage/lineage.h"

#define CERTIFICATE_FORMAT 1

/* Its facts alone; NULL: no memory. */
json_t *certificate_facts(const struct lineage *lineage);

void certificate_sheet(struct sheet *sheet, const struct lineage *lineage);

/* A page of it, whole or not at all. */
MUST_CHECK enum status certificate_page(const char *path, const struct lineage *lineage,
                                        struct error *error);

#endif /* VERIFIER_LINEAGE_CERTIFICATE_H */
