/* strict_json_fuzz.c - any bytes as JSON: what is accepted must be no deeper than was allowed. */
#include "base/io/strict_json.h"

#include <stdlib.h>

#define DEPTH_MOST 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned depth_of(const json_t *value)
{
    unsigned deepest = 0;
    const char *key;
    json_t *inner;
    size_t index;

    json_object_foreach((json_t *)value, key, inner)
    {
        unsigned depth = depth_of(inner);

        deepest = depth > deepest ? depth : deepest;
    }
    json_array_foreach(value, index, inner)
    {
        unsigned depth = depth_of(inner);

        deepest = depth > deepest ? depth : deepest;
    }
    return json_is_object(value) || json_is_array(value) ? deepest + 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    json_t *root;

    error_init(&error);
    if (strict_json_parse(&root, &error, "fuzz", data, size, 65536, DEPTH_MOST) != STATUS_OK) {
        if (root != NULL || error.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    if (depth_of(root) > DEPTH_MOST) {
        abort();
    }
    json_decref(root);
    return 0;
}
