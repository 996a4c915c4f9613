/*
 * envelope.h - a text in a DSSE envelope, signed by a P-256 key that common tools know, by an
 * account of ours, or by both.
 *
 * Signed is the PAE: "DSSEv1 SIZE TYPE SIZE TEXT". The P-256 signature is ECDSA over its SHA-256,
 * in DER, by libcrypto, under the fingerprint that ssh-keygen shows of the key. That of an
 * account is over its Keccak-256: r, s, and 27 or 28, under its address. docs/FORMATS.md, section
 * 15.
 */
#ifndef VERIFIER_LINEAGE_ENVELOPE_H
#define VERIFIER_LINEAGE_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "chain/keys/signer.h"

#define ENVELOPE_SIZE_MAX (32u << 20)
#define ENVELOPE_PEM_MAX  (64u << 10)

struct envelope_key; /* of P-256, private */

/* A file of PEM, as openssl writes it ('EC PRIVATE KEY' or 'PRIVATE KEY'). Refused: another curve,
 * a public key, a key under a passphrase. */
MUST_CHECK enum status envelope_key_read(struct envelope_key **key, const char *path,
                                         struct error *error);
void envelope_key_free(struct envelope_key *key); /* NULL is allowed */

/* What is signed. */
void envelope_pae(struct buffer *bytes, const char *type, const void *text, size_t size);

/* Appends the envelope, one line of JSON. At least one of key and signer is there. */
MUST_CHECK enum status envelope_write(struct buffer *out, const char *type,
                                      const struct buffer *text, const struct envelope_key *key,
                                      const struct signer *signer, struct error *error);

#endif /* VERIFIER_LINEAGE_ENVELOPE_H */
