/*
 * data_rows.h - of the data that a check fetches, the pieces that its steps draw rows from, and no
 * others. For check.c.
 *
 * The list of the hashes of all pieces is proven against the data's root, and kept. The pieces fill
 * a file of the data's size in the cache. What is not proven to be there cannot be read: a piece is
 * hashed where it is mapped, before each replay, and all others are hidden. Before each step the
 * rows that it draws are compared with what was proven.
 *
 * Data come whole where steps read more of it than rows, where half of it would come anyway, where
 * a GPU computes, and where a step is disputed: its evidence has paths through the whole tree.
 */
#ifndef VERIFIER_CHECK_DATA_ROWS_H
#define VERIFIER_CHECK_DATA_ROWS_H

#include "proofs/run/drawn_rows.h"
#include "proofs/run/run.h"
#include "verifier/check/fetch.h"

/* A data tensor. */
struct data_rows_part {
    const struct tensor *tensor;
    struct digest root;
    struct digest *hashes; /* of its pieces; NULL: it is there whole */
    uint8_t *pieces;       /* for each what is known of it */
    uint64_t count;
    char path[FILE_PATH_MAX]; /* of the file that fills */
};

struct data_rows {
    struct drawn_rows *drawn;     /* NULL: all data come whole */
    struct data_rows_part *parts; /* of all data tensors of the job */
    bool *compared;               /* likewise: it is there in part */
    uint32_t count;
};

/* wanted: else all data come whole. */
MUST_CHECK enum status data_rows_open(struct data_rows *rows, const struct job *job, bool wanted,
                                      struct error *error);
void data_rows_close(struct data_rows *rows); /* a zero-filled one is allowed */

/* Is it better to fetch the rows of so many steps than the whole data tensor? */
bool data_rows_pay(const struct data_rows *rows, uint32_t place, const struct tensor *tensor,
                   uint64_t steps);

/* Gets the list of hashes and makes the file, at parts[place].path. STATUS_NOT_FOUND,
 * STATUS_UNREACHABLE: no mirror gives the list. STATUS_NO_MEMORY: it is too long. */
MUST_CHECK enum status data_rows_begin(struct data_rows *rows, uint32_t place, struct fetch *fetch,
                                       const struct job *job, const struct tensor *tensor,
                                       struct error *error);

/* Hides the parts in a run that was just opened, but for the pieces that are wanted: these are
 * proven again. */
MUST_CHECK enum status data_rows_bind(struct data_rows *rows, struct run *run, struct error *error);

/* Fetches what the next steps of the run draw. STATUS_REFUSED: the data must come whole. */
MUST_CHECK enum status data_rows_fetch(struct data_rows *rows, struct run *run, struct fetch *fetch,
                                       uint64_t steps, struct error *error);

/* STATUS_REFUSED: the run's next step reads what is not proven; names it. */
MUST_CHECK enum status data_rows_check_step(struct data_rows *rows, struct run *run,
                                            struct error *error);

#endif /* VERIFIER_CHECK_DATA_ROWS_H */
