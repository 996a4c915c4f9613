/*
 * Goal: no matter what an endpoint does, a call ends in time with a true answer or a refusal.
 * Method: a server on loopback that misbehaves in every way it knows, alone and next to a good one.
 * The clock is short only where nothing else ends a call: elsewhere a busy machine has time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "chain/evm/rpc/rpc.h"
#include "tests/support/game/rpc_server.h"

enum {
    TIMEOUT_MS = 60000,
    TIMEOUT_MS_SHORT = 500,
    TRIES_MAX = 100,
    REPLY_MAX = 1 << 20,
    ANSWER = 42,
};

/* A call to it ends when its time is over, and not before. */
static bool wears_out(enum rpc_behaviour behaviour)
{
    return behaviour == RPC_HANGS || behaviour == RPC_TRICKLES;
}

static struct rpc *client_of(const char *const *urls, size_t count, uint32_t rounds,
                             uint32_t timeout_ms)
{
    struct rpc_options options;
    struct error error;
    struct rpc *rpc;

    rpc_options_init(&options);
    options.urls = urls;
    options.url_count = count;
    options.timeout_ms = timeout_ms;
    options.rounds_max = rounds;
    options.wait_ms_first = 10;
    options.wait_ms_max = 40;
    options.reply_size_max = REPLY_MAX;
    error_init(&error);
    rpc = rpc_new(&options, &error);
    assert_non_null(rpc);
    return rpc;
}

static enum status call_u64(struct rpc *rpc, uint64_t *value, const char *method,
                            struct error *error)
{
    json_t *result = NULL;
    enum status status = rpc_call(rpc, &result, method, NULL, error);

    if (status == STATUS_OK) {
        status = rpc_value_u64(value, result, method, error);
        json_decref(result);
    }
    return status;
}

/* Answers that are well-formed envelopes reach the caller's own reading; the others never do. */
static bool is_answer(enum rpc_behaviour behaviour)
{
    return behaviour == RPC_GOOD || behaviour == RPC_WRONG_TYPE || behaviour == RPC_PAST_RANGE ||
           behaviour == RPC_LEADING_ZERO || behaviour == RPC_REFUSES;
}

static void test_no_misbehaviour_is_an_answer(void **state)
{
    (void)state;
    for (int i = 0; i < RPC_BEHAVIOURS; i++) {
        const enum rpc_behaviour behaviour = (enum rpc_behaviour)i;
        struct rpc_server *server = rpc_server_start(&behaviour, 1);
        const char *url = rpc_server_url(server);
        struct rpc *rpc =
            client_of(&url, 1, 1, wears_out(behaviour) ? TIMEOUT_MS_SHORT : TIMEOUT_MS);
        struct error error;
        uint64_t value = 7;
        enum status status = call_u64(rpc, &value, "eth_blockNumber", &error);

        if (behaviour == RPC_GOOD) {
            assert_int_equal(status, STATUS_OK);
            assert_int_equal(value, ANSWER);
        } else {
            assert_int_not_equal(status, STATUS_OK);
            assert_int_equal(value, 7);
            assert_true(error.text[0] != '\0');
            assert_null(strstr(error.text, "secret-access-key"));
            assert_int_equal(error.status, status);
        }
        if (!is_answer(behaviour)) {
            assert_int_equal(status, STATUS_UNREACHABLE);
        }
        rpc_free(rpc);
        rpc_server_stop(server);
    }
}

/* The good one answers in the end, and is called first from then on. */
static void see_good_answers(struct rpc *rpc, struct rpc_server *bad, bool patient)
{
    enum status status = STATUS_UNREACHABLE;
    uint64_t value = 0;
    uint32_t queried;

    for (int i = 0; i < (patient ? TRIES_MAX : 1) && status != STATUS_OK; i++) {
        status = call_u64(rpc, &value, "eth_blockNumber", NULL);
    }
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(value, ANSWER);
    queried = rpc_server_request_count(bad);
    status = call_u64(rpc, &value, "eth_blockNumber", NULL);
    if (status == STATUS_OK || !patient) {
        assert_int_equal(status, STATUS_OK);
        assert_int_equal(rpc_server_request_count(bad), queried);
    }
}

static void test_a_good_endpoint_next_to_a_bad_one_is_enough(void **state)
{
    (void)state;
    for (int i = 0; i < RPC_BEHAVIOURS; i++) {
        const enum rpc_behaviour bad = (enum rpc_behaviour)i;
        const enum rpc_behaviour good = RPC_GOOD;
        struct rpc_server *bad_server = rpc_server_start(&bad, 1);
        struct rpc_server *good_server = rpc_server_start(&good, 1);
        const char *urls[2] = {rpc_server_url(bad_server), rpc_server_url(good_server)};
        struct rpc *rpc = client_of(urls, 2, 1, wears_out(bad) ? TIMEOUT_MS_SHORT : TIMEOUT_MS);

        if (!is_answer(bad)) {
            /* In so short a time the good one may be too slow as well, on a busy machine. */
            see_good_answers(rpc, bad_server, wears_out(bad));
        }
        rpc_free(rpc);
        rpc_server_stop(bad_server);
        rpc_server_stop(good_server);
    }
}

static void test_passing_trouble_is_waited_out(void **state)
{
    static const enum rpc_behaviour script[] = {RPC_CLOSES, RPC_STATUS_500, RPC_LIMITS,
                                                RPC_CUT_BODY, RPC_GOOD};
    struct rpc_server *server = rpc_server_start(script, 5);
    const char *url = rpc_server_url(server);
    struct rpc *rpc = client_of(&url, 1, 6, TIMEOUT_MS);
    uint64_t value = 0;

    (void)state;
    assert_int_equal(call_u64(rpc, &value, "eth_blockNumber", NULL), STATUS_OK);
    assert_int_equal(value, ANSWER);
    rpc_free(rpc);
    rpc_server_stop(server);
}

static void test_a_refusal_is_kept_and_not_repeated(void **state)
{
    const enum rpc_behaviour refuses = RPC_REFUSES;
    struct rpc_server *server = rpc_server_start(&refuses, 1);
    const char *url = rpc_server_url(server);
    struct rpc *rpc = client_of(&url, 1, 5, TIMEOUT_MS);
    uint64_t value = 0;

    (void)state;
    assert_int_equal(call_u64(rpc, &value, "eth_call", NULL), STATUS_REFUSED);
    assert_int_equal(rpc_failure(rpc)->code, 3);
    assert_string_equal(rpc_failure(rpc)->message, "execution reverted?[2J");
    assert_int_equal(rpc_failure(rpc)->data_size, 4);
    assert_int_equal(rpc_failure(rpc)->data[0], 0x08);
    assert_int_equal(rpc_server_request_count(server), 1);
    rpc_free(rpc);
    rpc_server_stop(server);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void test_a_stop_ends_the_waiting(void **state)
{
    const char *url = "http://127.0.0.1:1";
    struct rpc_options options;
    struct error error;
    struct rpc *rpc;
    uint64_t value;

    (void)state;
    rpc_options_init(&options);
    options.urls = &url;
    options.url_count = 1;
    options.wait_ms_first = 3600000;
    options.stopped = always;
    rpc = rpc_new(&options, &error);
    assert_non_null(rpc);
    assert_int_equal(call_u64(rpc, &value, "eth_blockNumber", &error), STATUS_STOPPED);
    rpc_free(rpc);
}

static void test_other_protocols_are_refused(void **state)
{
    static const char *const urls[] = {
        "file:///etc/passwd", "ftp://127.0.0.1", "127.0.0.1:8545", "", "HTTP:/x", "gopher://x"};
    struct rpc_options options;

    (void)state;
    rpc_options_init(&options);
    options.url_count = 1;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct error error;

        error_init(&error);
        options.urls = &urls[i];
        assert_null(rpc_new(&options, &error));
        assert_int_equal(error.status, STATUS_USAGE);
    }
}

/* Text is read as C strings: what follows a NUL in it would not be seen. */
static void test_a_nul_in_a_reply_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t size;
    } replies[] = {
#define REPLY(text) {text, sizeof(text) - 1}
        REPLY("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x2a\\u0000zz\"}"),
        REPLY("{\"jsonrpc\":\"2.0\\u0000\",\"id\":1,\"result\":\"0x2a\"}"),
        REPLY("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"hash\\u0000\":\"0x2a\"}}"),
        REPLY("{\"jsonrpc\":\"2.0\",\"id\":1\0,\"result\":\"0x2a\"}"),
        REPLY("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null\0}"),
        REPLY("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":3\0,\"message\":\"no\"}}"),
        REPLY("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":3,\"message\":\"no\","
              "\"data\":\"0x2a\\u0000\"}}"),
#undef REPLY
    };

    (void)state;
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        struct rpc_failure failure;
        json_t *result;

        assert_int_equal(
            rpc_reply_read(&result, &failure, replies[i].text, replies[i].size, 1, NULL),
            STATUS_BAD_FORMAT);
        assert_null(result);
    }
}

/* anvil puts the words of a custom error into its message as they are. */
static void test_a_nul_in_a_message_leaves_a_refusal_a_refusal(void **state)
{
    static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":3,\"message\":"
                               "\"reverted: \\u0000\\u0000x\",\"data\":\"0x2a\"}}";
    struct rpc_failure failure;
    json_t *result;

    (void)state;
    assert_int_equal(rpc_reply_read(&result, &failure, text, sizeof(text) - 1, 1, NULL),
                     STATUS_REFUSED);
    assert_null(result);
    assert_int_equal(failure.data_size, 1);
    assert_string_equal(failure.message, "reverted: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_misbehaviour_is_an_answer),
        cmocka_unit_test(test_a_good_endpoint_next_to_a_bad_one_is_enough),
        cmocka_unit_test(test_passing_trouble_is_waited_out),
        cmocka_unit_test(test_a_refusal_is_kept_and_not_repeated),
        cmocka_unit_test(test_a_stop_ends_the_waiting),
        cmocka_unit_test(test_other_protocols_are_refused),
        cmocka_unit_test(test_a_nul_in_a_reply_is_refused),
        cmocka_unit_test(test_a_nul_in_a_message_leaves_a_refusal_a_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
