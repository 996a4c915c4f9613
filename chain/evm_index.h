/*
 * evm_index.h - follows the events of a game's contracts on a chain into a chronicle.
 *
 * Blocks are taken one by one, each must continue the one before; logs are asked for by the block's
 * hash, because an endpoint that lags answers a question about heights with an empty list, and a
 * missed event is a missed fraud. The newest blocks are asked for again: what changed is told
 * again after a rewind.
 */
#ifndef CHAIN_EVM_INDEX_H
#define CHAIN_EVM_INDEX_H

#include "chain/rpc.h"
#include "chain/sql.h"

#define EVM_INDEX_BLOCKS_MAX 200 /* of one round */
#define EVM_INDEX_AGAIN      4   /* newest blocks whose logs are compared every round */

#define EVM_INDEX_CONTRACTS_MAX 2

struct evm_index {
    struct sql *sql; /* with CHRONICLE_SCHEMA */
    struct rpc *rpc;
    struct address contracts[EVM_INDEX_CONTRACTS_MAX]; /* the registry, and its referee */
    size_t contract_count;
    uint64_t first_height;
    uint64_t head; /* as of the last round */
};

/* One round. STATUS_UNREACHABLE: the endpoints do not agree, now. */
MUST_CHECK enum status evm_index_work(struct evm_index *index, struct error *error);

#endif /* CHAIN_EVM_INDEX_H */
