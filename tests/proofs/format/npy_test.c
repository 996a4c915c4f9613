/*
 * Goal: .npy files that NumPy writes are read, and nothing else is.
 *
 * Method: headers as NumPy's format page (NEP 1) has them, in all three versions; then every byte
 * of a good file changed, every truncation, and a list of headers that only look right. The writer
 * of the tests is compared with NumPy's.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io/whole_file.h"
#include "proofs/format/dataset.h"
#include "tests/support/proofs/npy_writer.h"
#include "tests/support/test.h"

/* A file of this version whose header is text and a newline, followed by data_size zeros. */
static size_t file_of(uint8_t bytes[NPY_HEADER_MAX * 2], int version, const char *text,
                      size_t data_size)
{
    size_t start = version == 1 ? 10 : 12;
    size_t length = strlen(text) + 1;

    memset(bytes, 0, NPY_HEADER_MAX * 2);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)version;
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + start, text, length - 1);
    bytes[start + length - 1] = '\n';
    return start + length + data_size;
}

static enum status status_of(int version, const char *text, size_t data_size)
{
    static uint8_t bytes[NPY_HEADER_MAX * 2];
    size_t size = file_of(bytes, version, text, data_size);
    struct error error;
    struct npy npy;
    enum status status;

    error_init(&error);
    status = npy_header_read(&npy, &error, bytes, size);
    if (status != STATUS_OK) {
        assert_int_equal(error.status, status);
        assert_true(error.text[0] != '\0');
    }
    return status;
}

static void test_headers_of_all_versions_are_read(void **state)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   ";
    static uint8_t bytes[NPY_HEADER_MAX * 2];

    (void)state;
    for (int version = 1; version <= 3; version++) {
        size_t size = file_of(bytes, version, text, 48);
        struct npy npy;

        assert_int_equal(npy_header_read(&npy, NULL, bytes, size), STATUS_OK);
        assert_int_equal(npy.element, ELEMENT_F32);
        assert_int_equal(npy.rank, 2);
        assert_int_equal(npy.dims[0], 3);
        assert_int_equal(npy.dims[1], 4);
        assert_int_equal(npy.data_size, 48);
        assert_int_equal(npy.data_offset, size - 48);
    }
}

static void test_every_type_and_shape_form_is_read(void **state)
{
    (void)state;
    assert_int_equal(status_of(1, "{'descr':'|u1','fortran_order':False,'shape':(5,)}", 5), 0);
    assert_int_equal(status_of(1, "{'descr':'<u2','fortran_order':False,'shape':(5,)}", 10), 0);
    assert_int_equal(status_of(1, "{'descr':'<u4','fortran_order':False,'shape':()}", 4), 0);
    assert_int_equal(status_of(1, "{'descr':'<i4','fortran_order':False,'shape':(1,)}", 4), 0);
    assert_int_equal(status_of(1, "{'descr':'<f8','fortran_order':False,'shape':(2, )}", 16), 0);
    assert_int_equal(status_of(2, "{'descr':'<i8','fortran_order':False,'shape':(2,1,1,)}", 16), 0);
    assert_int_equal(status_of(2, "{\"descr\":\"<f2\",\"shape\":(2,),\"fortran_order\":False}", 4),
                     0);
    assert_int_equal(status_of(1, "{'shape':(0,7),'descr':'<f4','fortran_order':False,}", 0), 0);
}

static void test_headers_that_only_look_right_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{'descr':'<f4','fortran_order':False}",
        "{'descr':'<f4','shape':(1,)}",
        "{'descr':'>f4','fortran_order':False,'shape':(1,)}",
        "{'descr':'f4','fortran_order':False,'shape':(1,)}",
        "{'descr':'|O','fortran_order':False,'shape':(1,)}",
        "{'descr':[('a','<f4')],'fortran_order':False,'shape':(1,)}",
        "{'descr':'<f4','fortran_order':True,'shape':(1,)}",
        "{'descr':'<f4','fortran_order':0,'shape':(1,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(1)}",
        "{'descr':'<f4','fortran_order':False,'shape':(,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(1,,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(-1,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(1.0,)}",
        "{'descr':'<f4','fortran_order':False,'shape':[1]}",
        "{'descr':'<f4','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1)}",
        "{'descr':'<f4','fortran_order':False,'shape':(4611686018427387905,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(9223372036854775808,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(4294967296,4294967296)}",
        "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(1,)} x",
        "{'descr':'<f4','fortran_order':False,'shape':(1,)}\n",
        "{'descr':'<f4' 'fortran_order':False,'shape':(1,)}",
        "{'descr':'<f4','descr':'<f4','fortran_order':False,'shape':(1,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(1,),'more':(1,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(1,)",
        "{'descr':'<f4\\'','fortran_order':False,'shape':(1,)}",
        "[('descr','<f4')]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (status_of(1, bad[i], 4) != STATUS_BAD_FORMAT) {
            fail_msg("not refused: %s", bad[i]);
        }
    }
    assert_int_equal(status_of(4, "{'descr':'<f4','fortran_order':False,'shape':(1,)}", 4),
                     STATUS_BAD_FORMAT);
}

static void test_header_above_the_limit_is_refused(void **state)
{
    static uint8_t bytes[NPY_HEADER_MAX * 2];
    struct npy npy;

    (void)state;
    file_of(bytes, 2, "{'descr':'<f4','fortran_order':False,'shape':(1,)}", 4);
    bytes[9] = 0x10;
    assert_int_equal(npy_header_read(&npy, NULL, bytes, UINT64_C(1) << 40), STATUS_OVER_LIMIT);
    memset(bytes + 8, 0xFF, 4);
    assert_int_equal(npy_header_read(&npy, NULL, bytes, UINT64_C(1) << 40), STATUS_OVER_LIMIT);
}

static void test_changed_or_cut_headers_never_read_as_another_size(void **state)
{
    uint8_t bytes[NPY_HEADER_MAX];
    struct npy npy = {.element = ELEMENT_U16, .rank = 3, .dims = {2, 3, 5}};
    struct npy read;
    size_t size = npy_header_write(bytes, &npy);

    (void)state;
    for (size_t cut = 0; cut < size + 60; cut++) {
        assert_int_equal(npy_header_read(&read, NULL, bytes, cut), STATUS_BAD_FORMAT);
    }
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t)(1 << bit);
            if (npy_header_read(&read, NULL, bytes, size + 60) == STATUS_OK) {
                assert_int_equal(read.data_offset + read.data_size, size + 60);
            }
            bytes[at] ^= (uint8_t)(1 << bit);
        }
    }
}

static void test_written_headers_are_numpys_own(void **state)
{
    /* What numpy.lib.format writes for these shapes, up to the blanks. */
    static const struct {
        struct npy npy;
        const char *text;
    } cases[] = {
        {{.element = ELEMENT_F32, .rank = 2, .dims = {3, 4}},
         "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"},
        {{.element = ELEMENT_U8, .rank = 1, .dims = {7}},
         "{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }"},
        {{.element = ELEMENT_I64, .rank = 0},
         "{'descr': '<i8', 'fortran_order': False, 'shape': (), }"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[NPY_HEADER_MAX];
        struct npy npy = cases[i].npy;
        size_t size = npy_header_write(bytes, &npy);
        size_t length = strlen(cases[i].text);

        assert_int_equal(size % 64, 0);
        assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
        assert_int_equal(bytes[8] + 256 * bytes[9] + 10, size);
        assert_memory_equal(bytes + 10, cases[i].text, length);
        for (size_t at = 10 + length; at + 1 < size; at++) {
            assert_int_equal(bytes[at], ' ');
        }
        assert_int_equal(bytes[size - 1], '\n');
    }
}

static void test_files_are_read_back_and_cut_ones_refused(void **state)
{
    char path[512];
    uint32_t data[6] = {1, 2, 3, 0xFFFFFFFF, 5, 6};
    struct npy npy = {.element = ELEMENT_U32, .rank = 1, .dims = {6}};
    struct dataset dataset;
    struct error error;

    (void)state;
    snprintf(path, sizeof(path), "%s/a.npy", test_temp_dir());
    assert_int_equal(npy_write(path, NULL, &npy, data), STATUS_OK);
    assert_int_equal(dataset_open_tokens(&dataset, NULL, path, DTYPE_U32, UINT64_C(1) << 32),
                     STATUS_OK);
    assert_int_equal(dataset.count, 6);
    assert_memory_equal(dataset.data, data, sizeof(data));
    dataset_close(&dataset);
    error_init(&error);
    assert_int_equal(truncate(path, (off_t)npy.data_offset + 20), 0);
    assert_int_equal(dataset_open_tokens(&dataset, &error, path, DTYPE_U32, 7), STATUS_BAD_FORMAT);
    assert_non_null(strstr(error.text, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(dataset_open_tokens(&dataset, &error, path, DTYPE_U32, 7), STATUS_NOT_FOUND);
    assert_int_equal(dataset_open_tokens(&dataset, &error, test_temp_dir(), DTYPE_U32, 7),
                     STATUS_BAD_FORMAT);
}

static void test_dropped_file_leaves_the_old_one(void **state)
{
    char path[512];
    char text[4] = "";
    struct whole_file file;
    int descriptor;
    uint64_t size;

    (void)state;
    snprintf(path, sizeof(path), "%s/w", test_temp_dir());
    assert_int_equal(whole_file_open(&file, NULL, path, 0600), STATUS_OK);
    assert_int_equal(whole_file_add(&file, NULL, "old", 3), STATUS_OK);
    assert_int_equal(whole_file_keep(&file, NULL), STATUS_OK);
    assert_int_equal(whole_file_open(&file, NULL, path, 0600), STATUS_OK);
    assert_int_equal(whole_file_add(&file, NULL, "newer", 5), STATUS_OK);
    whole_file_drop(&file);
    assert_int_not_equal(access(file.part_path, F_OK), 0);
    assert_int_equal(whole_file_read_open(&descriptor, &size, NULL, path), STATUS_OK);
    assert_int_equal(size, 3);
    assert_int_equal(whole_file_read_at(descriptor, NULL, text, 3, 0, path), STATUS_OK);
    assert_string_equal(text, "old");
    close(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_of_all_versions_are_read),
        cmocka_unit_test(test_every_type_and_shape_form_is_read),
        cmocka_unit_test(test_headers_that_only_look_right_are_refused),
        cmocka_unit_test(test_header_above_the_limit_is_refused),
        cmocka_unit_test(test_changed_or_cut_headers_never_read_as_another_size),
        cmocka_unit_test(test_written_headers_are_numpys_own),
        cmocka_unit_test(test_files_are_read_back_and_cut_ones_refused),
        cmocka_unit_test(test_dropped_file_leaves_the_old_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
