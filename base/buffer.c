/* buffer.c - see buffer.h. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"

#define BUFFER_CAPACITY_FIRST 256

void buffer_init(struct buffer *buffer, size_t size_max)
{
    memset(buffer, 0, sizeof(*buffer));
    /* One byte more is always kept for the NUL. */
    buffer->size_max = size_max < SIZE_MAX ? size_max : SIZE_MAX - 1;
}

void buffer_release(struct buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof(*buffer));
}

void buffer_clear(struct buffer *buffer)
{
    buffer->size = 0;
    buffer->status = STATUS_OK;
    if (buffer->data != NULL) {
        buffer->data[0] = '\0';
    }
}

static void fail_buffer(struct buffer *buffer, enum status status)
{
    free(buffer->data);
    buffer->data = NULL;
    buffer->size = 0;
    buffer->capacity = 0;
    buffer->status = status;
}

/* Room for more bytes and a NUL. Not STATUS_OK means that the buffer has failed. */
static enum status reserve_bytes(struct buffer *buffer, size_t more)
{
    size_t needed;
    size_t capacity;
    uint8_t *data;

    if (buffer->status != STATUS_OK) {
        return buffer->status;
    }
    if (more > buffer->size_max - buffer->size) {
        fail_buffer(buffer, STATUS_OVER_LIMIT);
        return STATUS_OVER_LIMIT;
    }
    needed = buffer->size + more + 1;
    if (needed <= buffer->capacity) {
        return STATUS_OK;
    }
    capacity = buffer->capacity < BUFFER_CAPACITY_FIRST ? BUFFER_CAPACITY_FIRST : buffer->capacity;
    while (capacity < needed) {
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    }
    data = realloc(buffer->data, capacity);
    if (data == NULL) {
        fail_buffer(buffer, STATUS_NO_MEMORY);
        return STATUS_NO_MEMORY;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return STATUS_OK;
}

void buffer_add(struct buffer *buffer, const void *bytes, size_t size)
{
    if (reserve_bytes(buffer, size) != STATUS_OK) {
        return;
    }
    if (size > 0) {
        memcpy(buffer->data + buffer->size, bytes, size);
    }
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void buffer_add_u8(struct buffer *buffer, uint8_t value)
{
    buffer_add(buffer, &value, 1);
}

void buffer_add_u16(struct buffer *buffer, uint16_t value)
{
    uint8_t bytes[2];

    endian_store_be16(bytes, value);
    buffer_add(buffer, bytes, sizeof(bytes));
}

void buffer_add_u32(struct buffer *buffer, uint32_t value)
{
    uint8_t bytes[4];

    endian_store_be32(bytes, value);
    buffer_add(buffer, bytes, sizeof(bytes));
}

void buffer_add_u64(struct buffer *buffer, uint64_t value)
{
    uint8_t bytes[8];

    endian_store_be64(bytes, value);
    buffer_add(buffer, bytes, sizeof(bytes));
}

void buffer_add_text(struct buffer *buffer, const char *text)
{
    buffer_add(buffer, text, strlen(text));
}

void buffer_add_list(struct buffer *buffer, const char *format, va_list arguments)
{
    va_list again;
    int length;

    va_copy(again, arguments);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        fail_buffer(buffer, STATUS_BAD_FORMAT);
        return;
    }
    if (reserve_bytes(buffer, (size_t)length) != STATUS_OK) {
        return;
    }
    vsnprintf((char *)buffer->data + buffer->size, (size_t)length + 1, format, arguments);
    buffer->size += (size_t)length;
}

void buffer_add_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    buffer_add_list(buffer, format, arguments);
    va_end(arguments);
}

const char *buffer_text(const struct buffer *buffer)
{
    return buffer->data == NULL ? "" : (const char *)buffer->data;
}

enum status buffer_check(const struct buffer *buffer, struct error *error, const char *what)
{
    if (buffer->status == STATUS_OVER_LIMIT) {
        return error_set(error, STATUS_OVER_LIMIT, "%s: larger than %zu bytes", what,
                         buffer->size_max);
    }
    if (buffer->status != STATUS_OK) {
        return error_set(error, buffer->status, "%s: out of memory", what);
    }
    return STATUS_OK;
}
