/*
 * content_pieces.h - the hashes of the pieces of checkpoints, for clients that fetch them from
 * several mirrors at once. Used by content_tree.c only.
 *
 * A list costs the reading of its checkpoint, once: it stays in memory, at 1/8192 of the size. One
 * is made at a time, and meanwhile others that must be made are refused.
 */
#ifndef PROVER_SERVE_CONTENT_PIECES_H
#define PROVER_SERVE_CONTENT_PIECES_H

#include "base/io/file.h"
#include "proofs/job/job.h"

struct content_pieces;

/* A checkpoint whose pieces are asked for. The job is borrowed, for as long as the lists live. */
struct content_pieces_request {
    const struct job *job; /* NULL: nothing is asked for */
    uint64_t step;
    struct digest root;
    char path[FILE_PATH_MAX];
};

MUST_CHECK enum status content_pieces_open(struct content_pieces **pieces, struct error *error);
void content_pieces_close(struct content_pieces *pieces); /* NULL is fine */

/* The caller frees *bytes. STATUS_OVER_LIMIT: busy. STATUS_NOT_FOUND: the file is damaged. */
MUST_CHECK enum status content_pieces_answer(struct content_pieces *pieces, uint8_t **bytes,
                                             uint64_t *size,
                                             const struct content_pieces_request *request,
                                             struct error *error);

#endif /* PROVER_SERVE_CONTENT_PIECES_H */
