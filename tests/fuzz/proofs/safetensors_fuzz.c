/* safetensors_fuzz.c - any bytes as a safetensors file: the tensors of a file that is read cover
 * the data, each byte once. */
#include <stdlib.h>
#include <string.h>

#include "proofs/format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors file;
    struct error error;
    uint64_t length = 0;
    uint64_t covered = 0;

    if (size < 8) {
        return 0;
    }
    for (int i = 7; i >= 0; i--) {
        length = length << 8 | data[i];
    }
    if (length > size - 8) {
        return 0;
    }
    error_init(&error);
    if (safetensors_header_read(&file, &error, (const char *)data + 8, (size_t)length,
                                size - 8 - length) != STATUS_OK) {
        return 0;
    }
    for (uint32_t i = 0; i < file.entry_count; i++) {
        if (file.entries[i].offset != covered ||
            safetensors_find(&file, file.entries[i].name) != &file.entries[i]) {
            abort();
        }
        covered += file.entries[i].size;
    }
    if (covered != size - 8 - length) {
        abort();
    }
    safetensors_close(&file);
    return 0;
}
