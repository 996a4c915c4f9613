/*
 * wallet.h - a folder of key files, as other wallets keep them: one key each, named by address.
 *
 * A new file is written under another name, synced, renamed, then read back and opened before the
 * call succeeds. Other files are ignored.
 */
#ifndef CHAIN_KEYS_WALLET_H
#define CHAIN_KEYS_WALLET_H

#include <stddef.h>

#include "base/io/file.h"
#include "chain/keys/keystore.h"
#include "chain/keys/signer.h"

#define WALLET_KEYS_MAX 1024

struct wallet_entry {
    struct address address;
    bool named; /* false: the file names no address; only its passphrase gives it */
    char path[FILE_PATH_MAX];
};

/* Seals key into a new file of the folder, which is made when missing. */
MUST_CHECK enum status wallet_add(struct wallet_entry *entry, const char *folder,
                                  const struct secret_key *key, const struct passphrase *passphrase,
                                  uint32_t cost, struct error *error);

/* A fresh random key. */
MUST_CHECK enum status wallet_new(struct wallet_entry *entry, const char *folder,
                                  const struct passphrase *passphrase, uint32_t cost,
                                  struct error *error);

/* All keys of the folder, by path; *entries is the caller's (free). A missing folder is empty. */
MUST_CHECK enum status wallet_list(struct wallet_entry **entries, size_t *count, const char *folder,
                                   struct error *error);

/* name is an address that a file names, the path of a key file, or NULL or "" for the only key of
 * the folder. */
MUST_CHECK enum status wallet_find(struct wallet_entry *entry, const char *folder, const char *name,
                                   struct error *error);

MUST_CHECK enum status wallet_unlock(struct signer **signer, const struct wallet_entry *entry,
                                     const struct passphrase *passphrase, struct error *error);

#endif /* CHAIN_KEYS_WALLET_H */
