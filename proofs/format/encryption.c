/* encryption.c - see encryption.h: keys, locks and payloads. */
#include "proofs/format/encryption.h"

#include <libscrypt.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/secret.h"
#include "proofs/format/encryption_cipher.h"

static const char lock_tag[ENCRYPTION_TEXT_TAG_SIZE] = "lockstep.key.v1";
static const char box_tag[ENCRYPTION_TEXT_TAG_SIZE] = "lockstep.box.v1";

/* Each key here encrypts one thing, so its nonce may be zero. */
static const uint8_t nonce_zero[ENCRYPTION_NONCE_SIZE];

/* Places in a lock: docs/FORMATS.md. */
enum {
    LOCK_LOG_N = 32,
    LOCK_R = 33,
    LOCK_P = 34,
    LOCK_ZERO = 35,
    LOCK_SALT = 36,
    LOCK_ENCRYPTED = 68,
};

enum status encryption_key_make(struct encryption_key *key, struct error *error)
{
    return secret_random(key->bytes, sizeof(key->bytes), error);
}

void encryption_key_wipe(struct encryption_key *key)
{
    secret_wipe(key, sizeof(*key));
}

/* ---- the cipher ---- */

static enum status cipher_of_key(EVP_CIPHER_CTX **cipher, struct error *error,
                                 const uint8_t key[ENCRYPTION_KEY_SIZE], bool encrypting)
{
    *cipher = EVP_CIPHER_CTX_new();
    if (*cipher == NULL ||
        EVP_CipherInit_ex(*cipher, EVP_aes_256_gcm(), NULL, key, NULL, encrypting ? 1 : 0) != 1) {
        EVP_CIPHER_CTX_free(*cipher);
        *cipher = NULL;
        return error_set(error, STATUS_NO_MEMORY, "libcrypto has no AES-256-GCM, or no memory");
    }
    return STATUS_OK;
}

/* RFC 5869 for one block of output, which is all that a key needs. */
static bool derive_key(uint8_t derived[ENCRYPTION_KEY_SIZE], const struct encryption_key *key,
                       const uint8_t salt[ENCRYPTION_SALT_SIZE],
                       const char tag[ENCRYPTION_TEXT_TAG_SIZE], const char *context,
                       size_t context_size)
{
    uint8_t extracted[ENCRYPTION_KEY_SIZE];
    uint8_t info[ENCRYPTION_TEXT_TAG_SIZE + ENCRYPTION_CONTEXT_MAX + 1];
    unsigned size = ENCRYPTION_KEY_SIZE;
    bool done;

    memcpy(info, tag, ENCRYPTION_TEXT_TAG_SIZE);
    memcpy(info + ENCRYPTION_TEXT_TAG_SIZE, context, context_size);
    info[ENCRYPTION_TEXT_TAG_SIZE + context_size] = 1;
    done = HMAC(EVP_sha256(), salt, ENCRYPTION_SALT_SIZE, key->bytes, sizeof(key->bytes), extracted,
                &size) != NULL &&
           HMAC(EVP_sha256(), extracted, sizeof(extracted), info,
                ENCRYPTION_TEXT_TAG_SIZE + context_size + 1, derived, &size) != NULL;
    secret_wipe(extracted, sizeof(extracted));
    return done;
}

enum status encryption_cipher_new(EVP_CIPHER_CTX **cipher, struct error *error,
                                  const struct encryption_key *key,
                                  const uint8_t salt[ENCRYPTION_SALT_SIZE],
                                  const char tag[ENCRYPTION_TEXT_TAG_SIZE], const char *context,
                                  bool encrypting)
{
    uint8_t derived[ENCRYPTION_KEY_SIZE];
    size_t context_size = strlen(context);
    enum status status;

    *cipher = NULL;
    if (context_size > ENCRYPTION_CONTEXT_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a context of %zu bytes", context_size);
    }
    if (derive_key(derived, key, salt, tag, context, context_size)) {
        status = cipher_of_key(cipher, error, derived, encrypting);
    } else {
        status = error_set(error, STATUS_NO_MEMORY, "libcrypto could not derive a key");
    }
    secret_wipe(derived, sizeof(derived));
    return status;
}

static bool update_all(EVP_CIPHER_CTX *cipher, uint8_t *out, const uint8_t *in, size_t size)
{
    while (size > 0) {
        int piece = size < (1u << 30) ? (int)size : 1 << 30;
        int written = 0;

        if (EVP_CipherUpdate(cipher, out, &written, in, piece) != 1 || written != piece) {
            return false;
        }
        out += piece;
        in += piece;
        size -= (size_t)piece;
    }
    return true;
}

enum status encryption_cipher_encrypt(EVP_CIPHER_CTX *cipher, struct error *error,
                                      uint8_t *encrypted,
                                      const uint8_t nonce[ENCRYPTION_NONCE_SIZE], const void *data,
                                      size_t size)
{
    int none = 0;

    if (EVP_CipherInit_ex(cipher, NULL, NULL, NULL, nonce, -1) != 1 ||
        !update_all(cipher, encrypted, data, size) ||
        EVP_CipherFinal_ex(cipher, encrypted + size, &none) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, ENCRYPTION_TAG_SIZE, encrypted + size) !=
            1) {
        return error_set(error, STATUS_NO_MEMORY, "libcrypto could not encrypt");
    }
    return STATUS_OK;
}

enum status encryption_cipher_open(EVP_CIPHER_CTX *cipher, struct error *error, uint8_t *data,
                                   const uint8_t nonce[ENCRYPTION_NONCE_SIZE],
                                   const uint8_t *encrypted, size_t size)
{
    uint8_t tag[ENCRYPTION_TAG_SIZE];
    uint8_t none_out[ENCRYPTION_TAG_SIZE];
    int none = 0;

    memcpy(tag, encrypted + size, sizeof(tag));
    if (EVP_CipherInit_ex(cipher, NULL, NULL, NULL, nonce, -1) != 1 ||
        !update_all(cipher, data, encrypted, size) ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, ENCRYPTION_TAG_SIZE, tag) != 1) {
        return error_set(error, STATUS_NO_MEMORY, "libcrypto could not decrypt");
    }
    if (EVP_CipherFinal_ex(cipher, none_out, &none) != 1) {
        secret_wipe(data, size);
        return error_set(error, STATUS_REFUSED, "another key, or bytes that were changed");
    }
    return STATUS_OK;
}

/* ---- locks ---- */

static enum status lock_cipher(EVP_CIPHER_CTX **cipher, struct error *error, const uint8_t *lock,
                               const void *passphrase, size_t passphrase_size, bool encrypting)
{
    uint8_t key[ENCRYPTION_KEY_SIZE];
    enum status status;
    int none = 0;

    if (libscrypt_scrypt(passphrase, passphrase_size, lock + LOCK_SALT, ENCRYPTION_SALT_SIZE,
                         UINT64_C(1) << lock[LOCK_LOG_N], lock[LOCK_R], lock[LOCK_P], key,
                         sizeof(key)) != 0) {
        return error_set(error, STATUS_NO_MEMORY, "scrypt did not get its %llu MiB",
                         (128ull * lock[LOCK_R] << lock[LOCK_LOG_N]) >> 20);
    }
    status = cipher_of_key(cipher, error, key, encrypting);
    secret_wipe(key, sizeof(key));
    if (status != STATUS_OK) {
        return status;
    }
    /* The tag of the encrypted key covers the bytes before it too. */
    if (EVP_CipherInit_ex(*cipher, NULL, NULL, NULL, nonce_zero, -1) != 1 ||
        EVP_CipherUpdate(*cipher, NULL, &none, lock, LOCK_ENCRYPTED) != 1) {
        EVP_CIPHER_CTX_free(*cipher);
        *cipher = NULL;
        return error_set(error, STATUS_NO_MEMORY, "libcrypto could not start");
    }
    return STATUS_OK;
}

enum status encryption_lock(uint8_t lock[ENCRYPTION_LOCK_SIZE], struct error *error,
                            const struct encryption_key *key, const void *passphrase,
                            size_t passphrase_size, unsigned log_n)
{
    EVP_CIPHER_CTX *cipher = NULL;
    enum status status = STATUS_OK;
    int none = 0;

    memset(lock, 0, ENCRYPTION_LOCK_SIZE);
    memcpy(lock, lock_tag, sizeof(lock_tag));
    lock[LOCK_LOG_N] = (uint8_t)log_n;
    lock[LOCK_R] = ENCRYPTION_SCRYPT_R;
    lock[LOCK_P] = ENCRYPTION_SCRYPT_P;
    TRY(secret_random(lock + LOCK_SALT, ENCRYPTION_SALT_SIZE, error));
    TRY(lock_cipher(&cipher, error, lock, passphrase, passphrase_size, true));
    if (!update_all(cipher, lock + LOCK_ENCRYPTED, key->bytes, ENCRYPTION_KEY_SIZE) ||
        EVP_CipherFinal_ex(cipher, lock + LOCK_ENCRYPTED + ENCRYPTION_KEY_SIZE, &none) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, ENCRYPTION_TAG_SIZE,
                            lock + LOCK_ENCRYPTED + ENCRYPTION_KEY_SIZE) != 1) {
        status = error_set(error, STATUS_NO_MEMORY, "libcrypto could not encrypt");
    }
    EVP_CIPHER_CTX_free(cipher);
    return status;
}

/* A stranger may have written the costs: refuse those that this machine should not pay. */
static enum status check_lock(const uint8_t *lock, size_t lock_size, struct error *error)
{
    if (lock_size != ENCRYPTION_LOCK_SIZE || memcmp(lock, lock_tag, sizeof(lock_tag)) != 0 ||
        lock[LOCK_ZERO] != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "this is not a locked key");
    }
    if (lock[LOCK_LOG_N] < 1 || lock[LOCK_LOG_N] > 30 || lock[LOCK_R] == 0 || lock[LOCK_P] == 0 ||
        lock[LOCK_P] > ENCRYPTION_SCRYPT_P_MAX ||
        (128ull * lock[LOCK_R] << lock[LOCK_LOG_N]) > ENCRYPTION_SCRYPT_MEMORY_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the lock asks for scrypt with N = 2^%u, r = %u, p = %u: too much",
                         lock[LOCK_LOG_N], lock[LOCK_R], lock[LOCK_P]);
    }
    return STATUS_OK;
}

enum status encryption_unlock(struct encryption_key *key, struct error *error, const uint8_t *lock,
                              size_t lock_size, const void *passphrase, size_t passphrase_size)
{
    EVP_CIPHER_CTX *cipher = NULL;
    uint8_t tag[ENCRYPTION_TAG_SIZE];
    enum status status = STATUS_OK;
    int none = 0;

    TRY(check_lock(lock, lock_size, error));
    TRY(lock_cipher(&cipher, error, lock, passphrase, passphrase_size, false));
    memcpy(tag, lock + LOCK_ENCRYPTED + ENCRYPTION_KEY_SIZE, sizeof(tag));
    if (!update_all(cipher, key->bytes, lock + LOCK_ENCRYPTED, ENCRYPTION_KEY_SIZE) ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, ENCRYPTION_TAG_SIZE, tag) != 1) {
        status = error_set(error, STATUS_NO_MEMORY, "libcrypto could not decrypt");
    } else if (EVP_CipherFinal_ex(cipher, tag, &none) != 1) {
        status = error_set(error, STATUS_REFUSED, "another passphrase, or a key file that changed");
    }
    EVP_CIPHER_CTX_free(cipher);
    if (status != STATUS_OK) {
        encryption_key_wipe(key);
    }
    return status;
}

/* ---- payloads ---- */

enum status encryption_box(uint8_t *box, struct error *error, const struct encryption_key *key,
                           const char *context, const void *data, size_t data_size)
{
    EVP_CIPHER_CTX *cipher;
    enum status status;

    if (data_size > ENCRYPTION_BOX_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a payload of %zu bytes", data_size);
    }
    TRY(secret_random(box, ENCRYPTION_SALT_SIZE, error));
    TRY(encryption_cipher_new(&cipher, error, key, box, box_tag, context, true));
    status = encryption_cipher_encrypt(cipher, error, box + ENCRYPTION_SALT_SIZE, nonce_zero, data,
                                       data_size);
    EVP_CIPHER_CTX_free(cipher);
    return status;
}

enum status encryption_box_open(uint8_t *data, struct error *error,
                                const struct encryption_key *key, const char *context,
                                const uint8_t *box, size_t box_size)
{
    EVP_CIPHER_CTX *cipher;
    enum status status;

    if (box_size < ENCRYPTION_BOX_EXTRA || box_size > ENCRYPTION_BOX_MAX + ENCRYPTION_BOX_EXTRA) {
        return error_set(error, STATUS_BAD_FORMAT, "an encrypted payload of %zu bytes", box_size);
    }
    TRY(encryption_cipher_new(&cipher, error, key, box, box_tag, context, false));
    status = encryption_cipher_open(cipher, error, data, nonce_zero, box + ENCRYPTION_SALT_SIZE,
                                    box_size - ENCRYPTION_BOX_EXTRA);
    EVP_CIPHER_CTX_free(cipher);
    return status;
}
