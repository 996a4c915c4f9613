/*
 * Goal: key files of other wallets open, ours come back, and nothing else opens.
 * Method: the vectors of the Web3 Secret Storage page and of go-ethereum, every byte of a file
 * corrupted once, parameters that ask for too much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "chain/keys/keystore.h"
#include "tests/chain/codec/hex_bytes.h"

/* "Web3 Secret Storage Definition", test vectors: PBKDF2. */
static const char pbkdf2_file[] =
    "{\"crypto\":{\"cipher\":\"aes-128-ctr\",\"cipherparams\":"
    "{\"iv\":\"6087dab2f9fdbbfaddc31a909735c1e6\"},\"ciphertext\":"
    "\"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46\",\"kdf\":\"pbkdf2\","
    "\"kdfparams\":{\"c\":262144,\"dklen\":32,\"prf\":\"hmac-sha256\",\"salt\":"
    "\"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd\"},\"mac\":"
    "\"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2\"},\"id\":"
    "\"3198bc9c-6672-5ab3-d995-4942343ae5b6\",\"version\":3}";

/* The same page: scrypt, with r = 1. */
static const char scrypt_file[] =
    "{\"crypto\":{\"cipher\":\"aes-128-ctr\",\"cipherparams\":"
    "{\"iv\":\"83dbcc02d8ccb40e466191a123791e0e\"},\"ciphertext\":"
    "\"d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c\",\"kdf\":\"scrypt\","
    "\"kdfparams\":{\"dklen\":32,\"n\":262144,\"r\":1,\"p\":8,\"salt\":"
    "\"ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19\"},\"mac\":"
    "\"2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097\"},\"id\":"
    "\"3198bc9c-6672-5ab3-d995-4942343ae5b6\",\"version\":3}";

/* go-ethereum, accounts/keystore/testdata/v3_test_vector.json: "31_byte_key". */
static const char short_key_file[] =
    "{\"crypto\":{\"cipher\":\"aes-128-ctr\",\"cipherparams\":"
    "{\"iv\":\"e0c41130a323adc1446fc82f724bca2f\"},\"ciphertext\":"
    "\"9517cd5bdbe69076f9bf5057248c6c050141e970efa36ce53692d5d59a3984\",\"kdf\":\"scrypt\","
    "\"kdfparams\":{\"dklen\":32,\"n\":2,\"r\":8,\"p\":1,\"salt\":"
    "\"711f816911c92d649fb4c84b047915679933555030b3552c1212609b38208c63\"},\"mac\":"
    "\"d5e116151c6aa71470e67a7d42c9620c75c4d23229847dcc127794f0732b0db5\"},\"id\":"
    "\"fecfc4ce-e956-48fd-953b-30f8b52ed66c\",\"version\":3}";

static struct passphrase phrase(const char *text)
{
    struct passphrase passphrase = {.size = strlen(text)};

    memcpy(passphrase.bytes, text, passphrase.size);
    return passphrase;
}

static void expect_key(const char *file, const char *words, const char *hex)
{
    struct passphrase passphrase = phrase(words);
    struct secret_key key;
    struct secret_key expected;
    struct error error;

    error_init(&error);
    (void)hex_bytes(expected.bytes, sizeof(expected.bytes), hex);
    assert_int_equal(keystore_open(&key, file, strlen(file), &passphrase, &error), STATUS_OK);
    assert_memory_equal(key.bytes, expected.bytes, SECRET_KEY_SIZE);
    passphrase.bytes[0] ^= 1;
    assert_int_equal(keystore_open(&key, file, strlen(file), &passphrase, &error), STATUS_REFUSED);
    memset(&expected, 0, sizeof(expected));
    assert_memory_equal(key.bytes, expected.bytes, SECRET_KEY_SIZE);
}

static void test_published_files_open(void **state)
{
    const char *key = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";

    (void)state;
    expect_key(pbkdf2_file, "testpassword", key);
    expect_key(scrypt_file, "testpassword", key);
}

static void test_a_key_of_31_bytes_opens(void **state)
{
    (void)state;
    expect_key(short_key_file, "foo",
               "00fa7b3db73dc7dfdf8c5fbdb796d741e4488628c41fc4febd9160a866ba0f35");
}

static void seal(char *text, size_t *size, struct secret_key *key, struct passphrase *passphrase)
{
    struct error error;

    *passphrase = phrase("correct horse");
    memset(key->bytes, 0x42, sizeof(key->bytes));
    assert_int_equal(keystore_seal(text, size, key, passphrase, KEYSTORE_COST_MIN, &error),
                     STATUS_OK);
}

static void test_our_files_come_back(void **state)
{
    char *text = malloc(KEYSTORE_SIZE_MAX);
    struct passphrase passphrase;
    struct address address;
    struct address expected = hex_address("17c5185167401ed00cf5f5b2fc97d9bbfdb7d025");
    struct secret_key key;
    struct secret_key back;
    struct error error;
    size_t size;

    (void)state;
    assert_non_null(text);
    seal(text, &size, &key, &passphrase);
    assert_int_equal(keystore_open(&back, text, size, &passphrase, &error), STATUS_OK);
    assert_memory_equal(back.bytes, key.bytes, SECRET_KEY_SIZE);
    assert_int_equal(keystore_address(&address, text, size, &error), STATUS_OK);
    assert_true(address_equal(&address, &expected));
    free(text);
}

/* With any byte changed, no other key comes out; a cut file does not open. */
static void test_every_changed_byte_gives_no_other_key(void **state)
{
    char *text = malloc(KEYSTORE_SIZE_MAX);
    struct passphrase passphrase;
    struct secret_key key;
    struct secret_key back;
    size_t size;
    uint32_t refused = 0;

    (void)state;
    assert_non_null(text);
    seal(text, &size, &key, &passphrase);
    for (size_t at = 0; at < size; at++) {
        char kept = text[at];

        text[at] = (char)(kept ^ 1);
        if (keystore_open(&back, text, size, &passphrase, NULL) == STATUS_OK) {
            assert_memory_equal(back.bytes, key.bytes, SECRET_KEY_SIZE);
        } else {
            refused++;
        }
        text[at] = kept;
        assert_int_not_equal(keystore_open(&back, text, at, &passphrase, NULL), STATUS_OK);
    }
    assert_true(refused > 300); /* only the id, blanks and digits' case are free */
    free(text);
}

static enum status open_changed(const char *from, const char *to)
{
    char text[2048];
    const char *found = strstr(short_key_file, from);
    struct passphrase passphrase = phrase("foo");
    struct secret_key key;
    size_t before;

    assert_non_null(found);
    before = (size_t)(found - short_key_file);
    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)before, short_key_file, to,
                   found + strlen(from));
    return keystore_open(&key, text, strlen(text), &passphrase, NULL);
}

static void test_absurd_parameters_are_refused(void **state)
{
    static const char *const counts[] = {"0",
                                         "1",
                                         "3",
                                         "-2",
                                         "2.0",
                                         "\"2\"",
                                         "null",
                                         "16777216",
                                         "1099511627776",
                                         "9223372036854775808",
                                         "true"};

    (void)state;
    assert_int_equal(open_changed("\"n\":2", "\"n\":2"), STATUS_OK);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char changed[64];

        (void)snprintf(changed, sizeof(changed), "\"n\":%s", counts[i]);
        assert_int_not_equal(open_changed("\"n\":2", changed), STATUS_OK);
    }
    assert_int_not_equal(open_changed("\"r\":8", "\"r\":4194305"), STATUS_OK);
    assert_int_not_equal(open_changed("\"r\":8", "\"r\":0"), STATUS_OK);
    assert_int_not_equal(open_changed("\"p\":1", "\"p\":67108864"), STATUS_OK);
    assert_int_not_equal(open_changed("\"p\":1", "\"p\":1,\"p\":1"), STATUS_OK);
    assert_int_not_equal(open_changed("\"dklen\":32", "\"dklen\":64"), STATUS_OK);
    assert_int_not_equal(open_changed("\"version\":3", "\"version\":1"), STATUS_OK);
    assert_int_not_equal(open_changed("aes-128-ctr", "aes-128-cbc"), STATUS_OK);
    assert_int_not_equal(open_changed("\"scrypt\"", "\"argon2\""), STATUS_OK);
    assert_int_not_equal(open_changed("\"9517", "\"\",\"x\":\"9517"), STATUS_OK);
    assert_int_equal(open_changed("\"crypto\"", "\"Crypto\""), STATUS_OK);
    assert_int_equal(open_changed("\"version\"",
                                  "\"address\":\"0000000000000000000000000000000000000001\","
                                  "\"version\""),
                     STATUS_BAD_FORMAT);
}

static void test_a_nul_in_a_file_is_refused(void **state)
{
    static const char file[] =
        "{\"address\":\"9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f\",\"version\":3\0}";
    struct address address;
    struct error error;

    (void)state;
    assert_int_equal(keystore_address(&address, file, sizeof(file) - 1, &error), STATUS_BAD_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_files_open),
        cmocka_unit_test(test_a_key_of_31_bytes_opens),
        cmocka_unit_test(test_our_files_come_back),
        cmocka_unit_test(test_every_changed_byte_gives_no_other_key),
        cmocka_unit_test(test_absurd_parameters_are_refused),
        cmocka_unit_test(test_a_nul_in_a_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
