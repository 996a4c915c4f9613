/*
 * Goal: addresses, signatures, transactions and typed messages are those of the standards, and
 * nothing that differs from them is taken.
 * Method: the vectors of the EIPs, one transaction of another tool, the negative cases that
 * Wycheproof knows for ECDSA, and every single-bit corruption of signed transactions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "chain/codec/typed_data.h"
#include "chain/keys/signer.h"
#include "chain/keys/transaction.h"
#include "tests/chain/codec/hex_bytes.h"
#include "tests/support/chain/transaction_reader.h"

#define ORDER "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
#define HALF  "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0"

static struct signer *signer_of(const char *hex)
{
    struct secret_key key;
    struct error error;
    struct signer *signer;

    error_init(&error);
    assert_int_equal(hex_bytes(key.bytes, sizeof(key.bytes), hex), SECRET_KEY_SIZE);
    signer = signer_new(&key, &error);
    assert_non_null(signer);
    return signer;
}

/* The key of the EIP-155 example. */
static struct signer *example_signer(void)
{
    return signer_of("4646464646464646464646464646464646464646464646464646464646464646");
}

/* EIP-55, "Test Cases". */
static void test_checksums_of_addresses(void **state)
{
    static const char *const good[] = {
        "0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
        "0xde709f2102306220921060314715629080e2fb77", "0x27b1fdb04752bbc536007a920d24acb045561c26",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct address address;
        char text[ADDRESS_TEXT_SIZE];

        assert_int_equal(address_parse(&address, good[i]), STATUS_OK);
        address_print(text, &address);
        assert_string_equal(text, good[i]);
    }
}

static void test_wrong_spellings_of_addresses_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "0x",
        "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed0",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg",
        "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", /* one letter in the other case */
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct address address;

        assert_int_equal(address_parse(&address, bad[i]), STATUS_BAD_FORMAT);
    }
}

/* The first two contracts of that account on the main network. */
static void test_addresses_of_created_contracts(void **state)
{
    struct address creator = hex_address("6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0");
    struct address first = hex_address("cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d");
    struct address second = hex_address("343c43a37d37dff08ae8c4a11544c718abb4fcf8");
    struct address made = address_of_contract(&creator, 0);

    (void)state;
    assert_true(address_equal(&made, &first));
    made = address_of_contract(&creator, 1);
    assert_true(address_equal(&made, &second));
}

static struct transaction example_legacy(void)
{
    struct transaction transaction = {
        .kind = TRANSACTION_LEGACY,
        .chain_id = 1,
        .nonce = 9,
        .gas_limit = 21000,
        .fee_wei_max = uint256_of(20000000000u),
        .value_wei = uint256_of(1000000000000000000u),
        .to = hex_address("3535353535353535353535353535353535353535"),
    };

    return transaction;
}

static void expect_signed(const struct transaction *transaction, const char *hex)
{
    uint8_t *bytes = malloc(TRANSACTION_SIZE_MAX);
    uint8_t expected[512];
    size_t expected_size = hex_bytes(expected, sizeof(expected), hex);
    struct signer *signer = example_signer();
    struct transaction decoded;
    struct address sender;
    struct hash32 hash;
    struct hash32 known = keccak256(expected, expected_size);
    struct error error;
    size_t size = 0;

    assert_non_null(bytes);
    assert_int_equal(transaction_sign(transaction, bytes, &size, &hash, signer, &error), STATUS_OK);
    assert_int_equal(size, expected_size);
    assert_memory_equal(bytes, expected, size);
    assert_true(hash32_equal(&hash, &known));
    assert_int_equal(transaction_decode(&decoded, &sender, bytes, size), STATUS_OK);
    assert_true(address_equal(&sender, signer_address(signer)));
    assert_int_equal(decoded.nonce, transaction->nonce);
    assert_int_equal(decoded.chain_id, transaction->chain_id);
    assert_int_equal(decoded.gas_limit, transaction->gas_limit);
    assert_int_equal(uint256_compare(&decoded.value_wei, &transaction->value_wei), 0);
    signer_free(signer);
    free(bytes);
}

/* EIP-155, "Example". */
static void test_legacy_transaction_of_the_standard(void **state)
{
    struct transaction transaction = example_legacy();
    struct hash32 expected =
        hex_hash("daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53");
    struct hash32 hash;

    (void)state;
    assert_int_equal(transaction_signing_hash(&transaction, &hash), STATUS_OK);
    assert_true(hash32_equal(&hash, &expected));
    expect_signed(&transaction, "f86c098504a817c800825208943535353535353535353535353535353535353535"
                                "880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c"
                                "71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc"
                                "64214b297fb1966a3b6d83");
}

/* Made by cast 1.7.1: cast mktx --private-key 0x46… --chain 31337 --nonce 7 --gas-limit 60000
 * --gas-price 3000000000 --priority-gas-price 1500000000 --value 12345678901234567890
 * 0x3535… 0xdeadbeef00 */
static void test_fee_market_transaction_of_another_tool(void **state)
{
    static const uint8_t data[] = {0xde, 0xad, 0xbe, 0xef, 0x00};
    struct transaction transaction = example_legacy();

    (void)state;
    transaction.kind = TRANSACTION_FEE_MARKET;
    transaction.chain_id = 31337;
    transaction.nonce = 7;
    transaction.gas_limit = 60000;
    transaction.tip_wei_max = uint256_of(1500000000);
    transaction.fee_wei_max = uint256_of(3000000000);
    transaction.value_wei = uint256_of(12345678901234567890u);
    transaction.data = data;
    transaction.data_size = sizeof(data);
    expect_signed(&transaction,
                  "02f879827a69078459682f0084b2d05e0082ea609435353535353535353535353535"
                  "3535353535353588ab54a98ceb1f0ad285deadbeef00c080a052ed3acbeb3b55d2"
                  "f5c9283e0d9e31d6e408e1855ef04c01f00e2dbfc2cf7d68a04e182b5da6fe5f3f"
                  "890fed3ceb1b339b533d8824d34877de00cbd841e91b2896");
}

static void sign_example(enum transaction_kind kind, bool creates, uint8_t *bytes, size_t *size)
{
    static const uint8_t data[40] = {1, 2, 3};
    struct transaction transaction = example_legacy();
    struct signer *signer = example_signer();
    struct hash32 hash;
    struct error error;

    transaction.kind = kind;
    transaction.creates = creates;
    transaction.data = data;
    transaction.data_size = sizeof(data);
    assert_int_equal(transaction_sign(&transaction, bytes, size, &hash, signer, &error), STATUS_OK);
    signer_free(signer);
}

/* A changed bit either breaks the form, or makes it another sender's transaction: never the same
 * sender with other content. Cut and lengthened bytes are refused. */
static void test_every_changed_bit_of_a_transaction_changes_the_sender(void **state)
{
    uint8_t *bytes = malloc(TRANSACTION_SIZE_MAX);
    struct signer *signer = example_signer();
    struct transaction decoded;
    struct address sender;

    (void)state;
    assert_non_null(bytes);
    for (int variant = 0; variant < 4; variant++) {
        size_t size = 0;

        sign_example(variant % 2 == 0 ? TRANSACTION_LEGACY : TRANSACTION_FEE_MARKET, variant >= 2,
                     bytes, &size);
        assert_int_equal(transaction_decode(&decoded, &sender, bytes, size), STATUS_OK);
        assert_true(address_equal(&sender, signer_address(signer)));
        assert_int_equal(decoded.creates, variant >= 2);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (transaction_decode(&decoded, &sender, bytes, size) == STATUS_OK) {
                assert_false(address_equal(&sender, signer_address(signer)));
            }
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t cut = 0; cut < size; cut++) {
            assert_int_not_equal(transaction_decode(&decoded, &sender, bytes, cut), STATUS_OK);
        }
        bytes[size] = 0;
        assert_int_not_equal(transaction_decode(&decoded, &sender, bytes, size + 1), STATUS_OK);
    }
    signer_free(signer);
    free(bytes);
}

/* EIP-712, "Test Cases" (Example.js): the mail from Cow to Bob. */
static struct hash32 hash_person(const char *name, const char *wallet)
{
    struct address address = hex_address(wallet);
    struct typed_struct person;

    typed_struct_begin(&person, "Person(string name,address wallet)");
    typed_struct_add_text(&person, name);
    typed_struct_add_address(&person, &address);
    return typed_struct_hash(&person);
}

static void test_typed_message_of_the_standard(void **state)
{
    struct hash32 cow_hash = keccak256("cow", 3);
    struct address contract = hex_address("cccccccccccccccccccccccccccccccccccccccc");
    struct address cow = hex_address("cd2a3d9f938e13cd947ec05abc7fe734df8dd826");
    struct uint256 chain = uint256_of(1);
    struct hash32 domain = typed_domain("Ether Mail", "1", &chain, &contract);
    struct hash32 from = hash_person("Cow", "cd2a3d9f938e13cd947ec05abc7fe734df8dd826");
    struct hash32 to = hash_person("Bob", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    struct hash32 known;
    struct hash32 digest;
    struct typed_struct mail;
    struct secret_key key;
    struct signature signature;
    struct signer *signer;
    struct error error;
    uint8_t bytes[SIGNATURE_SIZE];
    uint8_t expected[SIGNATURE_SIZE];

    (void)state;
    known = hex_hash("f2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f");
    assert_true(hash32_equal(&domain, &known));
    typed_struct_begin(&mail, "Mail(Person from,Person to,string contents)"
                              "Person(string name,address wallet)");
    typed_struct_add_hash(&mail, &from);
    typed_struct_add_hash(&mail, &to);
    typed_struct_add_text(&mail, "Hello, Bob!");
    digest = typed_struct_hash(&mail);
    known = hex_hash("c52c0ee5d84264471806290a3f2c4cecfc5490626bf912d01f240d7a274b371e");
    assert_true(hash32_equal(&digest, &known));
    digest = typed_message_hash(&domain, &digest);
    known = hex_hash("be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2");
    assert_true(hash32_equal(&digest, &known));

    memcpy(key.bytes, cow_hash.bytes, sizeof(key.bytes));
    signer = signer_new(&key, &error);
    assert_non_null(signer);
    assert_true(address_equal(signer_address(signer), &cow));
    assert_int_equal(signer_sign(signer, &signature, &digest, &error), STATUS_OK);
    signature_to_bytes(bytes, &signature);
    (void)hex_bytes(expected, sizeof(expected),
                    "4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d"
                    "07299936d304c153f6443dfa05f40ff007d72911b6f72307f996231605b915621c");
    assert_memory_equal(bytes, expected, SIGNATURE_SIZE);
    signer_free(signer);
}

static void test_keys_outside_the_group_are_refused(void **state)
{
    static const char *const bad[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        ORDER,
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364142",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct secret_key key;
        struct error error;

        (void)hex_bytes(key.bytes, sizeof(key.bytes), bad[i]);
        assert_false(secret_key_is_valid(&key));
        error_init(&error);
        assert_null(signer_new(&key, &error));
        assert_int_equal(error.status, STATUS_BAD_FORMAT);
    }
    signer_free(signer_of("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140"));
    signer_free(signer_of("0000000000000000000000000000000000000000000000000000000000000001"));
}

static enum verdict recover_with(const struct signature *good, const char *r, const char *s,
                                 uint8_t recovery)
{
    struct signature signature = *good;
    struct hash32 hash = keccak256("message", 7);
    struct address address;

    if (r != NULL) {
        (void)hex_bytes(signature.r, sizeof(signature.r), r);
    }
    if (s != NULL) {
        (void)hex_bytes(signature.s, sizeof(signature.s), s);
    }
    signature.recovery = recovery;
    return signature_recover(&signature, &address, &hash);
}

/* The kinds of ecdsa_secp256k1_*_test.json of Wycheproof that exist for this fixed-size form:
 * values of zero, of the order and beyond, the order minus a value, points that are not there. */
static void test_bad_signatures_are_refused(void **state)
{
    const char *zero = "0000000000000000000000000000000000000000000000000000000000000000";
    const char *most = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
    const char *field = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f";
    const char *past_half = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a1";
    const char *no_point = "0000000000000000000000000000000000000000000000000000000000000005";
    struct signer *signer = example_signer();
    struct hash32 hash = keccak256("message", 7);
    struct signature good;
    struct error error;

    (void)state;
    assert_int_equal(signer_sign(signer, &good, &hash, &error), STATUS_OK);
    assert_int_equal(recover_with(&good, NULL, NULL, good.recovery), VERDICT_VALID);
    assert_int_equal(recover_with(&good, NULL, HALF, good.recovery), VERDICT_VALID);
    for (int recovery = 0; recovery < 2; recovery++) {
        uint8_t bit = (uint8_t)recovery;

        assert_int_equal(recover_with(&good, zero, NULL, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, NULL, zero, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, zero, zero, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, ORDER, NULL, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, NULL, ORDER, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, field, NULL, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, most, NULL, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, NULL, most, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, NULL, past_half, bit), VERDICT_INVALID);
        assert_int_equal(recover_with(&good, no_point, NULL, bit), VERDICT_INVALID);
    }
    for (int recovery = 2; recovery < 256; recovery++) {
        assert_int_equal(recover_with(&good, NULL, NULL, (uint8_t)recovery), VERDICT_INVALID);
    }
    signer_free(signer);
}

static void test_signatures_are_low_and_recover(void **state)
{
    struct signer *signer = example_signer();
    uint8_t half[32];

    (void)state;
    (void)hex_bytes(half, sizeof(half), HALF);
    for (uint32_t i = 0; i < 500; i++) {
        struct hash32 hash = keccak256(&i, sizeof(i));
        struct signature signature;
        struct address address;
        struct error error;
        uint8_t bytes[SIGNATURE_SIZE];

        assert_int_equal(signer_sign(signer, &signature, &hash, &error), STATUS_OK);
        assert_true(memcmp(signature.s, half, sizeof(half)) <= 0);
        signature_to_bytes(bytes, &signature);
        assert_memory_equal(bytes, signature.r, 32);
        assert_memory_equal(bytes + 32, signature.s, 32);
        assert_int_equal(bytes[SIGNATURE_SIZE - 1], 27 + signature.recovery);
        assert_int_equal(signature_recover(&signature, &address, &hash), VERDICT_VALID);
        assert_true(address_equal(&address, signer_address(signer)));
    }
    signer_free(signer);
}

static void test_data_past_the_limit_is_refused(void **state)
{
    uint8_t *data = calloc(1, TRANSACTION_DATA_MAX + 1);
    struct transaction transaction = example_legacy();
    struct hash32 hash;

    (void)state;
    assert_non_null(data);
    transaction.data = data;
    transaction.data_size = TRANSACTION_DATA_MAX;
    assert_int_equal(transaction_signing_hash(&transaction, &hash), STATUS_OK);
    transaction.data_size++;
    assert_int_equal(transaction_signing_hash(&transaction, &hash), STATUS_OVER_LIMIT);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksums_of_addresses),
        cmocka_unit_test(test_wrong_spellings_of_addresses_are_refused),
        cmocka_unit_test(test_addresses_of_created_contracts),
        cmocka_unit_test(test_legacy_transaction_of_the_standard),
        cmocka_unit_test(test_fee_market_transaction_of_another_tool),
        cmocka_unit_test(test_every_changed_bit_of_a_transaction_changes_the_sender),
        cmocka_unit_test(test_typed_message_of_the_standard),
        cmocka_unit_test(test_keys_outside_the_group_are_refused),
        cmocka_unit_test(test_bad_signatures_are_refused),
        cmocka_unit_test(test_signatures_are_low_and_recover),
        cmocka_unit_test(test_data_past_the_limit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
