/* evm.c - see evm.h. */
#include "chain/evm/evm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"
#include "chain/evm/block_header.h"
#include "chain/evm/rpc_transport.h"

enum {
    CALL_DATA_MAX = 128 * 1024,
    CODE_REVERTED = 3,
};

/* Reduces an answer to what must be equal, as text. STATUS_BAD_FORMAT for one that cannot be an
 * answer to the query: malformed, or about something else. */
typedef enum status reduce_answer(char **text, const json_t *answer, const void *query,
                                  struct error *error);

static size_t majority_of(const struct rpc *rpc)
{
    return rpc_endpoint_count(rpc) / 2 + 1;
}

/* An endpoint that lies, or is broken: its reply is about something else than the query. */
static enum status false_reply(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "false reply: %s", what);
}

static enum status no_agreement(struct error *error, const char *method, size_t answers,
                                const struct rpc *rpc, const struct error *trouble)
{
    if (rpc_is_stopped(rpc)) {
        return error_set(error, STATUS_STOPPED, "%s: stopped", method);
    }
    if (rpc_endpoint_count(rpc) == 1 && trouble->text[0] != '\0') {
        return error_set(error, STATUS_UNREACHABLE, "%s", trouble->text);
    }
    return error_set(error, STATUS_UNREACHABLE,
                     "%s: no %zu of %zu endpoints give the same answer (%zu answered)%s%s", method,
                     majority_of(rpc), rpc_endpoint_count(rpc), answers,
                     trouble->text[0] != '\0' ? "; " : "", trouble->text);
}

/* A refusal of a call is an answer too: it becomes {"reverted": data}. */
static json_t *refusal_as_answer(const struct rpc *rpc)
{
    const struct rpc_failure *failure = rpc_failure(rpc);
    char text[2 * RPC_DATA_MAX + 3];

    if (failure->code != CODE_REVERTED && failure->data_size == 0) {
        return NULL;
    }
    hex_write(text, failure->data, failure->data_size, true);
    return json_pack("{s:s}", "reverted", text);
}

static json_t *call_one(struct rpc *rpc, size_t endpoint, const char *method, json_t *params,
                        struct error *error)
{
    json_t *answer = NULL;
    enum status status = rpc_call_at(rpc, endpoint, &answer, method, json_incref(params), error);

    if (status == STATUS_REFUSED && strcmp(method, "eth_call") == 0) {
        return refusal_as_answer(rpc);
    }
    return status == STATUS_OK ? answer : NULL;
}

/* The answer of each endpoint to one request; NULL: none, or none that can be an answer. */
struct poll {
    json_t *answers[RPC_ENDPOINTS_MAX];
    json_t *texts[RPC_ENDPOINTS_MAX]; /* reduced, for comparison */
    size_t answer_count;
    struct error trouble; /* of requests that failed */
    struct error refused; /* why an answer did not count, with its endpoint */
};

struct query {
    const char *method;
    json_t *params;
    reduce_answer *reduce;
    const void *subject; /* what an answer must be about; for reduce */
};

/* Keeps the answer of an endpoint that had none; true when more than half give the same. */
static bool poll_one(struct poll *poll, struct rpc *rpc, size_t endpoint, const struct query *query)
{
    size_t same = 0;
    char *text = NULL;
    json_t *answer = call_one(rpc, endpoint, query->method, query->params, &poll->trouble);

    if (answer != NULL &&
        query->reduce(&text, answer, query->subject, &poll->refused) == STATUS_OK) {
        poll->texts[endpoint] = json_string(text);
    } else if (answer != NULL) {
        (void)error_wrap(&poll->refused, "%s: %s", rpc_endpoint_label(rpc, endpoint),
                         query->method);
    }
    free(text);
    if (poll->texts[endpoint] == NULL) {
        json_decref(answer);
        return false;
    }
    poll->answers[endpoint] = answer;
    poll->answer_count++;
    for (size_t i = 0; i < rpc_endpoint_count(rpc); i++) {
        same += json_equal(poll->texts[i], poll->texts[endpoint]) != 0;
    }
    return same >= majority_of(rpc);
}

static void poll_release(struct poll *poll)
{
    for (size_t i = 0; i < RPC_ENDPOINTS_MAX; i++) {
        json_decref(poll->answers[i]);
        json_decref(poll->texts[i]);
    }
}

/* Takes query.params. *answer is one of those that agree. An endpoint that did not answer is tried
 * again before the call fails: one lost request must not cost a whole round. */
static enum status poll_majority(struct rpc *rpc, json_t **answer, struct query query,
                                 struct error *error)
{
    struct poll poll = {0};
    size_t endpoint_count = rpc_endpoint_count(rpc);
    size_t order[RPC_ENDPOINTS_MAX];
    uint32_t round = 1;
    enum status status;

    *answer = NULL;
    error_init(&poll.trouble);
    error_init(&poll.refused);
    do {
        (void)rpc_endpoint_order(rpc, order);
        for (size_t i = 0; i < endpoint_count && *answer == NULL; i++) {
            size_t endpoint = order[i];

            if (poll.answers[endpoint] == NULL && poll_one(&poll, rpc, endpoint, &query)) {
                *answer = json_incref(poll.answers[endpoint]);
            }
        }
    } while (*answer == NULL && poll.answer_count < endpoint_count &&
             rpc_endpoint_again(rpc, &round));
    status = *answer != NULL
                 ? STATUS_OK
                 : no_agreement(error, query.method, poll.answer_count, rpc,
                                poll.refused.text[0] != '\0' ? &poll.refused : &poll.trouble);
    poll_release(&poll);
    json_decref(query.params);
    return status;
}

static enum status keep_text(char **text, const char *found, struct error *error)
{
    *text = strdup(found);
    return *text != NULL ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "no memory for a reply");
}

static enum status reduce_whole(char **text, const json_t *answer, const void *subject,
                                struct error *error)
{
    struct buffer whole;
    enum status status;

    (void)subject;
    buffer_init(&whole, RPC_REPLY_SIZE_MAX);
    /* A cut text could be equal to another cut text. */
    TRY_OUT(
        strict_json_write(&whole, error, answer, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY));
    TRY_OUT(keep_text(text, buffer_text(&whole), error));
out:
    buffer_release(&whole);
    return status;
}

static struct query query_whole(const char *method, json_t *params)
{
    return (struct query){.method = method, .params = params, .reduce = reduce_whole};
}

/* Inserts the number of one endpoint among those of the others, the largest first. */
static bool poll_number(uint64_t *reached, size_t *count, struct rpc *rpc, size_t endpoint,
                        const char *method, json_t *params, struct error *trouble)
{
    json_t *answer = call_one(rpc, endpoint, method, params, trouble);
    uint64_t value;
    bool good = answer != NULL && rpc_value_u64(&value, answer, method, trouble) == STATUS_OK;

    if (answer != NULL && !good) {
        (void)error_wrap(trouble, "%s", rpc_endpoint_label(rpc, endpoint));
    }
    json_decref(answer);
    if (good) {
        size_t at = (*count)++;

        for (; at > 0 && reached[at - 1] < value; at--) {
            reached[at] = reached[at - 1];
        }
        reached[at] = value;
    }
    return good;
}

/* Takes params. The largest number that more than half have reached. Endpoints that failed lately
 * are tried only if there is no majority without them. */
static enum status poll_largest(struct rpc *rpc, uint64_t *number, const char *method,
                                json_t *params, struct error *error)
{
    uint64_t reached[RPC_ENDPOINTS_MAX];
    bool answered[RPC_ENDPOINTS_MAX] = {false};
    size_t order[RPC_ENDPOINTS_MAX];
    size_t endpoint_count = rpc_endpoint_count(rpc);
    size_t majority = majority_of(rpc);
    size_t count = 0;
    uint32_t round = 1;
    struct error trouble;

    error_init(&trouble);
    do {
        size_t well = rpc_endpoint_order(rpc, order);

        for (size_t i = 0; i < endpoint_count; i++) {
            size_t at = order[i];

            answered[at] = answered[at] || (count >= majority && i >= well) ||
                           poll_number(reached, &count, rpc, at, method, params, &trouble);
        }
    } while (count < majority && rpc_endpoint_again(rpc, &round));
    json_decref(params);
    if (count < majority) {
        return no_agreement(error, method, count, rpc, &trouble);
    }
    *number = reached[majority - 1];
    return STATUS_OK;
}

static json_t *account_params(const struct address *account)
{
    char text[ADDRESS_TEXT_SIZE];

    address_print(text, account);
    return json_pack("[s, s]", text, "latest");
}

enum status evm_head(struct rpc *rpc, uint64_t *height, struct error *error)
{
    return poll_largest(rpc, height, "eth_blockNumber", json_array(), error);
}

enum status evm_nonce(struct rpc *rpc, uint64_t *nonce, const struct address *account,
                      struct error *error)
{
    return poll_largest(rpc, nonce, "eth_getTransactionCount", account_params(account), error);
}

enum status evm_chain_id(struct rpc *rpc, uint64_t *chain_id, struct error *error)
{
    json_t *answer;
    enum status status;

    TRY(poll_majority(rpc, &answer, query_whole("eth_chainId", json_array()), error));
    status = rpc_value_u64(chain_id, answer, "eth_chainId", error);
    json_decref(answer);
    return status;
}

enum status evm_balance(struct rpc *rpc, wei *balance, const struct address *account,
                        struct error *error)
{
    json_t *answer;
    struct uint256 wide;
    enum status status;

    TRY(poll_majority(rpc, &answer, query_whole("eth_getBalance", account_params(account)), error));
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

    TRY(poll_majority(rpc, &answer, query_whole("eth_getCode", account_params(contract)), error));
    status = rpc_value_data(code, room, size, answer, "eth_getCode", error);
    json_decref(answer);
    return status;
}

/* ---- blocks and receipts ------------------------------------------------------ */

static enum status read_block(struct evm_block *block, const json_t *answer, struct error *error)
{
    TRY(rpc_field_u64(&block->height, answer, "number", error));
    TRY(rpc_field_hash(&block->hash, answer, "hash", error));
    TRY(rpc_field_hash(&block->parent, answer, "parentHash", error));
    return rpc_field_u64(&block->time_s, answer, "timestamp", error);
}

/* All that we use of a block must be equal: an endpoint may lie about its time alone. */
static enum status reduce_block(char **text, const json_t *answer, const void *subject,
                                struct error *error)
{
    const uint64_t *height = subject;
    struct evm_block block;
    char hash[2 * HASH32_SIZE + 1];
    char parent[2 * HASH32_SIZE + 1];
    char line[4 * HASH32_SIZE + 64];

    if (json_is_null(answer)) {
        return keep_text(text, "null", error);
    }
    TRY(read_block(&block, answer, error));
    if (block.height != *height) {
        return false_reply(error, "a block of another height");
    }
    hex_write(hash, block.hash.bytes, HASH32_SIZE, false);
    hex_write(parent, block.parent.bytes, HASH32_SIZE, false);
    (void)snprintf(line, sizeof(line), "%s %s %llu", hash, parent,
                   (unsigned long long)block.time_s);
    return keep_text(text, line, error);
}

/* STATUS_NOT_FOUND: no such block. The caller decrefs *answer. */
static enum status ask_block(struct rpc *rpc, json_t **answer, uint64_t height,
                             reduce_answer *reduce, struct error *error)
{
    struct uint256 wide = uint256_of(height);
    char number[UINT256_HEX_SIZE];

    uint256_print_quantity(number, &wide);
    TRY(poll_majority(
        rpc, answer,
        (struct query){"eth_getBlockByNumber", json_pack("[s, b]", number, 0), reduce, &height},
        error));
    if (json_is_null(*answer)) {
        json_decref(*answer);
        return error_set(error, STATUS_NOT_FOUND, "there is no block %s", number);
    }
    return STATUS_OK;
}

enum status evm_block_at(struct rpc *rpc, struct evm_block *block, uint64_t height,
                         struct error *error)
{
    json_t *answer;
    enum status status;

    TRY(ask_block(rpc, &answer, height, reduce_block, error));
    status = read_block(block, answer, error);
    json_decref(answer);
    return status;
}

/* An endpoint whose header does not hash to the hash that it gives is not believed. */
static enum status reduce_header(char **text, const json_t *answer, const void *subject,
                                 struct error *error)
{
    uint8_t header[GAME_HEADER_MAX];
    size_t size;

    if (!json_is_null(answer)) {
        TRY(block_header_encode(header, &size, answer, error));
    }
    return reduce_block(text, answer, subject, error);
}

enum status evm_header_at(struct rpc *rpc, uint8_t header[GAME_HEADER_MAX], size_t *size,
                          uint64_t height, struct error *error)
{
    json_t *answer;
    enum status status;

    TRY(ask_block(rpc, &answer, height, reduce_header, error));
    status = block_header_encode(header, size, answer, error);
    json_decref(answer);
    return status;
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
        return keep_text(text, "null", error);
    }
    TRY(read_receipt(&receipt, answer, error));
    TRY(rpc_field_hash(&transaction, answer, "transactionHash", error));
    if (!hash32_equal(&transaction, subject)) {
        return false_reply(error, "a receipt of another transaction");
    }
    hex_write(hash, receipt.block.bytes, HASH32_SIZE, false);
    (void)snprintf(line, sizeof(line), "%s %llu %c", hash, (unsigned long long)receipt.height,
                   receipt.reverted ? '-' : '+');
    return keep_text(text, line, error);
}

enum status evm_receipt_of(struct rpc *rpc, struct evm_receipt *receipt,
                           const struct hash32 *transaction, struct error *error)
{
    char hash[HEX_DATA_SIZE(HASH32_SIZE)];
    json_t *answer;
    enum status status;

    hex_write(hash, transaction->bytes, HASH32_SIZE, true);
    TRY(poll_majority(rpc, &answer,
                      (struct query){"eth_getTransactionReceipt", json_pack("[s]", hash),
                                     reduce_receipt, transaction},
                      error));
    status = json_is_null(answer)
                 ? error_set(error, STATUS_NOT_FOUND, "no receipt of transaction %s", hash)
                 : read_receipt(receipt, answer, error);
    json_decref(answer);
    return status;
}

/* ---- logs --------------------------------------------------------------------- */

/* data has GAME_LOG_SIZE_MAX; a longer log is none of ours. */
static enum status read_log(struct game_log *log, uint8_t *data, uint32_t *place,
                            const json_t *entry, struct error *error)
{
    const json_t *topics = json_object_get(entry, "topics");
    size_t count = json_array_size(topics);
    uint64_t number;
    enum status status = rpc_field_u64(&number, entry, "logIndex", error);

    memset(log, 0, sizeof(*log));
    if (status != STATUS_OK || number > UINT32_MAX || count > GAME_TOPICS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: a log's topics or index");
    }
    *place = (uint32_t)number;
    log->topic_count = (uint32_t)count;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = rpc_value_hash(&log->topics[i], json_array_get(topics, i), "topic", error);
    }
    if (status == STATUS_OK) {
        log->data.bytes = data;
        status = rpc_value_data(data, GAME_LOG_SIZE_MAX, &log->data.size,
                                json_object_get(entry, "data"), "data", error);
    }
    /* For people; no endpoint needs to say it. */
    if (status == STATUS_OK && json_is_string(json_object_get(entry, "transactionHash"))) {
        status = rpc_field_hash(&log->transaction, entry, "transactionHash", error);
    }
    return status;
}

/* What the logs must be about. */
struct log_subject {
    const struct hash32 *block;
    const struct address *contracts;
    size_t contract_count;
};

static enum status check_log(const json_t *entry, const struct log_subject *subject,
                             struct error *error)
{
    const json_t *removed = json_object_get(entry, "removed");
    struct address contract;
    struct hash32 block;

    TRY(rpc_field_hash(&block, entry, "blockHash", error));
    TRY(rpc_field_address(&contract, entry, "address", error));
    if (!hash32_equal(&block, subject->block)) {
        return false_reply(error, "a log of another block");
    }
    if (removed != NULL && !json_is_false(removed)) {
        return false_reply(error, "a removed log");
    }
    for (size_t i = 0; i < subject->contract_count; i++) {
        if (address_equal(&contract, &subject->contracts[i])) {
            return STATUS_OK;
        }
    }
    return false_reply(error, "a log of another contract");
}

static int by_number(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

/* Sorts places. */
static enum status check_places(uint32_t *places, size_t count, struct error *error)
{
    qsort(places, count, sizeof(*places), by_number);
    for (size_t i = 1; i < count; i++) {
        if (places[i - 1] == places[i]) {
            return false_reply(error, "the same log twice");
        }
    }
    return STATUS_OK;
}

/* Compares only the fields that we use: endpoints add different ones. */
static enum status reduce_logs(char **text, const json_t *answer, const void *subject,
                               struct error *error)
{
    uint8_t data[GAME_LOG_SIZE_MAX];
    char line[2 * HASH32_SIZE + 1];
    struct keccak keccak;
    struct hash32 hash;
    size_t count = json_array_size(answer);
    uint32_t *places;
    enum status status;

    if (!json_is_array(answer) || count > EVM_LOGS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: not a list of logs");
    }
    places = calloc(count + 1, sizeof(*places));
    if (places == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %zu logs", count);
    }
    keccak_init(&keccak);
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(answer, i);
        struct game_log log;

        TRY_OUT(read_log(&log, data, &places[i], entry, error));
        TRY_OUT(check_log(entry, subject, error));
        keccak_add(&keccak, &places[i], sizeof(places[i]));
        keccak_add(&keccak, log.topics, sizeof(log.topics));
        keccak_add(&keccak, &log.data.size, sizeof(log.data.size));
        keccak_add(&keccak, log.data.bytes, log.data.size);
    }
    TRY_OUT(check_places(places, count, error));
    hash = keccak_end(&keccak);
    hex_write(line, hash.bytes, HASH32_SIZE, false);
    TRY_OUT(keep_text(text, line, error));
out:
    free(places);
    return status;
}

static enum status read_logs(struct evm_logs *logs, const json_t *answer, struct error *error)
{
    enum status status = STATUS_OK;
    uint8_t *data = malloc(GAME_LOG_SIZE_MAX);
    size_t used = 0;
    size_t total = 0;

    for (size_t i = 0; i < json_array_size(answer); i++) {
        total += json_string_length(json_object_get(json_array_get(answer, i), "data")) / 2;
    }
    logs->count = json_array_size(answer);
    logs->logs = calloc(logs->count + 1, sizeof(*logs->logs));
    logs->places = calloc(logs->count + 1, sizeof(*logs->places));
    logs->bytes = malloc(total + 1);
    if (data == NULL || logs->logs == NULL || logs->places == NULL || logs->bytes == NULL) {
        free(data);
        return error_set(error, STATUS_NO_MEMORY, "no memory for %zu logs", logs->count);
    }
    for (size_t i = 0; i < logs->count && status == STATUS_OK; i++) {
        struct game_log *log = &logs->logs[i];

        status = read_log(log, data, &logs->places[i], json_array_get(answer, i), error);
        if (status == STATUS_OK) {
            memcpy(logs->bytes + used, data, log->data.size);
            log->data.bytes = logs->bytes + used;
            used += log->data.size;
        }
    }
    free(data);
    return status;
}

enum status evm_logs_of(struct rpc *rpc, struct evm_logs *logs, const struct hash32 *block,
                        const struct address *contracts, size_t contract_count, struct error *error)
{
    char hash[HEX_DATA_SIZE(HASH32_SIZE)];
    const struct log_subject subject = {block, contracts, contract_count};
    json_t *addresses = json_array();
    json_t *answer;
    enum status status;

    memset(logs, 0, sizeof(*logs));
    for (size_t i = 0; i < contract_count; i++) {
        char text[ADDRESS_TEXT_SIZE];

        address_print(text, &contracts[i]);
        (void)json_array_append_new(addresses, json_string(text));
    }
    hex_write(hash, block->bytes, HASH32_SIZE, true);
    TRY(poll_majority(
        rpc, &answer,
        (struct query){"eth_getLogs",
                       json_pack("[{s:s, s:o}]", "blockHash", hash, "address", addresses),
                       reduce_logs, &subject},
        error));
    status = read_logs(logs, answer, error);
    json_decref(answer);
    return status;
}

void evm_logs_release(struct evm_logs *logs)
{
    free(logs->logs);
    free(logs->places);
    free(logs->bytes);
    memset(logs, 0, sizeof(*logs));
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
                      query_whole("eth_call", json_pack("[{s:s, s:s, s:s, s:s}, s]", "from",
                                                        from_text, "to", to_text, "value",
                                                        value_text, "data", data_text, "latest")),
                      error);
    free(data_text);
    if (status != STATUS_OK) {
        return status;
    }
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
static bool says(const char *message, const char *const *phrases, size_t count)
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

    return says(message, phrases, sizeof(phrases) / sizeof(phrases[0]));
}

static bool is_nonce_used(const char *message)
{
    static const char *const phrases[] = {
        "nonce too low",    /* geth, Erigon, Reth, Besu, anvil, Hardhat */
        "nonce is too low", /* OpenEthereum */
        "OldNonce",         /* Nethermind */
    };

    return says(message, phrases, sizeof(phrases) / sizeof(phrases[0]));
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
