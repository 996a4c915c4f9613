/* encryption_file.c - see encryption.h: files encrypted in chunks. */
#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/secret.h"
#include "proofs/format/encryption.h"
#include "proofs/format/encryption_cipher.h"

static const char file_tag[ENCRYPTION_TEXT_TAG_SIZE] = "lockstep.encrypted.v1";

#define ENCRYPTED_CHUNK_SIZE (ENCRYPTION_CHUNK_SIZE + ENCRYPTION_TAG_SIZE)
/* Far below the number of nonces, and more than any disk. */
#define CHUNKS_MAX           (UINT64_C(1) << 40)

/* docs/FORMATS.md, nonce: the chunk's index (8), zeros (3), 1 in the last chunk or 0 (1). */
static void chunk_nonce(uint8_t nonce[ENCRYPTION_NONCE_SIZE], uint64_t index, bool last)
{
    memset(nonce, 0, ENCRYPTION_NONCE_SIZE);
    endian_store_be64(nonce, index);
    nonce[ENCRYPTION_NONCE_SIZE - 1] = last ? 1 : 0;
}

/* Closes everything and wipes what was in the clear. */
static void writer_end(struct encryption_writer *writer)
{
    EVP_CIPHER_CTX_free(writer->cipher);
    writer->cipher = NULL;
    secret_wipe(writer->plain, sizeof(writer->plain));
}

enum status encryption_writer_open(struct encryption_writer *writer, struct error *error,
                                   const char *path, const struct encryption_key *key,
                                   const char *context)
{
    uint8_t header[ENCRYPTION_HEADER_SIZE];
    enum status status;

    writer->file.descriptor = -1;
    writer->chunk_index = 0;
    writer->used = 0;
    writer->cipher = NULL;
    memcpy(header, file_tag, sizeof(file_tag));
    TRY(secret_random(header + sizeof(file_tag), ENCRYPTION_SALT_SIZE, error));
    TRY(encryption_cipher_new(&writer->cipher, error, key, header + sizeof(file_tag), file_tag,
                              context, true));
    TRY_OUT(whole_file_open(&writer->file, error, path, 0600));
    TRY_OUT(whole_file_add(&writer->file, error, header, sizeof(header)));
out:
    if (status != STATUS_OK) {
        encryption_writer_drop(writer);
    }
    return status;
}

static enum status write_chunk(struct encryption_writer *writer, struct error *error, bool last)
{
    uint8_t nonce[ENCRYPTION_NONCE_SIZE];

    if (writer->chunk_index >= CHUNKS_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "'%s' is too large to encrypt",
                         writer->file.path);
    }
    chunk_nonce(nonce, writer->chunk_index, last);
    TRY(encryption_cipher_encrypt(writer->cipher, error, writer->encrypted, nonce, writer->plain,
                                  writer->used));
    TRY(whole_file_add(&writer->file, error, writer->encrypted,
                       writer->used + ENCRYPTION_TAG_SIZE));
    writer->chunk_index++;
    writer->used = 0;
    return STATUS_OK;
}

enum status encryption_writer_add(struct encryption_writer *writer, struct error *error,
                                  const void *data, size_t data_size)
{
    const uint8_t *bytes = data;

    while (data_size > 0) {
        size_t room = ENCRYPTION_CHUNK_SIZE - writer->used;
        size_t taken = data_size < room ? data_size : room;

        /* A full chunk waits until more bytes come: it may be the last. */
        if (room == 0) {
            TRY(write_chunk(writer, error, false));
            continue;
        }
        memcpy(writer->plain + writer->used, bytes, taken);
        writer->used += (uint32_t)taken;
        bytes += taken;
        data_size -= taken;
    }
    return STATUS_OK;
}

enum status encryption_writer_keep(struct encryption_writer *writer, struct error *error)
{
    enum status status = write_chunk(writer, error, true);

    if (status == STATUS_OK) {
        status = whole_file_keep(&writer->file, error);
    } else {
        whole_file_drop(&writer->file);
    }
    writer_end(writer);
    return status;
}

void encryption_writer_drop(struct encryption_writer *writer)
{
    if (writer->cipher != NULL) {
        whole_file_drop(&writer->file);
        writer_end(writer);
    }
}

static enum status read_chunk(struct encryption_reader *reader, struct error *error, uint64_t index)
{
    uint64_t start = index * ENCRYPTION_CHUNK_SIZE;
    uint64_t left = reader->size - start;
    uint32_t size = left < ENCRYPTION_CHUNK_SIZE ? (uint32_t)left : ENCRYPTION_CHUNK_SIZE;
    uint8_t nonce[ENCRYPTION_NONCE_SIZE];
    enum status status =
        whole_file_read_at(reader->descriptor, error, reader->encrypted, size + ENCRYPTION_TAG_SIZE,
                           ENCRYPTION_HEADER_SIZE + index * ENCRYPTED_CHUNK_SIZE, reader->path);

    reader->chunk_index = UINT64_MAX;
    if (status != STATUS_OK) {
        return status;
    }
    chunk_nonce(nonce, index, index == reader->chunk_count - 1);
    status = encryption_cipher_open(reader->cipher, error, reader->plain, nonce, reader->encrypted,
                                    size);
    if (status != STATUS_OK) {
        error_wrap(error, "'%s', %u bytes from byte %llu", reader->path, size,
                   (unsigned long long)start);
        return status;
    }
    reader->chunk_index = index;
    reader->chunk_size = size;
    return STATUS_OK;
}

/* Finds the chunks from the size of the file: whole ones, then one that is empty only if it is
 * alone. */
static bool measure_chunks(struct encryption_reader *reader, uint64_t file_size)
{
    uint64_t body;
    uint64_t rest;

    if (file_size < ENCRYPTION_HEADER_SIZE + ENCRYPTION_TAG_SIZE) {
        return false;
    }
    body = file_size - ENCRYPTION_HEADER_SIZE;
    rest = body % ENCRYPTED_CHUNK_SIZE;
    reader->chunk_count = body / ENCRYPTED_CHUNK_SIZE + (rest != 0);
    reader->size = body - reader->chunk_count * ENCRYPTION_TAG_SIZE;
    return reader->chunk_count <= CHUNKS_MAX &&
           (rest == 0 || rest > ENCRYPTION_TAG_SIZE || reader->chunk_count == 1);
}

static enum status reader_start(struct encryption_reader *reader, struct error *error,
                                uint64_t file_size, const struct encryption_key *key,
                                const char *context)
{
    uint8_t header[ENCRYPTION_HEADER_SIZE];

    if (!measure_chunks(reader, file_size)) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s': no encrypted file ends at byte %llu",
                         reader->path, (unsigned long long)file_size);
    }
    TRY(whole_file_read_at(reader->descriptor, error, header, sizeof(header), 0, reader->path));
    if (memcmp(header, file_tag, sizeof(file_tag)) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s': byte 0: this is not an encrypted file",
                         reader->path);
    }
    TRY(encryption_cipher_new(&reader->cipher, error, key, header + sizeof(file_tag), file_tag,
                              context, false));
    /* Only the last chunk knows where the file ends. */
    return read_chunk(reader, error, reader->chunk_count - 1);
}

enum status encryption_reader_open(struct encryption_reader *reader, struct error *error,
                                   const char *path, const struct encryption_key *key,
                                   const char *context)
{
    uint64_t file_size;
    enum status status;

    reader->cipher = NULL;
    reader->chunk_index = UINT64_MAX;
    snprintf(reader->path, sizeof(reader->path), "%s", path);
    TRY(whole_file_read_open(&reader->descriptor, &file_size, error, path));
    status = reader_start(reader, error, file_size, key, context);
    if (status != STATUS_OK) {
        encryption_reader_close(reader);
    }
    return status;
}

enum status encryption_reader_read(struct encryption_reader *reader, struct error *error,
                                   void *data, size_t data_size, uint64_t from)
{
    uint8_t *bytes = data;

    assert(from <= reader->size);
    assert(data_size <= reader->size - from);
    while (data_size > 0) {
        uint64_t index = from / ENCRYPTION_CHUNK_SIZE;
        uint32_t skip = (uint32_t)(from % ENCRYPTION_CHUNK_SIZE);
        size_t taken;

        if (index != reader->chunk_index) {
            TRY(read_chunk(reader, error, index));
        }
        taken = reader->chunk_size - skip;
        taken = data_size < taken ? data_size : taken;
        memcpy(bytes, reader->plain + skip, taken);
        bytes += taken;
        from += taken;
        data_size -= taken;
    }
    return STATUS_OK;
}

void encryption_reader_close(struct encryption_reader *reader)
{
    if (reader->descriptor >= 0) {
        close(reader->descriptor);
        reader->descriptor = -1;
    }
    EVP_CIPHER_CTX_free(reader->cipher);
    reader->cipher = NULL;
    secret_wipe(reader->plain, sizeof(reader->plain));
}
