/*
 * Goal: another wallet reads the transactions that we sign, and we read its.
 * Method: random transactions of both kinds. cast decodes ours and must find every field, the
 * sender and the hash; what cast makes of the same fields and key must be the same bytes, since
 * both sign by RFC 6979, and must decode here. wallet_test.sh exchanges keys and messages.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/keys/transaction.h"
#include "tests/support/chain/transaction_reader.h"
#include "tests/support/game/anvil.h"

enum {
    DATA_MAX = 200,
    TRANSACTIONS_FULL = 300,
    TRANSACTIONS_SHARE = 20,
    COMMAND_MAX = 4096,
    OUTPUT_MAX = 8192,
};

struct example {
    struct transaction transaction;
    uint8_t data[DATA_MAX];
    uint8_t bytes[TRANSACTION_SIZE_MAX];
    size_t size;
    struct hash32 hash;
    struct secret_key key;
    struct signer *signer;
};

/* What a command says, without the end of its line. */
static void run(char output[OUTPUT_MAX], const char *command)
{
    /* NOLINTNEXTLINE(cert-env33-c): the commands are the test's own. */
    FILE *pipe = popen(command, "r");
    size_t size;

    assert_non_null(pipe);
    size = fread(output, 1, OUTPUT_MAX - 1, pipe);
    output[size] = '\0';
    assert_int_equal(pclose(pipe), 0);
    output[strcspn(output, "\n")] = '\0';
}

static void make_example(struct example *example, uint64_t *random)
{
    struct transaction *transaction = &example->transaction;
    struct error error;

    memset(example, 0, sizeof(*example));
    error_init(&error);
    test_random_fill(random, example->key.bytes, sizeof(example->key.bytes));
    example->key.bytes[0] &= 0x7f; /* below the order */
    example->signer = signer_new(&example->key, &error);
    assert_non_null(example->signer);
    transaction->kind =
        test_random_below(random, 2) == 0 ? TRANSACTION_LEGACY : TRANSACTION_FEE_MARKET;
    transaction->chain_id = 1 + test_random_below(random, 1000000);
    transaction->nonce = test_random_below(random, 1000);
    transaction->gas_limit = 21000 + test_random_below(random, 10000000);
    transaction->fee_wei_max = uint256_of(1000000000 + test_random_below(random, 1000000000000));
    if (transaction->kind == TRANSACTION_FEE_MARKET) {
        transaction->tip_wei_max = uint256_of(1 + test_random_below(random, 1000000000));
    }
    transaction->value_wei = uint256_of(test_random_below(random, UINT64_MAX));
    test_random_fill(random, transaction->to.bytes, ADDRESS_SIZE);
    transaction->data = example->data;
    transaction->data_size = test_random_below(random, DATA_MAX);
    test_random_fill(random, example->data, transaction->data_size);
    assert_int_equal(transaction_sign(transaction, example->bytes, &example->size, &example->hash,
                                      example->signer, &error),
                     STATUS_OK);
}

static void expect_field(const json_t *found, const char *name, const char *expected)
{
    const char *text = json_string_value(json_object_get(found, name));

    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void expect_bytes(const json_t *found, const char *name, const uint8_t *bytes, size_t size)
{
    char text[2 * DATA_MAX + 3];

    hex_write(text, bytes, size, true);
    expect_field(found, name, text);
}

static void expect_number(const json_t *found, const char *name, const struct uint256 *number)
{
    char text[UINT256_HEX_SIZE];

    uint256_print_quantity(text, number);
    expect_field(found, name, text);
}

/* The fields as cast decodes them; it puts the JSON into a string when nobody looks. */
static json_t *decode_by_cast(const struct example *example, const char *cast)
{
    char command[COMMAND_MAX];
    char output[OUTPUT_MAX];
    char hex[2 * (DATA_MAX + 400) + 3];
    json_t *outer;
    json_t *found;

    assert_true(example->size <= DATA_MAX + 400);
    hex_write(hex, example->bytes, example->size, true);
    (void)snprintf(command, sizeof(command), "%s decode-transaction %s | tr -d '\\n'", cast, hex);
    run(output, command);
    outer = json_loads(output, JSON_DECODE_ANY, NULL);
    assert_non_null(outer);
    if (!json_is_string(outer)) {
        return outer;
    }
    found = json_loads(json_string_value(outer), 0, NULL);
    json_decref(outer);
    assert_non_null(found);
    return found;
}

static void check_fields(const struct example *example, const json_t *found)
{
    const struct transaction *transaction = &example->transaction;
    const bool legacy = transaction->kind == TRANSACTION_LEGACY;
    const struct uint256 chain_id = uint256_of(transaction->chain_id);
    const struct uint256 nonce = uint256_of(transaction->nonce);
    const struct uint256 gas = uint256_of(transaction->gas_limit);

    expect_field(found, "type", legacy ? "0x0" : "0x2");
    expect_number(found, "chainId", &chain_id);
    expect_number(found, "nonce", &nonce);
    expect_number(found, "gas", &gas);
    expect_number(found, legacy ? "gasPrice" : "maxFeePerGas", &transaction->fee_wei_max);
    if (!legacy) {
        expect_number(found, "maxPriorityFeePerGas", &transaction->tip_wei_max);
    }
    expect_number(found, "value", &transaction->value_wei);
    expect_bytes(found, "to", transaction->to.bytes, ADDRESS_SIZE);
    expect_bytes(found, "input", transaction->data, transaction->data_size);
    expect_bytes(found, "signer", signer_address(example->signer)->bytes, ADDRESS_SIZE);
    expect_bytes(found, "hash", example->hash.bytes, HASH32_SIZE);
}

/* The same transaction, made by cast. */
static void check_theirs(const struct example *example, const char *cast)
{
    const struct transaction *transaction = &example->transaction;
    char command[COMMAND_MAX];
    char output[OUTPUT_MAX];
    char kind[64] = "--legacy";
    char to[ADDRESS_TEXT_SIZE];
    char key[2 * SECRET_KEY_SIZE + 3];
    char data[2 * DATA_MAX + 3];
    uint8_t bytes[OUTPUT_MAX];
    struct transaction decoded;
    struct address sender;
    size_t size;

    if (transaction->kind == TRANSACTION_FEE_MARKET) {
        (void)snprintf(kind, sizeof(kind), "--priority-gas-price %llu",
                       (unsigned long long)transaction->tip_wei_max.limbs[0]);
    }
    address_print(to, &transaction->to);
    hex_write(key, example->key.bytes, SECRET_KEY_SIZE, true);
    hex_write(data, transaction->data, transaction->data_size, true);
    (void)snprintf(command, sizeof(command),
                   "%s mktx --private-key %s --chain %llu --nonce %llu --gas-limit %llu "
                   "--gas-price %llu %s --value %llu %s %s",
                   cast, key, (unsigned long long)transaction->chain_id,
                   (unsigned long long)transaction->nonce,
                   (unsigned long long)transaction->gas_limit,
                   (unsigned long long)transaction->fee_wei_max.limbs[0], kind,
                   (unsigned long long)transaction->value_wei.limbs[0], to, data);
    run(output, command);
    assert_int_equal(hex_data_read(bytes, sizeof(bytes), &size, output), STATUS_OK);
    assert_int_equal(transaction_decode(&decoded, &sender, bytes, size), STATUS_OK);
    assert_true(address_equal(&sender, signer_address(example->signer)));
    assert_int_equal(size, example->size);
    assert_memory_equal(bytes, example->bytes, size);
}

static void test_cast_and_we_read_each_others_transactions(void **state)
{
    const char *cast = evm_tool("@foundry-rs/cast-linux-amd64/bin/cast");
    uint64_t count = test_share(TRANSACTIONS_FULL, TRANSACTIONS_SHARE);
    struct example *example = malloc(sizeof(*example));
    uint64_t random = 1559;
    uint32_t kinds[2] = {0, 0};

    (void)state;
    assert_non_null(example);
    for (uint64_t i = 0; i < count; i++) {
        json_t *found;

        make_example(example, &random);
        found = decode_by_cast(example, cast);
        check_fields(example, found);
        json_decref(found);
        check_theirs(example, cast);
        kinds[example->transaction.kind]++;
        signer_free(example->signer);
    }
    if (count > 10) {
        assert_true(kinds[TRANSACTION_LEGACY] > 0 && kinds[TRANSACTION_FEE_MARKET] > 0);
    }
    free(example);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cast_and_we_read_each_others_transactions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
