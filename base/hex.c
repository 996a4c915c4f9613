/* hex.c - see hex.h. */
#include "base/hex.h"

void hex_encode(char *text, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 0x0f];
    }
    text[2 * size] = '\0';
}

/* The value of a digit, or 16. */
static unsigned digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return (unsigned)(digit - '0');
    }
    if (digit >= 'a' && digit <= 'f') {
        return (unsigned)(digit - 'a') + 10;
    }
    if (digit >= 'A' && digit <= 'F') {
        return (unsigned)(digit - 'A') + 10;
    }
    return 16;
}

enum status hex_decode(uint8_t *bytes, size_t size, const char *text, size_t text_length)
{
    if (text_length >= 2 && text[0] == '0' && text[1] == 'x') {
        text += 2;
        text_length -= 2;
    }
    if (text_length % 2 != 0 || text_length / 2 != size) {
        return STATUS_BAD_FORMAT;
    }
    for (size_t i = 0; i < size; i++) {
        unsigned high = digit_value(text[2 * i]);
        unsigned low = digit_value(text[2 * i + 1]);

        if (high > 15 || low > 15) {
            return STATUS_BAD_FORMAT;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return STATUS_OK;
}
