/* evm.c - see evm.h. */
#include "chain/evm/evm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/evm/rpc/poll.h"

enum {
    CALL_DATA_MAX = 128 * 1024,
};

static json_t *account_params(const struct address *account, const char *block)
{
    char text[ADDRESS_TEXT_SIZE];

    address_print(text, account);
    return json_pack("[s, s]", text, block);
}

enum status evm_head(struct rpc *rpc, uint64_t *height, struct error *error)
{
    return poll_largest(rpc, height, "eth_blockNumber", json_array(), NULL, error);
}

enum status evm_nonce(struct rpc *rpc, uint64_t *nonce, const struct address *account,
                      struct error *error)
{
    return poll_largest(rpc, nonce, "eth_getTransactionCount", account_params(account, "latest"),
                        NULL, error);
}

enum status evm_pending_nonce(struct rpc *rpc, uint64_t *nonce, const struct address *account,
                              struct error *error)
{
    return poll_largest(rpc, nonce, "eth_getTransactionCount", account_params(account, "pending"),
                        NULL, error);
}

static enum status reduce_chain_id(char **text, const json_t *answer, const void *subject,
                                   struct error *error)
{
    char line[32];
    uint64_t chain_id;

    (void)subject;
    TRY(rpc_value_u64(&chain_id, answer, "eth_chainId", error));
    (void)snprintf(line, sizeof(line), "chain %llu", (unsigned long long)chain_id);
    return poll_keep_text(text, line, error);
}

enum status evm_chain_id(struct rpc *rpc, uint64_t *chain_id, struct error *error)
{
    json_t *answer;
    enum status status;

    TRY(poll_majority(rpc, &answer,
                      (struct poll_query){.method = "eth_chainId",
                                          .params = json_array(),
                                          .reduce = reduce_chain_id},
                      error));
    status = rpc_value_u64(chain_id, answer, "eth_chainId", error);
    json_decref(answer);
    return status;
}

void evm_check_chain(struct rpc *rpc, uint64_t chain_id)
{
    for (size_t i = 0; i < rpc_endpoint_count(rpc); i++) {
        char reason[RPC_REASON_SIZE];
        json_t *answer = NULL;
        struct error unknown;
        uint64_t found;

        error_init(&unknown);
        if (rpc_call_barred(rpc, i, &answer, "eth_chainId", &unknown) == STATUS_OK &&
            rpc_value_u64(&found, answer, "eth_chainId", &unknown) == STATUS_OK) {
            (void)snprintf(reason, sizeof(reason),
                           "it is of chain %llu, and the ledger is on chain %llu: it is asked "
                           "nothing more",
                           (unsigned long long)found, (unsigned long long)chain_id);
            rpc_endpoint_bar(rpc, i, found == chain_id ? NULL : reason);
        }
        json_decref(answer);
    }
}

enum status evm_balance(struct rpc *rpc, wei *balance, const struct address *account,
                        struct error *error)
{
    json_t *answer;
    struct uint256 wide;
    enum status status;

    TRY(poll_majority(rpc, &answer, poll_whole("eth_getBalance", account_params(account, "latest")),
                      error));
    status = rpc_value_uint256(&wide, answer, "eth_getBalance", error);
    json_decref(answer);
    TRY(status);
    return wei_from_uint256(balance, &wide)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "a balance of more money than there is");
}

enum status evm_code_at(struct rpc *rpc, uint8_t *code, size_t room, size_t *size,
                        const struct address *contract, struct error *error)
{
    json_t *answer;
    enum status status;

    TRY(poll_majority(rpc, &answer, poll_whole("eth_getCode", account_params(contract, "latest")),
                      error));
    status = rpc_value_data(code, room, size, answer, "eth_getCode", error);
    json_decref(answer);
    return status;
}

/* ---- receipts ----------------------------------------------------------------- */

/* What endpoints leave out counts as nothing: they need not agree on it. Some chains also take a
 * fee for the bytes, which go to another chain. */
static wei cost_of(const json_t *answer)
{
    struct uint256 price = uint256_of(0);
    struct uint256 fee = uint256_of(0);
    uint64_t gas = 0;
    wei each = 0;
    wei more = 0;

    if (rpc_field_u64(&gas, answer, "gasUsed", NULL) != STATUS_OK ||
        rpc_field_uint256(&price, answer, "effectiveGasPrice", NULL) != STATUS_OK ||
        !wei_from_uint256(&each, &price) || each > WEI_MAX / ((wei)gas + 1)) {
        return 0;
    }
    if (rpc_field_uint256(&fee, answer, "l1Fee", NULL) != STATUS_OK ||
        !wei_from_uint256(&more, &fee) || more > WEI_MAX) {
        more = 0;
    }
    return gas * each + more;
}

static enum status read_receipt(struct evm_receipt *receipt, const json_t *answer,
                                struct error *error)
{
    uint64_t good;

    TRY(rpc_field_hash(&receipt->block, answer, "blockHash", error));
    TRY(rpc_field_u64(&receipt->height, answer, "blockNumber", error));
    TRY(rpc_field_u64(&good, answer, "status", error));
    if (good > 1) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: status is not 0 or 1");
    }
    receipt->reverted = good == 0;
    receipt->cost = cost_of(answer);
    return STATUS_OK;
}

static enum status reduce_receipt(char **text, const json_t *answer, const void *subject,
                                  struct error *error)
{
    struct evm_receipt receipt;
    struct hash32 transaction;
    char hash[2 * HASH32_SIZE + 1];
    char line[2 * HASH32_SIZE + 64];

    if (json_is_null(answer)) {
        return poll_keep_text(text, "null", error);
    }
    TRY(read_receipt(&receipt, answer, error));
    TRY(rpc_field_hash(&transaction, answer, "transactionHash", error));
    if (!hash32_equal(&transaction, subject)) {
        return poll_false_reply(error, "a receipt of another transaction");
    }
    hex_write(hash, receipt.block.bytes, HASH32_SIZE, false);
    (void)snprintf(line, sizeof(line), "%s %llu %c", hash, (unsigned long long)receipt.height,
                   receipt.reverted ? '-' : '+');
    return poll_keep_text(text, line, error);
}

enum status evm_receipt_of(struct rpc *rpc, struct evm_receipt *receipt,
                           const struct hash32 *transaction, struct error *error)
{
    char hash[HEX_DATA_SIZE(HASH32_SIZE)];
    json_t *answer;
    enum status status;

    hex_write(hash, transaction->bytes, HASH32_SIZE, true);
    TRY(poll_majority(rpc, &answer,
                      (struct poll_query){.method = "eth_getTransactionReceipt",
                                          .params = json_pack("[s]", hash),
                                          .reduce = reduce_receipt,
                                          .subject = transaction},
                      error));
    status = json_is_null(answer)
                 ? error_set(error, STATUS_NOT_FOUND, "no receipt of transaction %s", hash)
                 : read_receipt(receipt, answer, error);
    json_decref(answer);
    return status;
}

/* ---- calls and fees ------------------------------------------------------------- */

enum status evm_call(struct rpc *rpc, uint8_t *result, size_t result_size, size_t *size,
                     const struct address *from, const struct address *to, wei value,
                     const uint8_t *data, size_t data_size, struct error *error)
{
    struct uint256 wide = wei_to_uint256(value);
    char from_text[ADDRESS_TEXT_SIZE];
    char to_text[ADDRESS_TEXT_SIZE];
    char value_text[UINT256_HEX_SIZE];
    char *data_text;
    const json_t *reverted;
    json_t *answer;
    enum status status;

    if (data_size > CALL_DATA_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a call of %zu bytes is too long", data_size);
    }
    data_text = malloc(2 * data_size + 3);
    if (data_text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a call");
    }
    address_print(from_text, from);
    address_print(to_text, to);
    uint256_print_quantity(value_text, &wide);
    hex_write(data_text, data, data_size, true);
    status =
        poll_majority(rpc, &answer,
                      poll_whole("eth_call", json_pack("[{s:s, s:s, s:s, s:s}, s]", "from",
                                                       from_text, "to", to_text, "value",
                                                       value_text, "data", data_text, "latest")),
                      error);
    free(data_text);
    if (status != STATUS_OK) {
        return status;
    }
    /* What a revert says is data as well: it comes back with the refusal, for the caller to
     * read. */
    reverted = json_object_get(answer, "reverted");
    status = rpc_value_data(result, result_size, size, reverted != NULL ? reverted : answer,
                            "eth_call", error);
    if (status == STATUS_OK && reverted != NULL) {
        status = error_set(error, STATUS_REFUSED, "the contract refuses the call");
    }
    json_decref(answer);
    return status;
}

enum status evm_fees_now(struct rpc *rpc, struct evm_fees *fees, struct error *error)
{
    json_t *block;
    enum status status;

    TRY(rpc_call(rpc, &block, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0), error));
    fees->tip_wei = uint256_of(0);
    fees->has_base_fee = json_object_get(block, "baseFeePerGas") != NULL;
    if (!fees->has_base_fee) {
        json_decref(block);
        return rpc_call_uint256(rpc, &fees->base_wei, "eth_gasPrice", NULL, error);
    }
    status = rpc_field_uint256(&fees->base_wei, block, "baseFeePerGas", error);
    json_decref(block);
    if (status != STATUS_OK) {
        return status;
    }
    status = rpc_call_uint256(rpc, &fees->tip_wei, "eth_maxPriorityFeePerGas", NULL, error);
    if (status == STATUS_REFUSED) {
        fees->tip_wei = uint256_of(1000000000); /* a node without the call: one gwei is usual */
        status = STATUS_OK;
    }
    return status;
}

/* ---- sending -------------------------------------------------------------------- */

/* Does the message say one of these? A letter before it makes another word of it: "unknown". */
static bool says_any(const char *message, const char *const *phrases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strcasestr(message, phrases[i]);

        if (at != NULL && (at == message || !isalpha((unsigned char)at[-1]))) {
            return true;
        }
    }
    return false;
}

/* No standard gives this answer a code; these are the words of the nodes. */
static bool is_known(const char *message)
{
    static const char *const phrases[] = {
        "already known",              /* geth, Erigon, Reth */
        "AlreadyKnown",               /* Nethermind */
        "known transaction",          /* Besu, Hardhat, older geth */
        "already imported",           /* anvil, OpenEthereum */
        "existing tx with same hash", /* older Erigon */
    };

    return says_any(message, phrases, sizeof(phrases) / sizeof(phrases[0]));
}

static bool is_nonce_used(const char *message)
{
    static const char *const phrases[] = {
        "nonce too low",    /* geth, Erigon, Reth, Besu, anvil, Hardhat */
        "nonce is too low", /* OpenEthereum */
        "OldNonce",         /* Nethermind */
    };

    return says_any(message, phrases, sizeof(phrases) / sizeof(phrases[0]));
}

enum status evm_send(struct rpc *rpc, const uint8_t *raw, size_t size, bool *nonce_used,
                     struct error *error)
{
    char *text = malloc(2 * size + 3);
    json_t *result = NULL;
    enum status status;

    *nonce_used = false;
    if (text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a transaction");
    }
    hex_write(text, raw, size, true);
    status = rpc_call(rpc, &result, "eth_sendRawTransaction", json_pack("[s]", text), error);
    free(text);
    json_decref(result); /* we know the hash; the node's is not used */
    if (status == STATUS_REFUSED && is_known(rpc_failure(rpc)->message)) {
        return STATUS_OK;
    }
    *nonce_used = status == STATUS_REFUSED && is_nonce_used(rpc_failure(rpc)->message);
    return status;
}
