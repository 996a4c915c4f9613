/*
 * key_file.h - a bundle's key as a file: 64 hexadecimal digits and the end of a line.
 *
 * Refused: a file that others may read or write, and anything but those digits.
 */
#ifndef PROOFS_FORMAT_KEY_FILE_H
#define PROOFS_FORMAT_KEY_FILE_H

#include "proofs/format/encryption.h"

/* Wipe the key. */
MUST_CHECK enum status key_file_read(struct encryption_key *key, const char *path,
                                     struct error *error);

/* Makes the file, for its owner alone. Never replaces one. */
MUST_CHECK enum status key_file_write(const char *path, const struct encryption_key *key,
                                      struct error *error);

#endif /* PROOFS_FORMAT_KEY_FILE_H */
