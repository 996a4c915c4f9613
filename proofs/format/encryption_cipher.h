/* encryption_cipher.h - one AEAD key at a time, for encryption.c and encryption_file.c alone. */
#ifndef PROOFS_FORMAT_ENCRYPTION_CIPHER_H
#define PROOFS_FORMAT_ENCRYPTION_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ENCRYPTION_TEXT_TAG_SIZE 32
#define ENCRYPTION_SALT_SIZE     32
#define ENCRYPTION_NONCE_SIZE    12

struct evp_cipher_ctx_st;
struct encryption_key;

/*
 * *cipher gets the key HKDF-SHA256(key, salt, tag || context), to encrypt or to decrypt; NULL on
 * failure. Free it with EVP_CIPHER_CTX_free(), which wipes.
 */
MUST_CHECK enum status encryption_cipher_new(struct evp_cipher_ctx_st **cipher, struct error *error,
                                             const struct encryption_key *key,
                                             const uint8_t salt[ENCRYPTION_SALT_SIZE],
                                             const char tag[ENCRYPTION_TEXT_TAG_SIZE],
                                             const char *context, bool encrypting);

/* encrypted gets size bytes and a tag. Use a nonce once per key. */
MUST_CHECK enum status encryption_cipher_encrypt(struct evp_cipher_ctx_st *cipher,
                                                 struct error *error, uint8_t *encrypted,
                                                 const uint8_t nonce[ENCRYPTION_NONCE_SIZE],
                                                 const void *data, size_t size);

/* encrypted holds size bytes and a tag. STATUS_REFUSED: not what was encrypted. */
MUST_CHECK enum status encryption_cipher_open(struct evp_cipher_ctx_st *cipher, struct error *error,
                                              uint8_t *data,
                                              const uint8_t nonce[ENCRYPTION_NONCE_SIZE],
                                              const uint8_t *encrypted, size_t size);

#endif /* PROOFS_FORMAT_ENCRYPTION_CIPHER_H */
