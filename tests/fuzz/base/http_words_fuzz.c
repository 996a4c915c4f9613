/*
 * http_words_fuzz.c - any bytes as a Host header, as an escaped URL and as a contact of a stranger.
 * A name is a part of its header; nothing grows, and no zero byte comes in; what is taken for a
 * contact has none of the bytes that are refused.
 */
#include "base/http/http_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/http_reach.h"
#include "base/text.h"

#define TEXT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 1];
    char name[HTTP_WORDS_HOST_MAX];
    size_t length;

    size = size < TEXT_MAX ? size : TEXT_MAX;
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    length = strlen(text);
    if (http_words_host(name, text) &&
        (name[0] == '\0' || strstr(text, name) == NULL || strlen(name) > length)) {
        abort();
    }
    if (http_reach_bad_url(text) == NULL &&
        (strpbrk(text, "?#@\\ \n\r\t\x7f") != NULL || strncmp(text, "http", 4) != 0)) {
        abort();
    }
    if (text_unescape(text) != strlen(text) || strlen(text) > length) {
        abort();
    }
    return 0;
}
