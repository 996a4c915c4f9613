/* seal_cipher.h - one AEAD key at a time, for seal.c and seal_file.c alone. */
#ifndef PROOFS_SEAL_CIPHER_H
#define PROOFS_SEAL_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SEAL_TEXT_TAG_SIZE 32
#define SEAL_SALT_SIZE     32
#define SEAL_NONCE_SIZE    12

struct evp_cipher_ctx_st;
struct seal_key;

/*
 * *cipher gets the key HKDF-SHA256(key, salt, tag || context); it seals when sealing, else opens.
 * NULL on failure. Free with EVP_CIPHER_CTX_free(), which wipes.
 */
MUST_CHECK enum status seal_cipher_new(struct evp_cipher_ctx_st **cipher, struct error *error,
                                       const struct seal_key *key,
                                       const uint8_t salt[SEAL_SALT_SIZE],
                                       const char tag[SEAL_TEXT_TAG_SIZE], const char *context,
                                       bool sealing);

/* sealed gets size bytes and a tag. A nonce is used once per key. */
MUST_CHECK enum status seal_cipher_seal(struct evp_cipher_ctx_st *cipher, struct error *error,
                                        uint8_t *sealed, const uint8_t nonce[SEAL_NONCE_SIZE],
                                        const void *data, size_t size);

/* sealed holds size bytes and a tag. STATUS_REFUSED: not what was sealed. */
MUST_CHECK enum status seal_cipher_open(struct evp_cipher_ctx_st *cipher, struct error *error,
                                        uint8_t *data, const uint8_t nonce[SEAL_NONCE_SIZE],
                                        const uint8_t *sealed, size_t size);

#endif /* PROOFS_SEAL_CIPHER_H */
