/*
 * signer.h - signatures with one key on secp256k1, and finding the signer of a signature.
 *
 * A signer holds its key in locked memory and a context that was blinded with fresh randomness.
 * Every signature is low-s, and is recovered to the signer's own address before it is handed out:
 * a fault of the machine must not publish a signature from which the key could be computed.
 */
#ifndef CHAIN_KEYS_SIGNER_H
#define CHAIN_KEYS_SIGNER_H

#include "base/error.h"
#include "base/secret.h"
#include "chain/codec/address.h"
#include "chain/codec/keccak.h"

#define SIGNATURE_SIZE 65 /* r, s, and 27 or 28: the form of EIP-712 and of other wallets */

struct signature {
    uint8_t r[32]; /* big-endian */
    uint8_t s[32];
    uint8_t recovery; /* 0 or 1: which of the two public keys with this r */
};

struct signer;

/* Copies the key; the caller keeps and wipes its own. NULL, and error set, for a key that is zero
 * or not below the order of the group, or when memory cannot be locked. */
struct signer *signer_new(const struct secret_key *key, struct error *error);
void signer_free(struct signer *signer); /* wipes the key; signer may be NULL */

/* Is it a key at all: above zero and below the order of the group? */
bool secret_key_is_valid(const struct secret_key *key);

const struct address *signer_address(const struct signer *signer);
MUST_CHECK enum status signer_sign(const struct signer *signer, struct signature *signature,
                                   const struct hash32 *hash, struct error *error);

/* Who signed hash? Safe on hostile input. Refuses r or s of zero or past the order, high s (the
 * second form that anyone can make of a signature), and a recovery number other than 0 and 1. */
MUST_CHECK enum verdict signature_recover(const struct signature *signature,
                                          struct address *address, const struct hash32 *hash);

void signature_to_bytes(uint8_t bytes[SIGNATURE_SIZE], const struct signature *signature);

/* Takes any bytes: what is no signature is refused by signature_recover(). */
void signature_from_bytes(struct signature *signature, const uint8_t bytes[SIGNATURE_SIZE]);

#endif /* CHAIN_KEYS_SIGNER_H */
