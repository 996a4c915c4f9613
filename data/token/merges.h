/*
 * merges.h - byte pair encoding: the merges of a vocabulary, and words by them.
 *
 * Of all neighbours the pair of the least rank is merged first, of several such the leftmost, until
 * no pair has a rank. Short words are searched again and again; long ones go through a heap, so
 * that the time of a word of n symbols is n log n at worst.
 *
 * A merge is refused whose product is not in the vocabulary, which has an empty part, or which is
 * there twice: so products grow, and no merge leads back to its parts.
 */
#ifndef DATA_TOKEN_MERGES_H
#define DATA_TOKEN_MERGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MERGES_MAX         4194304u
#define MERGES_SYMBOLS_MAX 1048576u /* of a word */

struct merge_slot {
    uint32_t left; /* UINT32_MAX: empty */
    uint32_t right;
    uint32_t rank;
    uint32_t product;
};

struct merges {
    struct merge_slot *slots;
    size_t slot_count;
    uint32_t count;
};

/* What a long word needs; grows to the largest word. Zeroed at first. */
struct merges_work {
    uint32_t *next; /* with `before` a list of the symbols that are left */
    uint32_t *before;
    uint64_t *heap; /* rank << 32 | place */
    size_t heap_size;
    size_t capacity;
};

void merges_release(struct merges *merges);
void merges_work_release(struct merges_work *work);

/* Room for so many; once, before the first is added. */
MUST_CHECK enum status merges_init(struct merges *merges, struct error *error, size_t count);

/* The next in rank. STATUS_BAD_FORMAT: the pair is there already. */
MUST_CHECK enum status merges_add(struct merges *merges, uint32_t left, uint32_t right,
                                  uint32_t product);

/* Merges symbols[0..count) in place; *left is how many remain. count is at most
 * MERGES_SYMBOLS_MAX. */
MUST_CHECK enum status merges_apply(const struct merges *merges, struct merges_work *work,
                                    uint32_t *symbols, size_t count, size_t *left);

#endif /* DATA_TOKEN_MERGES_H */
