/* program_digest.c - see program_digest.h. */
#include "prover/train/program_digest.h"

#include <stdio.h>

#include "base/hex.h"
#include "proofs/hash/sha256.h"

#define PROGRAM "/proc/self/exe" /* what runs, even if the file was replaced since */

enum { PIECE = 65536 };

static enum status find_digest(struct digest *digest, struct error *error)
{
    FILE *file = fopen(PROGRAM, "rb");
    struct sha256 hash;
    uint8_t piece[PIECE];
    size_t size;
    bool failed;

    if (file == NULL) {
        return error_set_errno(error, "%s", PROGRAM);
    }
    sha256_init(&hash, SHA256_ISA_BEST);
    while ((size = fread(piece, 1, sizeof(piece), file)) > 0) {
        sha256_add(&hash, piece, size);
    }
    failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed) {
        return error_set(error, STATUS_IO, "%s cannot be read", PROGRAM);
    }
    sha256_end(&hash, digest);
    return STATUS_OK;
}

enum status program_digest_note(struct bundle *bundle, struct error *error)
{
    char text[2 * DIGEST_SIZE + 1];
    struct digest digest;

    TRY(find_digest(&digest, error));
    hex_encode(text, digest.bytes, DIGEST_SIZE);
    return bundle_set_note(bundle, BUNDLE_NOTE_PROGRAM, text, error);
}
