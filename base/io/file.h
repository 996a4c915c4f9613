/*
 * file.h - files that are either whole or not there, locks that one process holds, and reading
 * with a bound. Paths are borrowed; every failure names the path.
 */
#ifndef BASE_IO_FILE_H
#define BASE_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define FILE_PATH_MAX 4096

/* The bytes of a file, followed by a NUL that size does not count. */
struct file_bytes {
    uint8_t *data;
    size_t size;
};

/*
 * Reads a whole regular file of at most size_max bytes. STATUS_NOT_FOUND: no such file.
 * STATUS_OVER_LIMIT: larger. The caller releases bytes; they are zero-filled on failure.
 */
MUST_CHECK enum status file_read(struct file_bytes *bytes, struct error *error, const char *path,
                                 size_t size_max);

/* Accepts zero-filled bytes. */
void file_bytes_release(struct file_bytes *bytes);

/*
 * Puts size bytes at path, whole or not at all: they are written to a file beside it, synced,
 * renamed over path, and the folder is synced. mode is that of a new file (0600 for keys).
 */
MUST_CHECK enum status file_write(const char *path, struct error *error, const void *data,
                                  size_t size, mode_t mode);

/* As file_write, but STATUS_REFUSED when path exists already: it is never replaced. */
MUST_CHECK enum status file_write_new(const char *path, struct error *error, const void *data,
                                      size_t size, mode_t mode);

/* Removes a folder of ours with all that is in it, as far as it can; follows no link. */
void file_remove_folder(const char *path);

/* Makes a folder and those above it, with mode. An existing folder is fine. */
MUST_CHECK enum status file_make_folder(const char *path, struct error *error, mode_t mode);

/* Makes the state folder of a program, with mode 0700. STATUS_REFUSED: others may read it or write
 * to it, with the line that mends that. */
MUST_CHECK enum status file_private_folder(const char *path, struct error *error);

bool file_exists(const char *path);

/* A lock that the kernel drops when the process ends, however it ends. */
struct file_lock {
    int descriptor; /* -1: not held */
};

/*
 * Never waits: STATUS_REFUSED says which process holds it, and advises to stop that one or to do
 * what instead says ("name another bundle"). The lock file stays where it is.
 */
MUST_CHECK enum status file_lock_open(struct file_lock *lock, struct error *error, const char *path,
                                      const char *instead);

void file_lock_close(struct file_lock *lock);

/* out = folder "/" name; STATUS_OVER_LIMIT when it does not fit. */
MUST_CHECK enum status file_path_join(char *out, size_t out_size, struct error *error,
                                      const char *folder, const char *name);

enum file_place {
    FILE_PLACE_CONFIG, /* XDG_CONFIG_HOME, ~/.config */
    FILE_PLACE_DATA,   /* XDG_DATA_HOME, ~/.local/share */
    FILE_PLACE_STATE,  /* XDG_STATE_HOME, ~/.local/state */
};

/* The path of name below Lockstep's folder in that place: "~/.config/lockstep/config". */
MUST_CHECK enum status file_place(char *out, size_t out_size, struct error *error,
                                  enum file_place place, const char *name);

#endif /* BASE_IO_FILE_H */
