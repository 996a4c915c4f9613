/*
 * reference.h - tapes in double precision: what a step would give if nothing were ever rounded.
 *
 * An interpreter written from the definitions in engine/ops/op.h, sharing no rule and no kernel
 * with the engine: quantize is the identity through its view, a contraction is a plain sum,
 * functions are those of libm. It is the judge of gradients, of the engine's accuracy and of loss
 * curves. Every output of every operation is there to be compared, but for QUANTIZE's peaks and
 * exponents, which mean nothing without rounding and hold zeros.
 *
 * For trusted tapes: they must have passed tape_check(). Running out of memory ends the program.
 */
#ifndef TESTS_SUPPORT_NUMERIC_REFERENCE_H
#define TESTS_SUPPORT_NUMERIC_REFERENCE_H

#include <stdbool.h>

#include "engine/tape/tape.h"

enum reference_mode {
    REFERENCE_DOUBLE = 0,
    /* What hardware with bfloat16 inputs and float sums would give: operands of contractions of
     * up to 16 bits are rounded to bfloat16 and every contraction is summed in binary32; all else
     * is as exact as before. */
    REFERENCE_BFLOAT16,
};

struct reference;

/* Borrows tape. All values are zero. */
struct reference *reference_new(const struct tape *tape, enum reference_mode mode);
void reference_free(struct reference *reference); /* NULL is allowed */

/* The values of any tensor but data: integers too are held as doubles, exactly. May be written. */
double *reference_values(const struct reference *reference, uint32_t tensor);

/* Takes a tensor's elements from bytes of its own type; data is borrowed instead of copied. */
void reference_write(struct reference *reference, uint32_t tensor, const void *bytes);
void reference_bind(struct reference *reference, uint32_t tensor, const void *bytes);

/* Runs the first op_count operations; states keep their values. */
void reference_run(struct reference *reference, uint32_t op_count);

/* Gives states their next values. */
void reference_advance(struct reference *reference);

#endif /* TESTS_SUPPORT_NUMERIC_REFERENCE_H */
