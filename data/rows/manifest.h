/*
 * manifest.h - what stands beside packed rows: where they come from, how they were made, and the
 * roots that a job binds. Canonical JSON: sorted keys, no blanks, no fractions.
 */
#ifndef DATA_ROWS_MANIFEST_H
#define DATA_ROWS_MANIFEST_H

#include <jansson.h>

#include "data/rows/packing.h"

#define MANIFEST_NAME     "manifest.json"
#define MANIFEST_FORMAT   "lockstep-data-1"
#define MANIFEST_SIZE_MAX (UINT32_C(1) << 26)

struct manifest {
    json_t *root;                /* owns the texts below */
    const char **source_paths;   /* options.sources */
    struct pack_options options; /* as they were, without a folder to write to */
    struct packing_source *sources;
    struct packing_counts counts;
    struct tokenizer_file files[TOKENIZER_FILES_MAX];
    size_t file_count;
    struct row_shape shape;
    uint64_t rows[PACKING_SIDES];
    struct digest roots[PACKING_SIDES][ROW_TENSORS];
    uint64_t tokens[PACKING_SIDES];
    uint64_t learned[PACKING_SIDES];
};

/* Of a packing that is done; roots are those of its files. NULL: no memory. */
json_t *manifest_make(const struct packing *packing,
                      const struct digest roots[PACKING_SIDES][ROW_TENSORS]);

/* The options alone, as the manifest has them: two programs with the same options make the same
 * rows. */
json_t *manifest_options(const struct pack_options *options);

/* Refuses what manifest_make() would not write. On failure there is nothing to release. */
MUST_CHECK enum status manifest_parse(struct manifest *manifest, struct error *error,
                                      const void *bytes, size_t size);
MUST_CHECK enum status manifest_read(struct manifest *manifest, struct error *error,
                                     const char *folder);
void manifest_release(struct manifest *manifest);

#endif /* DATA_ROWS_MANIFEST_H */
