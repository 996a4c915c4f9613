/* http_words.c - see http_words.h. */
#include "base/http/http_words.h"

#include <string.h>

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
