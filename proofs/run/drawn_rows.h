/*
 * drawn_rows.h - which rows of its data a step reads.
 *
 * Batches are drawn by the job's seed and a counter of steps or micro-batches. So what a step reads
 * of its data follows from the state before it, by the rules of engine/rules. Held-out windows are
 * drawn by a constant: the same in every step, and counted as read in each. A data tensor that
 * other operations read too (frozen weights), or that is drawn by anything else, is read whole.
 */
#ifndef PROOFS_RUN_DRAWN_ROWS_H
#define PROOFS_RUN_DRAWN_ROWS_H

#include "engine/plan/backend.h"

struct drawn_rows; /* opaque */

/* Borrows the tape. */
MUST_CHECK enum status drawn_rows_open(struct drawn_rows **rows, const struct tape *tape,
                                       struct error *error);
void drawn_rows_close(struct drawn_rows *rows); /* NULL is fine */

/* Of a data tensor, by its place among those of the tape: is it read by draws alone? */
bool drawn_rows_suffice(const struct drawn_rows *rows, uint32_t place);

/* Then the most pieces of so many bytes that the rows of one step touch. */
uint64_t drawn_rows_pieces(const struct drawn_rows *rows, uint32_t place, uint64_t piece);

struct drawn_row {
    uint32_t place; /* of the data tensor */
    uint64_t first; /* its bytes */
    uint64_t size;
};

/* Receives a row. A failure ends the visits. */
struct drawn_rows_visitor {
    enum status (*visit)(void *context, const struct drawn_row *row, struct error *error);
    void *context;
};

/*
 * Visits the rows that a step reads of the tensors that draws suffice for: of the step that comes
 * `ahead` steps after the machine's next one.
 */
MUST_CHECK enum status drawn_rows_visit(const struct drawn_rows *rows, struct machine *machine,
                                        uint64_t ahead, const struct drawn_rows_visitor *visitor,
                                        struct error *error);

#endif /* PROOFS_RUN_DRAWN_ROWS_H */
