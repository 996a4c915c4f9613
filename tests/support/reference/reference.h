/*
 * reference.h - runs tapes in double precision.
 *
 * An interpreter written from the definitions in engine/ops/op.h, without a rule or a kernel of the
 * engine: quantize is the identity through its view, a contraction is a plain sum, functions are
 * those of libm. Tests of gradients, of the engine's accuracy and of loss curves compare with it.
 * Every output of every operation can be read; QUANTIZE's peaks and exponents are zeros, since they
 * mean nothing without rounding.
 *
 * The tape must have passed tape_check(). Running out of memory ends the program.
 */
#ifndef TESTS_SUPPORT_REFERENCE_REFERENCE_H
#define TESTS_SUPPORT_REFERENCE_REFERENCE_H

#include <stdbool.h>

#include "engine/tape/tape.h"

enum reference_mode {
    REFERENCE_DOUBLE = 0,
    /* As hardware with bfloat16 inputs and float sums: operands of contractions of up to 16 bits
     * are rounded to bfloat16, and every contraction is summed in binary32; the rest is in double.
     */
    REFERENCE_BFLOAT16,
};

struct reference;

/* Borrows tape. All values are zero. */
struct reference *reference_new(const struct tape *tape, enum reference_mode mode);
void reference_free(struct reference *reference); /* NULL is allowed */

/* The values of any tensor but data; integers are exact doubles. The caller may write them. */
double *reference_values(const struct reference *reference, uint32_t tensor);

/* Reads a tensor's elements from bytes of its type. Borrows data instead of copying it. */
void reference_write(struct reference *reference, uint32_t tensor, const void *bytes);
void reference_bind(struct reference *reference, uint32_t tensor, const void *bytes);

/* Runs the first op_count operations; states keep their values. */
void reference_run(struct reference *reference, uint32_t op_count);

/* Gives states their next values. */
void reference_advance(struct reference *reference);

#endif /* TESTS_SUPPORT_REFERENCE_REFERENCE_H */
