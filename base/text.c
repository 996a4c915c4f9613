/* text.c - see text.h. */
#include "base/text.h"

#include <stdio.h>

#include "base/hex.h"

const char *text_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

bool text_take_word(const char **at, const char *word)
{
    const size_t size = strlen(word);

    if (strncmp(*at, word, size) != 0) {
        return false;
    }
    *at += size;
    return true;
}

bool text_take_number(uint64_t *number, const char **at, uint64_t most)
{
    const char *start = *at;

    *number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        const uint64_t digit = (uint64_t)(**at - '0');

        if (digit > most || *number > (most - digit) / 10) {
            return false;
        }
        *number = 10 * *number + digit;
    }
    return *at > start;
}

bool text_is_number(uint64_t *number, const char *text, uint64_t most)
{
    return text != NULL && text_take_number(number, &text, most) && *text == '\0';
}

size_t text_escape(char *to, size_t room, const char *text, const char *plain)
{
    size_t used = 0;

    for (; *text != '\0'; text++) {
        const bool bare = strchr(plain, *text) != NULL;
        const size_t size = bare ? 1 : 3;

        if (used + size > room) {
            break;
        }
        (void)snprintf(to + used, size + 1, bare ? "%c" : "%%%02X", (unsigned char)*text);
        used += size;
    }
    to[used] = '\0';
    return used;
}

size_t text_unescape(char *text)
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
