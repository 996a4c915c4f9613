/*
 * pack.h - packed rows as a folder: made, and made again to see whether they are the same.
 *
 * Until a folder is whole it is called FOLDER.packing. A stop (Ctrl-C, a kill, a lost machine)
 * costs at most what was packed since the last pause: the same command goes on there.
 */
#ifndef DATA_ROWS_PACK_H
#define DATA_ROWS_PACK_H

#include "data/rows/manifest.h"

/* What a check found. */
struct pack_check {
    bool equal;
    char difference[1024]; /* the first; empty where it is equal */
    uint64_t rows[PACKING_SIDES];
};

/* Makes the folder. STATUS_REFUSED: it is there already. progress and stop may be NULL. */
MUST_CHECK enum status pack_write(const char *folder, struct error *error,
                                  const struct pack_options *options, struct progress *progress,
                                  struct stop *stop);

/* Makes the rows of a folder again from its sources and compares all of it, roots and manifest too.
 * options are the manifest's, perhaps with other paths to the same files. */
MUST_CHECK enum status pack_check(struct pack_check *check, struct error *error, const char *folder,
                                  const struct manifest *manifest,
                                  const struct pack_options *options, struct progress *progress,
                                  struct stop *stop);

#endif /* DATA_ROWS_PACK_H */
