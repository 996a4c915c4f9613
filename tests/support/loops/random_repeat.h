/*
 * random_repeat.h - random tapes whose operations from some place on are done for micro-batches.
 *
 * Tensors of one shape become accumulators of each other, in any order and number, joined or not:
 * what is read before and behind its next value, what nobody reads, what depends on nothing that a
 * step changes.
 */
#ifndef TESTS_SUPPORT_LOOPS_RANDOM_REPEAT_H
#define TESTS_SUPPORT_LOOPS_RANDOM_REPEAT_H

#include "engine/tape/tape.h"

/* The tape that machines run; NULL: nothing sound came of this seed. The caller frees it. */
struct tape *random_repeat(uint64_t seed);

#endif /* TESTS_SUPPORT_LOOPS_RANDOM_REPEAT_H */
