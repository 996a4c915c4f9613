/*
 * row_files.h - rows on disk: tokens, mask and reach, each a flat file of little-endian elements.
 *
 * Token ids are u8, u16 or u32, the least that holds all ids of the tokenizer; reach is u16, or u32
 * where a row has more than 65,536 tokens; the mask is u8. Their names say so: tokens.u16, mask.u8,
 * reach.u16, and the same with "held-out-" before.
 */
#ifndef DATA_ROWS_ROW_FILES_H
#define DATA_ROWS_ROW_FILES_H

#include "base/digest.h"
#include "data/rows/row_packer.h"
#include "engine/ops/tensor.h"

#define ROW_TENSORS  3
#define ROW_NAME_MAX 32

enum row_tensor {
    ROW_TOKENS = 0,
    ROW_MASK,
    ROW_REACH,
};

struct row_shape {
    uint32_t length;
    enum dtype types[ROW_TENSORS];
};

void row_shape_of(struct row_shape *shape, uint32_t length, uint32_t id_count);

const char *row_tensor_name(enum row_tensor which); /* "tokens" */
void row_file_name(char name[ROW_NAME_MAX], const struct row_shape *shape, enum row_tensor which,
                   bool held_out);

/* Files that grow by a row, or with which rows are compared. */
struct row_files {
    struct row_shape shape;
    int descriptors[ROW_TENSORS]; /* -1: not open */
    uint64_t rows;                /* written, or compared */
    uint64_t rows_there;          /* in files that are read */
    uint8_t *bytes;               /* of one row, and of one that was read */
    char folder[4096];
    bool held_out;
    bool differs; /* of compared rows: difference says where */
    char difference[256];
};

/* Opens new files, or those of a run that was stopped, cut back to `rows` rows. */
MUST_CHECK enum status row_files_create(struct row_files *files, struct error *error,
                                        const char *folder, const struct row_shape *shape,
                                        bool held_out, uint64_t rows);

/* Opens files to read. STATUS_BAD_FORMAT: they are not all as long. */
MUST_CHECK enum status row_files_open(struct row_files *files, struct error *error,
                                      const char *folder, const struct row_shape *shape,
                                      bool held_out);
void row_files_close(struct row_files *files); /* accepts what was never opened but init'ed */
void row_files_init(struct row_files *files);

/* Sinks of a packer; context is the struct row_files. */
enum status row_files_take(void *context, struct error *error, const struct packed_row *row);
enum status row_files_compare(void *context, struct error *error, const struct packed_row *row);

/* What was written survives a crash. */
MUST_CHECK enum status row_files_sync(struct row_files *files, struct error *error);

/* Reads row `index` into row, whose memory is the caller's and of the shape's length. */
MUST_CHECK enum status row_files_read(struct row_files *files, struct error *error,
                                      struct packed_row *row, uint64_t index);

/* The root of a tensor (rows, length), as a job binds data. */
MUST_CHECK enum status row_files_root(struct row_files *files, struct error *error,
                                      enum row_tensor which, struct digest *root);

#endif /* DATA_ROWS_ROW_FILES_H */
