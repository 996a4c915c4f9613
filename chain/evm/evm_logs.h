/*
 * evm_logs.h - the logs of a game's contracts in blocks.
 *
 * An endpoint that leaves logs out hides events for good, so its reply is held against the bloom
 * filters of the headers, which hash to the blocks' hashes. A block whose filter has none of our
 * contracts or none of our events has no logs of ours: nobody is asked. Where the filter has an
 * event of ours and the reply has none, all logs of that block are fetched; they count if they make
 * that very filter. A log that the filter does not have is none.
 */
#ifndef CHAIN_EVM_EVM_LOGS_H
#define CHAIN_EVM_EVM_LOGS_H

#include "base/error.h"
#include "chain/evm/evm_blocks.h"
#include "chain/evm/rpc/rpc.h"
#include "chain/game/game.h"

#define EVM_LOGS_MAX      10000 /* of one reply */
#define EVM_CONTRACTS_MAX 3

struct evm_logs {
    struct game_log *logs; /* their data are in bytes */
    uint32_t *places;      /* within the block */
    uint32_t *blocks;      /* which of the blocks */
    size_t count;
    uint8_t *bytes;
};

/* Of blocks that continue each other: in their order. A single block is asked for by its hash. The
 * caller releases the logs, also after a failure. */
MUST_CHECK enum status evm_logs_of(struct rpc *rpc, struct evm_logs *logs,
                                   const struct evm_block *blocks, size_t block_count,
                                   const struct address *contracts, size_t contract_count,
                                   struct error *error);
void evm_logs_release(struct evm_logs *logs);

#endif /* CHAIN_EVM_EVM_LOGS_H */
