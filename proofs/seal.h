/*
 * seal.h - encryption at rest: a key per bundle, files and small payloads that only it opens.
 *
 * AES-256-GCM of libcrypto. Every file and payload has a key of its own, derived from the bundle's
 * key, a fresh random salt and a context (what the file is), so that no nonce is used twice and no
 * file can stand in for another. A file is sealed in chunks that know their place and whether they
 * are the last: reordered, repeated, missing and changed chunks are all refused, and the last one
 * is checked first, so that a reader of the beginning of a file knows that its end is there.
 *
 * The bundle's key may be handed to a verifier, or locked with a passphrase by scrypt.
 */
#ifndef PROOFS_SEAL_H
#define PROOFS_SEAL_H

#include <stdint.h>

#include "base/error.h"
#include "base/whole_file.h"

#define SEAL_KEY_SIZE          32
#define SEAL_LOCK_SIZE         116
#define SEAL_HEADER_SIZE       64
#define SEAL_CHUNK_SIZE        65536
#define SEAL_TAG_SIZE          16
#define SEAL_CONTEXT_MAX       255
/* What a payload grows by. */
#define SEAL_BOX_EXTRA         (32 + SEAL_TAG_SIZE)
#define SEAL_BOX_MAX           (64u << 20)
/* scrypt: the cost we lock with (128 MiB), and the most that a foreign lock may ask for. */
#define SEAL_SCRYPT_LOG_N      17
#define SEAL_SCRYPT_R          8
#define SEAL_SCRYPT_P          1
#define SEAL_SCRYPT_MEMORY_MAX (UINT64_C(512) << 20)
#define SEAL_SCRYPT_P_MAX      4

/* The secret of one bundle. Wipe it on every path. */
struct seal_key {
    uint8_t bytes[SEAL_KEY_SIZE];
};

MUST_CHECK enum status seal_key_make(struct seal_key *key, struct error *error);
void seal_key_wipe(struct seal_key *key);

/* ---- a key under a passphrase ---- */

/* log_n is the base-2 logarithm of scrypt's N: SEAL_SCRYPT_LOG_N, or less in tests. */
MUST_CHECK enum status seal_lock(uint8_t lock[SEAL_LOCK_SIZE], struct error *error,
                                 const struct seal_key *key, const void *passphrase,
                                 size_t passphrase_size, unsigned log_n);

/* STATUS_REFUSED: another passphrase, or changed bytes (which of the two cannot be told). */
MUST_CHECK enum status seal_unlock(struct seal_key *key, struct error *error, const uint8_t *lock,
                                   size_t lock_size, const void *passphrase,
                                   size_t passphrase_size);

/* ---- small payloads ---- */

/* Writes data_size + SEAL_BOX_EXTRA bytes. context is a text of at most SEAL_CONTEXT_MAX bytes. */
MUST_CHECK enum status seal_box(uint8_t *box, struct error *error, const struct seal_key *key,
                                const char *context, const void *data, size_t data_size);

/* Writes box_size - SEAL_BOX_EXTRA bytes; what they are on failure means nothing. STATUS_REFUSED:
 * another key or context, or changed bytes. */
MUST_CHECK enum status seal_box_open(uint8_t *data, struct error *error, const struct seal_key *key,
                                     const char *context, const uint8_t *box, size_t box_size);

/* ---- files ---- */

struct evp_cipher_ctx_st; /* of libcrypto */

struct seal_writer {
    struct whole_file file;
    struct evp_cipher_ctx_st *cipher; /* NULL: not open */
    uint64_t chunk_index;
    uint32_t used;
    uint8_t plain[SEAL_CHUNK_SIZE];
    uint8_t sealed[SEAL_CHUNK_SIZE + SEAL_TAG_SIZE];
};

MUST_CHECK enum status seal_writer_open(struct seal_writer *writer, struct error *error,
                                        const char *path, const struct seal_key *key,
                                        const char *context);
MUST_CHECK enum status seal_writer_add(struct seal_writer *writer, struct error *error,
                                       const void *data, size_t data_size);

/* Makes the file appear, and closes the writer either way. */
MUST_CHECK enum status seal_writer_keep(struct seal_writer *writer, struct error *error);

/* Forgets the file. Does nothing after keep or a failed open. */
void seal_writer_drop(struct seal_writer *writer);

struct seal_reader {
    struct evp_cipher_ctx_st *cipher; /* NULL: not open */
    int descriptor;
    uint64_t size; /* bytes that were sealed */
    uint64_t chunk_count;
    uint64_t chunk_index; /* of the chunk in plain */
    uint32_t chunk_size;  /* its bytes */
    char path[256];       /* for errors; a longer one is cut */
    uint8_t plain[SEAL_CHUNK_SIZE];
    uint8_t sealed[SEAL_CHUNK_SIZE + SEAL_TAG_SIZE];
};

/* Checks the end of the file. STATUS_REFUSED: another key or context, or changed bytes. */
MUST_CHECK enum status seal_reader_open(struct seal_reader *reader, struct error *error,
                                        const char *path, const struct seal_key *key,
                                        const char *context);

/* Reads data_size bytes from byte `from` on; they must lie inside. Every byte was checked. */
MUST_CHECK enum status seal_reader_read(struct seal_reader *reader, struct error *error, void *data,
                                        size_t data_size, uint64_t from);

/* Wipes what was read. Accepts a reader whose open failed. */
void seal_reader_close(struct seal_reader *reader);

#endif /* PROOFS_SEAL_H */
