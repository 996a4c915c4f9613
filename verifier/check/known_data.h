/*
 * known_data.h - data files that were hashed before, so that each check need not hash them again.
 *
 * A note in the cache says which file had a root: its device, inode, size and times. The file is
 * the same while all of these are, as far as its file system tells; so a note spares time and
 * proves nothing. Whoever accuses anybody hashes the data (check.c).
 */
#ifndef VERIFIER_CHECK_KNOWN_DATA_H
#define VERIFIER_CHECK_KNOWN_DATA_H

#include <stdbool.h>

#include "base/digest.h"

/* A file as it was when it was looked at. */
struct known_data {
    char text[192]; /* "": it may be changing just now */
};

/* Had the file at path this root, and is it still the same? known is filled in either way. */
bool known_data_find(struct known_data *known, const char *cache, const struct digest *root,
                     const char *path);

/* It has. known is of the moment before it was hashed; a note that cannot be kept is no trouble. */
void known_data_note(const struct known_data *known, const char *cache, const struct digest *root,
                     const char *path);

#endif /* VERIFIER_CHECK_KNOWN_DATA_H */
