/*
 * evm_blocks.h - blocks of a chain, whose headers hash to their hashes: see block_header.h.
 */
#ifndef CHAIN_EVM_EVM_BLOCKS_H
#define CHAIN_EVM_EVM_BLOCKS_H

#include "base/error.h"
#include "chain/evm/header/bloom.h"
#include "chain/evm/rpc/rpc.h"
#include "chain/game/game.h"

#define EVM_BLOCKS_MAX 256 /* of one request */

struct evm_block {
    uint64_t height;
    struct hash32 hash;
    struct hash32 parent;
    uint64_t time_s;
    struct bloom bloom; /* of its logs */
};

/* STATUS_NOT_FOUND: they agree that there is none. */
MUST_CHECK enum status evm_block_at(struct rpc *rpc, struct evm_block *block, uint64_t height,
                                    struct error *error);

/* count blocks from first on, in one request; each continues the one before. STATUS_NOT_FOUND: one
 * of them is not there. */
MUST_CHECK enum status evm_blocks_at(struct rpc *rpc, struct evm_block *blocks, uint64_t first,
                                     size_t count, struct error *error);

/* The bytes of its header. */
MUST_CHECK enum status evm_header_at(struct rpc *rpc, uint8_t header[GAME_HEADER_MAX], size_t *size,
                                     uint64_t height, struct error *error);

/* The highest block that the chain never takes back. STATUS_UNREACHABLE, too, where the endpoints
 * do not know one. */
MUST_CHECK enum status evm_finalized(struct rpc *rpc, uint64_t *height, struct error *error);

#endif /* CHAIN_EVM_EVM_BLOCKS_H */
