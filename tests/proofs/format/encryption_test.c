/*
 * Goal: encrypted bytes open with their key alone, whole and in their place.
 *
 * Method: the format made a second time here from libcrypto's own HKDF, scrypt and AES-GCM; every
 * bit of a small file and samples of a large one flipped; every truncation; chunks exchanged,
 * repeated, moved between files; hostile costs.
 */
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "proofs/format/encryption.h"
#include "tests/support/test.h"

#define FILE_MAX        (4u << 20)
#define LOG_N_TEST      10
#define ENCRYPTED_CHUNK (ENCRYPTION_CHUNK_SIZE + ENCRYPTION_TAG_SIZE)

static const struct encryption_key the_key = {{1, 2, 3, 4, 5, 6, 7, 8}};

static void path_of(char path[512], const char *name)
{
    snprintf(path, 512, "%s/%s", test_temp_dir(), name);
}

/* ---- the format, a second time ---- */

static void oracle_key(uint8_t derived[32], const uint8_t *salt, const char *tag,
                       const char *context)
{
    uint8_t info[32 + ENCRYPTION_CONTEXT_MAX] = {0};
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *hkdf = EVP_KDF_CTX_new(kdf);
    OSSL_PARAM params[5];

    memcpy(info, tag, strlen(tag));
    memcpy(info + 32, context, strlen(context));
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, "SHA256", 0);
    params[1] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)the_key.bytes, 32);
    params[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, 32);
    params[3] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, 32 + strlen(context));
    params[4] = OSSL_PARAM_construct_end();
    assert_int_equal(EVP_KDF_derive(hkdf, derived, 32, params), 1);
    EVP_KDF_CTX_free(hkdf);
    EVP_KDF_free(kdf);
}

/* Opens size bytes and their tag by AES-256-GCM; aad may be empty. */
static int oracle_open(uint8_t *plain, const uint8_t *key, const uint8_t *nonce, const uint8_t *aad,
                       int aad_size, const uint8_t *encrypted, int size)
{
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    uint8_t tag[16];
    int length;
    int good;

    memcpy(tag, encrypted + size, 16);
    assert_int_equal(EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, nonce), 1);
    if (aad_size > 0) {
        assert_int_equal(EVP_DecryptUpdate(cipher, NULL, &length, aad, aad_size), 1);
    }
    assert_int_equal(EVP_DecryptUpdate(cipher, plain, &length, encrypted, size), 1);
    assert_int_equal(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, 16, tag), 1);
    good = EVP_DecryptFinal_ex(cipher, plain + length, &length);
    EVP_CIPHER_CTX_free(cipher);
    return good == 1;
}

/* ---- files ---- */

static void encrypt_to(const char *path, const uint8_t *data, size_t size, const char *context)
{
    static struct encryption_writer writer;
    uint64_t seed = size;

    assert_int_equal(encryption_writer_open(&writer, NULL, path, &the_key, context), STATUS_OK);
    for (size_t at = 0; at < size;) {
        size_t piece = 1 + test_random_below(&seed, 100000);

        piece = piece < size - at ? piece : size - at;
        assert_int_equal(encryption_writer_add(&writer, NULL, data + at, piece), STATUS_OK);
        at += piece;
    }
    assert_int_equal(encryption_writer_keep(&writer, NULL), STATUS_OK);
    encryption_writer_drop(&writer);
}

static struct file_bytes load(const char *path)
{
    struct file_bytes bytes;

    assert_int_equal(file_read(&bytes, NULL, path, FILE_MAX), STATUS_OK);
    return bytes;
}

static void store(const char *path, const uint8_t *bytes, size_t size)
{
    assert_int_equal(file_write(path, NULL, bytes, size, 0600), STATUS_OK);
}

/* The status of opening the file and reading all of it. */
static enum status read_all(uint8_t *data, uint64_t *size, const char *path, const char *context)
{
    static struct encryption_reader reader;
    struct error error;
    enum status status;

    error_init(&error);
    status = encryption_reader_open(&reader, &error, path, &the_key, context);
    if (status == STATUS_OK) {
        *size = reader.size;
        status = encryption_reader_read(&reader, &error, data, (size_t)reader.size, 0);
        encryption_reader_close(&reader);
    }
    assert_int_equal(error.status, status);
    return status;
}

static const size_t sizes[] = {0,
                               1,
                               1000,
                               ENCRYPTION_CHUNK_SIZE - 1,
                               ENCRYPTION_CHUNK_SIZE,
                               ENCRYPTION_CHUNK_SIZE + 1,
                               3 * ENCRYPTION_CHUNK_SIZE,
                               3 * ENCRYPTION_CHUNK_SIZE + 500};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void test_encrypted_files_are_opened_and_say_what_the_format_says(void **state)
{
    static uint8_t data[4 * ENCRYPTION_CHUNK_SIZE];
    static uint8_t got[4 * ENCRYPTION_CHUNK_SIZE];
    uint64_t seed = 1;
    char path[512];

    (void)state;
    path_of(path, "encrypted");
    test_random_fill(&seed, data, sizeof(data));
    for (size_t i = 0; i < SIZES; i++) {
        uint64_t size = 0;
        uint8_t key[32];
        uint8_t nonce[12] = {0};
        struct file_bytes file;
        size_t at = 64;

        encrypt_to(path, data, sizes[i], "checkpoints/7");
        assert_int_equal(read_all(got, &size, path, "checkpoints/7"), STATUS_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(got, data, sizes[i]);
        file = load(path);
        assert_memory_equal(file.data, "lockstep.encrypted.v1\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
        oracle_key(key, file.data + 32, "lockstep.encrypted.v1", "checkpoints/7");
        for (size_t chunk = 0; at < file.size; chunk++) {
            size_t left = file.size - at;
            size_t taken = left < ENCRYPTED_CHUNK ? left : ENCRYPTED_CHUNK;

            nonce[7] = (uint8_t)chunk;
            nonce[11] = left == taken;
            assert_true(oracle_open(got, key, nonce, NULL, 0, file.data + at, (int)taken - 16));
            assert_memory_equal(got, data + chunk * ENCRYPTION_CHUNK_SIZE, taken - 16);
            at += taken;
        }
        file_bytes_release(&file);
    }
}

static void test_any_part_of_an_encrypted_file_is_read(void **state)
{
    static uint8_t data[3 * ENCRYPTION_CHUNK_SIZE + 500];
    static uint8_t got[sizeof(data)];
    static struct encryption_reader reader;
    uint64_t seed = 2;
    char path[512];

    (void)state;
    path_of(path, "parts");
    test_random_fill(&seed, data, sizeof(data));
    encrypt_to(path, data, sizeof(data), "c");
    assert_int_equal(encryption_reader_open(&reader, NULL, path, &the_key, "c"), STATUS_OK);
    for (int round = 0; round < 300; round++) {
        size_t from = test_random_below(&seed, sizeof(data));
        size_t size = test_random_below(&seed, sizeof(data) - from + 1);

        assert_int_equal(encryption_reader_read(&reader, NULL, got, size, from), STATUS_OK);
        assert_memory_equal(got, data + from, size);
    }
    encryption_reader_close(&reader);
}

static void test_two_files_of_the_same_bytes_differ(void **state)
{
    char path[512];
    struct file_bytes files[2];

    (void)state;
    path_of(path, "same");
    for (int i = 0; i < 2; i++) {
        encrypt_to(path, (const uint8_t *)"the same bytes", 14, "c");
        files[i] = load(path);
    }
    assert_int_equal(files[0].size, 64 + 14 + 16);
    assert_memory_not_equal(files[0].data + 32, files[1].data + 32, 32);
    assert_memory_not_equal(files[0].data + 64, files[1].data + 64, 14);
    file_bytes_release(&files[0]);
    file_bytes_release(&files[1]);
}

/* Flips so many bits, spread over the whole file. */
static void check_flips(const char *path, uint64_t flips)
{
    static uint8_t got[4 * ENCRYPTION_CHUNK_SIZE];
    struct file_bytes file = load(path);
    int descriptor = open(path, O_WRONLY);
    size_t step = file.size * 8 / (flips < file.size * 8 ? flips : file.size * 8);
    uint64_t size;

    assert_true(descriptor >= 0);
    for (size_t bit = 0; bit < file.size * 8; bit += step) {
        uint8_t changed = file.data[bit / 8] ^ (uint8_t)(1 << bit % 8);

        assert_int_equal(pwrite(descriptor, &changed, 1, (off_t)(bit / 8)), 1);
        assert_int_not_equal(read_all(got, &size, path, "c"), STATUS_OK);
        assert_int_equal(pwrite(descriptor, &file.data[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    assert_int_equal(read_all(got, &size, path, "c"), STATUS_OK);
    close(descriptor);
    file_bytes_release(&file);
}

static void test_flipped_bits_are_refused(void **state)
{
    static uint8_t data[2 * ENCRYPTION_CHUNK_SIZE + 10];
    char path[512];

    (void)state;
    path_of(path, "flips");
    encrypt_to(path, data, 300, "c");
    check_flips(path, UINT64_MAX);
    encrypt_to(path, data, sizeof(data), "c");
    check_flips(path, test_share(sizeof(data) * 8, 600));
}

static void test_truncations_are_refused(void **state)
{
    static uint8_t data[3 * ENCRYPTION_CHUNK_SIZE];
    static uint8_t got[3 * ENCRYPTION_CHUNK_SIZE];
    char path[512];
    struct file_bytes file;
    uint64_t size;

    (void)state;
    path_of(path, "cuts");
    encrypt_to(path, data, sizeof(data), "c");
    file = load(path);
    for (size_t cut = file.size; cut-- > 0;) {
        bool near_edge = cut < 200 || (cut - 64) % ENCRYPTED_CHUNK < 40 ||
                         (cut - 64) % ENCRYPTED_CHUNK > ENCRYPTED_CHUNK - 40;

        if (near_edge || cut % 997 == 0) {
            assert_int_equal(truncate(path, (off_t)cut), 0);
            assert_int_not_equal(read_all(got, &size, path, "c"), STATUS_OK);
        }
    }
    file_bytes_release(&file);
}

/* Writes the chunks of file in another order; -1 ends the list. */
static enum status status_reordered(const char *path, const struct file_bytes *file,
                                    const int *order)
{
    static uint8_t bytes[FILE_MAX];
    static uint8_t got[FILE_MAX];
    uint64_t size;
    size_t at = 64;

    memcpy(bytes, file->data, 64);
    for (; *order >= 0; order++) {
        size_t from = 64 + (size_t)*order * ENCRYPTED_CHUNK;
        size_t taken = file->size - from < ENCRYPTED_CHUNK ? file->size - from : ENCRYPTED_CHUNK;

        memcpy(bytes + at, file->data + from, taken);
        at += taken;
    }
    store(path, bytes, at);
    return read_all(got, &size, path, "c");
}

static void test_reordered_repeated_and_missing_chunks_are_refused(void **state)
{
    static uint8_t data[3 * ENCRYPTION_CHUNK_SIZE];
    char path[512];
    struct file_bytes file;

    (void)state;
    path_of(path, "order");
    encrypt_to(path, data, sizeof(data), "c");
    file = load(path);
    assert_int_equal(status_reordered(path, &file, (int[]){0, 1, 2, -1}), STATUS_OK);
    assert_int_equal(status_reordered(path, &file, (int[]){1, 0, 2, -1}), STATUS_REFUSED);
    assert_int_equal(status_reordered(path, &file, (int[]){0, 2, 1, -1}), STATUS_REFUSED);
    assert_int_equal(status_reordered(path, &file, (int[]){0, 0, 2, -1}), STATUS_REFUSED);
    assert_int_equal(status_reordered(path, &file, (int[]){0, 2, -1}), STATUS_REFUSED);
    assert_int_equal(status_reordered(path, &file, (int[]){0, 1, -1}), STATUS_REFUSED);
    assert_int_equal(status_reordered(path, &file, (int[]){0, 1, 2, 2, -1}), STATUS_REFUSED);
    assert_int_equal(status_reordered(path, &file, (int[]){2, -1}), STATUS_REFUSED);
    assert_int_equal(status_reordered(path, &file, (int[]){-1}), STATUS_BAD_FORMAT);
    file_bytes_release(&file);
}

static void test_another_key_or_context_is_refused(void **state)
{
    static struct encryption_reader reader;
    struct encryption_key other = the_key;
    char context[ENCRYPTION_CONTEXT_MAX + 2];
    char path[512];

    (void)state;
    path_of(path, "context");
    encrypt_to(path, (const uint8_t *)"x", 1, "checkpoints/7");
    assert_int_equal(encryption_reader_open(&reader, NULL, path, &the_key, "checkpoints/8"),
                     STATUS_REFUSED);
    other.bytes[31] ^= 1;
    assert_int_equal(encryption_reader_open(&reader, NULL, path, &other, "checkpoints/7"),
                     STATUS_REFUSED);
    memset(context, 'c', sizeof(context) - 1);
    context[sizeof(context) - 1] = '\0';
    assert_int_equal(encryption_reader_open(&reader, NULL, path, &the_key, context),
                     STATUS_OVER_LIMIT);
    store(path, (const uint8_t *)context, 100);
    assert_int_equal(encryption_reader_open(&reader, NULL, path, &the_key, "c"), STATUS_BAD_FORMAT);
}

static void test_dropped_writers_leave_nothing(void **state)
{
    static struct encryption_writer writer;
    struct stat info;
    char path[512];

    (void)state;
    path_of(path, "dropped");
    assert_int_equal(encryption_writer_open(&writer, NULL, path, &the_key, "c"), STATUS_OK);
    assert_int_equal(encryption_writer_add(&writer, NULL, "secret", 6), STATUS_OK);
    encryption_writer_drop(&writer);
    assert_int_not_equal(stat(path, &info), 0);
    assert_int_not_equal(stat(writer.file.part_path, &info), 0);
    assert_int_equal(writer.plain[0], 0);
    encrypt_to(path, (const uint8_t *)"secret", 6, "c");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

/* ---- payloads ---- */

static void test_boxes_are_opened_and_changed_ones_refused(void **state)
{
    uint8_t data[100];
    uint8_t got[100];
    uint8_t box[100 + ENCRYPTION_BOX_EXTRA];
    uint64_t seed = 3;

    (void)state;
    test_random_fill(&seed, data, sizeof(data));
    for (size_t size = 0; size <= sizeof(data); size += 25) {
        const uint8_t nonce[12] = {0};
        uint8_t key[32];
        size_t box_size = size + ENCRYPTION_BOX_EXTRA;

        assert_int_equal(encryption_box(box, NULL, &the_key, "steps.loss", data, size), STATUS_OK);
        assert_int_equal(encryption_box_open(got, NULL, &the_key, "steps.loss", box, box_size),
                         STATUS_OK);
        assert_memory_equal(got, data, size);
        oracle_key(key, box, "lockstep.box.v1", "steps.loss");
        assert_true(oracle_open(got, key, nonce, NULL, 0, box + 32, (int)size));
        assert_memory_equal(got, data, size);
        assert_int_equal(encryption_box_open(got, NULL, &the_key, "steps.time", box, box_size),
                         STATUS_REFUSED);
        for (size_t bit = 0; bit < box_size * 8; bit++) {
            box[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(encryption_box_open(got, NULL, &the_key, "steps.loss", box, box_size),
                             STATUS_REFUSED);
            box[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t cut = 0; cut < box_size; cut++) {
            assert_int_not_equal(encryption_box_open(got, NULL, &the_key, "steps.loss", box, cut),
                                 STATUS_OK);
        }
    }
}

/* ---- locks ---- */

static void test_locked_keys_are_unlocked_by_their_passphrase(void **state)
{
    static const char passphrase[] = "correct horse";
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    uint8_t key[32];
    uint8_t plain[32];
    const uint8_t nonce[12] = {0};
    struct encryption_key got;

    (void)state;
    assert_int_equal(encryption_lock(lock, NULL, &the_key, passphrase, 13, LOG_N_TEST), STATUS_OK);
    assert_int_equal(encryption_unlock(&got, NULL, lock, sizeof(lock), passphrase, 13), STATUS_OK);
    assert_memory_equal(&got, &the_key, sizeof(got));
    assert_int_equal(encryption_unlock(&got, NULL, lock, sizeof(lock), passphrase, 12),
                     STATUS_REFUSED);
    /* libcrypto's scrypt and AES agree on the bytes. */
    assert_int_equal(EVP_PBE_scrypt(passphrase, 13, lock + 36, 32, 1u << LOG_N_TEST, 8, 1,
                                    (uint64_t)1 << 30, key, 32),
                     1);
    assert_true(oracle_open(plain, key, nonce, lock, 68, lock + 68, 32));
    assert_memory_equal(plain, the_key.bytes, 32);
    for (size_t at = 0; at < sizeof(lock); at++) {
        /* A changed cost would be refused slowly: those bytes are tried below. */
        if (at < 32 || at > 34) {
            lock[at] ^= 0x20;
            assert_int_not_equal(encryption_unlock(&got, NULL, lock, sizeof(lock), passphrase, 13),
                                 STATUS_OK);
            lock[at] ^= 0x20;
        }
    }
    for (size_t cut = 0; cut < sizeof(lock); cut++) {
        assert_int_equal(encryption_unlock(&got, NULL, lock, cut, passphrase, 13),
                         STATUS_BAD_FORMAT);
    }
}

static void test_locks_that_ask_for_too_much_are_refused(void **state)
{
    static const uint8_t costs[][3] = {{0, 8, 1},  {31, 8, 1},  {255, 8, 1},  {20, 8, 1},
                                       {17, 0, 1}, {17, 33, 1}, {10, 255, 5}, {10, 8, 0}};
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    struct encryption_key got;

    (void)state;
    assert_int_equal(encryption_lock(lock, NULL, &the_key, "p", 1, LOG_N_TEST), STATUS_OK);
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        memcpy(lock + 32, costs[i], 3);
        assert_int_equal(encryption_unlock(&got, NULL, lock, sizeof(lock), "p", 1),
                         STATUS_OVER_LIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encrypted_files_are_opened_and_say_what_the_format_says),
        cmocka_unit_test(test_any_part_of_an_encrypted_file_is_read),
        cmocka_unit_test(test_two_files_of_the_same_bytes_differ),
        cmocka_unit_test(test_flipped_bits_are_refused),
        cmocka_unit_test(test_truncations_are_refused),
        cmocka_unit_test(test_reordered_repeated_and_missing_chunks_are_refused),
        cmocka_unit_test(test_another_key_or_context_is_refused),
        cmocka_unit_test(test_dropped_writers_leave_nothing),
        cmocka_unit_test(test_boxes_are_opened_and_changed_ones_refused),
        cmocka_unit_test(test_locked_keys_are_unlocked_by_their_passphrase),
        cmocka_unit_test(test_locks_that_ask_for_too_much_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
