/*
 * evm.h - a chain, by the majority of its endpoints.
 *
 * Every request goes to all endpoints. An answer counts if more than half of all of them, not only
 * of those that answered, give it: with three, one that lies or lags changes nothing. A single
 * endpoint is believed. Of numbers that grow (head, nonce) the largest that more than half have
 * reached counts. A reply about something else than the query does not count: another transaction,
 * block or contract, a removed log, the same log twice.
 */
#ifndef CHAIN_EVM_EVM_H
#define CHAIN_EVM_EVM_H

#include "base/error.h"
#include "chain/evm/rpc.h"
#include "chain/game/game.h"

#define EVM_LOGS_MAX 10000 /* of one block */

struct evm_block {
    uint64_t height;
    struct hash32 hash;
    struct hash32 parent;
    uint64_t time_s;
};

struct evm_receipt {
    struct hash32 block;
    uint64_t height;
    bool reverted;
};

struct evm_fees {
    bool has_base_fee;
    struct uint256 base_wei; /* of the newest block; the gas price where there is no base fee */
    struct uint256 tip_wei;
};

/* STATUS_UNREACHABLE: too few agree now. */
MUST_CHECK enum status evm_head(struct rpc *rpc, uint64_t *height, struct error *error);
MUST_CHECK enum status evm_nonce(struct rpc *rpc, uint64_t *nonce, const struct address *account,
                                 struct error *error);
MUST_CHECK enum status evm_chain_id(struct rpc *rpc, uint64_t *chain_id, struct error *error);

/* STATUS_NOT_FOUND: they agree that there is none. */
MUST_CHECK enum status evm_block_at(struct rpc *rpc, struct evm_block *block, uint64_t height,
                                    struct error *error);
/* Its header, which hashes to its hash: see block_header.h. */
MUST_CHECK enum status evm_header_at(struct rpc *rpc, uint8_t header[GAME_HEADER_MAX], size_t *size,
                                     uint64_t height, struct error *error);
MUST_CHECK enum status evm_receipt_of(struct rpc *rpc, struct evm_receipt *receipt,
                                      const struct hash32 *transaction, struct error *error);

/* The logs of contracts in one block, by the block's hash. The caller releases them, also after a
 * failure. */
struct evm_logs {
    struct game_log *logs; /* their data are in bytes */
    uint32_t *places;      /* within the block */
    size_t count;
    uint8_t *bytes;
};

MUST_CHECK enum status evm_logs_of(struct rpc *rpc, struct evm_logs *logs,
                                   const struct hash32 *block, const struct address *contracts,
                                   size_t contract_count, struct error *error);
void evm_logs_release(struct evm_logs *logs);

/* Runs a call at the newest block. STATUS_REFUSED: it reverts, with the bytes in result. */
MUST_CHECK enum status evm_call(struct rpc *rpc, uint8_t *result, size_t result_size, size_t *size,
                                const struct address *from, const struct address *to, wei value,
                                const uint8_t *data, size_t data_size, struct error *error);

/* The code that stands at an address. STATUS_OVER_LIMIT: more than the room. */
MUST_CHECK enum status evm_code_at(struct rpc *rpc, uint8_t *code, size_t room, size_t *size,
                                   const struct address *contract, struct error *error);

/* What a transaction should offer. One endpoint says it, so the caller bounds it. */
MUST_CHECK enum status evm_fees_now(struct rpc *rpc, struct evm_fees *fees, struct error *error);

/* Gives a signed transaction to the pool. STATUS_OK also where a node has it already.
 * STATUS_REFUSED with *nonce_used: a transaction of this nonce is in a block, perhaps this one. */
MUST_CHECK enum status evm_send(struct rpc *rpc, const uint8_t *raw, size_t size, bool *nonce_used,
                                struct error *error);

/* Money of an account. */
MUST_CHECK enum status evm_balance(struct rpc *rpc, wei *balance, const struct address *account,
                                   struct error *error);

#endif /* CHAIN_EVM_EVM_H */
