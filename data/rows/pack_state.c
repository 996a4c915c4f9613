/*
 * pack_state.c - see pack_state.h.
 *
 * Big-endian: the magic, SHA-256 of what the rows follow from, counts, place, digests, the packers,
 * and SHA-256 of all that stands before it. The format is this program's own and lives for one run.
 */
#include "data/rows/pack_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/version.h"
#include "data/rows/manifest.h"

#define STATE_MAX  ((size_t)1 << 31)
#define STATE_HEAD "lockstep packing 1, " LOCKSTEP_VERSION "\n"

/* SHA-256 of options, sources' names and the tokenizer's files. */
static enum status purpose_of(struct digest *digest, struct error *error,
                              const struct packing *packing)
{
    json_t *options = manifest_options(packing->options);
    struct sha256 hash;
    struct buffer text;
    enum status status;

    buffer_init(&text, 1 << 20);
    sha256_init(&hash, SHA256_ISA_BEST);
    status = strict_json_write(&text, error, options, JSON_SORT_KEYS | JSON_COMPACT);
    if (status == STATUS_OK) {
        sha256_add(&hash, text.data, text.size);
        for (size_t i = 0; i < packing->options->source_count; i++) {
            sha256_add(&hash, packing->options->sources[i],
                       strlen(packing->options->sources[i]) + 1);
        }
        for (size_t i = 0; i < packing->tokenizer.file_count; i++) {
            sha256_add(&hash, packing->tokenizer.files[i].sha256.bytes, DIGEST_SIZE);
        }
        sha256_end(&hash, digest);
    }
    json_decref(options);
    buffer_release(&text);
    return status;
}

/* The midstate of a hash, so that it can go on. */
static void add_hash(struct buffer *out, const struct sha256 *hash)
{
    for (size_t i = 0; i < 8; i++) {
        buffer_add_u32(out, hash->state[i]);
    }
    buffer_add_u64(out, hash->size);
    buffer_add(out, hash->block, sizeof(hash->block));
}

static void read_hash(struct sha256 *hash, struct reader *reader)
{
    for (size_t i = 0; i < 8; i++) {
        hash->state[i] = reader_u32(reader);
    }
    hash->size = reader_u64(reader);
    reader_copy(reader, hash->block, sizeof(hash->block));
}

static void add_all(struct buffer *out, const struct packing *packing, const struct digest *purpose)
{
    uint64_t counts[PACKING_COUNTS];
    struct digest digest;

    memcpy(counts, &packing->counts, sizeof(counts));
    buffer_add_text(out, STATE_HEAD);
    buffer_add(out, purpose->bytes, DIGEST_SIZE);
    for (size_t i = 0; i < PACKING_COUNTS; i++) {
        buffer_add_u64(out, counts[i]);
    }
    buffer_add_u32(out, (uint32_t)packing->source);
    buffer_add_u64(out, packing->source_examples);
    add_hash(out, &packing->given);
    for (size_t i = 0; i < packing->source; i++) {
        buffer_add(out, packing->done[i].sha256.bytes, DIGEST_SIZE);
        buffer_add_u64(out, packing->done[i].size);
    }
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        row_packer_write(&packing->packers[i], out);
    }
    sha256(&digest, out->data, out->size);
    buffer_add(out, digest.bytes, DIGEST_SIZE);
}

enum status pack_state_write(const struct packing *packing, struct error *error, const char *path)
{
    struct digest purpose;
    struct buffer out;
    enum status status;

    buffer_init(&out, STATE_MAX);
    TRY_OUT(purpose_of(&purpose, error, packing));
    add_all(&out, packing, &purpose);
    TRY_OUT(buffer_check(&out, error, "state of a packing"));
    status = file_write(path, error, out.data, out.size, 0666);
out:
    buffer_release(&out);
    return status;
}

static enum status read_all(struct packing *packing, struct error *error, struct reader *reader)
{
    uint64_t counts[PACKING_COUNTS];
    struct digest purpose;
    struct digest found;
    const uint8_t *head = reader_take(reader, strlen(STATE_HEAD));

    if (head == NULL || memcmp(head, STATE_HEAD, strlen(STATE_HEAD)) != 0) {
        return error_set(error, STATUS_REFUSED, "of another version of the program");
    }
    TRY(purpose_of(&purpose, error, packing));
    reader_copy(reader, found.bytes, DIGEST_SIZE);
    /* A state of other options, sources or tokenizer would go on with rows that these do not
     * make. */
    if (memcmp(&purpose, &found, sizeof(found)) != 0) {
        return error_set(error, STATUS_REFUSED, "of other options, sources or tokenizer");
    }
    for (size_t i = 0; i < PACKING_COUNTS; i++) {
        counts[i] = reader_u64(reader);
    }
    memcpy(&packing->counts, counts, sizeof(counts));
    packing->source = reader_u32(reader);
    packing->source_examples = reader_u64(reader);
    read_hash(&packing->given, reader);
    if (packing->source > packing->options->source_count) {
        return error_set(error, STATUS_BAD_FORMAT, "more sources than there are");
    }
    /* The sources that were done are not read again, but the manifest names their hashes and
     * sizes. */
    for (size_t i = 0; i < packing->source; i++) {
        reader_copy(reader, packing->done[i].sha256.bytes, DIGEST_SIZE);
        packing->done[i].size = reader_u64(reader);
        packing->bytes_before += packing->done[i].size;
    }
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        TRY(row_packer_read(&packing->packers[i], error, reader));
    }
    return reader_end(reader, error, "state");
}

/* A source that was done is the same as then, or the manifest would name another. */
static enum status check_done(const struct packing *packing, struct error *error)
{
    for (size_t i = 0; i < packing->source; i++) {
        const char *path = packing->options->sources[i];
        struct digest digest;
        struct source_file source;
        struct buffer line;
        enum status status;
        bool more = true;

        TRY(source_open(&source, error, path));
        buffer_init(&line, EXAMPLE_SIZE_MAX + 1);
        status = STATUS_OK;
        while (more && status == STATUS_OK) {
            status = source_line(&source, error, &line, &more, EXAMPLE_SIZE_MAX);
        }
        source_digest(&source, &digest);
        buffer_release(&line);
        source_close(&source);
        TRY(status);
        if (memcmp(&digest, &packing->done[i].sha256, sizeof(digest)) != 0) {
            return error_set(error, STATUS_REFUSED, "%s: changed since packing was stopped", path);
        }
    }
    return STATUS_OK;
}

enum status pack_state_read(struct packing *packing, struct error *error, const char *path)
{
    struct file_bytes bytes = {0};
    struct reader reader;
    struct digest digest;
    enum status status;

    TRY(file_read(&bytes, error, path, STATE_MAX));
    if (bytes.size < DIGEST_SIZE) {
        TRY_OUT(error_set(error, STATUS_BAD_FORMAT, "cut short"));
    }
    sha256(&digest, bytes.data, bytes.size - DIGEST_SIZE);
    if (memcmp(digest.bytes, bytes.data + bytes.size - DIGEST_SIZE, DIGEST_SIZE) != 0) {
        TRY_OUT(error_set(error, STATUS_BAD_FORMAT, "damaged"));
    }
    reader_init(&reader, bytes.data, bytes.size - DIGEST_SIZE);
    TRY_OUT(read_all(packing, error, &reader));
    status = check_done(packing, error);
out:
    file_bytes_release(&bytes);
    return status == STATUS_OK ? STATUS_OK : error_wrap(error, "%s", path);
}
