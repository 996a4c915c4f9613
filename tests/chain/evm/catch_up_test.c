/*
 * Goal: a reader that is thousands of blocks behind comes to the head over endpoints that fail now
 * and then, with a hundredth of two requests a block, fetches no block twice, and misses no event
 * that an endpoint leaves out; one endpoint of three that hangs costs next to nothing.
 * Method: a chain that is made up, with headers that hash, behind an endpoint that leaves requests
 * without an answer, refuses ranges and hides logs as the test says; counts of what it was asked.
 */
#include "tests/support/test.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chain/codec/hex_data.h"
#include "chain/contracts/compiled/seeds_code.h"
#include "chain/evm/evm_index.h"
#include "chain/evm/evm_seeds.h"
#include "chain/game/ledger.h"
#include "tests/support/chain/made_block.h"
#include "tests/support/game/rpc_server.h"

#define REGISTRY "0x1111111111111111111111111111111111111111"

enum {
    CHAIN_ID = 31337,
    BLOCKS = 2000,
    SHORT_BLOCKS = 600,
    BLOCKS_MAX = 20000, /* of the long chain */
    EVENT_EVERY = 250,
    CALLS_MAX = 10000, /* of a reader that must come to an end */
    FEW_BLOCKS = 300,  /* where each request to one that hangs takes its whole time: */
    TIMEOUT_MS_SHORT = 2000,
    HANGS_MAX = 20,     /* such requests, in a minute */
    TIMEOUT_MS = 60000, /* of an endpoint that answers, on a busy machine */
};

enum hiding {
    HIDES_NOTHING,
    HIDES_ALL,      /* answers every question for logs with an empty list */
    HIDES_SOME,     /* ... leaves the second log of a block out */
    HIDES_FILTERED, /* ... but has all logs of a block, as one whose index of logs is broken */
};

struct chain {
    uint64_t height;
    uint64_t finalized;
    struct hash32 hashes[BLOCKS_MAX + 1];
    atomic_uint blocks[BLOCKS_MAX + 1]; /* how often each was served */
    uint64_t range_max;                 /* blocks of one request for logs; 0: any */
    enum hiding hiding;
    uint64_t time_s;           /* of the first block */
    const char *registry_says; /* to a call; NULL: what a registry without a referee does */
};

/* ---- the chain ----------------------------------------------------------------- */

static json_t *number_json(uint64_t number)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)number);
    return json_string(text);
}

static json_t *hash_json(const struct hash32 *hash)
{
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(text, hash->bytes, HASH32_SIZE, true);
    return json_string(text);
}

static bool has_events(uint64_t number)
{
    return number % EVENT_EVERY == 0 && number > 0;
}

/* A block with events has a seal, and an announcement that decodes to nothing. */
static void make_seal(struct game_log *log, uint8_t bytes[GAME_LOG_SIZE_MAX], uint64_t number)
{
    struct game_event event = {.kind = GAME_SEALED};

    event.seal.bytes[0] = (uint8_t)(number / EVENT_EVERY);
    game_event_encode(log, bytes, &event);
}

static uint32_t topics_of(struct hash32 topics[GAME_TOPICS_MAX + 1], uint64_t number)
{
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct game_log log;

    make_seal(&log, bytes, number);
    memcpy(topics, log.topics, sizeof(log.topics));
    topics[log.topic_count] = game_event_topic(GAME_ANNOUNCED);
    return log.topic_count + 1;
}

static json_t *block_json(struct chain *chain, uint64_t number)
{
    struct made_block block = {.height = number, .time_s = chain->time_s + number};
    struct address registry;
    struct hash32 topics[GAME_TOPICS_MAX + 1];
    enum status status = address_parse(&registry, REGISTRY);

    assert(status == STATUS_OK);
    (void)status;
    if (number > 0) {
        block.parent = chain->hashes[number - 1];
    }
    if (has_events(number)) {
        block.address = &registry;
        block.topics = topics;
        block.topic_count = topics_of(topics, number);
    }
    return made_block(&block, &chain->hashes[number], NULL);
}

static struct chain *make_chain(uint64_t height)
{
    struct chain *chain = calloc(1, sizeof(*chain));

    assert(chain != NULL && height <= BLOCKS_MAX);
    chain->time_s = (uint64_t)time(NULL) - height;
    chain->height = height;
    chain->finalized = height - 64;
    for (uint64_t i = 0; i <= height; i++) {
        json_decref(block_json(chain, i));
    }
    return chain;
}

static json_t *log_json(const struct chain *chain, uint64_t number, uint32_t place)
{
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    char data[2 * GAME_LOG_SIZE_MAX + 3];
    struct hash32 topics[GAME_TOPICS_MAX + 1];
    uint32_t count = topics_of(topics, number);
    json_t *list = json_array();
    struct game_log log;

    make_seal(&log, bytes, number);
    hex_write(data, bytes, place == 0 ? log.data.size : 0, true);
    for (uint32_t i = place == 0 ? 0 : count - 1; i < (place == 0 ? count - 1 : count); i++) {
        (void)json_array_append_new(list, hash_json(&topics[i]));
    }
    return json_pack("{s:o, s:s, s:s, s:o, s:o, s:o}", "logIndex", number_json(place), "data", data,
                     "address", REGISTRY, "blockHash", hash_json(&chain->hashes[number]),
                     "blockNumber", number_json(number), "topics", list);
}

/* filtered: only those of the registry. */
static void add_logs(json_t *logs, const struct chain *chain, uint64_t number, bool filtered)
{
    if (!has_events(number) || chain->hiding == HIDES_ALL ||
        (chain->hiding == HIDES_FILTERED && filtered)) {
        return;
    }
    (void)json_array_append_new(logs, log_json(chain, number, 0));
    if (chain->hiding != HIDES_SOME) {
        (void)json_array_append_new(logs, log_json(chain, number, 1));
    }
}

static uint64_t number_of(const json_t *text)
{
    return strtoull(json_string_value(text), NULL, 16);
}

static json_t *logs_json(const struct chain *chain, const json_t *filter)
{
    const json_t *hash = json_object_get(filter, "blockHash");
    bool filtered = json_object_get(filter, "address") != NULL;
    json_t *logs = json_array();

    if (hash == NULL) {
        uint64_t first = number_of(json_object_get(filter, "fromBlock"));
        uint64_t last = number_of(json_object_get(filter, "toBlock"));

        if (chain->range_max > 0 && last - first + 1 > chain->range_max) {
            json_decref(logs);
            return NULL;
        }
        for (uint64_t i = first; i <= last; i++) {
            add_logs(logs, chain, i, filtered);
        }
        return logs;
    }
    for (uint64_t i = 0; i <= chain->height; i++) {
        json_t *same = hash_json(&chain->hashes[i]);

        if (json_equal(same, hash)) {
            add_logs(logs, chain, i, filtered);
        }
        json_decref(same);
    }
    return logs;
}

/* The contract that seeds come from, as it stands on a chain. */
static json_t *seeds_json(void)
{
    static const size_t places[] = HEADER_SEEDS_STANDING_PLACES;
    char text[] = "0x" HEADER_SEEDS_STANDING;
    char word[2 * HASH32_SIZE + 1];
    uint32_t delay = 0;
    enum status status = evm_seeds_delay(&delay, CHAIN_ID, NULL);

    assert(status == STATUS_OK);
    (void)status;
    (void)snprintf(word, sizeof(word), "%064x", delay);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        memcpy(text + 2 + 2 * places[i], word, sizeof(word) - 1);
    }
    return json_string(text);
}

static json_t *serve(struct chain *chain, const char *method, const json_t *params)
{
    const json_t *first = json_array_get(params, 0);

    if (strcmp(method, "eth_chainId") == 0) {
        return json_string("0x7a69");
    }
    if (strcmp(method, "eth_blockNumber") == 0) {
        return number_json(chain->height);
    }
    if (strcmp(method, "eth_getCode") == 0) {
        return seeds_json();
    }
    if (strcmp(method, "eth_call") == 0) {
        if (chain->registry_says != NULL) {
            return json_loads(chain->registry_says, JSON_DECODE_ANY, NULL);
        }
        return json_string("0x0000000000000000000000000000000000000000000000000000000000000000");
    }
    if (strcmp(method, "eth_getBlockByNumber") == 0) {
        bool finalized = strcmp(json_string_value(first), "finalized") == 0;
        uint64_t number = finalized ? chain->finalized : number_of(first);

        assert(number <= chain->height);
        atomic_fetch_add(&chain->blocks[number], finalized ? 0 : 1);
        return block_json(chain, number);
    }
    return strcmp(method, "eth_getLogs") == 0 ? logs_json(chain, first) : NULL;
}

static int answer(char *reply, int reply_size, const char *text, void *context)
{
    struct chain *chain = context;
    json_t *request = json_loads(text, 0, NULL);
    int size = rpc_server_write(reply, reply_size, request,
                                serve(chain, json_string_value(json_object_get(request, "method")),
                                      json_object_get(request, "params")));
    json_decref(request);
    return size;
}

/* ---- reading it ---------------------------------------------------------------- */

static struct ledger *open_ledger(const char *url, const char *folder, uint32_t timeout_ms,
                                  uint64_t first_height)
{
    struct ledger_options options;
    struct ledger *ledger;
    struct error error;
    char state[1000];

    error_init(&error);
    (void)snprintf(state, sizeof(state), "%s/%s", test_temp_dir(), folder);
    ledger_options_init(&options);
    options.url = url;
    options.state_dir = state;
    options.timeout_ms = timeout_ms;
    options.first_height = first_height;
    assert_int_equal(address_parse(&options.registry, REGISTRY), STATUS_OK);
    if (ledger_open(&ledger, &options, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return ledger;
}

/* The announcements decode to nothing, and are passed over. */
static void check_events(struct ledger *ledger, uint64_t height)
{
    struct ledger_entry entry = {0};
    uint32_t count = 0;

    while (ledger_next(ledger, &entry, entry.number, 0, NULL) == STATUS_OK) {
        assert_int_equal(entry.kind, LEDGER_EVENT);
        assert_int_equal(entry.event.seal.bytes[0], ++count & 0xff);
    }
    assert_int_equal(count, height / EVENT_EVERY);
}

/* How often a block was served again. */
static uint32_t served_again(struct chain *chain, uint32_t first)
{
    uint32_t again = 0;

    for (uint32_t i = first; i <= BLOCKS; i++) {
        uint32_t reply = atomic_load(&chain->blocks[i]);

        assert_true(reply >= 1);
        again += reply - 1;
    }
    return again;
}

static void test_each_twentieth_request_may_fail(void **state)
{
    struct chain *chain = make_chain(BLOCKS);
    struct rpc_server *server;
    struct ledger *ledger;
    struct error error;

    (void)state;
    server = rpc_server_start_answering(answer, chain);
    rpc_server_fail_some(server, 20, 1);
    error_init(&error);
    ledger = open_ledger(rpc_server_url(server), "twentieth", TIMEOUT_MS, 0);
    if (ledger_catch_up(ledger, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    check_events(ledger, BLOCKS);
    /* A round begins with its newest blocks. */
    assert_true(served_again(chain, 0) <= 2 * EVM_INDEX_AGAIN + 2);
    ledger_close(ledger);
    rpc_server_stop(server);
    free(chain);
}

/* Four in a row are more than one call may lose: rounds fail, and what they got is kept. */
static void test_a_round_that_fails_keeps_what_it_got(void **state)
{
    struct chain *chain = make_chain(BLOCKS);
    struct rpc_server *server;
    struct ledger *ledger;
    struct error error;
    enum status status = STATUS_UNREACHABLE;
    uint32_t calls = 0;

    (void)state;
    server = rpc_server_start_answering(answer, chain);
    error_init(&error);
    ledger = open_ledger(rpc_server_url(server), "rounds", TIMEOUT_MS, BLOCKS - FEW_BLOCKS);
    chain->finalized = 0; /* no ranges: one block at a time */
    rpc_server_fail_some(server, 90, 4);
    while (status == STATUS_UNREACHABLE && calls++ < CALLS_MAX) {
        error_init(&error);
        status = ledger_catch_up(ledger, &error);
    }
    assert_int_equal(status, STATUS_OK);
    /* A burst may come between a block and its logs, and ends a round; each round begins with its
     * newest block. Nothing else is served again. */
    assert_true(served_again(chain, BLOCKS - FEW_BLOCKS) <=
                3 * (rpc_server_request_count(server) / 90 + 1) + calls + FEW_BLOCKS / 200 + 1);
    ledger_close(ledger);
    rpc_server_stop(server);
    free(chain);
}

static void test_an_endpoint_that_hangs_comes_last(void **state)
{
    static const enum rpc_behaviour hangs[] = {RPC_HANGS};
    struct chain *chain = make_chain(BLOCKS);
    struct rpc_server *server = rpc_server_start_answering(answer, chain);
    struct rpc_server *hanging = rpc_server_start(hangs, 1);
    struct ledger *ledger;
    struct error error;
    char urls[600];

    (void)state;
    error_init(&error);
    (void)snprintf(urls, sizeof(urls), "%s,%s,%s", rpc_server_url(hanging), rpc_server_url(server),
                   rpc_server_url(server));
    /* The good ones have no more time; one that is late is tried again. */
    ledger = open_ledger(urls, "hangs", TIMEOUT_MS_SHORT, BLOCKS - FEW_BLOCKS);
    if (ledger_catch_up(ledger, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    assert_true(atomic_load(&chain->blocks[BLOCKS]) >= 1);
    assert_true(rpc_server_request_count(hanging) <= HANGS_MAX);
    ledger_close(ledger);
    rpc_server_stop(hanging);
    rpc_server_stop(server);
    free(chain);
}

static uint32_t read_all(struct chain *chain, const char *folder, uint32_t batch_max)
{
    struct rpc_server *server = rpc_server_start_answering(answer, chain);
    struct ledger *ledger = open_ledger(rpc_server_url(server), folder, TIMEOUT_MS, 0);
    struct error error;
    uint32_t requests;

    error_init(&error);
    rpc_server_limit_batches(server, batch_max);
    if (ledger_catch_up(ledger, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    check_events(ledger, chain->height);
    requests = rpc_server_request_count(server);
    ledger_close(ledger);
    rpc_server_stop(server);
    return requests;
}

/* Two requests a block were the costs of reading one block at a time. */
static void test_a_long_chain_costs_a_hundredth_of_two_requests_a_block(void **state)
{
    struct chain *chain = make_chain(BLOCKS_MAX);

    (void)state;
    assert_true(read_all(chain, "long", 0) <= 2 * BLOCKS_MAX / 100);
    free(chain);
}

static void test_ranges_and_batches_that_are_refused_are_halved(void **state)
{
    struct chain *chain = make_chain(BLOCKS);

    (void)state;
    assert_true(read_all(chain, "batches", 40) < 2 * BLOCKS / 10);
    chain->range_max = 10;
    assert_true(read_all(chain, "ranges", 0) < 2 * BLOCKS / 5);
    free(chain);
}

/* An endpoint that hides events has the same headers; their filters tell. */
static void test_events_that_are_left_out_are_noticed_and_had_later(void **state)
{
    static const enum hiding ways[] = {HIDES_ALL, HIDES_SOME};
    static const uint64_t finalized[] = {0, SHORT_BLOCKS}; /* one by one, and in ranges */

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct chain *chain = make_chain(SHORT_BLOCKS);
        struct rpc_server *server = rpc_server_start_answering(answer, chain);
        struct ledger_entry entry = {0};
        struct ledger *ledger;
        struct error error;
        char folder[32];

        (void)snprintf(folder, sizeof(folder), "left-out-%zu", i);
        chain->finalized = finalized[i / 2];
        chain->hiding = ways[i % 2];
        ledger = open_ledger(rpc_server_url(server), folder, TIMEOUT_MS, 0);
        error_init(&error);
        assert_int_equal(ledger_catch_up(ledger, &error), STATUS_UNREACHABLE);
        assert_non_null(strstr(error.text, "logs of block 250 are left out"));
        assert_non_null(strstr(error.text, "http://127.0.0.1:"));
        assert_int_equal(ledger_next(ledger, &entry, 0, 0, NULL), STATUS_NOT_FOUND);
        chain->hiding = HIDES_NOTHING;
        assert_int_equal(ledger_catch_up(ledger, &error), STATUS_OK);
        check_events(ledger, SHORT_BLOCKS);
        ledger_close(ledger);
        rpc_server_stop(server);
        free(chain);
    }
}

static void test_a_broken_index_of_logs_is_passed_by(void **state)
{
    struct chain *chain = make_chain(BLOCKS);

    (void)state;
    chain->hiding = HIDES_FILTERED;
    (void)read_all(chain, "filtered", 0);
    free(chain);
}

static enum status try_to_open(const char *registry_says, uint64_t age_s, uint64_t first_height,
                               struct error *error)
{
    struct chain *chain = calloc(1, sizeof(*chain));
    struct rpc_server *server = rpc_server_start_answering(answer, chain);
    struct ledger_options options;
    struct ledger *ledger = NULL;
    enum status status;

    error_init(error);
    chain->time_s = (uint64_t)time(NULL) - age_s;
    chain->registry_says = registry_says;
    ledger_options_init(&options);
    options.url = rpc_server_url(server);
    options.state_dir = test_temp_dir();
    options.first_height = first_height;
    assert_int_equal(address_parse(&options.registry, REGISTRY), STATUS_OK);
    status = ledger_open(&ledger, &options, error);
    ledger_close(ledger);
    rpc_server_stop(server);
    free(chain);
    return status;
}

/* An endpoint that has just begun to follow the chain has no contract yet. */
static void test_an_endpoint_that_answers_nothing_or_is_behind_is_waited_for(void **state)
{
    struct error error;

    (void)state;
    assert_int_equal(try_to_open("\"0x\"", 3600, 0, &error), STATUS_UNREACHABLE);
    assert_non_null(strstr(error.text, "the endpoint is still behind"));
    assert_int_equal(try_to_open("\"0x\"", 0, 1000, &error), STATUS_UNREACHABLE);
    assert_int_equal(try_to_open("null", 0, 0, &error), STATUS_UNREACHABLE);
    assert_non_null(strstr(error.text, "eth_call: false reply: nothing"));
    /* Waiting heals no wrong address. */
    assert_int_equal(try_to_open("\"0x\"", 0, 0, &error), STATUS_BAD_FORMAT);
    assert_non_null(strstr(error.text, "is the address right?"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_twentieth_request_may_fail),
        cmocka_unit_test(test_a_round_that_fails_keeps_what_it_got),
        cmocka_unit_test(test_an_endpoint_that_hangs_comes_last),
        cmocka_unit_test(test_a_long_chain_costs_a_hundredth_of_two_requests_a_block),
        cmocka_unit_test(test_ranges_and_batches_that_are_refused_are_halved),
        cmocka_unit_test(test_events_that_are_left_out_are_noticed_and_had_later),
        cmocka_unit_test(test_a_broken_index_of_logs_is_passed_by),
        cmocka_unit_test(test_an_endpoint_that_answers_nothing_or_is_behind_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
