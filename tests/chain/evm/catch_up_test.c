/*
 * Goal: a reader that is thousands of blocks behind comes to the head over endpoints that fail now
 * and then, fetches no block twice, and one endpoint of three that hangs costs next to nothing.
 * Method: a chain that is computed and not kept, behind an endpoint that leaves requests without an
 * answer as a pattern says; counts of what it was asked.
 */
#include "tests/support/test.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"
#include "chain/game/ledger.h"
#include "tests/support/game/rpc_server.h"

#define REGISTRY "0x1111111111111111111111111111111111111111"

enum {
    BLOCKS = 2000,
    EVENT_EVERY = 250,
    CALLS_MAX = 10000, /* of a reader that must come to an end */
    FEW_BLOCKS = 300,  /* where each request to one that hangs takes its whole time: */
    TIMEOUT_MS_SHORT = 2000,
    HANGS_MAX = 20,     /* such requests, in a minute */
    TIMEOUT_MS = 60000, /* of an endpoint that answers, on a busy machine */
};

struct chain {
    atomic_uint blocks[BLOCKS + 1]; /* how often each was served */
    atomic_uint requests;
    uint32_t period; /* of these requests, the first that many fail: */
    uint32_t failing;
};

/* ---- the chain ----------------------------------------------------------------- */

static json_t *number_json(uint64_t number)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)number);
    return json_string(text);
}

/* A hash that holds the number of its block. */
static json_t *hash_json(uint64_t number)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "0xb10c%060llx", (unsigned long long)number);
    return json_string(text);
}

static json_t *log_json(uint64_t number)
{
    struct game_event event = {.kind = GAME_SEALED};
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    char data[2 * GAME_LOG_SIZE_MAX + 3];
    char topic[HEX_DATA_SIZE(HASH32_SIZE)];
    json_t *topics = json_array();
    struct game_log log;

    event.seal.bytes[0] = (uint8_t)(number / EVENT_EVERY);
    game_event_encode(&log, bytes, &event);
    hex_write(data, log.data.bytes, log.data.size, true);
    for (uint32_t i = 0; i < log.topic_count; i++) {
        hex_write(topic, log.topics[i].bytes, HASH32_SIZE, true);
        (void)json_array_append_new(topics, json_string(topic));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "logIndex", "0x0", "data", data, "address",
                     REGISTRY, "blockHash", hash_json(number), "topics", topics);
}

static json_t *serve(struct chain *chain, const char *method, const json_t *params)
{
    if (strcmp(method, "eth_chainId") == 0) {
        return json_string("0x7");
    }
    if (strcmp(method, "eth_blockNumber") == 0) {
        return number_json(BLOCKS);
    }
    if (strcmp(method, "eth_call") == 0) { /* a registry without a referee */
        return json_string("0x0000000000000000000000000000000000000000000000000000000000000000");
    }
    if (strcmp(method, "eth_getBlockByNumber") == 0) {
        uint64_t number = strtoull(json_string_value(json_array_get(params, 0)), NULL, 16);

        assert(number <= BLOCKS);
        atomic_fetch_add(&chain->blocks[number], 1);
        return json_pack("{s:o, s:o, s:o, s:o}", "number", number_json(number), "hash",
                         hash_json(number), "parentHash",
                         hash_json(number == 0 ? UINT32_MAX : number - 1), "timestamp",
                         number_json(1000 + number));
    }
    if (strcmp(method, "eth_getLogs") == 0) {
        const json_t *hash = json_object_get(json_array_get(params, 0), "blockHash");
        uint64_t number = strtoull(json_string_value(hash) + 6, NULL, 16);

        return number % EVENT_EVERY != 0 || number == 0 ? json_array()
                                                        : json_pack("[o]", log_json(number));
    }
    return NULL;
}

static int answer(char *reply, int reply_size, const char *text, void *context)
{
    struct chain *chain = context;
    uint32_t at = atomic_fetch_add(&chain->requests, 1);
    json_t *request;
    int size;

    if (chain->period > 0 && at % chain->period < chain->failing) {
        return snprintf(reply, (size_t)reply_size, "<html>try again</html>");
    }
    request = json_loads(text, 0, NULL);
    size = rpc_server_write(reply, reply_size, request,
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

static void check_events(struct ledger *ledger)
{
    struct ledger_entry entry = {0};
    uint32_t count = 0;

    while (ledger_next(ledger, &entry, entry.number, 0, NULL) == STATUS_OK) {
        assert_int_equal(entry.kind, LEDGER_EVENT);
        assert_int_equal(entry.event.seal.bytes[0], ++count);
    }
    assert_int_equal(count, BLOCKS / EVENT_EVERY);
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
    struct chain *chain = calloc(1, sizeof(*chain));
    struct rpc_server *server;
    struct ledger *ledger;
    struct error error;

    (void)state;
    chain->period = 20;
    chain->failing = 1;
    server = rpc_server_start_answering(answer, chain);
    error_init(&error);
    ledger = open_ledger(rpc_server_url(server), "twentieth", TIMEOUT_MS, 0);
    if (ledger_catch_up(ledger, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    check_events(ledger);
    /* A round of at most 200 blocks begins with its newest block. */
    assert_true(served_again(chain, 0) <= BLOCKS / 200 + 1);
    ledger_close(ledger);
    rpc_server_stop(server);
    free(chain);
}

/* Four in a row are more than one call may lose: rounds fail, and what they got is kept. */
static void test_a_round_that_fails_keeps_what_it_got(void **state)
{
    struct chain *chain = calloc(1, sizeof(*chain));
    struct rpc_server *server;
    struct ledger *ledger;
    struct error error;
    enum status status = STATUS_UNREACHABLE;
    uint32_t calls = 0;

    (void)state;
    server = rpc_server_start_answering(answer, chain);
    error_init(&error);
    ledger = open_ledger(rpc_server_url(server), "rounds", TIMEOUT_MS, BLOCKS - FEW_BLOCKS);
    chain->period = 90;
    chain->failing = 4;
    while (status == STATUS_UNREACHABLE && calls++ < CALLS_MAX) {
        error_init(&error);
        status = ledger_catch_up(ledger, &error);
    }
    assert_int_equal(status, STATUS_OK);
    /* A burst may come between a block and its logs, and ends a round; each round begins with its
     * newest block. Nothing else is served again. */
    assert_true(served_again(chain, BLOCKS - FEW_BLOCKS) <=
                3 * (atomic_load(&chain->requests) / 90 + 1) + calls + FEW_BLOCKS / 200 + 1);
    ledger_close(ledger);
    rpc_server_stop(server);
    free(chain);
}

static void test_an_endpoint_that_hangs_comes_last(void **state)
{
    static const enum rpc_behaviour hangs[] = {RPC_HANGS};
    struct chain *chain = calloc(1, sizeof(*chain));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_twentieth_request_may_fail),
        cmocka_unit_test(test_a_round_that_fails_keeps_what_it_got),
        cmocka_unit_test(test_an_endpoint_that_hangs_comes_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
