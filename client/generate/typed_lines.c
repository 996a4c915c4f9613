/* typed_lines.c - see typed_lines.h. */
#include "client/generate/typed_lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Waits for more bytes; false: the end, or Ctrl-C. */
static bool read_more(struct typed_lines *lines, struct stop *stop)
{
    struct pollfd watched[2] = {{STDIN_FILENO, POLLIN, 0}, {stop->descriptor, POLLIN, 0}};
    ssize_t count;

    memmove(lines->bytes, lines->bytes + lines->from, lines->size - lines->from);
    lines->size -= lines->from;
    lines->from = 0;
    if (lines->ended || lines->size == TYPED_LINE_SIZE_MAX ||
        (poll(watched, 2, -1) < 0 && errno != EINTR) || stop_requested(stop)) {
        return false;
    }
    count = read(STDIN_FILENO, lines->bytes + lines->size, TYPED_LINE_SIZE_MAX - lines->size);
    lines->ended = count <= 0;
    lines->size += count > 0 ? (size_t)count : 0;
    return count > 0;
}

const char *typed_lines_next(size_t *size, struct typed_lines *lines, struct stop *stop)
{
    for (;;) {
        char *start = lines->bytes + lines->from;
        const size_t left = lines->size - lines->from;
        const char *end = memchr(start, '\n', left);

        if (end != NULL) {
            *size = (size_t)(end - start);
            lines->from += *size + 1;
            *size -= *size > 0 && start[*size - 1] == '\r';
            return start;
        }
        if (!read_more(lines, stop)) {
            if (stop_requested(stop) || lines->size == lines->from) {
                return NULL;
            }
            *size = lines->size - lines->from;
            start = lines->bytes + lines->from;
            lines->from = lines->size;
            return start;
        }
    }
}
