/*
 * content_data.h - where the data tensors of shown bundles lie: named files, or parts of those that
 * name their tensors. Each was hashed when it was found: the hashes of its pieces are kept.
 */
#ifndef PROVER_SERVE_CONTENT_DATA_H
#define PROVER_SERVE_CONTENT_DATA_H

#include "proofs/run/data_paths.h"

struct content_datum {
    struct digest root;
    const char *path; /* borrowed of the bundle's data_paths */
    uint64_t offset;
    uint64_t size; /* 0: the whole file */
    int pieces;    /* a file of the hashes of its pieces (proofs/commit/piece.h) */
};

struct content_data {
    struct content_datum *of;
    size_t count;
};

/* Finds the data of a bundle among the files, else where the bundle remembers it; *whole: all of
 * it was found. paths is opened. */
MUST_CHECK enum status content_data_find(struct content_data *data, struct data_paths *paths,
                                         bool *whole, struct bundle *bundle,
                                         const char *const *files, size_t file_count,
                                         struct error *error);
/* NULL: no data tensor has the root. */
const struct content_datum *content_data_of(const struct content_data *data,
                                            const struct digest *root);
void content_data_close(struct content_data *data);

#endif /* PROVER_SERVE_CONTENT_DATA_H */
