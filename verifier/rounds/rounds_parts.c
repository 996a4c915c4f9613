/* rounds_parts.c - see rounds_parts.h. */
#include "verifier/rounds/rounds_parts.h"

#include <stdarg.h>
#include <stdio.h>

void rounds_parts_say(struct rounds_check *check, enum finding kind, const char *format, ...)
{
    char text[ERROR_TEXT_MAX + 64];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (check->number == 0) {
        findings_say(&check->result->findings, kind, NULL, "%s", text);
    } else {
        findings_say(&check->result->findings, kind, NULL, "round %u: %s", check->number, text);
    }
}

void rounds_parts_blame(struct rounds_check *check, const struct error *error)
{
    rounds_parts_say(check, findings_of(error), "%s", error->text);
}
