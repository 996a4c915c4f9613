/* text.h - what C's strings lack. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* Also true for the end itself, with nothing before it. */
static inline bool text_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

#endif /* BASE_TEXT_H */
