/*
 * made_block.h - blocks that no chain has, as an endpoint tells them: their headers hash to their
 * hashes, and their bloom filters are those of their logs.
 */
#ifndef TESTS_SUPPORT_CHAIN_MADE_BLOCK_H
#define TESTS_SUPPORT_CHAIN_MADE_BLOCK_H

#include <jansson.h>
#include <stdint.h>

#include "chain/codec/address.h"
#include "chain/codec/keccak.h"
#include "chain/game/game.h"

struct made_block {
    uint64_t height;
    struct hash32 parent;
    uint64_t time_s;
    const struct address *address; /* of the logs; NULL: there are none */
    const struct hash32 *topics;
    uint32_t topic_count;
    const char *stranger; /* an item of a fork that nobody knows; NULL: none */
};

/* With all items up to Amsterdam. raw: the header's own bytes, in hex; may be NULL. */
json_t *made_block(const struct made_block *block, struct hash32 *hash,
                   char raw[2 * GAME_HEADER_MAX + 3]);

#endif /* TESTS_SUPPORT_CHAIN_MADE_BLOCK_H */
