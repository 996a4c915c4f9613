/*
 * encryption_fuzz.c - any bytes as an encrypted payload (first byte 0 modulo 3), a locked key (1)
 * or an encrypted file (2). Nobody can make one without the key: an input that opens is a fault.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proofs/format/encryption.h"
#include "tests/support/memory_file.h"

#define LOG_N_MOST 6 /* scrypt at its real cost would leave a fuzzer one input a second */
#define LOCK_LOG_N 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct encryption_key the_key = {{7}};

static void try_box(const uint8_t *data, size_t size)
{
    uint8_t *plain = malloc(size + 1);

    if (plain == NULL || encryption_box_open(plain, NULL, &the_key, "c", data, size) == STATUS_OK) {
        abort();
    }
    free(plain);
}

static void try_lock(const uint8_t *data, size_t size)
{
    struct encryption_key key;

    if (size == ENCRYPTION_LOCK_SIZE && data[LOCK_LOG_N] > LOG_N_MOST && data[LOCK_LOG_N] < 31) {
        return;
    }
    if (encryption_unlock(&key, NULL, data, size, "p", 1) == STATUS_OK) {
        abort();
    }
}

static void try_file(const uint8_t *data, size_t size)
{
    static struct encryption_reader reader;
    char path[MEMORY_FILE_PATH_MAX];
    int descriptor = memory_file_open(path, data, size);

    if (encryption_reader_open(&reader, NULL, path, &the_key, "c") == STATUS_OK) {
        abort();
    }
    close(descriptor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    switch (data[0] % 3) {
    case 0:
        try_box(data + 1, size - 1);
        break;
    case 1:
        try_lock(data + 1, size - 1);
        break;
    default:
        try_file(data + 1, size - 1);
        break;
    }
    return 0;
}
