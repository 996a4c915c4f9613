/* hex.h - bytes as hexadecimal text and back. Not constant in time: not for secrets. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The size of the text of so many bytes, with the NUL. */
#define HEX_SIZE(byte_count) (2 * (byte_count) + 1)

/* The value of a digit of either case, or -1. */
int hex_digit(char digit);

/* Writes 2 * size lower-case digits and a NUL; text holds HEX_SIZE(size). */
void hex_encode(char *text, const uint8_t *bytes, size_t size);

/*
 * Reads exactly 2 * size digits of either case, with an optional "0x" before them, and nothing
 * else. text_length does not count a NUL. On STATUS_BAD_FORMAT bytes may be partly written.
 */
MUST_CHECK enum status hex_decode(uint8_t *bytes, size_t size, const char *text,
                                  size_t text_length);

#endif /* BASE_HEX_H */
