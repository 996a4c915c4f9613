/* utf8.c - see utf8.h. */
#include "data/text/utf8.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* What the byte behind a first byte may be; more than its 6 bits say, for the ends of the range. */
static bool second_fits(uint8_t first, uint8_t second)
{
    uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

    return second >= least && second <= most;
}

/* Bytes of a character that begins so; 0: none does. */
static size_t length_of(uint8_t first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* How many bytes at text belong to one character that they begin. */
static size_t prefix_size(const uint8_t *text, size_t size, size_t length)
{
    size_t i = 1;

    while (i < length && i < size &&
           (i == 1 ? second_fits(text[0], text[1]) : (text[i] & 0xc0) == 0x80)) {
        i++;
    }
    return i;
}

size_t utf8_valid(const uint8_t *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        uint64_t eight;
        size_t length;

        while (size - at >= sizeof(eight)) {
            memcpy(&eight, text + at, sizeof(eight));
            if ((eight & UINT64_C(0x8080808080808080)) != 0) {
                break;
            }
            at += sizeof(eight);
        }
        if (at == size) {
            break;
        }
        length = length_of(text[at]);
        if (length == 0 || prefix_size(text + at, size - at, length) < length) {
            return at;
        }
        at += length;
    }
    return size;
}

size_t utf8_invalid(const uint8_t *text, size_t size)
{
    size_t length = length_of(text[0]);

    assert(size > 0);
    return length == 0 ? 1 : prefix_size(text, size, length);
}

size_t utf8_write(uint8_t bytes[UTF8_BYTES_MAX], uint32_t code)
{
    assert(code < 0x110000);
    if (code < 0x80) {
        bytes[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        bytes[0] = (uint8_t)(0xc0 | code >> 6);
        bytes[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        bytes[0] = (uint8_t)(0xe0 | code >> 12);
        bytes[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    bytes[0] = (uint8_t)(0xf0 | code >> 18);
    bytes[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    bytes[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    bytes[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}
