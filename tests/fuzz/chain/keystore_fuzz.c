/*
 * Any bytes as a key file: what opens must keep its promises, under a passphrase that some seeds
 * have. A file that asks for more work than WORK_MOST is only looked into: an honest one takes a
 * second, which would make a fuzzer of one input a second.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "chain/keys/keystore.h"

#define WORK_MOST 1024 /* of scrypt, N * r * p; of PBKDF2, rounds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the product makes of a number that is none, or not from 1 on, is a refusal: cheap. */
static uint64_t number_of(const json_t *params, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(params, name));

    return number < 1 ? 0 : (uint64_t)number;
}

/* Of one of the two names that a file may have for it. */
static bool is_quick_under(const json_t *root, const char *name)
{
    const json_t *params = json_object_get(json_object_get(root, name), "kdfparams");
    uint64_t n = number_of(params, "n");
    uint64_t r = number_of(params, "r");
    uint64_t p = number_of(params, "p");

    if (number_of(params, "c") > WORK_MOST) {
        return false;
    }
    /* Past the product's own limits the refusal is what is tried. */
    return n > KEYSTORE_WORK_MAX || r > KEYSTORE_WORK_MAX || p > KEYSTORE_WORK_MAX ||
           n * r > KEYSTORE_WORK_MAX || n * r * p > KEYSTORE_WORK_MAX || n * r * p <= WORK_MOST;
}

static bool is_quick(const uint8_t *data, size_t size)
{
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    bool quick = is_quick_under(root, "crypto") && is_quick_under(root, "Crypto");

    json_decref(root);
    return quick;
}

static void try_open(const char *text, size_t size, const char *words)
{
    static const struct secret_key none;
    struct passphrase passphrase = {.size = strlen(words)};
    struct secret_key key;
    struct address named;
    struct error error;
    enum status status;

    error_init(&error);
    memcpy(passphrase.bytes, words, passphrase.size);
    memset(&key, 0x5a, sizeof(key));
    status = keystore_open(&key, text, size, &passphrase, &error);
    if (status != STATUS_OK) {
        if (memcmp(&key, &none, sizeof(key)) != 0 || error.text[0] == '\0') {
            abort();
        }
        return;
    }
    /* A key that opens makes an address, and where the file names one it is that. */
    status = keystore_address(&named, text, size, &error);
    if (status == STATUS_OK || status == STATUS_NOT_FOUND) {
        struct signer *signer = signer_new(&key, &error);

        if (signer == NULL ||
            (status == STATUS_OK && !address_equal(&named, signer_address(signer)))) {
            abort();
        }
        signer_free(signer);
        return;
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct address named;
    struct error error;

    error_init(&error);
    (void)!keystore_address(&named, (const char *)data, size, &error);
    if (is_quick(data, size)) {
        try_open((const char *)data, size, "foo");
    }
    return 0;
}
