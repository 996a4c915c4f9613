/* evm_logs.c - see evm_logs.h. */
#include "chain/evm/evm_logs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/evm/rpc/poll.h"

enum {
    WHOLE_MAX = 16, /* blocks all of whose logs are fetched in one request */
    TOPICS_ANY_MAX = 4,
};

/* What the logs must be about. */
struct subject {
    const struct evm_block *blocks;
    size_t block_count;
    const struct address *contracts;
    size_t contract_count;
    /* In filters: */
    struct bloom_item contract_items[EVM_CONTRACTS_MAX];
    struct bloom_item event_items[GAME_EVENT_KINDS];
    struct hash32 event_topics[GAME_EVENT_KINDS];
};

static void init_subject(struct subject *subject)
{
    for (size_t i = 0; i < subject->contract_count; i++) {
        subject->contract_items[i] = bloom_item_of(subject->contracts[i].bytes, ADDRESS_SIZE);
    }
    for (int i = 0; i < GAME_EVENT_KINDS; i++) {
        subject->event_topics[i] = game_event_topic((enum game_event_kind)i);
        subject->event_items[i] = bloom_item_of(subject->event_topics[i].bytes, HASH32_SIZE);
    }
}

/* May the block have a log of ours? */
static bool may_have(const struct subject *subject, const struct evm_block *block)
{
    bool contract = false;
    bool event = false;

    for (size_t i = 0; i < subject->contract_count; i++) {
        contract = contract || bloom_has(&block->bloom, &subject->contract_items[i]);
    }
    for (int i = 0; i < GAME_EVENT_KINDS; i++) {
        event = event || bloom_has(&block->bloom, &subject->event_items[i]);
    }
    return contract && event;
}

/* ---- one log ------------------------------------------------------------------ */

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

/* Which of our contracts; their number: another. */
static enum status read_contract(size_t *contract, const json_t *entry,
                                 const struct subject *subject, struct error *error)
{
    struct address address;

    TRY(rpc_field_address(&address, entry, "address", error));
    for (*contract = 0; *contract < subject->contract_count; (*contract)++) {
        if (address_equal(&address, &subject->contracts[*contract])) {
            break;
        }
    }
    return STATUS_OK;
}

/* Which of the blocks it is in. */
static enum status read_block(uint32_t *at, const json_t *entry, const struct subject *subject,
                              struct error *error)
{
    uint64_t height = subject->blocks[0].height;
    struct hash32 block;

    if (subject->block_count > 1) {
        TRY(rpc_field_u64(&height, entry, "blockNumber", error));
    }
    TRY(rpc_field_hash(&block, entry, "blockHash", error));
    if (height < subject->blocks[0].height ||
        height - subject->blocks[0].height >= subject->block_count ||
        !hash32_equal(&block, &subject->blocks[height - subject->blocks[0].height].hash)) {
        return poll_false_reply(error, "a log of another block");
    }
    *at = (uint32_t)(height - subject->blocks[0].height);
    return STATUS_OK;
}

static enum status check_log(const json_t *entry, const struct game_log *log,
                             const struct evm_block *block, const struct subject *subject,
                             struct error *error)
{
    const json_t *removed = json_object_get(entry, "removed");
    size_t contract;

    TRY(read_contract(&contract, entry, subject, error));
    if (contract == subject->contract_count) {
        return poll_false_reply(error, "a log of another contract");
    }
    if (removed != NULL && !json_is_false(removed)) {
        return poll_false_reply(error, "a removed log");
    }
    if (!bloom_has(&block->bloom, &subject->contract_items[contract])) {
        return poll_false_reply(error, "a log that the block's filter does not have");
    }
    for (uint32_t i = 0; i < log->topic_count; i++) {
        const struct bloom_item item = bloom_item_of(log->topics[i].bytes, HASH32_SIZE);

        if (!bloom_has(&block->bloom, &item)) {
            return poll_false_reply(error, "a log that the block's filter does not have");
        }
    }
    return STATUS_OK;
}

/* ---- a whole reply ------------------------------------------------------------ */

/* Compares only the fields that we use: endpoints add different ones. */
static enum status reduce_logs(char **text, const json_t *answer, const void *context,
                               struct error *error)
{
    const struct subject *subject = context;
    uint8_t data[GAME_LOG_SIZE_MAX];
    char hash[2 * HASH32_SIZE + 1];
    char line[2 * HASH32_SIZE + 64];
    struct keccak keccak;
    struct hash32 made;
    uint64_t last = 0;

    if (!json_is_array(answer) || json_array_size(answer) > EVM_LOGS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: not a list of logs");
    }
    keccak_init(&keccak);
    for (size_t i = 0; i < json_array_size(answer); i++) {
        const json_t *entry = json_array_get(answer, i);
        struct game_log log;
        uint32_t place;
        uint32_t at;

        TRY(read_log(&log, data, &place, entry, error));
        TRY(read_block(&at, entry, subject, error));
        TRY(check_log(entry, &log, &subject->blocks[at], subject, error));
        /* Block above place in one number: logs must rise in it, and none may come twice. */
        if (i > 0 && ((uint64_t)at << 32 | place) <= last) {
            return poll_false_reply(error, ((uint64_t)at << 32 | place) == last
                                               ? "the same log twice"
                                               : "logs that are not in order");
        }
        last = (uint64_t)at << 32 | place;
        keccak_add(&keccak, &last, sizeof(last));
        keccak_add(&keccak, log.topics, sizeof(log.topics));
        keccak_add(&keccak, &log.data.size, sizeof(log.data.size));
        keccak_add(&keccak, log.data.bytes, log.data.size);
    }
    made = keccak_end(&keccak);
    /* The polls compare this line: a hash of all that is used stands for megabytes. */
    hex_write(hash, made.bytes, HASH32_SIZE, false);
    (void)snprintf(line, sizeof(line), "%zu logs of blocks %llu to %llu, %s",
                   json_array_size(answer), (unsigned long long)subject->blocks[0].height,
                   (unsigned long long)subject->blocks[subject->block_count - 1].height, hash);
    return poll_keep_text(text, line, error);
}

/* ---- what a reply leaves out -------------------------------------------------- */

/* What came of one block. */
struct seen {
    bool contracts[EVM_CONTRACTS_MAX];
    bool events[GAME_EVENT_KINDS];
};

static enum status look_at(struct seen *seen, const json_t *entry, const struct subject *subject,
                           struct error *error)
{
    const json_t *topics = json_object_get(entry, "topics");
    struct hash32 topic = {{0}};
    size_t contract;
    uint32_t at;

    TRY(read_block(&at, entry, subject, error));
    TRY(read_contract(&contract, entry, subject, error));
    if (json_array_size(topics) > 0) {
        TRY(rpc_value_hash(&topic, json_array_get(topics, 0), "topic", error));
    }
    seen[at].contracts[contract] = true;
    for (int i = 0; i < GAME_EVENT_KINDS; i++) {
        seen[at].events[i] = seen[at].events[i] || hash32_equal(&topic, &subject->event_topics[i]);
    }
    return STATUS_OK;
}

/* Does the filter have a contract or an event of ours of which no log came? */
static bool is_suspicious(const struct seen *seen, const struct subject *subject,
                          const struct evm_block *block)
{
    if (!may_have(subject, block)) {
        return false;
    }
    for (size_t i = 0; i < subject->contract_count; i++) {
        if (!seen->contracts[i] && bloom_has(&block->bloom, &subject->contract_items[i])) {
            return true;
        }
    }
    for (int i = 0; i < GAME_EVENT_KINDS; i++) {
        if (!seen->events[i] && bloom_has(&block->bloom, &subject->event_items[i])) {
            return true;
        }
    }
    return false;
}

static enum status add_to_filter(struct bloom *made, const json_t *entry, struct error *error)
{
    const json_t *topics = json_object_get(entry, "topics");
    struct bloom_item item;
    struct address address;

    TRY(rpc_field_address(&address, entry, "address", error));
    item = bloom_item_of(address.bytes, ADDRESS_SIZE);
    bloom_add(made, &item);
    for (size_t i = 0; i < json_array_size(topics) && i < TOPICS_ANY_MAX; i++) {
        struct hash32 topic;

        TRY(rpc_value_hash(&topic, json_array_get(topics, i), "topic", error));
        item = bloom_item_of(topic.bytes, HASH32_SIZE);
        bloom_add(made, &item);
    }
    return STATUS_OK;
}

/* All logs of a block make its filter. Ours among them are added to kept. */
static enum status check_whole(json_t *kept, const json_t *whole, const struct evm_block *block,
                               const struct subject *subject, struct error *error)
{
    struct bloom made = {{0}};

    for (size_t i = 0; i < json_array_size(whole); i++) {
        json_t *entry = json_array_get(whole, i);
        struct hash32 hash;
        size_t contract;

        TRY(rpc_field_hash(&hash, entry, "blockHash", error));
        TRY(read_contract(&contract, entry, subject, error));
        if (!hash32_equal(&hash, &block->hash)) {
            return poll_false_reply(error, "a log of another block");
        }
        TRY(add_to_filter(&made, entry, error));
        if (contract < subject->contract_count && json_array_append(kept, entry) != 0) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for logs");
        }
    }
    if (!json_is_array(whole) || memcmp(made.bytes, block->bloom.bytes, BLOOM_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "false reply: logs of block %llu are left out: its header's filter has "
                         "more than the logs that came",
                         (unsigned long long)block->height);
    }
    return STATUS_OK;
}

static json_t *hash_params(const struct hash32 *block)
{
    char hash[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(hash, block->bytes, HASH32_SIZE, true);
    return json_pack("[{s:s}]", "blockHash", hash);
}

/* Of each suspicious block a list of our logs, from all its logs, is added to kept. */
static enum status refetch_blocks(json_t *kept, struct rpc *rpc, size_t endpoint,
                                  const uint32_t *suspicious, size_t count,
                                  const struct subject *subject, struct error *error)
{
    json_t *params = json_array();
    json_t *wholes = NULL;
    enum status status;

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(params, hash_params(&subject->blocks[suspicious[i]].hash));
    }
    status = rpc_batch_at(rpc, endpoint, &wholes, "eth_getLogs", params, error);
    if (status == STATUS_REFUSED) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "logs of block %llu seem to be left out: its header's filter has an "
                           "event of ours and none came; and all logs of the block cannot be read: "
                           "%s",
                           (unsigned long long)subject->blocks[suspicious[0]].height,
                           rpc_failure(rpc)->message);
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        json_t *ours = json_array();

        status = check_whole(ours, json_array_get(wholes, i), &subject->blocks[suspicious[i]],
                             subject, error);
        (void)json_array_append_new(kept, ours);
    }
    json_decref(wholes);
    return status;
}

/* Replaces the logs of the suspicious blocks by those of wholes. Keeps the order of the blocks. */
static enum status merge_logs(json_t *merged, const json_t *answer, const json_t *wholes,
                              const uint32_t *suspicious, size_t count,
                              const struct subject *subject, struct error *error)
{
    size_t next = 0;

    for (size_t i = 0; i < json_array_size(answer); i++) {
        json_t *entry = json_array_get(answer, i);
        uint32_t at;

        TRY(read_block(&at, entry, subject, error));
        for (; next < count && suspicious[next] <= at; next++) {
            (void)json_array_extend(merged, json_array_get(wholes, next));
        }
        if (next == 0 || suspicious[next - 1] != at) {
            (void)json_array_append(merged, entry);
        }
    }
    for (; next < count; next++) {
        (void)json_array_extend(merged, json_array_get(wholes, next));
    }
    return STATUS_OK;
}

/* For a poll: fetches what the filters have and the answer has not. */
static enum status complete_logs(json_t **answer, struct rpc *rpc, size_t endpoint,
                                 const void *context, struct error *error)
{
    const struct subject *subject = context;
    struct seen *seen = calloc(subject->block_count, sizeof(*seen));
    uint32_t suspicious[EVM_BLOCKS_MAX];
    json_t *wholes = json_array();
    char *text = NULL;
    enum status status;
    size_t count = 0;

    TRY_OUT(reduce_logs(&text, *answer, subject, error));
    if (seen == NULL || wholes == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for logs"));
    }
    for (size_t i = 0; i < json_array_size(*answer); i++) {
        TRY_OUT(look_at(seen, json_array_get(*answer, i), subject, error));
    }
    for (uint32_t i = 0; i < subject->block_count; i++) {
        /* Endpoints forget logs; what the block's filter says it has, and the answer lacks, is
         * asked for. */
        if (is_suspicious(&seen[i], subject, &subject->blocks[i])) {
            suspicious[count++] = i;
        }
    }
    /* In pieces: all logs of many blocks are a long reply. */
    for (size_t i = 0; i < count; i += WHOLE_MAX) {
        TRY_OUT(refetch_blocks(wholes, rpc, endpoint, suspicious + i,
                               count - i < WHOLE_MAX ? count - i : WHOLE_MAX, subject, error));
    }
    if (count > 0) {
        json_t *merged = json_array();

        status = merge_logs(merged, *answer, wholes, suspicious, count, subject, error);
        json_decref(*answer);
        *answer = merged;
    }
out:
    free(text);
    free(seen);
    json_decref(wholes);
    return status;
}

static enum status read_logs(struct evm_logs *logs, const json_t *answer,
                             const struct subject *subject, struct error *error)
{
    enum status status = STATUS_OK;
    uint8_t *data = malloc(GAME_LOG_SIZE_MAX);
    size_t used = 0;
    size_t total = 0;

    for (size_t i = 0; i < json_array_size(answer); i++) {
        /* All bytes in one block, measured first: a log borrows its part of it. */
        total += json_string_length(json_object_get(json_array_get(answer, i), "data")) / 2;
    }
    logs->count = json_array_size(answer);
    logs->logs = calloc(logs->count + 1, sizeof(*logs->logs));
    logs->places = calloc(logs->count + 1, sizeof(*logs->places));
    logs->blocks = calloc(logs->count + 1, sizeof(*logs->blocks));
    logs->bytes = malloc(total + 1);
    if (data == NULL || logs->logs == NULL || logs->places == NULL || logs->blocks == NULL ||
        logs->bytes == NULL) {
        free(data);
        return error_set(error, STATUS_NO_MEMORY, "no memory for %zu logs", logs->count);
    }
    for (size_t i = 0; i < logs->count && status == STATUS_OK; i++) {
        const json_t *entry = json_array_get(answer, i);
        struct game_log *log = &logs->logs[i];

        status = read_log(log, data, &logs->places[i], entry, error);
        if (status == STATUS_OK) {
            status = read_block(&logs->blocks[i], entry, subject, error);
        }
        if (status == STATUS_OK) {
            memcpy(logs->bytes + used, data, log->data.size);
            log->data.bytes = logs->bytes + used;
            used += log->data.size;
        }
    }
    free(data);
    return status;
}

static void put_height(json_t *object, const char *key, uint64_t height)
{
    struct uint256 wide = uint256_of(height);
    char number[UINT256_HEX_SIZE];

    uint256_print_quantity(number, &wide);
    (void)json_object_set_new(object, key, json_string(number));
}

static json_t *logs_params(const struct subject *subject)
{
    json_t *addresses = json_array();
    json_t *params =
        subject->block_count == 1 ? hash_params(&subject->blocks[0].hash) : json_pack("[{}]");
    json_t *filter = json_array_get(params, 0);

    for (size_t i = 0; i < subject->contract_count; i++) {
        char text[ADDRESS_TEXT_SIZE];

        address_print(text, &subject->contracts[i]);
        (void)json_array_append_new(addresses, json_string(text));
    }
    (void)json_object_set_new(filter, "address", addresses);
    if (subject->block_count > 1) {
        put_height(filter, "fromBlock", subject->blocks[0].height);
        put_height(filter, "toBlock", subject->blocks[subject->block_count - 1].height);
    }
    return params;
}

enum status evm_logs_of(struct rpc *rpc, struct evm_logs *logs, const struct evm_block *blocks,
                        size_t block_count, const struct address *contracts, size_t contract_count,
                        struct error *error)
{
    struct subject subject = {blocks,  block_count, contracts, contract_count,
                              {{{0}}}, {{{0}}},     {{{0}}}};
    bool any = false;
    json_t *answer;
    enum status status;

    assert(block_count >= 1 && block_count <= EVM_BLOCKS_MAX);
    assert(contract_count <= EVM_CONTRACTS_MAX);
    memset(logs, 0, sizeof(*logs));
    init_subject(&subject);
    for (size_t i = 0; i < block_count; i++) {
        any = any || may_have(&subject, &blocks[i]);
    }
    if (!any) {
        return STATUS_OK;
    }
    TRY(poll_majority(rpc, &answer,
                      (struct poll_query){.method = "eth_getLogs",
                                          .params = logs_params(&subject),
                                          .reduce = reduce_logs,
                                          .subject = &subject,
                                          .complete = complete_logs},
                      error));
    status = read_logs(logs, answer, &subject, error);
    json_decref(answer);
    return status;
}

void evm_logs_release(struct evm_logs *logs)
{
    free(logs->logs);
    free(logs->places);
    free(logs->blocks);
    free(logs->bytes);
    memset(logs, 0, sizeof(*logs));
}
