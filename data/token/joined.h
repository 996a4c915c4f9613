/*
 * joined.h - which characters may stand beside each other in one token.
 *
 * A tokenizer that cuts nothing beforehand merges a whole text as one word. But no merge reaches
 * over two neighbours that stand beside each other in no token; there the text can be cut, and
 * words be remembered. Pairs are kept by a hash: a pair too many costs a cut, never an id.
 */
#ifndef DATA_TOKEN_JOINED_H
#define DATA_TOKEN_JOINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/text/utf8.h"

#define JOINED_BITS  22
#define JOINED_BYTES ((size_t)1 << (JOINED_BITS - 3))

static inline uint32_t joined_place(uint32_t one, uint32_t two)
{
    return (one * UINT32_C(0x9e3779b1) ^ two * UINT32_C(0x85ebca6b)) >> (32 - JOINED_BITS);
}

/* False: never in one token. */
static inline bool joined_may(const uint8_t *joined, uint32_t one, uint32_t two)
{
    uint32_t place = joined_place(one, two);

    return (joined[place / 8] >> (place % 8) & 1) != 0;
}

/* Adds the pairs of a token, which is valid UTF-8. */
static inline void joined_add(uint8_t *joined, const uint8_t *text, size_t size)
{
    size_t at = 0;
    uint32_t last = size == 0 ? 0 : utf8_next(text, &at);

    while (at < size) {
        uint32_t code = utf8_next(text, &at);
        uint32_t place = joined_place(last, code);

        joined[place / 8] |= (uint8_t)(1 << place % 8);
        last = code;
    }
}

#endif /* DATA_TOKEN_JOINED_H */
