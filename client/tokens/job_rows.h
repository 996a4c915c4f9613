/*
 * job_rows.h - a folder of packed rows (data/rows) as the data of a new job.
 *
 * The folder's manifest says what the rows are, and its roots are the ones that the job binds.
 * Refused: rows that are not what the manifest says, rows of another tokenizer than the model's,
 * rows of which nothing is learned.
 */
#ifndef CLIENT_TOKENS_JOB_ROWS_H
#define CLIENT_TOKENS_JOB_ROWS_H

#include "base/cli/options.h"
#include "base/io/file.h"
#include "data/rows/manifest.h"
#include "engine/models/model.h"

struct job_rows {
    char paths[ROW_TENSORS][FILE_PATH_MAX]; /* in the order of a job's data */
    struct row_shape shape;
    uint64_t count;
    bool pairs; /* rows 2i and 2i+1 are a chosen and a rejected answer */
    struct digest roots[ROW_TENSORS];
};

/* Is it a folder with a manifest of rows? */
bool job_rows_is(const char *path);

/* The rows of a folder that a training reads. */
MUST_CHECK enum status job_rows_open(struct job_rows *rows, const char *folder,
                                     struct error *error);

/* Reads the folder of --data, and puts what it says into the model's options. */
MUST_CHECK enum status job_rows_measure(struct job_rows *rows, struct model_options *model,
                                        const struct options *options, struct error *error);

/* The same of --eval: its held-out rows, if it has such, or else all of them. */
MUST_CHECK enum status job_rows_measure_held_out(struct job_rows *rows, struct model_options *model,
                                                 const struct options *options,
                                                 struct error *error);

/* Are these roots, of the files that the job reads, the manifest's? */
MUST_CHECK enum status job_rows_check_roots(const struct job_rows *rows, const struct digest *roots,
                                            struct error *error);

#endif /* CLIENT_TOKENS_JOB_ROWS_H */
