/*
 * buffer.h - bytes that grow up to a maximum which is named when the buffer is made.
 *
 * Appending past the maximum, or without memory, makes the buffer fail and drops the bytes; later
 * appends do nothing. Append everything, then check once with buffer_check. Numbers are big-endian.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct buffer {
    uint8_t *data; /* owned; data[size] is always a NUL, so that text is a string */
    size_t size;
    size_t capacity;
    size_t size_max;
    enum status status;
};

void buffer_init(struct buffer *buffer, size_t size_max);
void buffer_release(struct buffer *buffer); /* accepts a zero-filled buffer */
void buffer_clear(struct buffer *buffer);   /* empty and not failed; keeps its memory */

void buffer_add(struct buffer *buffer, const void *bytes, size_t size);
void buffer_add_u8(struct buffer *buffer, uint8_t value);
void buffer_add_u16(struct buffer *buffer, uint16_t value);
void buffer_add_u32(struct buffer *buffer, uint32_t value);
void buffer_add_u64(struct buffer *buffer, uint64_t value);
void buffer_add_text(struct buffer *buffer, const char *text); /* without its NUL */
void buffer_add_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void buffer_add_list(struct buffer *buffer, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* The bytes as a string; "" while there are none. */
const char *buffer_text(const struct buffer *buffer);

/* STATUS_OVER_LIMIT or STATUS_NO_MEMORY when an append failed; what names the content. */
MUST_CHECK enum status buffer_check(const struct buffer *buffer, struct error *error,
                                    const char *what);

#endif /* BASE_BUFFER_H */
