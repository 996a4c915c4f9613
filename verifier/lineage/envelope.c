/* envelope.c - see envelope.h. */
#include "verifier/lineage/envelope.h"

#include <assert.h>
#include <jansson.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "proofs/hash/sha256.h"

enum {
    POINT_SIZE = 65,          /* 0x04, x, y */
    SIGNATURE_DER_MAX = 80,   /* two numbers of 32 bytes, and what stands around them */
    FINGERPRINT_SIZE_MAX = 64 /* "SHA256:" and 43 letters */
};

struct envelope_key {
    EVP_PKEY *pkey;
    char fingerprint[FINGERPRINT_SIZE_MAX];
};

/* ---- the key ------------------------------------------------------------------- */

/* libcrypto would ask a terminal. */
static int no_passphrase(char *text, int size, int writing, void *context)
{
    (void)writing;
    *(bool *)context = true;
    if (size > 0) {
        text[0] = '\0';
    }
    return -1;
}

static void add_string(struct buffer *out, const void *bytes, size_t size)
{
    buffer_add_u32(out, (uint32_t)size);
    buffer_add(out, bytes, size);
}

/* "SHA256:" and the base64, without its padding, of the SHA-256 of the key as SSH writes it. */
static enum status find_fingerprint(struct envelope_key *key, const uint8_t point[POINT_SIZE],
                                    struct error *error)
{
    static const char type[] = "ecdsa-sha2-nistp256";
    static const char curve[] = "nistp256";
    uint8_t text[FINGERPRINT_SIZE_MAX];
    struct digest digest;
    struct buffer wire;
    enum status status;
    int length;

    buffer_init(&wire, 256);
    add_string(&wire, type, strlen(type));
    add_string(&wire, curve, strlen(curve));
    add_string(&wire, point, POINT_SIZE);
    TRY_OUT(buffer_check(&wire, error, "a key"));
    sha256(&digest, wire.data, wire.size);
    length = EVP_EncodeBlock(text, digest.bytes, DIGEST_SIZE);
    while (length > 0 && text[length - 1] == '=') {
        length--;
    }
    (void)snprintf(key->fingerprint, sizeof(key->fingerprint), "SHA256:%.*s", length,
                   (const char *)text);
out:
    buffer_release(&wire);
    return status;
}

static enum status check_curve(struct envelope_key *key, const char *path, struct error *error)
{
    char group[64] = "";
    uint8_t point[POINT_SIZE];
    size_t size = 0;

    if (EVP_PKEY_get_base_id(key->pkey) != EVP_PKEY_EC ||
        EVP_PKEY_get_group_name(key->pkey, group, sizeof(group), &size) != 1 ||
        strcmp(group, SN_X9_62_prime256v1) != 0) {
        (void)error_set(error, STATUS_REFUSED, "%s is no key of the curve P-256", path);
        error_advise(error, "openssl ecparam -name prime256v1 -genkey -noout -out KEY.pem");
        return STATUS_REFUSED;
    }
    (void)EVP_PKEY_set_utf8_string_param(key->pkey, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                         "uncompressed");
    if (EVP_PKEY_get_octet_string_param(key->pkey, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, point,
                                        sizeof(point), &size) != 1 ||
        size != POINT_SIZE) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: its public part cannot be read", path);
    }
    return find_fingerprint(key, point, error);
}

static enum status parse_key(struct envelope_key *key, const struct file_bytes *bytes,
                             const char *path, struct error *error)
{
    BIO *memory = BIO_new_mem_buf(bytes->data, (int)bytes->size);
    bool locked = false;

    if (memory == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a key");
    }
    key->pkey = PEM_read_bio_PrivateKey(memory, NULL, no_passphrase, &locked);
    BIO_free(memory);
    if (key->pkey == NULL && locked) {
        (void)error_set(error, STATUS_REFUSED, "%s is under a passphrase", path);
        error_advise(error, "openssl pkey -in %.100s -out PLAIN.pem", path);
        return STATUS_REFUSED;
    }
    return key->pkey == NULL
               ? error_set(error, STATUS_BAD_FORMAT, "%s holds no private key in PEM", path)
               : check_curve(key, path, error);
}

enum status envelope_key_read(struct envelope_key **key, const char *path, struct error *error)
{
    struct envelope_key *made = calloc(1, sizeof(*made));
    struct file_bytes bytes = {0};
    enum status status;

    *key = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a key");
    }
    TRY_OUT(file_read(&bytes, error, path, ENVELOPE_PEM_MAX));
    status = parse_key(made, &bytes, path, error);
    OPENSSL_cleanse(bytes.data, bytes.size);
out:
    file_bytes_release(&bytes);
    if (status != STATUS_OK) {
        envelope_key_free(made);
        return status;
    }
    *key = made;
    return STATUS_OK;
}

void envelope_key_free(struct envelope_key *key)
{
    if (key != NULL) {
        EVP_PKEY_free(key->pkey);
        free(key);
    }
}

/* ---- signatures ------------------------------------------------------------------- */

void envelope_pae(struct buffer *bytes, const char *type, const void *text, size_t size)
{
    buffer_add_format(bytes, "DSSEv1 %zu %s %zu ", strlen(type), type, size);
    buffer_add(bytes, text, size);
}

/* In base64; NULL: no memory. */
static json_t *base64_json(const void *bytes, size_t size)
{
    const size_t room = 4 * ((size + 2) / 3) + 1;
    unsigned char *text = malloc(room);
    json_t *json = NULL;

    if (text != NULL) {
        assert(size <= INT32_MAX);
        (void)EVP_EncodeBlock(text, bytes, (int)size);
        json = json_string((const char *)text);
    }
    free(text);
    return json;
}

static enum status sign_p256(json_t *signatures, const struct envelope_key *key,
                             const struct buffer *pae, struct error *error)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t der[SIGNATURE_DER_MAX];
    size_t size = sizeof(der);
    const bool signed_it = context != NULL &&
                           EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
                           EVP_DigestSign(context, der, &size, pae->data, pae->size) == 1;

    EVP_MD_CTX_free(context);
    if (!signed_it) {
        return error_set(error, STATUS_NO_MEMORY, "libcrypto could not sign");
    }
    (void)json_array_append_new(signatures, json_pack("{s:s, s:o}", "keyid", key->fingerprint,
                                                      "sig", base64_json(der, size)));
    return STATUS_OK;
}

static enum status sign_account(json_t *signatures, const struct signer *signer,
                                const struct buffer *pae, struct error *error)
{
    const struct hash32 hash = keccak256(pae->data, pae->size);
    struct signature signature;
    uint8_t bytes[SIGNATURE_SIZE];
    char address[ADDRESS_TEXT_SIZE];

    TRY(signer_sign(signer, &signature, &hash, error));
    signature_to_bytes(bytes, &signature);
    address_print(address, signer_address(signer));
    (void)json_array_append_new(signatures, json_pack("{s:s, s:o}", "keyid", address, "sig",
                                                      base64_json(bytes, sizeof(bytes))));
    return STATUS_OK;
}

enum status envelope_write(struct buffer *out, const char *type, const struct buffer *text,
                           const struct envelope_key *key, const struct signer *signer,
                           struct error *error)
{
    json_t *signatures = json_array();
    json_t *envelope = NULL;
    struct buffer pae;
    enum status status;

    assert(key != NULL || signer != NULL);
    buffer_init(&pae, ENVELOPE_SIZE_MAX);
    envelope_pae(&pae, type, text->data, text->size);
    TRY_OUT(buffer_check(&pae, error, "an envelope"));
    /* Common tools take the first signature that they can check. */
    TRY_OUT(key == NULL ? STATUS_OK : sign_p256(signatures, key, &pae, error));
    TRY_OUT(signer == NULL ? STATUS_OK : sign_account(signatures, signer, &pae, error));
    envelope = json_pack("{s:o, s:s, s:O}", "payload", base64_json(text->data, text->size),
                         "payloadType", type, "signatures", signatures);
    TRY_OUT(strict_json_line(out, error, envelope));
out:
    json_decref(envelope);
    json_decref(signatures);
    buffer_release(&pae);
    return status;
}
