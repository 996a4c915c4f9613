/* archive.c - see archive.h. */
#include "proofs/format/archive.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

static const uint8_t zeros[ARCHIVE_BLOCK];

/* ---- headers ------------------------------------------------------------ */

/* Where the fields of a ustar header are (POSIX.1-2017, pax, ustar interchange format). */
enum {
    HEADER_NAME = 0,
    HEADER_MODE = 100,
    HEADER_UID = 108,
    HEADER_GID = 116,
    HEADER_SIZE = 124,
    HEADER_TIME = 136,
    HEADER_SUM = 148,
    HEADER_TYPE = 156,
    HEADER_MAGIC = 257,
    HEADER_DEVICE_MAJOR = 329,
    HEADER_DEVICE_MINOR = 337,
};
#define SIZE_FIELD 12
/* The largest size in eleven octal digits; larger ones are written in binary, as GNU tar does. */
#define OCTAL_MAX  UINT64_C(077777777777)

static void put_octal(uint8_t *header, int at, int digits, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%0*llo", digits, (unsigned long long)value);
    memcpy(header + at, text, (size_t)digits);
}

static void put_size(uint8_t *header, uint64_t size)
{
    if (size <= OCTAL_MAX) {
        put_octal(header, HEADER_SIZE, SIZE_FIELD - 1, size);
        return;
    }
    header[HEADER_SIZE] = 0x80;
    for (int i = 0; i < 8; i++) {
        header[HEADER_SIZE + SIZE_FIELD - 1 - i] = (uint8_t)(size >> (8 * i));
    }
}

/* The only header for this name and size. */
static void make_header(uint8_t header[ARCHIVE_BLOCK], const char *name, uint64_t size)
{
    uint32_t sum = 0;

    memset(header, 0, ARCHIVE_BLOCK);
    memcpy(header + HEADER_NAME, name, strlen(name));
    put_octal(header, HEADER_MODE, 7, 0644);
    put_octal(header, HEADER_UID, 7, 0);
    put_octal(header, HEADER_GID, 7, 0);
    put_size(header, size);
    put_octal(header, HEADER_TIME, 11, 0);
    memset(header + HEADER_SUM, ' ', 8);
    header[HEADER_TYPE] = '0';
    memcpy(header + HEADER_MAGIC, "ustar\00000", 8);
    put_octal(header, HEADER_DEVICE_MAJOR, 7, 0);
    put_octal(header, HEADER_DEVICE_MINOR, 7, 0);
    for (int i = 0; i < ARCHIVE_BLOCK; i++) {
        sum += header[i];
    }
    put_octal(header, HEADER_SUM, 6, sum);
    header[HEADER_SUM + 6] = 0;
}

static uint64_t padding_of(uint64_t size)
{
    return (ARCHIVE_BLOCK - size % ARCHIVE_BLOCK) % ARCHIVE_BLOCK;
}

/* Reads name and size of a header. False: a writer would not have written this header. */
static bool read_header(char name[ARCHIVE_NAME_MAX + 1], uint64_t *size,
                        const uint8_t header[ARCHIVE_BLOCK])
{
    uint8_t expected[ARCHIVE_BLOCK];
    size_t length = strnlen((const char *)header, ARCHIVE_NAME_MAX + 1);

    if (length == 0 || length > ARCHIVE_NAME_MAX) {
        return false;
    }
    memcpy(name, header, length);
    name[length] = '\0';
    *size = 0;
    for (int i = 0; i < SIZE_FIELD - 1; i++) {
        uint8_t byte = header[HEADER_SIZE + i];

        if (header[HEADER_SIZE] == 0x80) {
            *size = *size << 8 | header[HEADER_SIZE + i + 1];
        } else if (byte < '0' || byte > '7') {
            return false;
        } else {
            *size = *size << 3 | (uint64_t)(byte - '0');
        }
    }
    if (*size > ARCHIVE_ENTRY_MAX) {
        return false;
    }
    make_header(expected, name, *size);
    return memcmp(expected, header, ARCHIVE_BLOCK) == 0;
}

/* ---- writing ------------------------------------------------------------ */

static enum status zstd_failed(struct error *error, const char *path, size_t code)
{
    return error_set(error, STATUS_NO_MEMORY, "cannot compress '%s': %s", path,
                     ZSTD_getErrorName(code));
}

enum status archive_writer_open(struct archive_writer *writer, struct error *error,
                                const char *path)
{
    enum status status;
    size_t code;

    writer->file.descriptor = -1;
    writer->left = 0;
    writer->padding = 0;
    writer->stream = ZSTD_createCCtx();
    if (writer->stream == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to compress '%s'", path);
    }
    code = ZSTD_CCtx_setParameter(writer->stream, ZSTD_c_compressionLevel, ARCHIVE_LEVEL);
    if (!ZSTD_isError(code)) {
        code = ZSTD_CCtx_setParameter(writer->stream, ZSTD_c_checksumFlag, 1);
    }
    status = ZSTD_isError(code) ? zstd_failed(error, path, code)
                                : whole_file_open(&writer->file, error, path, 0644);
    if (status != STATUS_OK) {
        archive_writer_drop(writer);
    }
    return status;
}

static enum status compress_bytes(struct archive_writer *writer, struct error *error,
                                  const void *data, size_t size, bool last)
{
    ZSTD_inBuffer in = {data, size, 0};
    size_t left;

    do {
        ZSTD_outBuffer out = {writer->out, sizeof(writer->out), 0};

        left = ZSTD_compressStream2(writer->stream, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            return zstd_failed(error, writer->file.path, left);
        }
        TRY(whole_file_add(&writer->file, error, writer->out, out.pos));
    } while (in.pos < in.size || (last && left > 0));
    return STATUS_OK;
}

static enum status pad_entry(struct archive_writer *writer, struct error *error)
{
    enum status status;

    assert(writer->left == 0);
    status = compress_bytes(writer, error, zeros, (size_t)writer->padding, false);
    writer->padding = 0;
    return status;
}

enum status archive_writer_begin(struct archive_writer *writer, struct error *error,
                                 const char *name, uint64_t size)
{
    uint8_t header[ARCHIVE_BLOCK];

    assert(strlen(name) <= ARCHIVE_NAME_MAX);
    if (size > ARCHIVE_ENTRY_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "'%s' is too large for an archive", name);
    }
    TRY(pad_entry(writer, error));
    writer->left = size;
    writer->padding = padding_of(size);
    make_header(header, name, size);
    return compress_bytes(writer, error, header, sizeof(header), false);
}

enum status archive_writer_add(struct archive_writer *writer, struct error *error, const void *data,
                               size_t size)
{
    assert(size <= writer->left);
    writer->left -= size;
    return compress_bytes(writer, error, data, size, false);
}

enum status archive_writer_keep(struct archive_writer *writer, struct error *error)
{
    enum status status;

    TRY_OUT(pad_entry(writer, error));
    TRY_OUT(compress_bytes(writer, error, zeros, ARCHIVE_BLOCK, false));
    TRY_OUT(compress_bytes(writer, error, zeros, ARCHIVE_BLOCK, true));
    TRY_OUT(whole_file_keep_new(&writer->file, error));
out:
    archive_writer_drop(writer);
    return status;
}

void archive_writer_drop(struct archive_writer *writer)
{
    whole_file_drop(&writer->file);
    ZSTD_freeCCtx(writer->stream);
    writer->stream = NULL;
}

/* ---- reading ------------------------------------------------------------ */

static enum status open_stream(struct archive_reader *reader, struct error *error,
                               uint64_t size_max)
{
    size_t code;

    reader->left = 0;
    reader->padding = 0;
    reader->in_at = 0;
    reader->in_size = 0;
    reader->ended = false;
    reader->unpacked = 0;
    reader->unpacked_left = size_max;
    reader->stream = ZSTD_createDCtx();
    if (reader->stream == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to unpack '%s'", reader->path);
    }
    code = ZSTD_DCtx_setParameter(reader->stream, ZSTD_d_windowLogMax, ARCHIVE_LOG_MAX);
    return ZSTD_isError(code) ? zstd_failed(error, reader->path, code) : STATUS_OK;
}

enum status archive_reader_open(struct archive_reader *reader, struct error *error,
                                const char *path, uint64_t size_max)
{
    uint64_t file_size;
    enum status status;

    reader->stream = NULL;
    (void)snprintf(reader->path, sizeof(reader->path), "%s", path);
    TRY(whole_file_read_open(&reader->descriptor, &file_size, error, path));
    status = open_stream(reader, error, size_max);
    if (status != STATUS_OK) {
        archive_reader_close(reader);
    }
    return status;
}

static enum status refused_archive(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "%s", what);
}

/* Fills the input; leaves it empty at the end of the file. */
static enum status refill_input(struct archive_reader *reader, struct error *error)
{
    ssize_t got;

    reader->in_at = 0;
    reader->in_size = 0;
    do {
        got = read(reader->descriptor, reader->in, sizeof(reader->in));
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return error_set_errno(error, "cannot read '%s'", reader->path);
    }
    reader->in_size = (size_t)got;
    return STATUS_OK;
}

static enum status unpack_bytes(struct archive_reader *reader, struct error *error, void *data,
                                size_t size)
{
    ZSTD_outBuffer out = {data, size, 0};

    /* A few bytes can unpack to terabytes: what is asked for is counted before it is unpacked. */
    if (size > reader->unpacked_left) {
        return error_set(error, STATUS_OVER_LIMIT, "it unpacks to more than is allowed");
    }
    reader->unpacked_left -= size;
    while (out.pos < out.size) {
        ZSTD_inBuffer in = {reader->in, reader->in_size, reader->in_at};
        size_t before = out.pos;
        size_t code;

        if (reader->ended) {
            return refused_archive(error, "it ends early");
        }
        code = ZSTD_decompressStream(reader->stream, &out, &in);
        reader->unpacked += out.pos - before;
        if (ZSTD_isError(code)) {
            return refused_archive(error, ZSTD_getErrorName(code));
        }
        /* Neither input taken nor output made: the stream wants bytes that are not here. */
        bool stuck = in.pos == reader->in_at && out.pos == before;

        reader->in_at = in.pos;
        reader->ended = code == 0;
        if (stuck && reader->in_at == reader->in_size && !reader->ended) {
            TRY(refill_input(reader, error));
            if (reader->in_size == 0) {
                return refused_archive(error, "it ends early");
            }
        }
    }
    return STATUS_OK;
}

static enum status need_zeros(struct archive_reader *reader, struct error *error, size_t size)
{
    uint8_t block[ARCHIVE_BLOCK];

    TRY(unpack_bytes(reader, error, block, size));
    return memcmp(block, zeros, size) == 0 ? STATUS_OK
                                           : refused_archive(error, "bytes between the files");
}

/* After the last block only the end of the frame may follow, with its checksum. */
static enum status need_end(struct archive_reader *reader, struct error *error)
{
    uint8_t byte;

    while (!reader->ended) {
        ZSTD_outBuffer out = {&byte, 1, 0};
        ZSTD_inBuffer in;
        size_t code;

        if (reader->in_at == reader->in_size) {
            TRY(refill_input(reader, error));
            if (reader->in_size == 0) {
                return refused_archive(error, "it ends early");
            }
        }
        in = (ZSTD_inBuffer){reader->in, reader->in_size, reader->in_at};
        code = ZSTD_decompressStream(reader->stream, &out, &in);
        reader->in_at = in.pos;
        reader->ended = code == 0;
        if (ZSTD_isError(code) || out.pos > 0) {
            return refused_archive(error, "it does not end where its files do");
        }
    }
    if (reader->in_at == reader->in_size) {
        TRY(refill_input(reader, error));
    }
    return reader->in_at < reader->in_size ? refused_archive(error, "bytes after the archive")
                                           : STATUS_OK;
}

enum status archive_reader_next(struct archive_reader *reader, struct error *error,
                                char name[ARCHIVE_NAME_MAX + 1], uint64_t *size)
{
    uint8_t header[ARCHIVE_BLOCK];

    assert(reader->left == 0);
    TRY(need_zeros(reader, error, (size_t)reader->padding));
    reader->padding = 0;
    TRY(unpack_bytes(reader, error, header, sizeof(header)));
    if (memcmp(header, zeros, sizeof(header)) == 0) {
        TRY(need_zeros(reader, error, ARCHIVE_BLOCK));
        TRY(need_end(reader, error));
        return STATUS_NOT_FOUND;
    }
    if (!read_header(name, size, header)) {
        return refused_archive(
            error, "an entry that no bundle's archive has (a link, an owner, another dialect "
                   "of tar)");
    }
    reader->left = *size;
    reader->padding = padding_of(*size);
    return STATUS_OK;
}

enum status archive_reader_read(struct archive_reader *reader, struct error *error, void *data,
                                size_t size)
{
    assert(size <= reader->left);
    reader->left -= size;
    return unpack_bytes(reader, error, data, size);
}

void archive_reader_close(struct archive_reader *reader)
{
    if (reader->descriptor >= 0) {
        close(reader->descriptor);
        reader->descriptor = -1;
    }
    ZSTD_freeDCtx(reader->stream);
    reader->stream = NULL;
}
