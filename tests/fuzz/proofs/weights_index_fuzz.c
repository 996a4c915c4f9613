/* weights_index_fuzz.c - any bytes as the index of shards: every file that is named is a plain name
 * beside the index. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/format/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weights_index index;
    struct error error;
    const char *name;
    json_t *file;

    error_init(&error);
    if (weights_index_parse(&index, data, size, "index", &error) != STATUS_OK) {
        if (error.status == STATUS_OK || error.text[0] == '\0' || index.map != NULL) {
            abort();
        }
        return 0;
    }
    json_object_foreach(index.map, name, file)
    {
        const char *text = json_string_value(file);

        if (text == NULL || strchr(text, '/') != NULL || text[0] == '.' || strlen(text) > 200) {
            abort();
        }
    }
    weights_index_release(&index);
    return 0;
}
