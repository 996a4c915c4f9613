/*
 * bundle_pack.h - a bundle as one file, and back.
 *
 * The file is an archive (archive.h) of the job, the journal's rows as plain bytes, the locked key
 * where there is one, the rule that may end the run, and checkpoints. Equal bundles give equal
 * files on every machine. Notes stay out: they name the owner's folders. docs/FORMATS.md has
 * every byte.
 *
 * Import checks each part before the next one: the job against its own roots, the journal against
 * the job, posted segments against the journal, and every checkpoint against its root in the
 * journal. A bundle that fails leaves nothing behind; one that passes appears at once.
 */
#ifndef PROOFS_BUNDLE_BUNDLE_PACK_H
#define PROOFS_BUNDLE_BUNDLE_PACK_H

#include "proofs/bundle/bundle.h"
#include "proofs/format/archive.h"

/* Which checkpoints go into the file. A first state that was given always does. */
enum bundle_pack_checkpoints {
    BUNDLE_PACK_ALL = 0,
    BUNDLE_PACK_LAST,
    BUNDLE_PACK_NONE,
};

/* Writes the whole file or nothing. Never replaces a file. */
MUST_CHECK enum status bundle_export(struct bundle *bundle, const char *path,
                                     enum bundle_pack_checkpoints checkpoints, struct error *error);

struct bundle_import {
    uint64_t size_max;                /* the most that the file may unpack to */
    const struct encryption_key *key; /* of an encrypted bundle, or NULL */
    const void *passphrase;           /* used where there is no key; NULL: none */
    size_t passphrase_size;
    uint32_t checkpoints; /* set: how many the file had */
    uint32_t unchecked;   /* set: how many were encrypted and stayed closed */
};

/* Makes the bundle `folder`, which must not exist, from the file. */
MUST_CHECK enum status bundle_import(const char *folder, const char *path,
                                     struct bundle_import *import, struct error *error);

#endif /* PROOFS_BUNDLE_BUNDLE_PACK_H */
