/*
 * secret.h - memory for keys and passphrases: locked, left out of core dumps, wiped.
 *
 * A key is a struct secret_key, so that a reader (and a search) sees every place that touches one.
 * No function that logs or prints takes the type.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SECRET_KEY_SIZE 32

struct secret_key {
    uint8_t bytes[SECRET_KEY_SIZE];
};

/* Zeroed memory of its own pages, locked and kept out of dumps and of children. NULL, and error
 * set, when the system refuses. Free with secret_free, which wipes it. */
void *secret_alloc(size_t size, struct error *error);
void secret_free(void *memory, size_t size); /* memory may be NULL */

/* Overwrites, even where the compiler sees no later use. */
void secret_wipe(void *memory, size_t size);

/* In a time that depends on size alone. */
bool secret_equal(const void *left, const void *right, size_t size);

/* No core file of this process, and no other process of the user may read its memory. */
MUST_CHECK enum status secret_forbid_dumps(struct error *error);

/* Random bytes of the system. */
MUST_CHECK enum status secret_random(void *bytes, size_t size, struct error *error);

#endif /* BASE_SECRET_H */
