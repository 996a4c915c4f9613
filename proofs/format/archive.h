/*
 * archive.h - a few files in one: a ustar archive in a zstd frame, as `tar --zstd -x` reads it.
 *
 * There is one way to write an archive: plain files with fixed modes and times, in one frame with a
 * checksum, and nothing after it. A reader accepts only the header that a writer writes for that
 * name and size. So it refuses links, folders, devices, foreign owners and dialects unseen. The
 * caller judges a name before it reads a byte of the entry. Memory does not depend on the archive,
 * and a reader unpacks at most size_max bytes. Errors about the content name neither file nor byte:
 * the caller adds them.
 */
#ifndef PROOFS_FORMAT_ARCHIVE_H
#define PROOFS_FORMAT_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/io/whole_file.h"

#define ARCHIVE_NAME_MAX  99
#define ARCHIVE_BLOCK     512
#define ARCHIVE_PIECE     65536
#define ARCHIVE_LEVEL     3  /* of compression: floats do not get smaller at higher levels */
#define ARCHIVE_LOG_MAX   27 /* of the largest window that a reader accepts: 128 MiB */
#define ARCHIVE_ENTRY_MAX (UINT64_C(1) << 50)

/* ---- writing ---- */

struct archive_writer {
    struct whole_file file;
    void *stream;  /* of libzstd; NULL: not open */
    uint64_t left; /* bytes of the entry that are still to come */
    uint64_t padding;
    uint8_t out[ARCHIVE_PIECE];
};

MUST_CHECK enum status archive_writer_open(struct archive_writer *writer, struct error *error,
                                           const char *path);

/* Begins an entry of exactly size bytes. The entry before must be complete. */
MUST_CHECK enum status archive_writer_begin(struct archive_writer *writer, struct error *error,
                                            const char *name, uint64_t size);
MUST_CHECK enum status archive_writer_add(struct archive_writer *writer, struct error *error,
                                          const void *data, size_t size);

/* Ends the archive and makes the file appear. STATUS_REFUSED: the file exists. Closes the writer
 * either way. */
MUST_CHECK enum status archive_writer_keep(struct archive_writer *writer, struct error *error);

/* Forgets the file. Does nothing after keep, a failed open, or on a zero-filled writer whose file's
 * descriptor is -1. */
void archive_writer_drop(struct archive_writer *writer);

/* ---- reading ---- */

struct archive_reader {
    int descriptor;
    void *stream;      /* of libzstd; NULL: not open */
    uint64_t unpacked; /* bytes so far; an error is at this byte */
    uint64_t unpacked_left;
    uint64_t left; /* bytes of the entry that are still to be read */
    uint64_t padding;
    size_t in_at;
    size_t in_size;
    bool ended;     /* the frame is over */
    char path[256]; /* for errors; a longer one is cut */
    uint8_t in[ARCHIVE_PIECE];
};

/* size_max: the most that all entries together may unpack to. */
MUST_CHECK enum status archive_reader_open(struct archive_reader *reader, struct error *error,
                                           const char *path, uint64_t size_max);

/* The next entry; the caller has read the one before to its end. STATUS_NOT_FOUND: the archive
 * has ended, and it is whole. */
MUST_CHECK enum status archive_reader_next(struct archive_reader *reader, struct error *error,
                                           char name[ARCHIVE_NAME_MAX + 1], uint64_t *size);

/* The next bytes of the entry; more than are left is the caller's bug. */
MUST_CHECK enum status archive_reader_read(struct archive_reader *reader, struct error *error,
                                           void *data, size_t size);
void archive_reader_close(struct archive_reader *reader);

#endif /* PROOFS_FORMAT_ARCHIVE_H */
