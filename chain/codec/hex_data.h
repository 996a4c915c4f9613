/*
 * hex_data.h - bytes as pairs of hex digits, with "0x" or without, for JSON-RPC and key files.
 *
 * Reading takes both cases and nothing else: no blanks, no odd digit, no other length.
 */
#ifndef CHAIN_CODEC_HEX_DATA_H
#define CHAIN_CODEC_HEX_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Reads digits into at most bytes_size bytes. *size is how many there were. STATUS_OVER_LIMIT when
 * there are more. */
MUST_CHECK enum status hex_read(uint8_t *bytes, size_t bytes_size, size_t *size, const char *text);

/* As hex_read, with "0x" before the digits. */
MUST_CHECK enum status hex_data_read(uint8_t *bytes, size_t bytes_size, size_t *size,
                                     const char *text);

/* Exactly size bytes. */
MUST_CHECK enum status hex_read_exactly(uint8_t *bytes, size_t size, const char *text);
MUST_CHECK enum status hex_data_read_exactly(uint8_t *bytes, size_t size, const char *text);

/* Room for the digits of size bytes with "0x" before them and a NUL behind. */
#define HEX_DATA_SIZE(size) (2 * (size) + 3)

/* Writes 2 * size lower-case digits and a NUL; with prefix also the "0x" before them. */
void hex_write(char *text, const uint8_t *bytes, size_t size, bool prefix);

#endif /* CHAIN_CODEC_HEX_DATA_H */
