/*
 * Goal: outside bytes are read in the right order and never past their end; what a buffer writes a
 * reader reads; buffers stop at their maximum.
 * Method: known bytes, every cut of a message, sizes at the limits of size_t. Run under ASan too.
 */
#include "base/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/endian.h"
#include "tests/support/test.h"

static const uint8_t counting[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void test_both_byte_orders_are_as_written(void **state)
{
    uint8_t bytes[9] = {0};

    (void)state;
    assert_int_equal(endian_load_be16(counting), 0x0102);
    assert_int_equal(endian_load_be32(counting), 0x01020304);
    assert_true(endian_load_be64(counting) == UINT64_C(0x0102030405060708));
    assert_int_equal(endian_load_le16(counting), 0x0201);
    assert_int_equal(endian_load_le32(counting), 0x04030201);
    assert_true(endian_load_le64(counting) == UINT64_C(0x0807060504030201));
    endian_store_be64(bytes + 1, UINT64_C(0x0102030405060708)); /* not aligned */
    assert_memory_equal(bytes + 1, counting, 8);
    endian_store_le64(bytes + 1, UINT64_C(0x0807060504030201));
    assert_memory_equal(bytes + 1, counting, 8);
    endian_store_le32(bytes, 0x04030201);
    endian_store_le16(bytes + 4, 0x0605);
    assert_memory_equal(bytes, counting, 6);
    endian_store_be32(bytes, 0x01020304);
    endian_store_be16(bytes + 4, 0x0506);
    assert_memory_equal(bytes, counting, 6);
}

/* Reads one of each from size bytes; returns whether the reader was content. */
static int read_message(size_t size, uint8_t tail[2])
{
    uint8_t *copy = malloc(size + 1); /* of exactly that size but for malloc(0) */
    struct reader reader;
    struct error error;
    enum status status;

    assert_non_null(copy);
    memcpy(copy, counting, size);
    copy = realloc(copy, size == 0 ? 1 : size);
    reader_init(&reader, copy, size);
    (void)reader_u8(&reader);
    (void)reader_u16(&reader);
    (void)reader_u32(&reader);
    (void)reader_u64(&reader);
    tail[0] = (uint8_t)reader_left(&reader);
    tail[1] = reader_u8(&reader);
    error_init(&error);
    status = reader_end(&reader, &error, "message");
    assert_int_equal(status, error.status);
    free(copy);
    return status == STATUS_OK;
}

static void test_every_cut_message_is_refused(void **state)
{
    uint8_t tail[2];

    (void)state;
    for (size_t size = 0; size <= sizeof(counting); size++) {
        assert_false(read_message(size, tail)); /* wants 16 bytes, 15 exist */
        assert_int_equal(tail[1], 0);
    }
}

static void test_left_over_bytes_are_refused(void **state)
{
    struct reader reader;
    struct error error;

    (void)state;
    reader_init(&reader, counting, 3);
    assert_int_equal(reader_u16(&reader), 0x0102);
    assert_int_equal(reader_left(&reader), 1);
    assert_int_equal(reader_end(&reader, &error, "thing"), STATUS_BAD_FORMAT);
    assert_string_equal(error.text, "thing: 1 bytes too many");
    assert_int_equal(reader_u8(&reader), 3);
    assert_int_equal(reader_end(&reader, &error, "thing"), STATUS_OK);
}

static void test_after_a_failure_everything_is_zero(void **state)
{
    struct reader reader;
    uint8_t out[4] = {9, 9, 9, 9};

    (void)state;
    reader_init(&reader, counting, 8);
    assert_null(reader_take(&reader, SIZE_MAX));
    assert_int_equal(reader_u8(&reader), 0);
    reader_copy(&reader, out, sizeof(out));
    assert_memory_equal(out, "\0\0\0\0", 4);
    assert_int_equal(reader_left(&reader), 0);
    assert_int_equal(reader_end(&reader, NULL, "x"), STATUS_BAD_FORMAT);
}

static void test_buffer_writes_what_a_reader_reads(void **state)
{
    struct buffer buffer;
    struct reader reader;

    (void)state;
    buffer_init(&buffer, 64);
    buffer_add_u8(&buffer, 0xfe);
    buffer_add_u16(&buffer, 0xfedc);
    buffer_add_u32(&buffer, 0xfedcba98u);
    buffer_add_u64(&buffer, UINT64_C(0xfedcba9876543210));
    buffer_add_format(&buffer, "%d-%s", 12, "x");
    assert_int_equal(buffer_check(&buffer, NULL, "b"), STATUS_OK);
    reader_init(&reader, buffer.data, buffer.size);
    assert_int_equal(reader_u8(&reader), 0xfe);
    assert_int_equal(reader_u16(&reader), 0xfedc);
    assert_true(reader_u32(&reader) == 0xfedcba98u);
    assert_true(reader_u64(&reader) == UINT64_C(0xfedcba9876543210));
    assert_memory_equal(reader_take(&reader, 4), "12-x", 4);
    assert_int_equal(reader_end(&reader, NULL, "b"), STATUS_OK);
    buffer_release(&buffer);
}

static void test_buffer_stops_at_its_maximum(void **state)
{
    struct buffer buffer;
    struct error error;

    (void)state;
    for (size_t most = 0; most < 600; most += 7) {
        buffer_init(&buffer, most);
        for (size_t i = 0; i < most; i++) {
            buffer_add_u8(&buffer, 'x');
        }
        assert_int_equal(buffer_check(&buffer, &error, "text"), STATUS_OK);
        assert_int_equal(strlen(buffer_text(&buffer)), most);
        buffer_add_text(&buffer, "y");
        assert_int_equal(buffer_check(&buffer, &error, "text"), STATUS_OVER_LIMIT);
        assert_string_equal(buffer_text(&buffer), "");
        buffer_add_u64(&buffer, 1); /* still failed, still safe */
        assert_int_equal(buffer_check(&buffer, &error, "text"), STATUS_OVER_LIMIT);
        buffer_clear(&buffer);
        buffer_add(&buffer, NULL, 0);
        assert_int_equal(buffer_check(&buffer, &error, "text"), STATUS_OK);
        buffer_release(&buffer);
    }
    buffer_init(&buffer, SIZE_MAX);
    buffer_add_u8(&buffer, 1);
    buffer_add(&buffer, "x", SIZE_MAX - 1); /* would wrap */
    assert_int_equal(buffer_check(&buffer, &error, "text"), STATUS_OVER_LIMIT);
    buffer_release(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_byte_orders_are_as_written),
        cmocka_unit_test(test_every_cut_message_is_refused),
        cmocka_unit_test(test_left_over_bytes_are_refused),
        cmocka_unit_test(test_after_a_failure_everything_is_zero),
        cmocka_unit_test(test_buffer_writes_what_a_reader_reads),
        cmocka_unit_test(test_buffer_stops_at_its_maximum),
    };

    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
