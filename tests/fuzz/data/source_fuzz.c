/*
 * source_fuzz.c - any bytes as a file of text, plain, gzip or zstd: its lines are bounded, and end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/source/source.h"
#include "tests/support/folder.h"

#define LINE_MAX_SIZE ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FOLDER_PATH_MAX + 16];
    struct source_file source;
    struct buffer line;
    struct error error;
    bool more = true;

    (void)snprintf(path, sizeof(path), "%s/source", folder_of_program());
    write_file(path, data, size);
    error_init(&error);
    if (source_open(&source, &error, path) != STATUS_OK) {
        return 0;
    }
    buffer_init(&line, LINE_MAX_SIZE + 1);
    while (more && source.unpacked < (UINT64_C(64) << 20) &&
           source_line(&source, &error, &line, &more, LINE_MAX_SIZE) == STATUS_OK) {
        if (line.size > LINE_MAX_SIZE || source.taken > size) {
            abort();
        }
    }
    buffer_release(&line);
    source_close(&source);
    return 0;
}
