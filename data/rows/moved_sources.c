/* moved_sources.c - see moved_sources.h. */
#include "data/rows/moved_sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"

enum status moved_sources_set(struct moved_sources *moved, struct pack_options *options,
                              const char *folder, struct error *error)
{
    moved->paths = calloc(options->source_count + 1, sizeof(*moved->paths));
    moved->texts = calloc(options->source_count + 1, FILE_PATH_MAX);
    if (moved->paths == NULL || moved->texts == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for the sources");
    }
    for (size_t i = 0; i < options->source_count; i++) {
        const char *slash = strrchr(options->sources[i], '/');
        char *text = moved->texts + i * FILE_PATH_MAX;

        TRY(file_path_join(text, FILE_PATH_MAX, error, folder,
                           slash == NULL ? options->sources[i] : slash + 1));
        moved->paths[i] = text;
    }
    options->sources = moved->paths;
    return STATUS_OK;
}

void moved_sources_release(struct moved_sources *moved)
{
    free(moved->paths);
    free(moved->texts);
    *moved = (struct moved_sources){0};
}
