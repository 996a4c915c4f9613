/*
 * utf8.h - UTF-8 as code points: what is valid, the next code point, a code point as bytes.
 *
 * Valid is what Unicode says: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#ifndef DATA_TEXT_UTF8_H
#define DATA_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_BYTES_MAX   4
#define UTF8_REPLACEMENT 0xfffdu /* what stands where bytes were no UTF-8 */

/* How many bytes from the start are valid UTF-8; size, where all are. */
size_t utf8_valid(const uint8_t *text, size_t size);

/* Of text that does not begin with a valid character: the bytes of the longest beginning of one, or
 * 1. One U+FFFD stands for them. size is not 0. */
size_t utf8_invalid(const uint8_t *text, size_t size);

/* The code point at *at of valid UTF-8; *at moves behind it and must be below size. */
static inline uint32_t utf8_next(const uint8_t *text, size_t *at)
{
    const uint8_t *bytes = text + *at;

    if (bytes[0] < 0x80) {
        *at += 1;
        return bytes[0];
    }
    if (bytes[0] < 0xe0) {
        *at += 2;
        return (uint32_t)(bytes[0] & 0x1f) << 6 | (bytes[1] & 0x3fu);
    }
    if (bytes[0] < 0xf0) {
        *at += 3;
        return (uint32_t)(bytes[0] & 0x0f) << 12 | (uint32_t)(bytes[1] & 0x3f) << 6 |
               (bytes[2] & 0x3fu);
    }
    *at += 4;
    return (uint32_t)(bytes[0] & 0x07) << 18 | (uint32_t)(bytes[1] & 0x3f) << 12 |
           (uint32_t)(bytes[2] & 0x3f) << 6 | (bytes[3] & 0x3fu);
}

/* Writes the code point; returns the number of bytes. It must be one that UTF-8 can write. */
size_t utf8_write(uint8_t bytes[UTF8_BYTES_MAX], uint32_t code);

#endif /* DATA_TEXT_UTF8_H */
