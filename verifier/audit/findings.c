/* findings.c - see findings.h. */
#include "verifier/audit/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"

static const struct {
    const char *name;
    const char *heading;
} kinds[FINDING_KINDS] = {
    [FINDING_PROVEN] = {"proven", "Proven"},
    [FINDING_REFUTED] = {"refuted", "Refuted"},
    [FINDING_NOT_TOLD] = {"not_told", "Not told"},
    [FINDING_TRUSTED] = {"trusted", "Taken on trust"},
    [FINDING_MISSING] = {"missing", "Missing"},
};

json_t *findings_text(const char *text)
{
    json_t *json = json_string(text);
    char *copy = json == NULL ? strdup(text) : NULL;

    for (char *at = copy; at != NULL && *at != '\0'; at++) {
        *at = (unsigned char)*at < 0x80 ? *at : '?';
    }
    json = copy == NULL ? json : json_string(copy);
    free(copy);
    return json;
}

enum status findings_init(struct findings *findings, struct error *error)
{
    bool made = true;

    for (size_t i = 0; i < FINDING_KINDS; i++) {
        findings->lists[i] = json_array();
        made &= findings->lists[i] != NULL;
    }
    return made ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "no memory for an audit");
}

void findings_release(struct findings *findings)
{
    for (size_t i = 0; i < FINDING_KINDS; i++) {
        json_decref(findings->lists[i]);
        findings->lists[i] = NULL;
    }
}

void findings_say(struct findings *findings, enum finding kind, const char *path,
                  const char *format, ...)
{
    char text[ERROR_TEXT_MAX + ERROR_ADVICE_MAX];
    va_list arguments;
    json_t *says;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    says = findings_text(text);
    (void)json_array_append_new(
        findings->lists[kind],
        path == NULL ? says : json_pack("{s:o, s:o}", "file", findings_text(path), "says", says));
}

enum finding findings_of(const struct error *error)
{
    return error->status == STATUS_BAD_FORMAT || error->status == STATUS_REFUSED ||
                   error->status == STATUS_OVER_LIMIT
               ? FINDING_REFUTED
               : FINDING_NOT_TOLD;
}

enum audit_answer findings_answer(const struct findings *findings)
{
    if (json_array_size(findings->lists[FINDING_REFUTED]) > 0) {
        return AUDIT_REFUTED;
    }
    return json_array_size(findings->lists[FINDING_NOT_TOLD]) > 0 ||
                   json_array_size(findings->lists[FINDING_PROVEN]) == 0
               ? AUDIT_CANNOT_TELL
               : AUDIT_PROVEN;
}

void findings_facts(json_t *facts, const struct findings *findings)
{
    for (size_t i = 0; i < FINDING_KINDS; i++) {
        (void)json_object_set(facts, kinds[i].name, findings->lists[i]);
    }
}

void findings_show(struct sheet *sheet, const struct findings *findings, enum finding kind)
{
    const json_t *said;
    size_t i;

    if (json_array_size(findings->lists[kind]) == 0) {
        return;
    }
    sheet_add(sheet, SHEET_HEADING, NULL, "%s", kinds[kind].heading);
    json_array_foreach(findings->lists[kind], i, said)
    {
        const char *file = strict_json_text_or(said, "file", "");

        sheet_add(sheet, SHEET_ITEM, NULL, "%s%s%s", file, file[0] == '\0' ? "" : ": ",
                  json_is_string(said) ? json_string_value(said)
                                       : strict_json_text_or(said, "says", ""));
    }
}
