/* transaction.c - see transaction.h. */
#include "chain/keys/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/rlp.h"

enum {
    TYPE_FEE_MARKET = 0x02,
    V_BASE = 35, /* EIP-155: v = recovery + 2 * chain id + 35 */
};

static void write_target(struct byte_writer *writer, const struct transaction *transaction)
{
    rlp_write_bytes(writer, transaction->to.bytes, transaction->creates ? 0 : ADDRESS_SIZE);
    rlp_write_uint256(writer, &transaction->value_wei);
    rlp_write_bytes(writer, transaction->data, transaction->data_size);
}

static void write_word(struct byte_writer *writer, const uint8_t word[32])
{
    struct uint256 value = uint256_from_bytes(word);

    rlp_write_uint256(writer, &value);
}

/* The fields in their order; signature is NULL for what gets signed. */
static void write_legacy(struct byte_writer *writer, const struct transaction *transaction,
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

static void write_fee_market(struct byte_writer *writer, const struct transaction *transaction,
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

static enum status encode_transaction(const struct transaction *transaction,
                                      const struct signature *signature, uint8_t *bytes,
                                      size_t *size)
{
    struct byte_writer writer;
    size_t prefix = 0;

    assert(transaction->chain_id >= 1);
    assert(transaction->chain_id <= CHAIN_ID_MAX);
    if (transaction->data_size > TRANSACTION_DATA_MAX) {
        return STATUS_OVER_LIMIT;
    }
    switch (transaction->kind) {
    case TRANSACTION_LEGACY:
        byte_writer_init(&writer, bytes, TRANSACTION_SIZE_MAX);
        write_legacy(&writer, transaction, signature);
        break;
    case TRANSACTION_FEE_MARKET:
        prefix = 1;
        bytes[0] = TYPE_FEE_MARKET;
        byte_writer_init(&writer, bytes + prefix, TRANSACTION_SIZE_MAX - prefix);
        write_fee_market(&writer, transaction, signature);
        break;
    }
    *size = prefix + writer.used;
    return byte_writer_finish(&writer);
}

enum status transaction_signing_hash(const struct transaction *transaction, struct hash32 *hash)
{
    uint8_t *bytes = malloc(TRANSACTION_SIZE_MAX);
    size_t size = 0;
    enum status status;

    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = encode_transaction(transaction, NULL, bytes, &size);
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
    enum status status = encode_transaction(transaction, NULL, bytes, size);

    if (status != STATUS_OK) {
        return error_set(error, status, "a transaction of %zu bytes of data is too long",
                         transaction->data_size);
    }
    signing_hash = keccak256(bytes, *size);
    TRY(signer_sign(signer, &signature, &signing_hash, error));
    status = encode_transaction(transaction, &signature, bytes, size);
    if (status != STATUS_OK) {
        return error_set(error, status, "a transaction of %zu bytes of data is too long",
                         transaction->data_size);
    }
    *hash = keccak256(bytes, *size);
    return STATUS_OK;
}
