/* log.c - see log.h. */
#include "base/io/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* A character may become six: \u001b. */
#define LOG_ESCAPED_MAX (LOG_MESSAGE_MAX * 6)
#define LOG_LINE_MAX    (LOG_ESCAPED_MAX + 256)

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_init(struct log *log, FILE *stream, enum log_level level, enum log_format format)
{
    log->stream = stream;
    log->level = level;
    log->format = format;
}

int log_level_parse(enum log_level *level, const char *name)
{
    for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

/* The length of the UTF-8 character at text, or 0 when there is none. NUL ends every check. */
static size_t utf8_length(const unsigned char *text)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80              ? 1
                    : (text[0] & 0xe0u) == 0xc0 ? 2
                    : (text[0] & 0xf0u) == 0xe0 ? 3
                    : (text[0] & 0xf8u) == 0xf0 ? 4
                                                : 0;
    uint32_t code;

    if (length <= 1) {
        return length;
    }
    code = text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0u) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    /* C1 controls and the marks that turn the reading direction drive terminals too. */
    if ((code >= 0x80 && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
        (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) {
        return 0;
    }
    return length;
}

/* One character of text as it is written; returns how many bytes of text it stands for. */
static size_t escape_one(char piece[8], const unsigned char *text, int quotes)
{
    size_t length = utf8_length(text);

    if (length == 0) {
        memcpy(piece, "\xef\xbf\xbd", 4); /* U+FFFD */
        return 1;
    }
    if (text[0] == '\n') {
        memcpy(piece, "\\n", 3);
    } else if (text[0] == '\t') {
        memcpy(piece, "\\t", 3);
    } else if (text[0] < 0x20 || text[0] == 0x7f) {
        snprintf(piece, 8, "\\u%04x", text[0]);
    } else if (quotes && (text[0] == '"' || text[0] == '\\')) {
        piece[0] = '\\';
        piece[1] = (char)text[0];
        piece[2] = '\0';
    } else {
        memcpy(piece, text, length);
        piece[length] = '\0';
    }
    return length;
}

size_t log_escape(char *out, size_t out_size, const char *text, int quotes)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;

    if (out_size == 0) {
        return 0;
    }
    while (*at != '\0') {
        char piece[8];
        size_t taken = escape_one(piece, at, quotes);
        size_t length = strlen(piece);

        if (length >= out_size - used) {
            break;
        }
        memcpy(out + used, piece, length);
        used += length;
        at += taken;
    }
    out[used] = '\0';
    return used;
}

static void time_text(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm parts;

    text[0] = '\0';
    if (gmtime_r(&now, &parts) != NULL) {
        strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
}

static void write_line(const struct log *log, enum log_level level, const char *area,
                       const char *message)
{
    char when[32];
    char area_text[LOG_AREA_MAX * 6];
    char text[LOG_ESCAPED_MAX];
    char line[LOG_LINE_MAX];
    bool json = log->format == LOG_FORMAT_JSON;
    int length;

    time_text(when, sizeof(when));
    log_escape(area_text, sizeof(area_text), area, json);
    log_escape(text, sizeof(text), message, json);
    length =
        snprintf(line, sizeof(line),
                 json ? "{\"time\":\"%s\",\"level\":\"%s\",\"area\":\"%s\",\"message\":\"%s\"}\n"
                      : "%s %s %s: %s\n",
                 when, level_names[level], area_text, text);
    if (length > 0) {
        size_t size = (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1;

        fwrite(line, 1, size, log->stream);
        fflush(log->stream);
    }
}

void log_write(const struct log *log, enum log_level level, const char *area, const char *format,
               ...)
{
    char message[LOG_MESSAGE_MAX];
    va_list arguments;
    int length;

    if (log == NULL || log->stream == NULL || level > log->level) {
        return;
    }
    va_start(arguments, format);
    length = vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (length < 0) {
        return;
    }
    if ((size_t)length >= sizeof(message)) {
        memcpy(message + sizeof(message) - 4, "...", 4);
    }
    write_line(log, level, area, message);
}
