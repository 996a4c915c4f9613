/*
 * Goal: the header of a block is what the chain hashes, on every fork, also on one that this
 * program does not know; and an endpoint that lies about it is not believed.
 * Method: the first block of Ethereum, whose hash is well known; blocks of anvil with the rules of
 * each fork; made-up blocks of Amsterdam, and with an item that no fork has, with and without the
 * header's own bytes; every item changed, left out or made malformed; an endpoint that changes the
 * random number, alone and beside two that do not.
 */
#include "tests/support/test.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/evm/evm.h"
#include "chain/evm/header/block_header.h"
#include "tests/support/chain/made_block.h"
#include "tests/support/game/anvil.h"
#include "tests/support/game/rpc_server.h"

#define ZERO32     "0x0000000000000000000000000000000000000000000000000000000000000000"
#define EMPTY_TREE "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"

/* Block 0 of the Ethereum main net. */
static json_t *first_block(void)
{
    char bloom[2 + 2 * 256 + 1];

    memset(bloom, '0', sizeof(bloom));
    bloom[1] = 'x';
    bloom[sizeof(bloom) - 1] = '\0';
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "hash",
        "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3", "parentHash", ZERO32,
        "sha3Uncles", "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347", "miner",
        "0x0000000000000000000000000000000000000000", "stateRoot",
        "0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544", "transactionsRoot",
        EMPTY_TREE, "receiptsRoot", EMPTY_TREE, "logsBloom", bloom, "difficulty", "0x400000000",
        "number", "0x0", "gasLimit", "0x1388", "gasUsed", "0x0", "timestamp", "0x0", "extraData",
        "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa", "mixHash", ZERO32,
        "nonce", "0x0000000000000042");
}

static enum status encode(const json_t *block)
{
    uint8_t header[GAME_HEADER_MAX];
    struct error error;
    bool unknown;
    size_t size;

    error_init(&error);
    return block_header_encode(header, &size, &unknown, block, &error);
}

static void test_the_first_block_of_ethereum_has_its_hash(void **state)
{
    json_t *block = first_block();

    (void)state;
    assert_int_equal(encode(block), STATUS_OK);
    json_decref(block);
}

static void test_every_other_item_is_refused(void **state)
{
    json_t *good = first_block();
    const char *name;
    json_t *value;

    (void)state;
    json_object_foreach(good, name, value)
    {
        static const char *const bad[] = {"0x123456789a", "", "0x", "7", "0xg0"};
        json_t *block = json_copy(good);

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            json_object_set_new(block, name, json_string(bad[i]));
            assert_int_equal(encode(block), STATUS_BAD_FORMAT);
        }
        json_object_set_new(block, name, json_integer(0));
        assert_int_equal(encode(block), STATUS_BAD_FORMAT);
        json_object_del(block, name);
        assert_int_equal(encode(block), STATUS_BAD_FORMAT);
        json_decref(block);
        (void)value;
    }
    /* An item of a later fork is part of the header. */
    json_object_set_new(good, "baseFeePerGas", json_string("0x1"));
    assert_int_equal(encode(good), STATUS_BAD_FORMAT);
    json_object_set_new(good, "baseFeePerGas", json_null());
    assert_int_equal(encode(good), STATUS_OK);
    json_decref(good);
}

static void test_blocks_of_every_fork_hash_to_their_hash(void **state)
{
    static const char *const forks[] = {"london", "paris", "shanghai", "cancun", "prague"};

    (void)state;
    anvil_need();
    for (size_t i = 0; i < sizeof(forks) / sizeof(forks[0]); i++) {
        const char *const arguments[] = {"--hardfork", forks[i], NULL};
        struct anvil *anvil = anvil_start(arguments);
        struct rpc *rpc = anvil_rpc(anvil);
        uint8_t header[GAME_HEADER_MAX];
        struct error error;
        size_t size;

        error_init(&error);
        json_decref(anvil_call(rpc, "evm_mine", NULL));
        for (uint64_t height = 0; height < 2; height++) {
            if (evm_header_at(rpc, header, &size, height, &error) != STATUS_OK) {
                fail_msg("block %u with the rules of %s: %s", (unsigned)height, forks[i],
                         error.text);
            }
        }
        assert_int_equal(evm_header_at(rpc, header, &size, 2, &error), STATUS_NOT_FOUND);
        rpc_free(rpc);
        anvil_stop(anvil);
    }
}

/* Passes on what the chain says, with another random number in its blocks. */
static int tell_another_random(char *reply, int reply_size, const char *request, void *context)
{
    json_t *queried = json_loads(request, 0, NULL);
    const char *method = json_string_value(json_object_get(queried, "method"));
    json_t *result = NULL;
    enum status status =
        rpc_call(context, &result, method, json_incref(json_object_get(queried, "params")), NULL);
    int size;

    assert(status == STATUS_OK || strcmp(method, "debug_getRawHeader") == 0);
    (void)status;

    if (json_object_get(result, "mixHash") != NULL) {
        json_object_set_new(result, "mixHash", json_string(EMPTY_TREE));
    }
    size = rpc_server_write(reply, reply_size, queried, result);
    json_decref(queried);
    return size;
}

static struct rpc *client_of(const char *const *urls, size_t count)
{
    struct rpc_options options;
    struct error error;
    struct rpc *rpc;

    rpc_options_init(&options);
    options.urls = urls;
    options.url_count = count;
    options.timeout_ms = 20000;
    options.rounds_max = 1;
    error_init(&error);
    rpc = rpc_new(&options, &error);
    assert_non_null(rpc);
    return rpc;
}

static void test_a_lying_endpoint_is_refused(void **state)
{
    struct anvil *anvil = (anvil_need(), anvil_start(NULL));
    struct rpc *chain = anvil_rpc(anvil);
    struct rpc_server *liar = rpc_server_start_answering(tell_another_random, chain);
    const char *const urls[] = {rpc_server_url(liar), anvil_url(anvil), anvil_url(anvil)};
    uint8_t header[GAME_HEADER_MAX];
    uint8_t true_header[GAME_HEADER_MAX];
    struct rpc *rpc = client_of(urls, 1);
    struct error error;
    size_t size;
    size_t true_size;

    (void)state;
    error_init(&error);
    assert_int_equal(evm_header_at(rpc, header, &size, 0, &error), STATUS_UNREACHABLE);
    rpc_free(rpc);

    rpc = client_of(urls, 3);
    assert_int_equal(evm_header_at(rpc, header, &size, 0, &error), STATUS_OK);
    rpc_free(rpc);
    rpc_server_stop(liar);
    assert_int_equal(evm_header_at(chain, true_header, &true_size, 0, &error), STATUS_OK);
    assert_int_equal(size, true_size);
    assert_memory_equal(header, true_header, size);
    rpc_free(chain);
    anvil_stop(anvil);
}

/* An endpoint on a chain of one made-up block. */
struct made {
    struct made_block block;
    bool serves_raw;
    bool other_number; /* says another timestamp than the header has */
};

static int tell_made(char *reply, int reply_size, const char *request, void *context)
{
    const struct made *made = context;
    json_t *queried = json_loads(request, 0, NULL);
    const char *method = json_string_value(json_object_get(queried, "method"));
    char raw[2 * GAME_HEADER_MAX + 3];
    struct hash32 hash;
    json_t *block = made_block(&made->block, &hash, raw);
    json_t *result = NULL;
    int size;

    if (made->other_number) {
        json_object_set_new(block, "timestamp", json_string("0x77"));
    }
    if (strcmp(method, "debug_getRawHeader") != 0) {
        result = json_incref(block);
    } else if (made->serves_raw) {
        result = json_string(raw);
    }
    size = rpc_server_write(reply, reply_size, queried, result);
    json_decref(block);
    json_decref(queried);
    return size;
}

static enum status read_made(struct made *made, struct error *error)
{
    struct rpc_server *server = rpc_server_start_answering(tell_made, made);
    const char *url = rpc_server_url(server);
    struct rpc *rpc = client_of(&url, 1);
    uint8_t header[GAME_HEADER_MAX];
    char raw[2 * GAME_HEADER_MAX + 3];
    char text[2 * GAME_HEADER_MAX + 3];
    struct hash32 hash;
    enum status status;
    size_t size;

    error_init(error);
    status = evm_header_at(rpc, header, &size, made->block.height, error);
    if (status == STATUS_OK) {
        json_decref(made_block(&made->block, &hash, raw));
        hex_write(text, header, size, true);
        assert_string_equal(text, raw);
    }
    rpc_free(rpc);
    rpc_server_stop(server);
    return status;
}

static void test_a_block_of_amsterdam_needs_no_raw_header(void **state)
{
    struct made made = {.block = {.height = 5, .time_s = 99}};
    struct error error;

    (void)state;
    assert_int_equal(read_made(&made, &error), STATUS_OK);
}

static void test_an_item_that_no_fork_has_is_taken_from_the_raw_header(void **state)
{
    struct made made = {.block = {.height = 5, .time_s = 99, .stranger = "weather"},
                        .serves_raw = true};
    struct error error;

    (void)state;
    assert_int_equal(read_made(&made, &error), STATUS_OK);
    made.other_number = true;
    assert_int_equal(read_made(&made, &error), STATUS_UNREACHABLE);
    assert_non_null(strstr(error.text, "is not in the block's raw header"));
}

static void test_where_there_is_no_raw_header_the_fork_is_named(void **state)
{
    struct made made = {.block = {.height = 5, .time_s = 99, .stranger = "weather"}};
    struct error error;

    (void)state;
    assert_int_equal(read_made(&made, &error), STATUS_UNREACHABLE);
    assert_non_null(strstr(error.text, "a fork after Amsterdam (with 'weather')"));
    assert_non_null(strstr(error.text, "debug_getRawHeader"));
    assert_non_null(strstr(error.advice, "debug_getRawHeader"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_block_of_ethereum_has_its_hash),
        cmocka_unit_test(test_every_other_item_is_refused),
        cmocka_unit_test(test_blocks_of_every_fork_hash_to_their_hash),
        cmocka_unit_test(test_a_lying_endpoint_is_refused),
        cmocka_unit_test(test_a_block_of_amsterdam_needs_no_raw_header),
        cmocka_unit_test(test_an_item_that_no_fork_has_is_taken_from_the_raw_header),
        cmocka_unit_test(test_where_there_is_no_raw_header_the_fork_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
