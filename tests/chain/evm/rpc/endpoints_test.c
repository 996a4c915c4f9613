/*
 * Goal: of two endpoints one that is away is done without, and said so; a pause that an endpoint
 * asks for is kept; one of another chain is asked nothing more; all of it is in the log, with the
 * endpoint and since when, and so is the end.
 * Method: endpoints on loopback that answer by a script or as the test says, and a log in memory.
 */
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chain/evm/evm.h"
#include "tests/support/game/rpc_server.h"

static const enum rpc_behaviour good[] = {RPC_GOOD};
static const enum rpc_behaviour away[] = {RPC_CLOSES};

struct told {
    struct log log;
    FILE *stream;
    char *text;
    size_t size;
};

static void open_log(struct told *told)
{
    told->stream = open_memstream(&told->text, &told->size);
    assert_non_null(told->stream);
    log_init(&told->log, told->stream, LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
}

static const char *read_told(struct told *told)
{
    assert_int_equal(fflush(told->stream), 0);
    return told->text;
}

static void close_log(struct told *told)
{
    (void)fclose(told->stream);
    free(told->text);
}

static struct rpc *client_of(struct rpc_server *const *servers, size_t count,
                             const struct told *told)
{
    const char *urls[RPC_ENDPOINTS_MAX];
    struct rpc_options options;
    struct rpc *rpc;

    for (size_t i = 0; i < count; i++) {
        urls[i] = rpc_server_url(servers[i]);
    }
    rpc_options_init(&options);
    assert_in_range(options.tell_after_s, 1, 60); /* of what lasts the log tells within a minute */
    options.urls = urls;
    options.url_count = count;
    options.wait_ms_first = 1;
    options.rounds_max = 2;
    options.log = &told->log;
    options.tell_after_s = 0;
    rpc = rpc_new(&options, NULL);
    assert_non_null(rpc);
    return rpc;
}

static void test_of_two_endpoints_one_that_is_away_is_done_without(void **state)
{
    struct rpc_server *servers[2] = {rpc_server_start(away, 1), rpc_server_start(good, 1)};
    struct rpc_endpoint_state first;
    struct rpc_endpoint_state second;
    struct told told;
    struct rpc *rpc;
    uint64_t height = 0;
    uint64_t chain_id = 0;
    uint32_t asked;

    (void)state;
    open_log(&told);
    rpc = client_of(servers, 2, &told);
    assert_int_equal(evm_head(rpc, &height, NULL), STATUS_OK);
    assert_int_equal(height, 42);
    assert_int_equal(evm_chain_id(rpc, &chain_id, NULL), STATUS_OK);
    assert_int_equal(chain_id, 42);
    rpc_endpoint_look(rpc, &first, 0);
    rpc_endpoint_look(rpc, &second, 1);
    assert_true(first.ill);
    assert_true(first.since_s + 60 > (uint64_t)time(NULL) && first.reason[0] != '\0');
    assert_false(second.ill);
    assert_non_null(strstr(read_told(&told), first.label));
    assert_non_null(strstr(told.text, "is ill since 20"));
    assert_non_null(strstr(told.text, "the other endpoint alone is believed"));
    /* While it rests, it costs nothing. */
    asked = rpc_server_request_count(servers[0]);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(evm_head(rpc, &height, NULL), STATUS_OK);
        assert_int_equal(evm_chain_id(rpc, &chain_id, NULL), STATUS_OK);
    }
    assert_true(rpc_server_request_count(servers[0]) - asked <= 2);
    rpc_free(rpc);
    rpc_server_stop(servers[0]);
    rpc_server_stop(servers[1]);
    close_log(&told);
}

/* With three, one that answers is no majority. */
static void test_of_three_endpoints_one_alone_is_not_believed(void **state)
{
    struct rpc_server *servers[3] = {rpc_server_start(away, 1), rpc_server_start(good, 1),
                                     rpc_server_start(away, 1)};
    struct told told;
    struct rpc *rpc;
    uint64_t height;
    struct error error;

    (void)state;
    open_log(&told);
    rpc = client_of(servers, 3, &told);
    error_init(&error);
    assert_int_equal(evm_head(rpc, &height, &error), STATUS_UNREACHABLE);
    assert_non_null(strstr(error.text, "no 2 of 3 endpoints"));
    rpc_free(rpc);
    for (size_t i = 0; i < 3; i++) {
        rpc_server_stop(servers[i]);
    }
    close_log(&told);
}

static void test_a_pause_that_is_asked_for_is_kept_and_ends(void **state)
{
    static const enum rpc_behaviour script[] = {RPC_STATUS_429, RPC_GOOD};
    struct rpc_server *server = rpc_server_start(script, 2);
    struct told told;
    struct rpc *rpc;
    uint64_t height;
    struct error error;

    (void)state;
    open_log(&told);
    rpc = client_of(&server, 1, &told);
    for (int i = 0; i < 5; i++) { /* it says: Retry-After: 1 */
        error_init(&error);
        assert_int_equal(evm_head(rpc, &height, &error), STATUS_UNREACHABLE);
    }
    assert_int_equal(rpc_server_request_count(server), 1);
    assert_non_null(strstr(error.text, "Retry-After"));
    assert_non_null(strstr(read_told(&told), "HTTP status 429: too many requests"));
    (void)usleep(1100000);
    assert_int_equal(evm_head(rpc, &height, &error), STATUS_OK);
    assert_non_null(strstr(read_told(&told), "is well again"));
    rpc_free(rpc);
    rpc_server_stop(server);
    close_log(&told);
}

struct of_chain {
    atomic_uint chain_id;
};

static int answer(char *reply, int reply_size, const char *request, void *context)
{
    struct of_chain *of = context;
    json_t *queried = json_loads(request, 0, NULL);
    const char *method = json_string_value(json_object_get(queried, "method"));
    char number[32];
    int size;

    (void)snprintf(number, sizeof(number), "0x%x",
                   strcmp(method, "eth_chainId") == 0 ? atomic_load(&of->chain_id) : 99);
    size = rpc_server_write(reply, reply_size, queried, json_string(number));
    json_decref(queried);
    return size;
}

static void test_an_endpoint_of_another_chain_is_asked_nothing_until_it_is_mended(void **state)
{
    struct of_chain right = {7};
    struct of_chain wrong = {5};
    struct rpc_server *servers[2] = {rpc_server_start_answering(answer, &right),
                                     rpc_server_start_answering(answer, &wrong)};
    struct rpc_endpoint_state seen;
    struct told told;
    struct rpc *rpc;
    uint64_t height;
    uint64_t chain_id;
    struct error error;
    uint32_t asked;

    (void)state;
    open_log(&told);
    rpc = client_of(servers, 2, &told);
    error_init(&error);
    assert_int_equal(evm_chain_id(rpc, &chain_id, &error), STATUS_UNREACHABLE);
    assert_non_null(strstr(error.text, "chain 7"));
    assert_non_null(strstr(error.text, "chain 5"));
    evm_check_chain(rpc, 7);
    rpc_endpoint_look(rpc, &seen, 1);
    assert_true(seen.ill);
    assert_non_null(strstr(seen.reason, "it is of chain 5, and the ledger is on chain 7"));
    asked = rpc_server_request_count(servers[1]);
    assert_int_equal(evm_head(rpc, &height, &error), STATUS_OK);
    assert_int_equal(evm_chain_id(rpc, &chain_id, &error), STATUS_OK);
    assert_int_equal(chain_id, 7);
    assert_int_equal(rpc_server_request_count(servers[1]), asked);
    atomic_store(&wrong.chain_id, 7);
    evm_check_chain(rpc, 7);
    rpc_endpoint_look(rpc, &seen, 1);
    assert_false(seen.ill);
    assert_non_null(strstr(read_told(&told), "is well again"));
    assert_int_equal(evm_head(rpc, &height, &error), STATUS_OK);
    assert_true(rpc_server_request_count(servers[1]) > asked);
    rpc_free(rpc);
    rpc_server_stop(servers[0]);
    rpc_server_stop(servers[1]);
    close_log(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_two_endpoints_one_that_is_away_is_done_without),
        cmocka_unit_test(test_of_three_endpoints_one_alone_is_not_believed),
        cmocka_unit_test(test_a_pause_that_is_asked_for_is_kept_and_ends),
        cmocka_unit_test(test_an_endpoint_of_another_chain_is_asked_nothing_until_it_is_mended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
