/* typed_lines.h - lines of standard input, which a Ctrl-C may end. */
#ifndef CLIENT_GENERATE_TYPED_LINES_H
#define CLIENT_GENERATE_TYPED_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/io/stop.h"

#define TYPED_LINE_SIZE_MAX (1u << 20) /* a longer one comes in parts */

struct typed_lines {
    char *bytes; /* TYPED_LINE_SIZE_MAX, of the caller */
    size_t size;
    size_t from;
    bool ended;
};

/* The next line, without its end; NULL: there is none. */
const char *typed_lines_next(size_t *size, struct typed_lines *lines, struct stop *stop);

#endif /* CLIENT_GENERATE_TYPED_LINES_H */
