/*
 * evm.h - what a chain says, by the majority of its endpoints: see rpc/poll.h.
 */
#ifndef CHAIN_EVM_EVM_H
#define CHAIN_EVM_EVM_H

#include "base/error.h"
#include "chain/evm/evm_blocks.h"
#include "chain/evm/rpc/rpc.h"
#include "chain/game/game.h"

struct evm_receipt {
    struct hash32 block;
    uint64_t height;
    bool reverted;
    wei cost; /* of its gas, as one endpoint says; 0: it does not say */
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
/* With what waits in the pool behind what is in blocks. */
MUST_CHECK enum status evm_pending_nonce(struct rpc *rpc, uint64_t *nonce,
                                         const struct address *account, struct error *error);
MUST_CHECK enum status evm_chain_id(struct rpc *rpc, uint64_t *chain_id, struct error *error);

/* Asks each endpoint for its chain. One of another chain is not asked again until it is of this
 * one. One that does not answer stays as it is. */
void evm_check_chain(struct rpc *rpc, uint64_t chain_id);

/* STATUS_NOT_FOUND: they agree that there is none. */
MUST_CHECK enum status evm_receipt_of(struct rpc *rpc, struct evm_receipt *receipt,
                                      const struct hash32 *transaction, struct error *error);

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
