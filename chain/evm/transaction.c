/* transaction.c - see transaction.h. */
#include "chain/evm/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/rlp.h"

enum {
    TYPE_FEE_MARKET = 0x02,
    V_BASE = 35, /* EIP-155: v = recovery + 2 * chain id + 35 */
};

static void write_target(struct rlp_writer *writer, const struct transaction *transaction)
{
    rlp_write_bytes(writer, transaction->to.bytes, transaction->creates ? 0 : ADDRESS_SIZE);
    rlp_write_uint256(writer, &transaction->value_wei);
    rlp_write_bytes(writer, transaction->data, transaction->data_size);
}

static void write_word(struct rlp_writer *writer, const uint8_t word[32])
{
    struct uint256 value = uint256_from_bytes(word);

    rlp_write_uint256(writer, &value);
}

/* The fields in their order; signature is NULL for what gets signed. */
static void write_legacy(struct rlp_writer *writer, const struct transaction *transaction,
                         const struct signature *signature)
{
    size_t list = rlp_list_begin(writer);

    rlp_write_u64(writer, transaction->nonce);
    rlp_write_uint256(writer, &transaction->fee_wei_max);
    rlp_write_u64(writer, transaction->gas_limit);
    write_target(writer, transaction);
    if (signature == NULL) {
        rlp_write_u64(writer, transaction->chain_id);
        rlp_write_u64(writer, 0);
        rlp_write_u64(writer, 0);
    } else {
        rlp_write_u64(writer, 2 * transaction->chain_id + V_BASE + signature->recovery);
        write_word(writer, signature->r);
        write_word(writer, signature->s);
    }
    rlp_list_end(writer, list);
}

static void write_fee_market(struct rlp_writer *writer, const struct transaction *transaction,
                             const struct signature *signature)
{
    size_t list = rlp_list_begin(writer);
    size_t access_list;

    rlp_write_u64(writer, transaction->chain_id);
    rlp_write_u64(writer, transaction->nonce);
    rlp_write_uint256(writer, &transaction->tip_wei_max);
    rlp_write_uint256(writer, &transaction->fee_wei_max);
    rlp_write_u64(writer, transaction->gas_limit);
    write_target(writer, transaction);
    access_list = rlp_list_begin(writer);
    rlp_list_end(writer, access_list);
    if (signature != NULL) {
        rlp_write_u64(writer, signature->recovery);
        write_word(writer, signature->r);
        write_word(writer, signature->s);
    }
    rlp_list_end(writer, list);
}

static enum status encode(const struct transaction *transaction, const struct signature *signature,
                          uint8_t *bytes, size_t *size)
{
    struct rlp_writer writer;
    size_t prefix = 0;

    assert(transaction->chain_id >= 1);
    assert(transaction->chain_id <= CHAIN_ID_MAX);
    if (transaction->data_size > TRANSACTION_DATA_MAX) {
        return STATUS_OVER_LIMIT;
    }
    switch (transaction->kind) {
    case TRANSACTION_LEGACY:
        rlp_writer_init(&writer, bytes, TRANSACTION_SIZE_MAX);
        write_legacy(&writer, transaction, signature);
        break;
    case TRANSACTION_FEE_MARKET:
        prefix = 1;
        bytes[0] = TYPE_FEE_MARKET;
        rlp_writer_init(&writer, bytes + prefix, TRANSACTION_SIZE_MAX - prefix);
        write_fee_market(&writer, transaction, signature);
        break;
    }
    *size = prefix + writer.used;
    return rlp_writer_finish(&writer);
}

enum status transaction_signing_hash(const struct transaction *transaction, struct hash32 *hash)
{
    uint8_t *bytes = malloc(TRANSACTION_SIZE_MAX);
    size_t size = 0;
    enum status status;

    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = encode(transaction, NULL, bytes, &size);
    if (status == STATUS_OK) {
        *hash = keccak256(bytes, size);
    }
    free(bytes);
    return status;
}

enum status transaction_sign(const struct transaction *transaction, uint8_t *bytes, size_t *size,
                             struct hash32 *hash, const struct signer *signer, struct error *error)
{
    struct hash32 signing_hash;
    struct signature signature;
    enum status status = encode(transaction, NULL, bytes, size);

    if (status != STATUS_OK) {
        return error_set(error, status, "a transaction of %zu bytes of data is too long",
                         transaction->data_size);
    }
    signing_hash = keccak256(bytes, *size);
    TRY(signer_sign(signer, &signature, &signing_hash, error));
    status = encode(transaction, &signature, bytes, size);
    if (status != STATUS_OK) {
        return error_set(error, status, "a transaction of %zu bytes of data is too long",
                         transaction->data_size);
    }
    *hash = keccak256(bytes, *size);
    return STATUS_OK;
}

/* ---- decoding --------------------------------------------------------------- */

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
