/*
 * mutant.h - bytes that are nearly right: a bit flipped, a byte changed by one, cut, grown, or a
 * piece copied elsewhere; mostly near the begin, where lengths and numbers stand.
 */
#ifndef TESTS_SUPPORT_MUTANT_H
#define TESTS_SUPPORT_MUTANT_H

#include "base/buffer.h"

/* Fills mutant, which has room for twice the original and 64 bytes. The original is not empty. */
void mutant_make(struct buffer *mutant, const struct buffer *original, uint64_t *random);

#endif /* TESTS_SUPPORT_MUTANT_H */
