/*
 * keystore.h - one key in one file, under a passphrase: Web3 Secret Storage, version 3.
 *
 * The form that other wallets read and write. Files of scrypt and of PBKDF2 are read; scrypt is
 * written. A file's demands (memory, rounds) are bounded, so a foreign file cannot stall or
 * exhaust a node. Nothing here touches the file system: see wallet.h.
 */
#ifndef CHAIN_KEYS_KEYSTORE_H
#define CHAIN_KEYS_KEYSTORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/secret.h"
#include "chain/keys/signer.h"

#define KEYSTORE_SIZE_MAX     65536
#define KEYSTORE_MEMORY_MAX   (1024u * 1024 * 1024) /* of scrypt: 128 * N * r */
#define KEYSTORE_WORK_MAX     (64u * 1024 * 1024)   /* of scrypt: N * r * p */
#define KEYSTORE_ROUNDS_MAX   10000000              /* of PBKDF2 */
#define KEYSTORE_SALT_MAX     256
#define PASSPHRASE_SIZE_MAX   1024
#define KEYSTORE_COST_DEFAULT 18 /* N = 2^18, r = 8: 256 MiB and about a second */
#define KEYSTORE_COST_LIGHT   12
#define KEYSTORE_COST_MIN     1
#define KEYSTORE_COST_MAX     20

/* Lives in locked memory (secret_alloc). */
struct passphrase {
    uint8_t bytes[PASSPHRASE_SIZE_MAX];
    size_t size;
};

/* Takes a key out of a file's content. STATUS_REFUSED: the passphrase is wrong, or the file was
 * changed (the two look alike). STATUS_BAD_FORMAT: not such a file. key is wiped on
 * failure. A key shorter than 32 bytes, as old wallets wrote it, gets its zeros back. */
MUST_CHECK enum status keystore_open(struct secret_key *key, const char *text, size_t size,
                                     const struct passphrase *passphrase, struct error *error);

/* Makes a file's content. text has KEYSTORE_SIZE_MAX bytes; *size is without the NUL at its end.
 * cost is the logarithm of scrypt's N. */
MUST_CHECK enum status keystore_seal(char *text, size_t *size, const struct secret_key *key,
                                     const struct passphrase *passphrase, uint32_t cost,
                                     struct error *error);

/* The address that the file names. STATUS_NOT_FOUND: a key file that names none, as some wallets
 * write it. */
MUST_CHECK enum status keystore_address(struct address *address, const char *text, size_t size,
                                        struct error *error);

#endif /* CHAIN_KEYS_KEYSTORE_H */
