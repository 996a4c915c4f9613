/*
 * random_op.h - tapes of one operation with odd shapes and special numbers, for tests of single
 * elements.
 *
 * The operation passes op_check(); the tape around it holds its tensors alone and may fail
 * tape_check(). The seed decides which operands are states, data, constants or temporaries. The
 * same seed gives the same tape everywhere.
 */
#ifndef TESTS_SUPPORT_NUMERIC_RANDOM_OP_H
#define TESTS_SUPPORT_NUMERIC_RANDOM_OP_H

#include "engine/tape/tape.h"

/* SplitMix64, as in test.h, but for fuzz targets too. Below limit > 0, with a slight bias. */
uint64_t random_op_draw(uint64_t *state);
uint64_t random_op_below(uint64_t *state, uint64_t limit);

/* How unusual the numbers are. */
enum random_mood {
    MOOD_TAME = 0, /* ordinary numbers, indexes in range, honest exponents */
    MOOD_MIXED,    /* now and then something else, but exponents that QUANTIZE could give */
    MOOD_WILD,     /* zeros of both signs, subnormals, infinities, NaNs, any bits at all */
    MOOD_COUNT,
};

/* tape_free() releases it. Aborts if the operation is not sound. */
struct tape *random_op_tape(enum op_kind kind, uint64_t seed);

/* The bytes of a tensor of the tape; the caller frees them. */
void *random_op_value(const struct tape *tape, uint32_t tensor, enum random_mood mood,
                      uint64_t seed);

#endif /* TESTS_SUPPORT_NUMERIC_RANDOM_OP_H */
