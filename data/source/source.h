/*
 * source.h - a file of text, plain or compressed, in pieces and in lines.
 *
 * gzip (also several members) and zstd (also several frames) are known by their first bytes. Memory
 * is bounded, no matter how much a file unfolds to. A file that ends in the midst of a compressed
 * stream is refused. The SHA-256 is that of the file as it lies, so it is whole only at the end.
 */
#ifndef DATA_SOURCE_SOURCE_H
#define DATA_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "proofs/hash/sha256.h"

#define SOURCE_PIECE_SIZE ((size_t)256 << 10)

struct source_unpacker; /* zlib's or zstd's */

struct source_file {
    const char *path; /* borrowed */
    int descriptor;
    uint64_t size;     /* of the file */
    uint64_t taken;    /* bytes of the file that were read */
    uint64_t unpacked; /* bytes of text that were given out */
    uint64_t line;     /* of the line that source_line() gave last; the first is 1 */
    struct sha256 hash;
    struct source_unpacker *unpacker;
    uint8_t *raw; /* read from the file; raw_at is not unpacked yet */
    size_t raw_at;
    size_t raw_size;
    uint8_t *text; /* unpacked; text_at is not given out yet */
    size_t text_at;
    size_t text_size;
    bool ended;
};

/* Borrows path until source_close(). On failure there is nothing to close. */
MUST_CHECK enum status source_open(struct source_file *source, struct error *error,
                                   const char *path);
void source_close(struct source_file *source);

/* The next line without its end; line is cleared first. *more is false behind
 * the last. A line of more than size_max bytes is refused. */
MUST_CHECK enum status source_line(struct source_file *source, struct error *error,
                                   struct buffer *line, bool *more, size_t size_max);

/* All that is left, of at most size_max bytes; line is cleared first. */
MUST_CHECK enum status source_rest(struct source_file *source, struct error *error,
                                   struct buffer *rest, size_t size_max);

/* After the last line. */
void source_digest(const struct source_file *source, struct digest *digest);

#endif /* DATA_SOURCE_SOURCE_H */
