/*
 * whole_file.h - a file that is written in pieces and appears whole or not at all; and exact reads
 * from a file that another process may cut short. Until it is whole it lies beside its place as
 * NAME.part- and six letters. Its mode never grants more than that of the finished file.
 */
#ifndef BASE_IO_WHOLE_FILE_H
#define BASE_IO_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define WHOLE_FILE_PATH_MAX 4096

struct whole_file {
    int descriptor; /* -1: nothing is open */
    mode_t mode;
    char path[WHOLE_FILE_PATH_MAX];
    char part_path[WHOLE_FILE_PATH_MAX + 16]; /* beside path, until it is whole */
};

/* Opens a new file. mode is that of the finished file (0600 for secrets), less what the umask takes
 * from group and others. */
MUST_CHECK enum status whole_file_open(struct whole_file *file, struct error *error,
                                       const char *path, mode_t mode);

MUST_CHECK enum status whole_file_add(struct whole_file *file, struct error *error,
                                      const void *data, size_t data_size);

/* Makes room for data_size more bytes, which others write at their places: *first is the first. */
MUST_CHECK enum status whole_file_room(uint64_t *first, struct whole_file *file,
                                       struct error *error, uint64_t data_size);

/* Syncs what was added, renames it over path and syncs the folder. Closes the file either way. */
MUST_CHECK enum status whole_file_keep(struct whole_file *file, struct error *error);

/* The same, but STATUS_REFUSED when path exists already: it is never replaced. */
MUST_CHECK enum status whole_file_keep_new(struct whole_file *file, struct error *error);

/* Removes what was added. Does nothing after keep, or when the descriptor is -1. */
void whole_file_drop(struct whole_file *file);

/* Is this the name of a file that is not whole yet? */
bool whole_file_is_part(const char *name);

/* Makes a new file or folder and draws the last six letters of path for it. Like mkstemp and
 * mkdtemp, but with mode less the umask. Returns the descriptor (0 for a folder), or -1 and
 * errno. */
int whole_file_make_part(char *path, mode_t mode, bool folder);

/* Makes a finished rename or removal in the folder of path survive a crash. */
MUST_CHECK enum status whole_file_sync_folder(const char *path, struct error *error);

/* Opens a regular file for reading and says how long it is. */
MUST_CHECK enum status whole_file_read_open(int *descriptor, uint64_t *size, struct error *error,
                                            const char *path);

/* Reads exactly data_size bytes at offset; fewer are STATUS_BAD_FORMAT. path is for the error. */
MUST_CHECK enum status whole_file_read_at(int descriptor, struct error *error, void *data,
                                          size_t data_size, uint64_t offset, const char *path);

/* Writes data_size bytes at offset. path is for the error. */
MUST_CHECK enum status whole_file_write_at(int descriptor, struct error *error, const void *data,
                                           size_t data_size, uint64_t offset, const char *path);

#endif /* BASE_IO_WHOLE_FILE_H */
