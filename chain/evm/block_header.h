/*
 * block_header.h - the header of a block, as the chain hashes it, from what an endpoint says of it.
 *
 * A contract learns the random number of a block from its header. The items have the order in
 * which forks added them; the last ones are there if the endpoint has them.
 */
#ifndef CHAIN_EVM_BLOCK_HEADER_H
#define CHAIN_EVM_BLOCK_HEADER_H

#include <jansson.h>

#include "base/error.h"
#include "chain/game/game.h"

/* STATUS_BAD_FORMAT: an item is malformed, or keccak256 of all is not the block's own hash: the
 * endpoint lies, or the chain has items that this program does not know. */
MUST_CHECK enum status block_header_encode(uint8_t bytes[GAME_HEADER_MAX], size_t *size,
                                           const json_t *block, struct error *error);

#endif /* CHAIN_EVM_BLOCK_HEADER_H */
