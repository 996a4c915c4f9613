/*
 * audit_views.h - the result of an audit, as text and as JSON.
 */
#ifndef VERIFIER_AUDIT_AUDIT_VIEWS_H
#define VERIFIER_AUDIT_AUDIT_VIEWS_H

#include <jansson.h>

#include "base/io/file.h"
#include "base/sheet/sheet.h"
#include "verifier/audit/audit.h"

/* One bundle. */
struct audit_view {
    const char *path;
    struct audit_result result;
    char evidence[FILE_PATH_MAX]; /* path of the evidence file; "": there is none */
};

/* Writes the evidence of a refuted bundle into folder, under a name that follows from job and step;
 * a failure is noted in the fault location. */
void audit_view_keep(struct audit_view *view, const char *folder);

json_t *audit_view_json(const struct audit_view *view); /* NULL: no memory */
void audit_view_show(struct sheet *sheet, const struct audit_view *view);

#endif /* VERIFIER_AUDIT_AUDIT_VIEWS_H */
