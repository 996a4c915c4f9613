/*
 * encryption.h - encryption at rest: a key per bundle, which alone opens its files and payloads.
 *
 * AES-256-GCM of libcrypto. Every file and payload has a key of its own, derived from the bundle's
 * key, a fresh random salt and a context (what the file is). So no nonce is used twice and no file
 * can stand in for another. A file is encrypted in chunks. Each chunk is bound to its place, and
 * the last to being the last: reordered, repeated, missing and changed chunks are refused. The
 * reader checks the last chunk first, so that even a reader of the beginning knows that the end is
 * there.
 *
 * The owner may hand the bundle's key to a verifier, or lock it with a passphrase (scrypt).
 */
#ifndef PROOFS_FORMAT_ENCRYPTION_H
#define PROOFS_FORMAT_ENCRYPTION_H

#include <stdint.h>

#include "base/error.h"
#include "base/io/whole_file.h"

#define ENCRYPTION_KEY_SIZE          32
#define ENCRYPTION_LOCK_SIZE         116
#define ENCRYPTION_HEADER_SIZE       64
#define ENCRYPTION_CHUNK_SIZE        65536
#define ENCRYPTION_TAG_SIZE          16
#define ENCRYPTION_CONTEXT_MAX       255
/* How many bytes a payload grows by. */
#define ENCRYPTION_BOX_EXTRA         (32 + ENCRYPTION_TAG_SIZE)
#define ENCRYPTION_BOX_MAX           (64u << 20)
/* scrypt: the cost of our locks (128 MiB), and the most that a foreign lock may ask for. */
#define ENCRYPTION_SCRYPT_LOG_N      17
#define ENCRYPTION_SCRYPT_R          8
#define ENCRYPTION_SCRYPT_P          1
#define ENCRYPTION_SCRYPT_MEMORY_MAX (UINT64_C(512) << 20)
#define ENCRYPTION_SCRYPT_P_MAX      4

/* The secret of one bundle. Wipe it on every path. */
struct encryption_key {
    uint8_t bytes[ENCRYPTION_KEY_SIZE];
};

MUST_CHECK enum status encryption_key_make(struct encryption_key *key, struct error *error);
void encryption_key_wipe(struct encryption_key *key);

/* ---- a key under a passphrase ---- */

/* log_n is the base-2 logarithm of scrypt's N: ENCRYPTION_SCRYPT_LOG_N, or less in tests. */
MUST_CHECK enum status encryption_lock(uint8_t lock[ENCRYPTION_LOCK_SIZE], struct error *error,
                                       const struct encryption_key *key, const void *passphrase,
                                       size_t passphrase_size, unsigned log_n);

/* STATUS_REFUSED: another passphrase or changed bytes; nothing tells the two apart. */
MUST_CHECK enum status encryption_unlock(struct encryption_key *key, struct error *error,
                                         const uint8_t *lock, size_t lock_size,
                                         const void *passphrase, size_t passphrase_size);

/* ---- small payloads ---- */

/* Writes data_size + ENCRYPTION_BOX_EXTRA bytes. context is a text of at most
 * ENCRYPTION_CONTEXT_MAX bytes. */
MUST_CHECK enum status encryption_box(uint8_t *box, struct error *error,
                                      const struct encryption_key *key, const char *context,
                                      const void *data, size_t data_size);

/* Writes box_size - ENCRYPTION_BOX_EXTRA bytes, which mean nothing on failure. STATUS_REFUSED:
 * another key or context, or changed bytes. */
MUST_CHECK enum status encryption_box_open(uint8_t *data, struct error *error,
                                           const struct encryption_key *key, const char *context,
                                           const uint8_t *box, size_t box_size);

/* ---- files ---- */

struct evp_cipher_ctx_st; /* of libcrypto */

struct encryption_writer {
    struct whole_file file;
    struct evp_cipher_ctx_st *cipher; /* NULL: not open */
    uint64_t chunk_index;
    uint32_t used;
    uint8_t plain[ENCRYPTION_CHUNK_SIZE];
    uint8_t encrypted[ENCRYPTION_CHUNK_SIZE + ENCRYPTION_TAG_SIZE];
};

MUST_CHECK enum status encryption_writer_open(struct encryption_writer *writer, struct error *error,
                                              const char *path, const struct encryption_key *key,
                                              const char *context);
MUST_CHECK enum status encryption_writer_add(struct encryption_writer *writer, struct error *error,
                                             const void *data, size_t data_size);

/* Makes the file appear, and closes the writer either way. */
MUST_CHECK enum status encryption_writer_keep(struct encryption_writer *writer,
                                              struct error *error);

/* Forgets the file. Does nothing after keep or a failed open. */
void encryption_writer_drop(struct encryption_writer *writer);

struct encryption_reader {
    struct evp_cipher_ctx_st *cipher; /* NULL: not open */
    int descriptor;
    uint64_t size; /* of the plain bytes */
    uint64_t chunk_count;
    uint64_t chunk_index; /* of the chunk in plain */
    uint32_t chunk_size;  /* its bytes */
    char path[256];       /* for errors; a longer one is cut */
    uint8_t plain[ENCRYPTION_CHUNK_SIZE];
    uint8_t encrypted[ENCRYPTION_CHUNK_SIZE + ENCRYPTION_TAG_SIZE];
};

/* Checks the end of the file. STATUS_REFUSED: another key or context, or changed bytes. */
MUST_CHECK enum status encryption_reader_open(struct encryption_reader *reader, struct error *error,
                                              const char *path, const struct encryption_key *key,
                                              const char *context);

/* Reads data_size bytes from byte `from` on, all checked; they must lie inside. */
MUST_CHECK enum status encryption_reader_read(struct encryption_reader *reader, struct error *error,
                                              void *data, size_t data_size, uint64_t from);

/* Wipes what was read. Accepts a reader whose open failed. */
void encryption_reader_close(struct encryption_reader *reader);

#endif /* PROOFS_FORMAT_ENCRYPTION_H */
