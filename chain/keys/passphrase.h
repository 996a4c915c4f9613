/*
 * passphrase.h - a passphrase from a file, an environment variable or the terminal. Never from the
 * command line, which every user of a machine can read.
 */
#ifndef CHAIN_KEYS_PASSPHRASE_H
#define CHAIN_KEYS_PASSPHRASE_H

#include <stdbool.h>

#include "chain/keys/keystore.h"

#define PASSPHRASE_VARIABLE "LOCKSTEP_PASSPHRASE"

struct passphrase_source {
    const char *file; /* its first line, without the line's end; NULL: none */
    const char
        *question; /* the prompt on the terminal, if file and variable are missing; NULL: never */
    bool twice;    /* for a new one: typed twice, and not empty */
    const char *option; /* that names the file, for advice; NULL: "passphrase-file" */
};

/* *passphrase is locked memory; free it with passphrase_free. The variable is wiped and unset. */
MUST_CHECK enum status passphrase_get(struct passphrase **passphrase,
                                      const struct passphrase_source *source, struct error *error);
void passphrase_free(struct passphrase *passphrase); /* NULL is fine */

#endif /* CHAIN_KEYS_PASSPHRASE_H */
