/*
 * known_data.h - remembers data files that were hashed, so that not every check hashes them again.
 *
 * A note in the cache names the file of a root by device, inode, size and times. While these stay,
 * the file is taken for unchanged. A note saves time and proves nothing: before anybody is accused,
 * the data is hashed again (check.c).
 */
#ifndef VERIFIER_CHECK_KNOWN_DATA_H
#define VERIFIER_CHECK_KNOWN_DATA_H

#include <stdbool.h>

#include "base/digest.h"

/* A file as it was when it was looked at. */
struct known_data {
    char text[192]; /* "": not a file, or changed within the last seconds */
};

/* Does a note say that this file, unchanged since, has the root? Fills in known either way. */
bool known_data_find(struct known_data *known, const char *cache, const struct digest *root,
                     const char *path);

/* Notes that it has the root. known is from before the hashing. A note that cannot be written is no
 * failure. */
void known_data_note(const struct known_data *known, const char *cache, const struct digest *root,
                     const char *path);

#endif /* VERIFIER_CHECK_KNOWN_DATA_H */
