/* rounds_parts.c - see rounds_parts.h. */
#include "verifier/rounds/rounds_parts.h"

#include <stdarg.h>
#include <stdio.h>

const char *const rounds_result_names[ROUNDS_RESULT_LISTS] = {"proven", "refuted", "not_told",
                                                              "trusted"};

void rounds_parts_say(struct rounds_check *check, enum rounds_result_list list, const char *format,
                      ...)
{
    char text[ERROR_TEXT_MAX + 64];
    va_list arguments;
    int before = check->number == 0 ? 0 : snprintf(text, sizeof(text), "round %u: ", check->number);

    va_start(arguments, format);
    (void)vsnprintf(text + before, sizeof(text) - (size_t)before, format, arguments);
    va_end(arguments);
    for (char *at = text; *at != '\0'; at++) {
        *at = (unsigned char)*at < 0x80 ? *at : '?'; /* a path need not be UTF-8 */
    }
    (void)json_array_append_new(check->result->lists[list], json_string(text));
}

void rounds_parts_blame(struct rounds_check *check, const struct error *error)
{
    const bool bytes = error->status == STATUS_BAD_FORMAT || error->status == STATUS_REFUSED ||
                       error->status == STATUS_OVER_LIMIT;

    rounds_parts_say(check, bytes ? ROUNDS_RESULT_REFUTED : ROUNDS_RESULT_NOT_TOLD, "%s",
                     error->text);
}
