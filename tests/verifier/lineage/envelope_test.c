/*
 * Goal: an envelope holds its text and two signatures that other programs check, and nothing else
 * can be read under them.
 * Method: the published example of a PAE; keys that are made here; libcrypto and the recovery of an
 * account's signer as judges, over the text as it is and with a byte changed.
 */
#include <jansson.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/support/test.h"
#include "verifier/lineage/envelope.h"

#define TYPE "application/vnd.in-toto+json"

static const char words[] = "{\"a\": 1}";

/* A new key of a curve as a file of PEM. */
static EVP_PKEY *make_key(char path[FILE_PATH_MAX], const char *curve, const char *passphrase)
{
    EVP_PKEY *key = EVP_EC_gen(curve);
    FILE *file;

    assert_non_null(key);
    (void)snprintf(path, FILE_PATH_MAX, "%s/%s%s.pem", test_temp_dir(), curve,
                   passphrase == NULL ? "" : "-locked");
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, passphrase == NULL ? NULL : EVP_aes_128_cbc(),
                                          (const unsigned char *)passphrase,
                                          passphrase == NULL ? 0 : (int)strlen(passphrase), NULL,
                                          NULL),
                     1);
    assert_int_equal(fclose(file), 0);
    return key;
}

static struct signer *make_signer(void)
{
    struct secret_key secret = {{0}};
    struct signer *signer;

    secret.bytes[sizeof(secret.bytes) - 1] = 9;
    signer = signer_new(&secret, NULL);
    assert_non_null(signer);
    return signer;
}

static size_t decode(uint8_t *bytes, size_t room, const json_t *text)
{
    const size_t length = json_string_length(text);
    int size;

    assert_true(length % 4 == 0 && length / 4 * 3 <= room);
    size = EVP_DecodeBlock(bytes, (const unsigned char *)json_string_value(text), (int)length);
    assert_true(size >= 0);
    for (size_t i = length; i > 0 && json_string_value(text)[i - 1] == '='; i--) {
        size--;
    }
    return (size_t)size;
}

static bool libcrypto_takes(EVP_PKEY *key, const struct buffer *pae, const uint8_t *der,
                            size_t size)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool valid;

    assert_non_null(context);
    assert_int_equal(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
    valid = EVP_DigestVerify(context, der, size, pae->data, pae->size) == 1;
    EVP_MD_CTX_free(context);
    return valid;
}

static bool account_takes(const struct signer *signer, const struct buffer *pae,
                          const uint8_t *bytes, size_t size)
{
    const struct hash32 hash = keccak256(pae->data, pae->size);
    struct signature signature;
    struct address who;

    if (size != SIGNATURE_SIZE) {
        return false;
    }
    signature_from_bytes(&signature, bytes);
    return signature_recover(&signature, &who, &hash) == VERDICT_VALID &&
           address_equal(&who, signer_address(signer));
}

static json_t *write_envelope(const struct envelope_key *key, const struct signer *signer)
{
    struct buffer text;
    struct buffer out;
    json_t *read;

    buffer_init(&text, 100);
    buffer_init(&out, ENVELOPE_SIZE_MAX);
    buffer_add_text(&text, words);
    assert_int_equal(envelope_write(&out, TYPE, &text, key, signer, NULL), STATUS_OK);
    read = json_loadb((const char *)out.data, out.size, 0, NULL);
    assert_non_null(read);
    buffer_release(&text);
    buffer_release(&out);
    return read;
}

static void test_a_pae_is_the_published_one(void **state)
{
    struct buffer pae;

    (void)state;
    buffer_init(&pae, 1000);
    envelope_pae(&pae, "http://example.com/HelloWorld", "hello world", 11);
    assert_string_equal(buffer_text(&pae),
                        "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    buffer_clear(&pae);
    envelope_pae(&pae, "", "", 0);
    assert_string_equal(buffer_text(&pae), "DSSEv1 0  0 ");
    buffer_release(&pae);
}

static void test_both_signatures_are_of_the_text_and_of_nothing_else(void **state)
{
    char path[FILE_PATH_MAX];
    EVP_PKEY *pkey = make_key(path, "prime256v1", NULL);
    struct signer *signer = make_signer();
    struct envelope_key *key;
    uint8_t first[200];
    uint8_t second[200];
    uint8_t payload[200];
    size_t sizes[2];
    struct buffer pae;
    json_t *read;
    json_t *signatures;

    (void)state;
    assert_int_equal(envelope_key_read(&key, path, NULL), STATUS_OK);
    read = write_envelope(key, signer);
    assert_int_equal(decode(payload, sizeof(payload), json_object_get(read, "payload")),
                     strlen(words));
    assert_memory_equal(payload, words, strlen(words));
    assert_string_equal(json_string_value(json_object_get(read, "payloadType")), TYPE);
    signatures = json_object_get(read, "signatures");
    assert_int_equal(json_array_size(signatures), 2);
    sizes[0] = decode(first, sizeof(first), json_object_get(json_array_get(signatures, 0), "sig"));
    sizes[1] =
        decode(second, sizeof(second), json_object_get(json_array_get(signatures, 1), "sig"));
    buffer_init(&pae, 1000);
    envelope_pae(&pae, TYPE, words, strlen(words));
    assert_true(libcrypto_takes(pkey, &pae, first, sizes[0]));
    assert_true(account_takes(signer, &pae, second, sizes[1]));
    for (size_t i = 0; i < pae.size; i++) {
        pae.data[i] ^= 1;
        assert_false(libcrypto_takes(pkey, &pae, first, sizes[0]));
        assert_false(account_takes(signer, &pae, second, sizes[1]));
        pae.data[i] ^= 1;
    }
    buffer_release(&pae);
    json_decref(read);
    envelope_key_free(key);
    signer_free(signer);
    EVP_PKEY_free(pkey);
}

static void test_one_signature_is_enough(void **state)
{
    struct signer *signer = make_signer();
    char address[ADDRESS_TEXT_SIZE];
    json_t *read = write_envelope(NULL, signer);
    const json_t *signatures = json_object_get(read, "signatures");

    (void)state;
    address_print(address, signer_address(signer));
    assert_int_equal(json_array_size(signatures), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(signatures, 0), "keyid")),
                        address);
    json_decref(read);
    signer_free(signer);
}

static void refuse_key(const char *path, enum status wanted, const char *sentence)
{
    struct envelope_key *key;
    struct error error;

    error_init(&error);
    assert_int_equal(envelope_key_read(&key, path, &error), wanted);
    assert_null(key);
    assert_non_null(strstr(error.text, sentence));
}

static void test_keys_that_are_no_key_of_the_curve_are_refused(void **state)
{
    char path[FILE_PATH_MAX];

    (void)state;
    EVP_PKEY_free(make_key(path, "secp384r1", NULL));
    refuse_key(path, STATUS_REFUSED, "is no key of the curve P-256");
    EVP_PKEY_free(make_key(path, "secp256k1", NULL));
    refuse_key(path, STATUS_REFUSED, "is no key of the curve P-256");
    EVP_PKEY_free(make_key(path, "prime256v1", "secret"));
    refuse_key(path, STATUS_REFUSED, "is under a passphrase");
    assert_int_equal(file_write(path, NULL, words, strlen(words), 0600), STATUS_OK);
    refuse_key(path, STATUS_BAD_FORMAT, "holds no private key");
    refuse_key("/nowhere/key.pem", STATUS_NOT_FOUND, "No such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pae_is_the_published_one),
        cmocka_unit_test(test_both_signatures_are_of_the_text_and_of_nothing_else),
        cmocka_unit_test(test_one_signature_is_enough),
        cmocka_unit_test(test_keys_that_are_no_key_of_the_curve_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
