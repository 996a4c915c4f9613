/*
 * Goal: a good data file is read as it lies on disk; any other is refused, with the place.
 *
 * Method: files of every type with one wrong element at each place; every length but the right one;
 * every header byte damaged; the fixtures, opened as a job would open them.
 */
#include "proofs/format/dataset.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/proofs/npy_writer.h"
#include "tests/support/test.h"

#define BYTES_MAX 8192

/* A .npy in memory, aligned as a mapping is. */
struct file_bytes {
    _Alignas(64) uint8_t bytes[BYTES_MAX];
    size_t size;
    size_t header_size;
};

static void npy_bytes(struct file_bytes *file, enum element element, uint32_t rank,
                      const uint64_t *dims, const void *data)
{
    struct npy npy = {.element = element, .rank = rank};

    memset(file, 0, sizeof(*file));
    memcpy(npy.dims, dims, rank * sizeof(*dims));
    file->header_size = npy_header_write(file->bytes, &npy);
    file->size = file->header_size + npy.data_size;
    assert_true(file->size <= sizeof(file->bytes));
    if (npy.data_size > 0) {
        memcpy(file->bytes + file->header_size, data, npy.data_size);
    }
}

static const char *path_of(char path[512], const char *name)
{
    (void)snprintf(path, 512, "%s/%s", test_temp_dir(), name);
    return path;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The error must be of this status and its sentence must hold these words. */
static void check_refused(enum status status, enum status wanted, const struct error *error,
                          const char *words)
{
    if (status != wanted || strstr(error->text, words) == NULL) {
        fail_msg("status %s, text '%s'; wanted %s, '%s'", status_name(status), error->text,
                 status_name(wanted), words);
    }
}

static void test_flat_tokens_are_read_as_they_lie(void **state)
{
    const uint16_t tokens[5] = {3, 1, 65535, 0, 7};
    struct dataset dataset;
    struct error error;
    char path[512];

    (void)state;
    write_file(path_of(path, "tokens.u16"), tokens, sizeof(tokens));
    assert_int_equal(dataset_open_tokens(&dataset, &error, path, DTYPE_U16, 65536), STATUS_OK);
    assert_int_equal(dataset.dtype, DTYPE_U16);
    assert_int_equal(dataset.rows, 5);
    assert_int_equal(dataset.width, 1);
    assert_int_equal(dataset.count, 5);
    assert_memory_equal(dataset.data, tokens, sizeof(tokens));
    dataset_close(&dataset);
    assert_null(dataset.data);
    dataset_close(&dataset);
}

static void test_npy_tokens_name_their_own_type(void **state)
{
    const uint32_t tokens[3] = {50256, 0, 11};
    const uint64_t dims[1] = {3};
    struct file_bytes file;
    struct dataset dataset;
    struct error error;
    char path[512];

    (void)state;
    npy_bytes(&file, ELEMENT_U32, 1, dims, tokens);
    write_file(path_of(path, "tokens.npy"), file.bytes, file.size);
    assert_int_equal(dataset_open_tokens(&dataset, &error, path, DTYPE_U8, 50257), STATUS_OK);
    assert_int_equal(dataset.dtype, DTYPE_U32);
    assert_int_equal(dataset.count, 3);
    assert_memory_equal(dataset.data, tokens, sizeof(tokens));
    dataset_close(&dataset);
}

static void test_files_that_are_none_are_refused(void **state)
{
    struct dataset dataset;
    struct error error;
    char path[512];

    (void)state;
    check_refused(dataset_open_tokens(&dataset, &error, path_of(path, "absent"), DTYPE_U8, 256),
                  STATUS_NOT_FOUND, &error, "absent");
    check_refused(dataset_open_tokens(&dataset, &error, test_temp_dir(), DTYPE_U8, 256),
                  STATUS_BAD_FORMAT, &error, "regular file");
    assert_int_equal(mkfifo(path_of(path, "fifo"), 0600), 0);
    check_refused(dataset_open_tokens(&dataset, &error, path, DTYPE_U8, 256), STATUS_BAD_FORMAT,
                  &error, "regular file");
    write_file(path_of(path, "empty.npy"), "", 0);
    check_refused(dataset_open_tokens(&dataset, &error, path, DTYPE_U8, 256), STATUS_BAD_FORMAT,
                  &error, "empty.npy': the file is empty");
    check_refused(dataset_open_samples(&dataset, &error, path), STATUS_BAD_FORMAT, &error, "empty");
    check_refused(dataset_open_labels(&dataset, &error, path, 1, 1), STATUS_BAD_FORMAT, &error,
                  "empty");
}

static void test_tokens_cut_inside_an_element_are_refused(void **state)
{
    _Alignas(64) const uint8_t bytes[16] = {0};
    struct dataset dataset;
    struct error error;

    (void)state;
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        for (enum dtype dtype = DTYPE_U8; dtype <= DTYPE_U32; dtype++) {
            enum status status =
                dataset_read_tokens(&dataset, &error, bytes, size, dtype, UINT32_MAX);

            if (size % dtype_size(dtype) != 0) {
                check_refused(status, STATUS_BAD_FORMAT, &error, "cut short");
            } else if (size == 0) {
                check_refused(status, STATUS_BAD_FORMAT, &error, "no data");
            } else {
                assert_int_equal(status, STATUS_OK);
                assert_int_equal(dataset.count, size / dtype_size(dtype));
            }
        }
    }
}

static void test_tokens_of_other_types_are_refused(void **state)
{
    _Alignas(64) const uint8_t bytes[4] = {0};
    struct dataset dataset;
    struct error error;

    (void)state;
    check_refused(dataset_read_tokens(&dataset, &error, bytes, 4, DTYPE_F32, 2), STATUS_USAGE,
                  &error, "f32");
    check_refused(dataset_read_tokens(&dataset, &error, bytes, 4, DTYPE_I16, 2), STATUS_USAGE,
                  &error, "i16");
}

/* One token equal to the vocabulary at each place in turn. */
static void check_token_named(enum dtype dtype)
{
    enum { COUNT = 37, VOCABULARY = 200 };
    _Alignas(64) uint8_t bytes[4 * COUNT];
    size_t size = dtype_size(dtype);
    struct dataset dataset;
    struct error error;
    char words[128];

    for (int at = 0; at <= COUNT; at++) {
        uint32_t good = VOCABULARY - 1;
        uint32_t bad = VOCABULARY;

        for (int i = 0; i < COUNT; i++) {
            memcpy(bytes + size * (size_t)i, i == at || i == COUNT - 1 ? &bad : &good, size);
        }
        if (at == COUNT) {
            memcpy(bytes + size * (COUNT - 1), &good, size);
        }

        enum status status =
            dataset_read_tokens(&dataset, &error, bytes, COUNT * size, dtype, VOCABULARY);

        if (at == COUNT) {
            assert_int_equal(status, STATUS_OK);
        } else {
            (void)snprintf(words, sizeof(words),
                           "token 200 at offset %d is not below the vocabulary of 200", at);
            check_refused(status, STATUS_BAD_FORMAT, &error, words);
        }
    }
}

static void test_first_token_out_of_the_vocabulary_is_named(void **state)
{
    (void)state;
    check_token_named(DTYPE_U8);
    check_token_named(DTYPE_U16);
    check_token_named(DTYPE_U32);
}

static void test_too_many_tokens_are_refused_unread(void **state)
{
    struct dataset dataset;
    struct error error;
    char path[512];
    int descriptor;

    (void)state;
    descriptor = open(path_of(path, "huge.u8"), O_CREAT | O_WRONLY, 0600);
    assert_true(descriptor >= 0);
    /* A hole: no disk is used, and reading it would take hours. */
    if (ftruncate(descriptor, (off_t)TENSOR_COUNT_MAX + 1) != 0) {
        (void)close(descriptor);
        test_skip("this file system has no files of a terabyte");
    }
    assert_int_equal(close(descriptor), 0);
    check_refused(dataset_open_tokens(&dataset, &error, path, DTYPE_U8, 256), STATUS_OVER_LIMIT,
                  &error, "over the limit");
}

static void test_samples_have_rows_and_a_width(void **state)
{
    const uint64_t dims[3] = {4, 3, 5};
    struct file_bytes file;
    struct dataset dataset;
    struct error error;
    uint8_t pixels[60];
    float numbers[60];

    (void)state;
    for (int i = 0; i < 60; i++) {
        pixels[i] = (uint8_t)(i * 4);
        numbers[i] = (float)i * -0.5f;
    }
    npy_bytes(&file, ELEMENT_U8, 3, dims, pixels);
    assert_int_equal(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_OK);
    assert_int_equal(dataset.dtype, DTYPE_U8);
    assert_int_equal(dataset.rows, 4);
    assert_int_equal(dataset.width, 15);
    assert_memory_equal(dataset.data, pixels, sizeof(pixels));
    npy_bytes(&file, ELEMENT_F32, 3, dims, numbers);
    assert_int_equal(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_OK);
    assert_int_equal(dataset.dtype, DTYPE_F32);
    assert_memory_equal(dataset.data, numbers, sizeof(numbers));
}

static void test_first_sample_that_is_not_finite_is_named(void **state)
{
    static const uint32_t wrong[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x7f800001};
    const uint64_t dims[2] = {4, 5};
    struct file_bytes file;
    struct dataset dataset;
    struct error error;
    uint32_t bits[20];
    char words[64];

    (void)state;
    for (int at = 0; at < 20; at++) {
        for (int i = 0; i < 20; i++) {
            bits[i] = i % 2 == 0 ? 0xff7fffff : 1; /* the largest and the smallest pass */
        }
        bits[at] = wrong[at % 5];
        npy_bytes(&file, ELEMENT_F32, 2, dims, bits);
        (void)snprintf(words, sizeof(words), "offset %d (sample %d)", at, at / 5);
        check_refused(dataset_read_samples(&dataset, &error, file.bytes, file.size),
                      STATUS_BAD_FORMAT, &error, words);
    }
}

static void test_arrays_of_wrong_shape_or_type_are_refused(void **state)
{
    const uint64_t zeros[64] = {0};
    const uint64_t dims[2] = {4, 2};
    const uint64_t hollow[2] = {0, 2};
    struct file_bytes file;
    struct dataset dataset;
    struct error error;

    (void)state;
    npy_bytes(&file, ELEMENT_U8, 1, dims, zeros);
    check_refused(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_BAD_FORMAT,
                  &error, "1 dimensions, must have at least 2");
    npy_bytes(&file, ELEMENT_U8, 0, dims, zeros);
    check_refused(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_BAD_FORMAT,
                  &error, "0 dimensions");
    npy_bytes(&file, ELEMENT_F64, 2, dims, zeros);
    check_refused(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_BAD_FORMAT,
                  &error, "<f8");
    npy_bytes(&file, ELEMENT_I16, 2, dims, zeros);
    check_refused(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_BAD_FORMAT,
                  &error, "samples are i16");
    npy_bytes(&file, ELEMENT_U8, 2, hollow, zeros);
    check_refused(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_BAD_FORMAT,
                  &error, "no data");
    npy_bytes(&file, ELEMENT_U8, 2, dims, zeros);
    check_refused(dataset_read_labels(&dataset, &error, file.bytes, file.size, 4, 10),
                  STATUS_BAD_FORMAT, &error, "2 dimensions, must have 1");
    npy_bytes(&file, ELEMENT_I32, 1, dims, zeros);
    check_refused(dataset_read_labels(&dataset, &error, file.bytes, file.size, 4, 10),
                  STATUS_BAD_FORMAT, &error, "must be u8, u16 or u32");
    check_refused(dataset_read_npy_tokens(&dataset, &error, file.bytes, file.size, 10),
                  STATUS_BAD_FORMAT, &error, "must be u8, u16 or u32");
}

static void test_labels_fit_the_samples_and_the_classes(void **state)
{
    const uint64_t dims[1] = {4};
    const uint16_t labels[4] = {0, 9, 3, 9};
    struct file_bytes file;
    struct dataset dataset;
    struct error error;

    (void)state;
    npy_bytes(&file, ELEMENT_U16, 1, dims, labels);
    assert_int_equal(dataset_read_labels(&dataset, &error, file.bytes, file.size, 4, 10),
                     STATUS_OK);
    assert_memory_equal(dataset.data, labels, sizeof(labels));
    check_refused(dataset_read_labels(&dataset, &error, file.bytes, file.size, 5, 10),
                  STATUS_BAD_FORMAT, &error, "4 labels for 5 samples");
    check_refused(dataset_read_labels(&dataset, &error, file.bytes, file.size, 4, 9),
                  STATUS_BAD_FORMAT, &error, "label 9 at offset 1");
}

static void test_data_off_its_alignment_is_refused(void **state)
{
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}";
    struct file_bytes file = {{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0}, 0, 0};
    struct dataset dataset;
    struct error error;
    size_t blanks = 0;

    (void)state;
    while ((10 + strlen(text) + blanks + 1) % 4 != 2) {
        blanks++;
    }
    file.bytes[8] = (uint8_t)(strlen(text) + blanks + 1);
    memset(file.bytes + 10, ' ', 100);
    memcpy(file.bytes + 10, text, strlen(text));
    file.size = 10 + strlen(text) + blanks;
    file.bytes[file.size++] = '\n';
    memset(file.bytes + file.size, 0, 4);
    file.size += 4;
    check_refused(dataset_read_samples(&dataset, &error, file.bytes, file.size), STATUS_BAD_FORMAT,
                  &error, "alignment");
}

static void test_file_of_any_other_length_is_refused(void **state)
{
    const uint64_t dims[2] = {6, 5};
    const uint8_t pixels[30] = {0};
    struct file_bytes file;
    struct dataset dataset;
    struct error error;

    (void)state;
    npy_bytes(&file, ELEMENT_U8, 2, dims, pixels);
    for (size_t size = 0; size <= file.size + 64; size++) {
        enum status status = dataset_read_samples(&dataset, &error, file.bytes, size);

        assert_int_equal(status == STATUS_OK, size == file.size);
    }
}

/* Refused, or still inside the bytes: never a reach past the end. */
static void test_any_damaged_header_byte_stays_inside_the_file(void **state)
{
    const uint64_t dims[2] = {6, 4};
    const uint8_t pixels[96] = {0};
    struct file_bytes file;
    struct dataset dataset;
    struct error error;

    (void)state;
    npy_bytes(&file, ELEMENT_F32, 2, dims, pixels);
    for (size_t at = 0; at < file.header_size; at++) {
        uint8_t kept = file.bytes[at];

        for (int value = 0; value < 256; value++) {
            file.bytes[at] = (uint8_t)value;
            if (dataset_read_samples(&dataset, &error, file.bytes, file.size) == STATUS_OK) {
                const uint8_t *data = dataset.data;

                assert_true(data >= file.bytes);
                assert_int_equal(data + dataset.count * dtype_size(dataset.dtype) - file.bytes,
                                 file.size);
                assert_int_equal(dataset.rows * dataset.width, dataset.count);
            }
        }
        file.bytes[at] = kept;
    }
}

static void test_fixtures_are_good_data(void **state)
{
    struct dataset text;
    struct dataset samples;
    struct dataset labels;
    struct error error;
    uint32_t seen[10] = {0};

    (void)state;
    assert_int_equal(dataset_open_tokens(&text, &error, "fixtures/text/village.u8", DTYPE_U8, 128),
                     STATUS_OK);
    assert_int_equal(text.count, 300243);
    assert_memory_equal(text.data, "Ines, the miller, got up", 24);
    assert_int_equal(dataset_open_samples(&samples, &error, "fixtures/images/shapes.npy"),
                     STATUS_OK);
    assert_int_equal(samples.rows, 2000);
    assert_int_equal(samples.width, 256);
    assert_int_equal(
        dataset_open_labels(&labels, &error, "fixtures/images/shapes-labels.npy", samples.rows, 10),
        STATUS_OK);
    for (uint64_t i = 0; i < labels.count; i++) {
        seen[((const uint8_t *)labels.data)[i]]++;
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(seen[i], 150, 250);
    }
    dataset_close(&labels);
    dataset_close(&samples);
    dataset_close(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat_tokens_are_read_as_they_lie),
        cmocka_unit_test(test_npy_tokens_name_their_own_type),
        cmocka_unit_test(test_files_that_are_none_are_refused),
        cmocka_unit_test(test_tokens_cut_inside_an_element_are_refused),
        cmocka_unit_test(test_tokens_of_other_types_are_refused),
        cmocka_unit_test(test_first_token_out_of_the_vocabulary_is_named),
        cmocka_unit_test(test_too_many_tokens_are_refused_unread),
        cmocka_unit_test(test_samples_have_rows_and_a_width),
        cmocka_unit_test(test_first_sample_that_is_not_finite_is_named),
        cmocka_unit_test(test_arrays_of_wrong_shape_or_type_are_refused),
        cmocka_unit_test(test_labels_fit_the_samples_and_the_classes),
        cmocka_unit_test(test_data_off_its_alignment_is_refused),
        cmocka_unit_test(test_file_of_any_other_length_is_refused),
        cmocka_unit_test(test_any_damaged_header_byte_stays_inside_the_file),
        cmocka_unit_test(test_fixtures_are_good_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
