/* signer.c - see signer.h. */
#include "chain/keys/signer.h"

#include <secp256k1.h>
#include <secp256k1_recovery.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPACT_SIZE = 64,
    POINT_SIZE = 65, /* 0x04, x, y */
    RECOVERY_BASE = 27,
};

struct signer {
    secp256k1_context *context;
    struct secret_key *key; /* locked memory */
    struct address address;
};

static struct address address_of_point(const secp256k1_context *context,
                                       const secp256k1_pubkey *point)
{
    uint8_t bytes[POINT_SIZE];
    size_t size = sizeof(bytes);
    struct hash32 hash;
    struct address address;

    (void)secp256k1_ec_pubkey_serialize(context, bytes, &size, point, SECP256K1_EC_UNCOMPRESSED);
    hash = keccak256(bytes + 1, POINT_SIZE - 1);
    memcpy(address.bytes, hash.bytes + HASH32_SIZE - ADDRESS_SIZE, ADDRESS_SIZE);
    return address;
}

static enum status blind_context(secp256k1_context *context, struct error *error)
{
    uint8_t seed[32];
    enum status status = secret_random(seed, sizeof(seed), error);

    if (status == STATUS_OK && secp256k1_context_randomize(context, seed) != 1) {
        status = error_set(error, STATUS_REFUSED, "cannot blind the signing context");
    }
    secret_wipe(seed, sizeof(seed));
    return status;
}

bool secret_key_is_valid(const struct secret_key *key)
{
    secp256k1_context *context = secp256k1_context_create(SECP256K1_CONTEXT_SIGN);
    bool valid = context != NULL && secp256k1_ec_seckey_verify(context, key->bytes) == 1;

    if (context != NULL) {
        secp256k1_context_destroy(context);
    }
    return valid;
}

struct signer *signer_new(const struct secret_key *key, struct error *error)
{
    struct signer *signer = calloc(1, sizeof(*signer));
    secp256k1_pubkey point;
    unsigned flags = SECP256K1_CONTEXT_SIGN;

    if (signer == NULL) {
        (void)error_set(error, STATUS_NO_MEMORY, "no memory for a signer");
        return NULL;
    }
    signer->key = secret_alloc(sizeof(*signer->key), error);
    if (signer->key == NULL) {
        goto out;
    }
    flags |= SECP256K1_CONTEXT_VERIFY;
    signer->context = secp256k1_context_create(flags);
    if (signer->context == NULL) {
        (void)error_set(error, STATUS_NO_MEMORY, "no memory for a signing context");
        goto out;
    }
    if (blind_context(signer->context, error) != STATUS_OK) {
        goto out;
    }
    *signer->key = *key;
    if (secp256k1_ec_pubkey_create(signer->context, &point, signer->key->bytes) != 1) {
        (void)error_set(error, STATUS_BAD_FORMAT,
                        "the secret key is zero or not below the order of secp256k1");
        goto out;
    }
    signer->address = address_of_point(signer->context, &point);
    return signer;

out:
    signer_free(signer);
    return NULL;
}

void signer_free(struct signer *signer)
{
    if (signer != NULL) {
        if (signer->context != NULL) {
            secp256k1_context_destroy(signer->context);
        }
        secret_free(signer->key, sizeof(*signer->key));
        free(signer);
    }
}

const struct address *signer_address(const struct signer *signer)
{
    return &signer->address;
}

static enum verdict recover_address(const secp256k1_context *context,
                                    const struct signature *signature, struct address *address,
                                    const struct hash32 *hash)
{
    secp256k1_ecdsa_recoverable_signature raw;
    secp256k1_ecdsa_signature plain;
    secp256k1_pubkey point;
    uint8_t compact[COMPACT_SIZE];

    if (signature->recovery > 1) {
        return VERDICT_INVALID;
    }
    memcpy(compact, signature->r, sizeof(signature->r));
    memcpy(compact + sizeof(signature->r), signature->s, sizeof(signature->s));
    if (secp256k1_ecdsa_signature_parse_compact(context, &plain, compact) != 1 ||
        secp256k1_ecdsa_signature_normalize(context, NULL, &plain) != 0) {
        return VERDICT_INVALID;
    }
    if (secp256k1_ecdsa_recoverable_signature_parse_compact(context, &raw, compact,
                                                            signature->recovery) != 1 ||
        secp256k1_ecdsa_recover(context, &point, &raw, hash->bytes) != 1) {
        return VERDICT_INVALID;
    }
    *address = address_of_point(context, &point);
    return VERDICT_VALID;
}

enum status signer_sign(const struct signer *signer, struct signature *signature,
                        const struct hash32 *hash, struct error *error)
{
    secp256k1_ecdsa_recoverable_signature raw;
    uint8_t compact[COMPACT_SIZE];
    struct signature made;
    struct address recovered;
    int recovery = -1;

    /* libsecp256k1 signs deterministically (RFC 6979) and always gives the low s. */
    if (secp256k1_ecdsa_sign_recoverable(signer->context, &raw, hash->bytes, signer->key->bytes,
                                         NULL, NULL) != 1) {
        return error_set(error, STATUS_REFUSED, "signing failed");
    }
    (void)secp256k1_ecdsa_recoverable_signature_serialize_compact(signer->context, compact,
                                                                  &recovery, &raw);
    memcpy(made.r, compact, sizeof(made.r));
    memcpy(made.s, compact + sizeof(made.r), sizeof(made.s));
    made.recovery = (uint8_t)recovery;
    if (recover_address(signer->context, &made, &recovered, hash) != VERDICT_VALID ||
        !address_equal(&recovered, &signer->address)) {
        return error_set(error, STATUS_REFUSED,
                         "a fresh signature does not verify: this machine computes wrongly");
    }
    *signature = made;
    return STATUS_OK;
}

enum verdict signature_recover(const struct signature *signature, struct address *address,
                               const struct hash32 *hash)
{
    /* A context of its own: the library's static one could not verify before version 0.2. */
    secp256k1_context *context = secp256k1_context_create(SECP256K1_CONTEXT_VERIFY);
    enum verdict verdict = VERDICT_INVALID;

    if (context != NULL) {
        verdict = recover_address(context, signature, address, hash);
        secp256k1_context_destroy(context);
    }
    return verdict;
}

void signature_to_bytes(uint8_t bytes[SIGNATURE_SIZE], const struct signature *signature)
{
    memcpy(bytes, signature->r, sizeof(signature->r));
    memcpy(bytes + 32, signature->s, sizeof(signature->s));
    bytes[SIGNATURE_SIZE - 1] = (uint8_t)(RECOVERY_BASE + signature->recovery);
}

void signature_from_bytes(struct signature *signature, const uint8_t bytes[SIGNATURE_SIZE])
{
    memcpy(signature->r, bytes, sizeof(signature->r));
    memcpy(signature->s, bytes + 32, sizeof(signature->s));
    signature->recovery = (uint8_t)(bytes[SIGNATURE_SIZE - 1] - RECOVERY_BASE);
}
