/* source.c - see source.h. */
#include "data/source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/io/whole_file.h"

#define ZSTD_WINDOW_LOG_MAX 27 /* 128 MiB: what zstd itself unpacks unasked */
#define GZIP_ANY_WINDOW     (15 + 16)

struct source_unpacker {
    z_stream gzip;
    bool gzip_begun;
    ZSTD_DStream *zstd; /* NULL: gzip */
    bool inside;        /* of a member or a frame */
};

static enum status refuse_file(const struct source_file *source, struct error *error,
                               const char *why)
{
    return error_set(error, STATUS_BAD_FORMAT, "%s: %s", source->path, why);
}

/* ---- bytes of the file ---- */

static enum status read_raw(struct source_file *source, struct error *error)
{
    ssize_t got;

    source->raw_at = 0;
    source->raw_size = 0;
    do {
        got = read(source->descriptor, source->raw, SOURCE_PIECE_SIZE);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return error_set_errno(error, "cannot read %s", source->path);
    }
    sha256_add(&source->hash, source->raw, (size_t)got);
    source->taken += (uint64_t)got;
    source->raw_size = (size_t)got;
    return STATUS_OK;
}

/* ---- unpacking ---- */

static enum status unpack_gzip(struct source_file *source, struct error *error)
{
    struct source_unpacker *unpacker = source->unpacker;
    z_stream *stream = &unpacker->gzip;
    int done;

    if (!unpacker->inside && inflateReset(stream) != Z_OK) {
        return refuse_file(source, error, "gzip could not begin");
    }
    unpacker->inside = true;
    stream->next_in = source->raw + source->raw_at;
    stream->avail_in = (uInt)(source->raw_size - source->raw_at);
    stream->next_out = source->text;
    stream->avail_out = (uInt)SOURCE_PIECE_SIZE;
    done = inflate(stream, Z_NO_FLUSH);
    source->raw_at = source->raw_size - stream->avail_in;
    source->text_size = SOURCE_PIECE_SIZE - stream->avail_out;
    if (done == Z_STREAM_END) {
        unpacker->inside = false;
    } else if (done != Z_OK && done != Z_BUF_ERROR) {
        return refuse_file(source, error, "damaged, or no gzip");
    }
    return STATUS_OK;
}

static enum status unpack_zstd(struct source_file *source, struct error *error)
{
    ZSTD_inBuffer in = {source->raw, source->raw_size, source->raw_at};
    ZSTD_outBuffer out = {source->text, SOURCE_PIECE_SIZE, 0};
    size_t left = ZSTD_decompressStream(source->unpacker->zstd, &out, &in);

    if (ZSTD_isError(left)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: damaged, or no zstd: %s", source->path,
                         ZSTD_getErrorName(left));
    }
    source->unpacker->inside = left != 0;
    source->raw_at = in.pos;
    source->text_size = out.pos;
    return STATUS_OK;
}

/* The next text; none at the end. */
static enum status next_text(struct source_file *source, struct error *error)
{
    source->text_at = 0;
    source->text_size = 0;
    while (source->text_size == 0) {
        if (source->raw_at == source->raw_size) {
            TRY(read_raw(source, error));
            source->ended = source->raw_size == 0;
        }
        if (source->unpacker == NULL) {
            /* A plain file is not copied: the buffers of what was read and of the text change
             * places. */
            uint8_t *kept = source->text;

            source->text = source->raw;
            source->raw = kept;
            source->text_size = source->raw_size;
            source->raw_at = source->raw_size;
            break;
        }
        if (source->ended && !source->unpacker->inside) {
            break;
        }
        TRY(source->unpacker->zstd == NULL ? unpack_gzip(source, error)
                                           : unpack_zstd(source, error));
        /* The file ended within a compressed stream, and what is unpacked is used up. */
        if (source->ended && source->text_size == 0) {
            return refuse_file(source, error, "cut short");
        }
        source->ended = source->ended && source->text_size == 0;
    }
    return STATUS_OK;
}

/* ---- opening ---- */

static enum status begin_gzip(struct source_file *source, struct error *error)
{
    if (inflateInit2(&source->unpacker->gzip, GZIP_ANY_WINDOW) != Z_OK) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for gzip");
    }
    source->unpacker->gzip_begun = true;
    return STATUS_OK;
}

static enum status begin_zstd(struct source_file *source, struct error *error)
{
    source->unpacker->zstd = ZSTD_createDStream();
    if (source->unpacker->zstd == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(source->unpacker->zstd, ZSTD_d_windowLogMax,
                                            ZSTD_WINDOW_LOG_MAX))) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for zstd");
    }
    return STATUS_OK;
}

/* Looks at the first bytes. */
static enum status choose_kind(struct source_file *source, struct error *error)
{
    static const uint8_t gzip[] = {0x1f, 0x8b};
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    bool is_gzip;
    bool is_zstd;

    TRY(read_raw(source, error));
    is_gzip = source->raw_size >= sizeof(gzip) && memcmp(source->raw, gzip, sizeof(gzip)) == 0;
    is_zstd = source->raw_size >= sizeof(zstd) && memcmp(source->raw, zstd, sizeof(zstd)) == 0;
    if (!is_gzip && !is_zstd) {
        uint8_t *kept = source->text;

        source->text = source->raw;
        source->raw = kept;
        source->text_size = source->raw_size;
        source->raw_at = source->raw_size;
        return STATUS_OK;
    }
    source->unpacker = calloc(1, sizeof(*source->unpacker));
    if (source->unpacker == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for %s", source->path);
    }
    return is_gzip ? begin_gzip(source, error) : begin_zstd(source, error);
}

enum status source_open(struct source_file *source, struct error *error, const char *path)
{
    enum status status;

    *source = (struct source_file){.path = path, .descriptor = -1};
    sha256_init(&source->hash, SHA256_ISA_BEST);
    TRY(whole_file_read_open(&source->descriptor, &source->size, error, path));
    source->raw = malloc(SOURCE_PIECE_SIZE);
    source->text = malloc(SOURCE_PIECE_SIZE);
    status = source->raw == NULL || source->text == NULL
                 ? error_set(error, STATUS_NO_MEMORY, "out of memory for %s", path)
                 : choose_kind(source, error);
    if (status != STATUS_OK) {
        source_close(source);
    }
    return status;
}

void source_close(struct source_file *source)
{
    if (source->unpacker != NULL) {
        if (source->unpacker->gzip_begun) {
            (void)inflateEnd(&source->unpacker->gzip);
        }
        (void)ZSTD_freeDStream(source->unpacker->zstd);
        free(source->unpacker);
    }
    free(source->raw);
    free(source->text);
    if (source->descriptor >= 0) {
        (void)close(source->descriptor);
    }
    *source = (struct source_file){.descriptor = -1};
}

/* ---- lines ---- */

/* Moves text to out, up to an end of a line, or all. */
static enum status take_text(struct source_file *source, struct error *error, struct buffer *out,
                             bool whole_line, bool *line_end, size_t size_max)
{
    const uint8_t *from = source->text + source->text_at;
    size_t left = source->text_size - source->text_at;
    const uint8_t *end = whole_line ? memchr(from, '\n', left) : NULL;
    size_t size = end == NULL ? left : (size_t)(end - from);

    if (out->size + size > size_max) {
        (void)error_set(error, STATUS_OVER_LIMIT, "%s:%llu: more than %zu MiB in one %s",
                        source->path, (unsigned long long)source->line, size_max >> 20,
                        whole_line ? "line" : "text");
        if (!whole_line) {
            error_advise(error, "--split-on line or --split-on blank makes several examples of it");
        }
        return STATUS_OVER_LIMIT;
    }
    buffer_add(out, from, size);
    *line_end = end != NULL;
    source->text_at += size + (end != NULL);
    source->unpacked += size + (end != NULL);
    return buffer_check(out, error, "text");
}

enum status source_line(struct source_file *source, struct error *error, struct buffer *line,
                        bool *more, size_t size_max)
{
    bool line_end = false;

    buffer_clear(line);
    *more = false;
    source->line++;
    while (!line_end) {
        if (source->text_at == source->text_size) {
            TRY(next_text(source, error));
            if (source->text_size == 0) {
                break;
            }
        }
        *more = true;
        TRY(take_text(source, error, line, true, &line_end, size_max));
    }
    return STATUS_OK;
}

enum status source_rest(struct source_file *source, struct error *error, struct buffer *rest,
                        size_t size_max)
{
    bool line_end = false;

    buffer_clear(rest);
    source->line++;
    for (;;) {
        if (source->text_at == source->text_size) {
            TRY(next_text(source, error));
            if (source->text_size == 0) {
                return STATUS_OK;
            }
        }
        TRY(take_text(source, error, rest, false, &line_end, size_max));
    }
}

void source_digest(const struct source_file *source, struct digest *digest)
{
    struct sha256 hash = source->hash;

    sha256_end(&hash, digest);
}
