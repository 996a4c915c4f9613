/*
 * dataset_fuzz.c - any bytes as a data file: it is refused, or every element lies inside the file
 * and is within the range. The first byte chooses the reader, the second the limit; the rest is the
 * file.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/format/dataset.h"

#define FILE_SIZE_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    READ_SAMPLES,
    READ_LABELS,
    READ_NPY_TOKENS,
    READ_TOKENS, /* and above: the type of the tokens */
};

static enum status read_file(struct dataset *dataset, const uint8_t *file, size_t file_size,
                             uint8_t reader, uint8_t limit)
{
    struct error error;

    switch (reader) {
    case READ_SAMPLES:
        return dataset_read_samples(dataset, &error, file, file_size);
    case READ_LABELS:
        return dataset_read_labels(dataset, &error, file, file_size, limit, limit);
    case READ_NPY_TOKENS:
        return dataset_read_npy_tokens(dataset, &error, file, file_size, limit);
    default:
        return dataset_read_tokens(dataset, &error, file, file_size,
                                   (enum dtype)(reader % DTYPE_COUNT), limit);
    }
}

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_elements(const struct dataset *dataset, const uint8_t *file, size_t file_size,
                           bool limited, uint8_t limit)
{
    size_t size = dtype_size(dataset->dtype);
    const uint8_t *bytes = dataset->data;

    require(dataset->count > 0 && dataset->count == dataset->rows * dataset->width);
    require(bytes >= file && bytes + dataset->count * size == file + file_size);
    for (uint64_t i = 0; i < dataset->count; i++) {
        uint32_t value = 0;

        memcpy(&value, bytes + i * size, size);
        require(!limited || value < limit);
        require(dataset->dtype != DTYPE_F32 || (value & 0x7f800000) != 0x7f800000);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dataset dataset;
    uint8_t *file = NULL;

    if (size < 2 || size - 2 > FILE_SIZE_MAX) {
        return 0;
    }
    if (posix_memalign((void **)&file, 64, size - 2 == 0 ? 1 : size - 2) != 0) {
        return 0;
    }
    memcpy(file, data + 2, size - 2);
    if (read_file(&dataset, file, size - 2, data[0], data[1]) == STATUS_OK) {
        check_elements(&dataset, file, size - 2, data[0] != READ_SAMPLES, data[1]);
    }
    free(file);
    return 0;
}
