/*
 * contract_call.h - calls pure functions of contracts on a test's own chain.
 *
 * No transactions: every call is an eth_call without a gas limit, so one call can do the work of
 * thousands. A call that fails, or reverts unexpectedly, fails the test.
 */
#ifndef TESTS_SUPPORT_GAS_CONTRACT_CALL_H
#define TESTS_SUPPORT_GAS_CONTRACT_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chain/codec/address.h"
#include "chain/evm/rpc/rpc.h"

struct contract_call {
    uint8_t *data; /* calldata: owned */
    size_t size;
    size_t room;
    struct address sender; /* zero, as it begins: nobody's */
};

/* signature: "run(uint256,bytes)". */
void contract_call_init(struct contract_call *call, const char *signature);
void contract_call_release(struct contract_call *call);

/* A word of the head. Bytes need the offset of their place as such a word. */
void contract_call_word(struct contract_call *call, uint64_t value);

/* The tail of a "bytes" argument: its length, then the bytes, filled up to whole words. */
void contract_call_bytes(struct contract_call *call, const void *bytes, size_t size);

/* The result is the caller's; *size is its length. NULL: the contract reverted. */
uint8_t *contract_call_try(struct rpc *rpc, size_t *size, const struct address *contract,
                           const struct contract_call *call);

/* As contract_call_try(), and fails the test where the contract reverts. */
uint8_t *contract_call_make(struct rpc *rpc, size_t *size, const struct address *contract,
                            const struct contract_call *call);

/* The last 8 bytes of a word of a result. */
uint64_t contract_call_u64(const uint8_t *word);

#endif /* TESTS_SUPPORT_GAS_CONTRACT_CALL_H */
