/* transaction_reader.c - see transaction_reader.h. */
#include "tests/support/chain/transaction_reader.h"

#include <string.h>

#include "tests/support/chain/rlp_reader.h"

enum {
    TYPE_FEE_MARKET = 0x02,
    V_BASE = 35, /* EIP-155: v = recovery + 2 * chain id + 35 */
};

static enum status read_target(struct rlp_reader *reader, struct transaction *transaction)
{
    const uint8_t *to;
    size_t to_size;

    if (rlp_read_bytes(reader, &to, &to_size) != STATUS_OK ||
        (to_size != 0 && to_size != ADDRESS_SIZE)) {
        return STATUS_BAD_FORMAT;
    }
    transaction->creates = to_size == 0;
    memcpy(transaction->to.bytes, to, to_size);
    if (rlp_read_uint256(reader, &transaction->value_wei) != STATUS_OK ||
        rlp_read_bytes(reader, &transaction->data, &transaction->data_size) != STATUS_OK) {
        return STATUS_BAD_FORMAT;
    }
    return transaction->data_size <= TRANSACTION_DATA_MAX ? STATUS_OK : STATUS_OVER_LIMIT;
}

static enum status read_signature(struct rlp_reader *reader, struct signature *signature)
{
    struct uint256 r;
    struct uint256 s;

    if (rlp_read_uint256(reader, &r) != STATUS_OK || rlp_read_uint256(reader, &s) != STATUS_OK ||
        !rlp_reader_at_end(reader)) {
        return STATUS_BAD_FORMAT;
    }
    uint256_to_bytes(signature->r, &r);
    uint256_to_bytes(signature->s, &s);
    return STATUS_OK;
}

static enum status read_legacy(struct rlp_reader *reader, struct transaction *transaction,
                               struct signature *signature)
{
    uint64_t v;

    if (rlp_read_u64(reader, &transaction->nonce) != STATUS_OK ||
        rlp_read_uint256(reader, &transaction->fee_wei_max) != STATUS_OK ||
        rlp_read_u64(reader, &transaction->gas_limit) != STATUS_OK ||
        read_target(reader, transaction) != STATUS_OK || rlp_read_u64(reader, &v) != STATUS_OK) {
        return STATUS_BAD_FORMAT;
    }
    if (v < V_BASE + 2) {
        return STATUS_BAD_FORMAT; /* no chain id: valid on every chain, so never one of ours */
    }
    transaction->chain_id = (v - V_BASE) / 2;
    signature->recovery = (uint8_t)((v - V_BASE) % 2);
    return read_signature(reader, signature);
}

static enum status read_fee_market(struct rlp_reader *reader, struct transaction *transaction,
                                   struct signature *signature)
{
    struct rlp_reader access_list;
    uint64_t parity;

    if (rlp_read_u64(reader, &transaction->chain_id) != STATUS_OK ||
        rlp_read_u64(reader, &transaction->nonce) != STATUS_OK ||
        rlp_read_uint256(reader, &transaction->tip_wei_max) != STATUS_OK ||
        rlp_read_uint256(reader, &transaction->fee_wei_max) != STATUS_OK ||
        rlp_read_u64(reader, &transaction->gas_limit) != STATUS_OK ||
        read_target(reader, transaction) != STATUS_OK ||
        rlp_read_list(reader, &access_list) != STATUS_OK || !rlp_reader_at_end(&access_list) ||
        rlp_read_u64(reader, &parity) != STATUS_OK || parity > 1) {
        return STATUS_BAD_FORMAT;
    }
    signature->recovery = (uint8_t)parity;
    return read_signature(reader, signature);
}

enum status transaction_decode(struct transaction *transaction, struct address *sender,
                               const uint8_t *bytes, size_t size)
{
    struct rlp_reader reader;
    struct rlp_reader fields;
    struct signature signature;
    struct hash32 hash;
    enum status status;

    memset(transaction, 0, sizeof(*transaction));
    if (size == 0 || size > TRANSACTION_SIZE_MAX) {
        return STATUS_BAD_FORMAT;
    }
    transaction->kind = bytes[0] == TYPE_FEE_MARKET ? TRANSACTION_FEE_MARKET : TRANSACTION_LEGACY;
    if (transaction->kind == TRANSACTION_FEE_MARKET) {
        bytes++;
        size--;
    }
    rlp_reader_init(&reader, bytes, size);
    if (rlp_read_list(&reader, &fields) != STATUS_OK || !rlp_reader_at_end(&reader)) {
        return STATUS_BAD_FORMAT;
    }
    status = transaction->kind == TRANSACTION_LEGACY
                 ? read_legacy(&fields, transaction, &signature)
                 : read_fee_market(&fields, transaction, &signature);
    if (status != STATUS_OK || transaction->chain_id < 1 || transaction->chain_id > CHAIN_ID_MAX) {
        return STATUS_BAD_FORMAT;
    }
    TRY(transaction_signing_hash(transaction, &hash));
    return signature_recover(&signature, sender, &hash) == VERDICT_VALID ? STATUS_OK
                                                                         : STATUS_BAD_FORMAT;
}
