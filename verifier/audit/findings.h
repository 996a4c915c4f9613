/*
 * findings.h - what an audit of several parts found: sentences, by what they say of the parts.
 */
#ifndef VERIFIER_AUDIT_FINDINGS_H
#define VERIFIER_AUDIT_FINDINGS_H

#include <jansson.h>

#include "base/sheet/sheet.h"
#include "verifier/audit/audit.h"

enum finding {
    FINDING_PROVEN = 0,
    FINDING_REFUTED,
    FINDING_NOT_TOLD,
    FINDING_TRUSTED,
    FINDING_MISSING,
    FINDING_KINDS,
};

struct findings {
    json_t *lists[FINDING_KINDS]; /* of sentences, or of objects with "file" and "says" */
};

MUST_CHECK enum status findings_init(struct findings *findings, struct error *error);
void findings_release(struct findings *findings); /* a zero-filled one is allowed */

/* Adds a sentence about a file; path NULL: about no file alone. */
void findings_say(struct findings *findings, enum finding kind, const char *path,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What a failure says of a file: bytes that are wrong refute it, others leave it open. */
enum finding findings_of(const struct error *error);

enum audit_answer findings_answer(const struct findings *findings);

/* The lists by their names, for programs; for people, from the worst on. */
void findings_facts(json_t *facts, const struct findings *findings);
void findings_show(struct sheet *sheet, const struct findings *findings, enum finding kind);

/* A text of any bytes as JSON: what is no UTF-8 becomes question marks. */
json_t *findings_text(const char *text);

#endif /* VERIFIER_AUDIT_FINDINGS_H */
