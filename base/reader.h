/*
 * reader.h - reads outside bytes front to back and never past their end.
 *
 * The first read that does not fit makes the reader fail, and from then on every read gives zero:
 * read everything, then check once with reader_end. Nothing here allocates.
 *
 *     reader_init(&reader, bytes, size);
 *     version = reader_u16(&reader);
 *     count = reader_u32(&reader);
 *     status = reader_end(&reader, &error, "segment");
 */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct reader {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    size_t at;
    bool failed;
};

void reader_init(struct reader *reader, const void *bytes, size_t size);

uint8_t reader_u8(struct reader *reader);
uint16_t reader_u16(struct reader *reader); /* big-endian, as the next two */
uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);

/* Copies size bytes; fills with zeros on failure. */
void reader_copy(struct reader *reader, void *out, size_t size);

/* The next size bytes where they lie, or NULL on failure. */
const uint8_t *reader_take(struct reader *reader, size_t size);

size_t reader_left(const struct reader *reader);

/* STATUS_BAD_FORMAT when something did not fit, or when bytes are left over; what names it. */
MUST_CHECK enum status reader_end(const struct reader *reader, struct error *error,
                                  const char *what);

#endif /* BASE_READER_H */
