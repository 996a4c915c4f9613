/*
 * manifest_fuzz.c - any bytes as the manifest of packed rows: what is taken has a shape that rows
 * can have, and as many sources as paths.
 */
#include <stdlib.h>

#include "data/rows/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest manifest;
    struct error error;

    error_init(&error);
    if (manifest_parse(&manifest, &error, data, size) != STATUS_OK) {
        return 0;
    }
    if (manifest.shape.length < 2 || manifest.shape.length > ROW_LENGTH_MAX ||
        manifest.rows[0] * manifest.shape.length > TENSOR_COUNT_MAX ||
        manifest.file_count > TOKENIZER_FILES_MAX) {
        abort();
    }
    for (size_t i = 0; i < manifest.options.source_count; i++) {
        if (manifest.options.sources[i] == NULL) {
            abort();
        }
    }
    manifest_release(&manifest);
    return 0;
}
