/*
 * transaction.h - EVM transactions: EIP-1559 where a chain has a base fee, EIP-155 elsewhere.
 *
 * Both kinds bind the chain's id: a signature for one chain is worth nothing on another.
 */
#ifndef CHAIN_KEYS_TRANSACTION_H
#define CHAIN_KEYS_TRANSACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "chain/codec/address.h"
#include "chain/codec/keccak.h"
#include "chain/codec/uint256.h"
#include "chain/keys/signer.h"

#define TRANSACTION_DATA_MAX (127 * 1024)
#define TRANSACTION_SIZE_MAX (128 * 1024) /* what nodes take into their pools */
#define CHAIN_ID_MAX         ((UINT64_MAX - 36) / 2)

enum transaction_kind {
    TRANSACTION_LEGACY,     /* gas price only, EIP-155 */
    TRANSACTION_FEE_MARKET, /* type 2, EIP-1559, with an empty access list */
};

struct transaction {
    enum transaction_kind kind;
    uint64_t chain_id; /* 1 .. CHAIN_ID_MAX */
    uint64_t nonce;
    uint64_t gas_limit;
    struct uint256 tip_wei_max; /* per gas; EIP-1559 only */
    struct uint256 fee_wei_max; /* per gas; the gas price of a legacy transaction */
    bool creates;               /* a contract: then to is not used */
    struct address to;
    struct uint256 value_wei;
    const uint8_t *data; /* borrowed */
    size_t data_size;
};

/* What a wallet signs. STATUS_OVER_LIMIT when the data are too long. */
MUST_CHECK enum status transaction_signing_hash(const struct transaction *transaction,
                                                struct hash32 *hash);

/* Signs. Writes the bytes for eth_sendRawTransaction and their hash. bytes holds at least
 * TRANSACTION_SIZE_MAX. */
MUST_CHECK enum status transaction_sign(const struct transaction *transaction, uint8_t *bytes,
                                        size_t *size, struct hash32 *hash,
                                        const struct signer *signer, struct error *error);

#endif /* CHAIN_KEYS_TRANSACTION_H */
