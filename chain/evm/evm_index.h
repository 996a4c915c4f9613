/*
 * evm_index.h - follows the events of a game's contracts on a chain into an event log.
 *
 * Blocks are taken one by one; each must continue the one before. Logs are fetched by the block's
 * hash: an endpoint that lags answers a request by height with an empty list, and a missed event is
 * a missed fraud. The newest blocks are fetched again every round; a change becomes a rewind.
 *
 * Each block is on disk before the next is fetched, so a later failure costs no second fetch.
 */
#ifndef CHAIN_EVM_EVM_INDEX_H
#define CHAIN_EVM_EVM_INDEX_H

#include "base/io/database.h"
#include "chain/evm/rpc.h"

#define EVM_INDEX_BLOCKS_MAX 200 /* of one round */
#define EVM_INDEX_AGAIN      4   /* newest blocks whose logs are compared every round */
#define EVM_INDEX_ROUND_S    20  /* after which a round ends although there are more blocks */

#define EVM_INDEX_CONTRACTS_MAX 3

struct evm_index {
    struct database *sql; /* with EVENT_LOG_SCHEMA */
    struct rpc *rpc;
    struct address contracts[EVM_INDEX_CONTRACTS_MAX]; /* the registry, its referee and its seeds */
    size_t contract_count;
    uint64_t first_height;
    uint64_t head; /* as of the last round */
};

/* One round. STATUS_UNREACHABLE: the endpoints do not agree now, and no block was added. If some
 * were, a later failure is left to the next round. STATUS_STOPPED. */
MUST_CHECK enum status evm_index_work(struct evm_index *index, struct error *error);

#endif /* CHAIN_EVM_EVM_INDEX_H */
