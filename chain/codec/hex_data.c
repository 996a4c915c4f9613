/* hex_data.c - see hex_data.h. */
#include "chain/codec/hex_data.h"

#include <string.h>

#include "base/hex.h"

enum status hex_read(uint8_t *bytes, size_t bytes_size, size_t *size, const char *text)
{
    size_t length = strlen(text);

    if (length % 2 != 0) {
        return STATUS_BAD_FORMAT;
    }
    if (length / 2 > bytes_size) {
        return STATUS_OVER_LIMIT;
    }
    for (size_t i = 0; i < length / 2; i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return STATUS_BAD_FORMAT;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *size = length / 2;
    return STATUS_OK;
}

enum status hex_data_read(uint8_t *bytes, size_t bytes_size, size_t *size, const char *text)
{
    if (text[0] != '0' || text[1] != 'x') {
        return STATUS_BAD_FORMAT;
    }
    return hex_read(bytes, bytes_size, size, text + 2);
}

enum status hex_read_exactly(uint8_t *bytes, size_t size, const char *text)
{
    size_t got;

    if (strlen(text) != 2 * size) {
        return STATUS_BAD_FORMAT;
    }
    return hex_read(bytes, size, &got, text);
}

enum status hex_data_read_exactly(uint8_t *bytes, size_t size, const char *text)
{
    if (text[0] != '0' || text[1] != 'x') {
        return STATUS_BAD_FORMAT;
    }
    return hex_read_exactly(bytes, size, text + 2);
}

void hex_write(char *text, const uint8_t *bytes, size_t size, bool prefix)
{
    if (prefix) {
        *text++ = '0';
        *text++ = 'x';
    }
    hex_encode(text, bytes, size);
}
