/* rate_file.c - see rate_file.h. */
#include "client/recipe/rate_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"

enum {
    NUMBER_MAX = 64, /* bytes of a line */
};

/* A decimal number, as people write a rate: no hexadecimal, no infinity. */
static bool parse_rate(float *rate, const char *text, size_t size)
{
    char number[NUMBER_MAX + 1];
    char *end;
    double value;

    if (size == 0 || size > NUMBER_MAX || strspn(text, "0123456789.eE+-") < size ||
        text[0] == '-' || text[0] == '+') {
        return false;
    }
    memcpy(number, text, size);
    number[size] = '\0';
    value = strtod(number, &end);
    *rate = (float)value;
    return *end == '\0' && value >= 0.0 && value <= 1e6;
}

/* text ends with a zero. */
static enum status parse_lines(float *rates, const char *text, size_t size, const char *what,
                               uint32_t steps, struct error *error)
{
    uint32_t count = 0;

    for (size_t at = 0; at < size; count++) {
        size_t length = strcspn(text + at, "\n");
        size_t used = length > 0 && text[at + length - 1] == '\r' ? length - 1 : length;

        if (count == steps) {
            return error_set(error, STATUS_USAGE, "%s: more than %u rates, one for each step", what,
                             steps);
        }
        if (at + length > size || !parse_rate(&rates[count], text + at, used)) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: line %u is no rate from 0 to 1000000",
                             what, count + 1);
        }
        at += length + 1;
    }
    return count == steps ? STATUS_OK
                          : error_set(error, STATUS_USAGE,
                                      "%s: %u rates; there must be one for each of %u steps", what,
                                      count, steps);
}

enum status rate_file_parse(float **rates, const void *bytes, size_t size, const char *what,
                            uint32_t steps, struct error *error)
{
    char *text = malloc(size + 1);
    enum status status;

    *rates = calloc((size_t)steps + 1, sizeof(**rates));
    if (text == NULL || *rates == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %s", what);
    } else {
        memcpy(text, bytes, size);
        text[size] = '\0';
        status = parse_lines(*rates, text, size, what, steps, error);
    }
    free(text);
    if (status != STATUS_OK) {
        free(*rates);
        *rates = NULL;
    }
    return status;
}

enum status rate_file_read(float **rates, const char *path, uint32_t steps, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status;

    TRY(file_read(&bytes, error, path, RATE_FILE_SIZE_MAX));
    status = rate_file_parse(rates, bytes.data, bytes.size, path, steps, error);
    file_bytes_release(&bytes);
    return status;
}
