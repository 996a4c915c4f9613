/* merkle_multi.h - proofs of many leaves, made from a tree at hand, and as docs/FORMATS.md has
 * them. */
#ifndef TESTS_SUPPORT_PROOFS_MERKLE_MULTI_H
#define TESTS_SUPPORT_PROOFS_MERKLE_MULTI_H

#include "proofs/hash/merkle.h"

/* Fills in leaf_count and the siblings; the rest is set. Fails as merkle_multi_places() does. */
MUST_CHECK enum status merkle_multi_build(struct merkle_multi *multi,
                                          const struct merkle_leaves *leaves);

size_t merkle_multi_bytes(const struct merkle_multi *multi);

/* bytes has room for merkle_multi_bytes(). */
void merkle_multi_write(uint8_t *bytes, const struct merkle_multi *multi);

/* Reads into the arrays that multi already has. STATUS_OVER_LIMIT: they are too small. */
MUST_CHECK enum status merkle_multi_read(struct merkle_multi *multi, const uint8_t *bytes,
                                         size_t size);

#endif /* TESTS_SUPPORT_PROOFS_MERKLE_MULTI_H */
