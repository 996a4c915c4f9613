/* http_words.c - see http_words.h. */
#include "base/http/http_words.h"

#include <string.h>

#include "base/hex.h"

bool http_words_host(char name[HTTP_WORDS_HOST_MAX], const char *header)
{
    bool six = header[0] == '[';
    const char *end = strchr(header, six ? ']' : ':');
    size_t size;

    if (six && end == NULL) {
        return false;
    }
    header += six;
    size = end == NULL ? strlen(header) : (size_t)(end - header);
    if (size == 0 || size >= HTTP_WORDS_HOST_MAX) {
        return false;
    }
    memcpy(name, header, size);
    name[size] = '\0';
    return true;
}

size_t http_words_unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0';) {
        uint8_t byte = 0;

        if (from[0] == '%' && from[1] != '\0' && from[2] != '\0' &&
            hex_decode(&byte, 1, from + 1, 2) == STATUS_OK && byte != 0) {
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}
