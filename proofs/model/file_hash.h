/* file_hash.h - the SHA-256 of a file of any size. */
#ifndef PROOFS_MODEL_FILE_HASH_H
#define PROOFS_MODEL_FILE_HASH_H

#include "base/digest.h"
#include "base/error.h"

/* *size: how long the file is. */
MUST_CHECK enum status file_hash(struct digest *sha256, uint64_t *size, const char *path,
                                 struct error *error);

#endif /* PROOFS_MODEL_FILE_HASH_H */
