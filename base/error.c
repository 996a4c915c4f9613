/* error.c - see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef error_set
#undef error_set_errno

void error_init(struct error *error)
{
    error->status = STATUS_OK;
    error->text[0] = '\0';
    error->advice[0] = '\0';
}

/* Ends a text that did not fit in "...", so that nobody takes it for the whole sentence. */
static void mark_cut(char *text, size_t size)
{
    memcpy(text + size - 4, "...", 4);
}

static void format_text(char *text, size_t size, const char *format, va_list arguments)
{
    int length = vsnprintf(text, size, format, arguments);

    if (length < 0) {
        text[0] = '\0';
    } else if ((size_t)length >= size) {
        mark_cut(text, size);
    }
}

static void append_text(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    int length = snprintf(text + used, size - used, ": %s", more);

    if (length < 0 || (size_t)length >= size - used) {
        mark_cut(text, size);
    }
}

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;

        error->status = status;
        error->advice[0] = '\0';
        va_start(arguments, format);
        format_text(error->text, sizeof(error->text), format, arguments);
        va_end(arguments);
    }
    return status;
}

enum status error_set_errno(struct error *error, const char *format, ...)
{
    int number = errno;

    if (error != NULL) {
        va_list arguments;

        error->status = STATUS_IO;
        error->advice[0] = '\0';
        va_start(arguments, format);
        format_text(error->text, sizeof(error->text), format, arguments);
        va_end(arguments);
        append_text(error->text, sizeof(error->text), strerror(number));
    }
    return STATUS_IO;
}

enum status error_wrap(struct error *error, const char *format, ...)
{
    char inner[ERROR_TEXT_MAX];
    va_list arguments;

    if (error == NULL) {
        return STATUS_IO;
    }
    memcpy(inner, error->text, sizeof(inner));
    va_start(arguments, format);
    format_text(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    append_text(error->text, sizeof(error->text), inner);
    return error->status;
}

void error_advise(struct error *error, const char *format, ...)
{
    if (error != NULL && error->advice[0] == '\0') {
        va_list arguments;

        va_start(arguments, format);
        format_text(error->advice, sizeof(error->advice), format, arguments);
        va_end(arguments);
    }
}

const char *status_name(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return "ok";
    case STATUS_USAGE:
        return "usage";
    case STATUS_REFUSED:
        return "refused";
    case STATUS_NOT_FOUND:
        return "not-found";
    case STATUS_BAD_FORMAT:
        return "bad-format";
    case STATUS_OVER_LIMIT:
        return "over-limit";
    case STATUS_NO_MEMORY:
        return "no-memory";
    case STATUS_IO:
        return "io";
    case STATUS_GONE:
        return "gone";
    case STATUS_UNREACHABLE:
        return "unreachable";
    case STATUS_DEVICE:
        return "device";
    case STATUS_STOPPED:
        return "stopped";
    case STATUS_RANK_LOST:
        return "rank-lost";
    }
    return "unknown";
}
