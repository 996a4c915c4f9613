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

int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    if (digit >= 'A' && digit <= 'F') {
        return digit - 'A' + 10;
    }
    return -1;
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
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return STATUS_BAD_FORMAT;
        }
        bytes[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    return STATUS_OK;
}
