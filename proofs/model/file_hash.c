/* file_hash.c - see file_hash.h. */
#include "proofs/model/file_hash.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/io/whole_file.h"
#include "proofs/hash/sha256.h"

enum { PIECE_SIZE = 1 << 20 };

enum status file_hash(struct digest *sha256, uint64_t *size, const char *path, struct error *error)
{
    uint8_t *piece = malloc(PIECE_SIZE);
    struct sha256 hash;
    enum status status;
    int descriptor = -1;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to read %s", path);
    }
    TRY_OUT(whole_file_read_open(&descriptor, size, error, path));
    sha256_init(&hash, SHA256_ISA_BEST);
    for (uint64_t at = 0; at < *size; at += PIECE_SIZE) {
        const size_t taken = *size - at < PIECE_SIZE ? (size_t)(*size - at) : PIECE_SIZE;

        TRY_OUT(whole_file_read_at(descriptor, error, piece, taken, at, path));
        sha256_add(&hash, piece, taken);
    }
    sha256_end(&hash, sha256);
out:
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
    free(piece);
    return status;
}
