/* shown.c - see shown.h. */
#include "data/text/shown.h"

#include <stdbool.h>

#include "data/text/utf8.h"

/* Code points that move the cursor or turn text around: a stranger's text drives no terminal. */
static bool is_safe(uint32_t code)
{
    return code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) &&
           !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2060 && code <= 0x206f) && code != 0xfeff && code != '\\';
}

void shown_add(struct buffer *out, const uint8_t *bytes, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t next = at;

        if (utf8_valid(bytes + at, size - at) == 0) {
            buffer_add_format(out, "\\x%02x", bytes[at]);
            at++;
            continue;
        }
        if (is_safe(utf8_next(bytes, &next))) {
            buffer_add(out, bytes + at, next - at);
        } else if (bytes[at] == '\n') {
            buffer_add_text(out, "\\n");
        } else {
            for (size_t i = at; i < next; i++) {
                buffer_add_format(out, bytes[i] == '\\' ? "\\\\" : "\\x%02x", bytes[i]);
            }
        }
        at = next;
    }
}
