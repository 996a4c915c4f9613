/*
 * block_header.h - the header of a block, as the chain hashes it, from what an endpoint says of it.
 *
 * A contract learns the random number of a block from its header, and a reader which logs a block
 * may have. The items have the order in which forks added them; the last ones are there if the
 * endpoint has them. A fork that this program does not know adds items behind them: then the
 * header's own bytes (debug_getRawHeader) are needed, and what the endpoint says must be their
 * beginning.
 */
#ifndef CHAIN_EVM_HEADER_BLOCK_HEADER_H
#define CHAIN_EVM_HEADER_BLOCK_HEADER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "chain/game/game.h"

/* The key at which a block may have the header's own bytes, as debug_getRawHeader gives them. */
#define BLOCK_HEADER_RAW "rawHeader"

/* STATUS_BAD_FORMAT: an item is malformed, or keccak256 of all is not the block's own hash: the
 * endpoint lies. *unknown: or the chain has items that this program does not know, and there are no
 * header's bytes. */
MUST_CHECK enum status block_header_encode(uint8_t bytes[GAME_HEADER_MAX], size_t *size,
                                           bool *unknown, const json_t *block, struct error *error);

#endif /* CHAIN_EVM_HEADER_BLOCK_HEADER_H */
