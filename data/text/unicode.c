/* unicode.c - see unicode.h. */
#include "data/text/unicode.h"

#include <stddef.h>

#include "data/text/class_table.h"

static enum unicode_class ascii_class(uint32_t code)
{
    if (code >= 'a' && code <= 'z') {
        return UNICODE_LOWER;
    }
    if (code >= 'A' && code <= 'Z') {
        return UNICODE_UPPER;
    }
    if (code == ' ' || (code >= '\t' && code <= '\r')) {
        return UNICODE_SPACE;
    }
    return code >= '0' && code <= '9' ? UNICODE_NUMBER : UNICODE_OTHER;
}

enum unicode_class unicode_class(uint32_t code)
{
    size_t low = 0;
    size_t high = sizeof(class_runs) / sizeof(class_runs[0]);

    if (code < 0x80) {
        return ascii_class(code);
    }
    while (high - low > 1) { /* the run at low begins at code or before */
        size_t middle = low + (high - low) / 2;

        if (class_runs[middle] >> 3 <= code) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (enum unicode_class)(class_runs[low] & 7);
}
