/*
 * evm_index.h - follows the events of a game's contracts on a chain into an event log.
 *
 * Blocks are taken in their order; each must continue the one before, and its header must hash to
 * its hash. Below the block that the chain never takes back, many come in one request, and their
 * logs in another; above it one by one, with the logs by the block's hash. What an endpoint leaves
 * out is noticed: see evm_logs.h. The newest blocks are fetched again every round; a change becomes
 * a rewind.
 *
 * What came is on disk before the next is fetched, so a later failure costs no second fetch.
 */
#ifndef CHAIN_EVM_EVM_INDEX_H
#define CHAIN_EVM_EVM_INDEX_H

#include "base/io/database.h"
#include "chain/evm/evm_logs.h"
#include "chain/evm/rpc/rpc.h"

#define EVM_INDEX_BLOCKS_MAX  8192 /* of one round */
#define EVM_INDEX_SINGLES_MAX 200  /* ... of which this many come one by one */
#define EVM_INDEX_AGAIN       4    /* newest blocks whose logs are compared every round */
#define EVM_INDEX_ROUND_S     20   /* after which a round ends although there are more blocks */
#define EVM_INDEX_DEEP        64   /* blocks on top of a final one, where no endpoint names one */

struct evm_index {
    struct database *sql; /* with EVENT_LOG_SCHEMA */
    struct rpc *rpc;
    struct address contracts[EVM_CONTRACTS_MAX]; /* the registry, its referee and its seeds */
    size_t contract_count;
    uint64_t first_height;
    uint64_t head; /* as of the last round */
    uint64_t finalized;
    size_t range;  /* blocks of one request: halved when it fails, doubled after some that do not */
    uint32_t good; /* ranges in a row */
};

/* One round. STATUS_UNREACHABLE: the endpoints do not agree now, and no block was added. If some
 * were, a later failure is left to the next round. STATUS_STOPPED. */
MUST_CHECK enum status evm_index_work(struct evm_index *index, struct error *error);

#endif /* CHAIN_EVM_EVM_INDEX_H */
