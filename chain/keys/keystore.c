/*
 * keystore.c - see keystore.h.
 *
 * The derived key is 32 bytes: the first 16 encrypt (AES-128-CTR), the last 16 authenticate:
 * mac = keccak256(last 16, ciphertext). scrypt comes from libscrypt, because libcrypto refuses
 * N >= 2^(16 r), which files with r = 1 use.
 */
#include "chain/keys/keystore.h"

#include <jansson.h>
#include <libscrypt.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"

enum {
    DERIVED_SIZE = 32,
    CIPHER_KEY_SIZE = 16,
    IV_SIZE = 16,
    KEY_SIZE_MIN = 16, /* a shorter key has lost more than leading zeros */
    SALT_SIZE = 32,
    UUID_SIZE = 16,
    SCRYPT_R = 8,
    SCRYPT_P = 1,
    KEYSTORE_VERSION = 3,
};

enum kdf_kind {
    KDF_SCRYPT,
    KDF_PBKDF2,
};

struct sealed_key {
    uint8_t ciphertext[SECRET_KEY_SIZE];
    size_t ciphertext_size;
    uint8_t iv[IV_SIZE];
    struct hash32 mac;
    enum kdf_kind kdf;
    uint8_t salt[KEYSTORE_SALT_MAX];
    size_t salt_size;
    uint64_t n;
    uint32_t r;
    uint32_t p;
    uint32_t rounds;
};

/* ---- cryptography ----------------------------------------------------------- */

static enum status derive_key(uint8_t derived[DERIVED_SIZE], const struct sealed_key *sealed,
                              const struct passphrase *passphrase, struct error *error)
{
    int result;

    switch (sealed->kdf) {
    case KDF_SCRYPT:
        result =
            libscrypt_scrypt(passphrase->bytes, passphrase->size, sealed->salt, sealed->salt_size,
                             sealed->n, sealed->r, sealed->p, derived, DERIVED_SIZE);
        if (result != 0) {
            return error_set(error, STATUS_NO_MEMORY, "scrypt needs %llu MiB and did not get them",
                             (unsigned long long)(128 * sealed->n * sealed->r >> 20));
        }
        return STATUS_OK;
    case KDF_PBKDF2:
        result = PKCS5_PBKDF2_HMAC((const char *)passphrase->bytes, (int)passphrase->size,
                                   sealed->salt, (int)sealed->salt_size, (int)sealed->rounds,
                                   EVP_sha256(), DERIVED_SIZE, derived);
        return result == 1 ? STATUS_OK
                           : error_set(error, STATUS_NO_MEMORY, "PBKDF2 failed in libcrypto");
    }
    return STATUS_BAD_FORMAT;
}

/* AES-128-CTR: the same both ways. */
static enum status apply_cipher(uint8_t *out, const uint8_t *in, size_t size,
                                const uint8_t key[CIPHER_KEY_SIZE], const uint8_t iv[IV_SIZE],
                                struct error *error)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int written = 0;
    enum status status = STATUS_OK;

    if (context == NULL || EVP_EncryptInit_ex(context, EVP_aes_128_ctr(), NULL, key, iv) != 1 ||
        EVP_EncryptUpdate(context, out, &written, in, (int)size) != 1 || written != (int)size) {
        status = error_set(error, STATUS_NO_MEMORY, "AES-128-CTR failed in libcrypto");
    }
    EVP_CIPHER_CTX_free(context);
    return status;
}

static struct hash32 make_mac(const uint8_t derived[DERIVED_SIZE], const struct sealed_key *sealed)
{
    struct keccak keccak;
    struct hash32 mac;

    keccak_init(&keccak);
    keccak_add(&keccak, derived + CIPHER_KEY_SIZE, DERIVED_SIZE - CIPHER_KEY_SIZE);
    keccak_add(&keccak, sealed->ciphertext, sealed->ciphertext_size);
    mac = keccak_end(&keccak);
    secret_wipe(&keccak, sizeof(keccak));
    return mac;
}

/* ---- reading ---------------------------------------------------------------- */

static enum status malformed_keystore(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "not a key file of version 3: %s", what);
}

/* A whole number from 1 to most; 0 for anything else. */
static uint64_t number_of(const json_t *object, const char *name, uint64_t most)
{
    const json_t *value = json_object_get(object, name);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;

    return number >= 1 && (uint64_t)number <= most ? (uint64_t)number : 0;
}

static enum status read_scrypt(struct sealed_key *sealed, const json_t *params, struct error *error)
{
    sealed->kdf = KDF_SCRYPT;
    sealed->n = number_of(params, "n", KEYSTORE_MEMORY_MAX / 128);
    sealed->r = (uint32_t)number_of(params, "r", KEYSTORE_WORK_MAX);
    sealed->p = (uint32_t)number_of(params, "p", KEYSTORE_WORK_MAX);
    if (sealed->n < 2 || (sealed->n & (sealed->n - 1)) != 0 || sealed->r == 0 || sealed->p == 0) {
        return malformed_keystore(error, "scrypt parameters that make no sense, or are too large");
    }
    if (sealed->r > KEYSTORE_MEMORY_MAX / 128 / sealed->n ||
        sealed->p > KEYSTORE_WORK_MAX / (sealed->n * sealed->r)) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the key file asks for more than 1 GiB or too much work: scrypt with "
                         "n=%llu r=%u p=%u",
                         (unsigned long long)sealed->n, sealed->r, sealed->p);
    }
    return STATUS_OK;
}

static enum status read_kdf(struct sealed_key *sealed, const json_t *crypto, struct error *error)
{
    const json_t *params = json_object_get(crypto, "kdfparams");
    const char *kdf = strict_json_text_or(crypto, "kdf", "");

    if (number_of(params, "dklen", DERIVED_SIZE) != DERIVED_SIZE) {
        return malformed_keystore(error, "dklen is not 32");
    }
    if (hex_read(sealed->salt, sizeof(sealed->salt), &sealed->salt_size,
                 strict_json_text_or(params, "salt", "")) != STATUS_OK) {
        return malformed_keystore(error, "the salt is not hex of at most 256 bytes");
    }
    if (strcmp(kdf, "scrypt") == 0) {
        return read_scrypt(sealed, params, error);
    }
    if (strcmp(kdf, "pbkdf2") == 0) {
        sealed->kdf = KDF_PBKDF2;
        sealed->rounds = (uint32_t)number_of(params, "c", KEYSTORE_ROUNDS_MAX);
        if (strcmp(strict_json_text_or(params, "prf", ""), "hmac-sha256") != 0 ||
            sealed->rounds == 0) {
            return malformed_keystore(error,
                                      "PBKDF2 other than hmac-sha256 with up to 10,000,000 rounds");
        }
        return STATUS_OK;
    }
    return malformed_keystore(error, "kdf is neither scrypt nor pbkdf2");
}

static enum status read_sealed(struct sealed_key *sealed, const json_t *root, struct error *error)
{
    const json_t *crypto = json_object_get(root, "crypto");
    const json_t *cipher_params;

    memset(sealed, 0, sizeof(*sealed));
    if (number_of(root, "version", KEYSTORE_VERSION) != KEYSTORE_VERSION) {
        return malformed_keystore(error, "version is not 3");
    }
    if (crypto == NULL) {
        crypto = json_object_get(root, "Crypto"); /* as some early wallets wrote it */
    }
    cipher_params = json_object_get(crypto, "cipherparams");
    if (strcmp(strict_json_text_or(crypto, "cipher", ""), "aes-128-ctr") != 0) {
        return malformed_keystore(error, "cipher is not aes-128-ctr");
    }
    if (hex_read(sealed->ciphertext, sizeof(sealed->ciphertext), &sealed->ciphertext_size,
                 strict_json_text_or(crypto, "ciphertext", "")) != STATUS_OK ||
        sealed->ciphertext_size < KEY_SIZE_MIN) {
        return malformed_keystore(error, "the ciphertext is not hex of at most 32 bytes");
    }
    if (hex_read_exactly(sealed->iv, IV_SIZE, strict_json_text_or(cipher_params, "iv", "")) !=
        STATUS_OK) {
        return malformed_keystore(error, "the iv is not hex of 16 bytes");
    }
    if (hex_read_exactly(sealed->mac.bytes, HASH32_SIZE, strict_json_text_or(crypto, "mac", "")) !=
        STATUS_OK) {
        return malformed_keystore(error, "the mac is not hex of 32 bytes");
    }
    return read_kdf(sealed, crypto, error);
}

static json_t *parse_keystore(const char *text, size_t size, struct error *error)
{
    json_t *root;
    enum status status = strict_json_parse(&root, NULL, "a key file", text, size, KEYSTORE_SIZE_MAX,
                                           STRICT_JSON_DEPTH_MAX);

    if (status != STATUS_OK || !json_is_object(root)) {
        (void)malformed_keystore(error, "not a JSON object");
        json_decref(root);
        return NULL;
    }
    return root;
}

static enum status read_address(struct address *address, const json_t *root, struct error *error)
{
    const json_t *field = json_object_get(root, "address");
    const char *text;

    if (field == NULL || json_is_null(field)) {
        return error_set(error, STATUS_NOT_FOUND, "the key file names no address");
    }
    text = json_is_string(field) ? json_string_value(field) : "";
    if (text[0] == '0' && text[1] == 'x') {
        text += 2;
    }
    if (hex_read_exactly(address->bytes, ADDRESS_SIZE, text) != STATUS_OK) {
        return malformed_keystore(error, "the address is not hex of 20 bytes");
    }
    return STATUS_OK;
}

/* Does the key belong to the address that the file names, where it names one? */
static enum status check_address(const struct secret_key *key, const json_t *root,
                                 struct error *error)
{
    struct address named;
    struct signer *signer;
    enum status status = read_address(&named, root, error);
    bool same;

    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    signer = signer_new(key, error);
    if (signer == NULL) {
        return STATUS_BAD_FORMAT;
    }
    same = status == STATUS_NOT_FOUND || address_equal(&named, signer_address(signer));
    signer_free(signer);
    return same ? STATUS_OK
                : malformed_keystore(error, "its key belongs to another address than it says");
}

static enum status unseal_key(struct secret_key *key, const struct sealed_key *sealed,
                              const struct passphrase *passphrase, struct error *error)
{
    uint8_t *derived = secret_alloc(DERIVED_SIZE, error);
    struct hash32 mac;
    enum status status;

    if (derived == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = derive_key(derived, sealed, passphrase, error);
    if (status != STATUS_OK) {
        goto out;
    }
    mac = make_mac(derived, sealed);
    if (!secret_equal(mac.bytes, sealed->mac.bytes, HASH32_SIZE)) {
        status = error_set(error, STATUS_REFUSED, "wrong passphrase (or a damaged key file)");
        goto out;
    }
    status = apply_cipher(key->bytes + SECRET_KEY_SIZE - sealed->ciphertext_size,
                          sealed->ciphertext, sealed->ciphertext_size, derived, sealed->iv, error);
out:
    secret_free(derived, DERIVED_SIZE);
    return status;
}

enum status keystore_open(struct secret_key *key, const char *text, size_t size,
                          const struct passphrase *passphrase, struct error *error)
{
    struct sealed_key sealed;
    json_t *root = parse_keystore(text, size, error);
    enum status status;

    secret_wipe(key, sizeof(*key));
    if (root == NULL) {
        return STATUS_BAD_FORMAT;
    }
    TRY_OUT(read_sealed(&sealed, root, error));
    TRY_OUT(unseal_key(key, &sealed, passphrase, error));
    TRY_OUT(check_address(key, root, error));
out:
    if (status != STATUS_OK) {
        secret_wipe(key, sizeof(*key));
    }
    json_decref(root);
    return status;
}

enum status keystore_address(struct address *address, const char *text, size_t size,
                             struct error *error)
{
    json_t *root = parse_keystore(text, size, error);
    struct sealed_key sealed;
    enum status status;

    if (root == NULL) {
        return STATUS_BAD_FORMAT;
    }
    status = read_address(address, root, error);
    if (status == STATUS_NOT_FOUND && read_sealed(&sealed, root, error) != STATUS_OK) {
        status = STATUS_BAD_FORMAT; /* some other JSON */
    }
    json_decref(root);
    return status;
}

/* ---- writing ---------------------------------------------------------------- */

static enum status make_sealed(struct sealed_key *sealed, const struct secret_key *key,
                               const struct passphrase *passphrase, uint32_t cost,
                               struct error *error)
{
    uint8_t *derived = secret_alloc(DERIVED_SIZE, error);
    enum status status;

    if (derived == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(sealed, 0, sizeof(*sealed));
    sealed->kdf = KDF_SCRYPT;
    sealed->n = (uint64_t)1 << cost;
    sealed->r = SCRYPT_R;
    sealed->p = SCRYPT_P;
    sealed->salt_size = SALT_SIZE;
    sealed->ciphertext_size = SECRET_KEY_SIZE;
    TRY_OUT(secret_random(sealed->salt, sealed->salt_size, error));
    TRY_OUT(secret_random(sealed->iv, IV_SIZE, error));
    TRY_OUT(derive_key(derived, sealed, passphrase, error));
    TRY_OUT(
        apply_cipher(sealed->ciphertext, key->bytes, SECRET_KEY_SIZE, derived, sealed->iv, error));
    sealed->mac = make_mac(derived, sealed);
out:
    secret_free(derived, DERIVED_SIZE);
    return status;
}

/* A random UUID of version 4, RFC 4122. */
static enum status make_uuid(char text[37], struct error *error)
{
    uint8_t id[UUID_SIZE];
    enum status status = secret_random(id, sizeof(id), error);
    size_t at = 0;

    if (status != STATUS_OK) {
        return status;
    }
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    for (int i = 0; i < UUID_SIZE; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            text[at++] = '-';
        }
        hex_write(text + at, &id[i], 1, false);
        at += 2;
    }
    return STATUS_OK;
}

static json_t *pack_keystore(const struct sealed_key *sealed, const struct address *address,
                             const char *uuid)
{
    char owner[2 * ADDRESS_SIZE + 1];
    char ciphertext[2 * SECRET_KEY_SIZE + 1];
    char iv[2 * IV_SIZE + 1];
    char salt[2 * SALT_SIZE + 1];
    char mac[2 * HASH32_SIZE + 1];

    hex_write(owner, address->bytes, ADDRESS_SIZE, false);
    hex_write(ciphertext, sealed->ciphertext, SECRET_KEY_SIZE, false);
    hex_write(iv, sealed->iv, IV_SIZE, false);
    hex_write(salt, sealed->salt, SALT_SIZE, false);
    hex_write(mac, sealed->mac.bytes, HASH32_SIZE, false);
    return json_pack(
        "{s:s, s:{s:s, s:{s:s}, s:s, s:s, s:{s:i, s:I, s:i, s:i, s:s}, s:s}, s:s, s:i}", "address",
        owner, "crypto", "cipher", "aes-128-ctr", "cipherparams", "iv", iv, "ciphertext",
        ciphertext, "kdf", "scrypt", "kdfparams", "dklen", DERIVED_SIZE, "n", (json_int_t)sealed->n,
        "p", (int)sealed->p, "r", (int)sealed->r, "salt", salt, "mac", mac, "id", uuid, "version",
        KEYSTORE_VERSION);
}

enum status keystore_seal(char *text, size_t *size, const struct secret_key *key,
                          const struct passphrase *passphrase, uint32_t cost, struct error *error)
{
    struct sealed_key sealed;
    struct signer *signer;
    char uuid[37];
    json_t *root = NULL;
    enum status status;

    if (cost < KEYSTORE_COST_MIN || cost > KEYSTORE_COST_MAX) {
        return error_set(error, STATUS_USAGE, "a cost of %u is not from %d to %d", cost,
                         KEYSTORE_COST_MIN, KEYSTORE_COST_MAX);
    }
    signer = signer_new(key, error);
    if (signer == NULL) {
        return STATUS_BAD_FORMAT;
    }
    TRY_OUT(make_sealed(&sealed, key, passphrase, cost, error));
    TRY_OUT(make_uuid(uuid, error));
out:
    if (status == STATUS_OK) {
        root = pack_keystore(&sealed, signer_address(signer), uuid);
        *size = root == NULL ? 0 : json_dumpb(root, text, KEYSTORE_SIZE_MAX - 1, JSON_INDENT(2));
        if (root == NULL || *size == 0 || *size >= KEYSTORE_SIZE_MAX) {
            status = error_set(error, STATUS_NO_MEMORY, "no memory for a key file");
        } else {
            text[*size] = '\0';
        }
    }
    json_decref(root);
    signer_free(signer);
    return status;
}
