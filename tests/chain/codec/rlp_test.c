/*
 * Goal: RLP has exactly one encoding for each value, and the reader takes no other.
 * Method: the published examples; every input of up to three bytes is read and, where the reader
 * takes it, must be what the writer makes of the result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chain/codec/rlp.h"
#include "tests/chain/codec/hex_bytes.h"
#include "tests/support/chain/rlp_reader.h"

static void expect(const struct byte_writer *writer, const char *hex)
{
    uint8_t expected[256];
    size_t size = hex_bytes(expected, sizeof(expected), hex);

    assert_int_equal(byte_writer_finish(writer), STATUS_OK);
    assert_int_equal(writer->used, size);
    assert_memory_equal(writer->bytes, expected, size);
}

/* The examples of the RLP page of the Ethereum documents (ethereum.org, "Recursive-length prefix
 * serialization"). */
static void test_published_examples_are_met(void **state)
{
    const char *lorem = "Lorem ipsum dolor sit amet, consectetur adipisicing elit";
    uint8_t bytes[256];
    struct byte_writer writer;
    size_t list;
    size_t inner;
    size_t innermost;

    (void)state;
    byte_writer_init(&writer, bytes, sizeof(bytes));
    list = rlp_list_begin(&writer);
    rlp_write_bytes(&writer, "cat", 3);
    rlp_write_bytes(&writer, "dog", 3);
    rlp_list_end(&writer, list);
    expect(&writer, "c88363617483646f67");

    byte_writer_init(&writer, bytes, sizeof(bytes));
    rlp_write_bytes(&writer, "", 0);
    rlp_write_u64(&writer, 0);
    rlp_write_bytes(&writer, "\0", 1);
    rlp_write_u64(&writer, 15);
    rlp_write_u64(&writer, 1024);
    expect(&writer, "8080000f820400");

    byte_writer_init(&writer, bytes, sizeof(bytes)); /* [ [], [[]], [ [], [[]] ] ] */
    list = rlp_list_begin(&writer);
    rlp_list_end(&writer, rlp_list_begin(&writer));
    inner = rlp_list_begin(&writer);
    rlp_list_end(&writer, rlp_list_begin(&writer));
    rlp_list_end(&writer, inner);
    inner = rlp_list_begin(&writer);
    rlp_list_end(&writer, rlp_list_begin(&writer));
    innermost = rlp_list_begin(&writer);
    rlp_list_end(&writer, rlp_list_begin(&writer));
    rlp_list_end(&writer, innermost);
    rlp_list_end(&writer, inner);
    rlp_list_end(&writer, list);
    expect(&writer, "c7c0c1c0c3c0c1c0");

    byte_writer_init(&writer, bytes, sizeof(bytes));
    rlp_write_bytes(&writer, lorem, strlen(lorem));
    assert_int_equal(writer.used, 58);
    assert_int_equal(bytes[0], 0xb8);
    assert_int_equal(bytes[1], 0x38);
}

static bool reads_as_one_string(const uint8_t *bytes, size_t size)
{
    struct rlp_reader reader;
    struct byte_writer writer;
    const uint8_t *content;
    size_t content_size;
    uint8_t again[8];

    rlp_reader_init(&reader, bytes, size);
    if (rlp_read_bytes(&reader, &content, &content_size) != STATUS_OK ||
        !rlp_reader_at_end(&reader)) {
        return false;
    }
    byte_writer_init(&writer, again, sizeof(again));
    rlp_write_bytes(&writer, content, content_size);
    assert_int_equal(byte_writer_finish(&writer), STATUS_OK);
    assert_int_equal(writer.used, size);
    assert_memory_equal(again, bytes, size);
    return true;
}

static void test_every_short_input_is_canonical_or_refused(void **state)
{
    uint32_t taken = 0;

    (void)state;
    for (uint32_t size = 1; size <= 3; size++) {
        for (uint32_t value = 0; value < 1u << (8 * size); value++) {
            uint8_t bytes[3] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16)};

            taken += reads_as_one_string(bytes, size) ? 1 : 0;
        }
    }
    /* single bytes 0..127 and the empty string; 81 with 128..255; 82 with any two bytes. */
    assert_int_equal(taken, 128 + 1 + 128 + 65536);
}

static void test_long_lengths_that_lie_are_refused(void **state)
{
    static const char *const bad[] = {
        "b8",
        "b800",
        "b837",
        "b90001ff",
        "bfffffffffffffffff",
        "b838",
        "f8",
        "f800",
        "f837",
        "f90001",
        "ffffffffffffffffff",
        "f838",
        "bf0000000000000001aa",
        "83aabb",
        "c3aabb",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t bytes[16];
        size_t size = hex_bytes(bytes, sizeof(bytes), bad[i]);
        struct rlp_reader reader;
        struct rlp_reader inner;
        const uint8_t *content;
        size_t content_size;

        rlp_reader_init(&reader, bytes, size);
        assert_int_equal(rlp_read_bytes(&reader, &content, &content_size), STATUS_BAD_FORMAT);
        rlp_reader_init(&reader, bytes, size);
        assert_int_equal(rlp_read_list(&reader, &inner), STATUS_BAD_FORMAT);
    }
}

static void test_integers_with_leading_zeros_are_refused(void **state)
{
    static const char *const bad[] = {"00", "820001", "8a01000000000000000000"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t bytes[16];
        struct rlp_reader reader;
        uint64_t value;

        rlp_reader_init(&reader, bytes, hex_bytes(bytes, sizeof(bytes), bad[i]));
        assert_int_equal(rlp_read_u64(&reader, &value), STATUS_BAD_FORMAT);
    }
}

static void test_a_full_buffer_is_reported_and_not_passed(void **state)
{
    uint8_t bytes[12];

    (void)state;
    for (size_t size = 0; size < 9; size++) {
        struct byte_writer writer;
        size_t list;

        memset(bytes, 0xee, sizeof(bytes));
        byte_writer_init(&writer, bytes, size);
        list = rlp_list_begin(&writer);
        rlp_write_bytes(&writer, "cat", 3);
        rlp_write_bytes(&writer, "dog", 3);
        rlp_list_end(&writer, list);
        assert_int_equal(byte_writer_finish(&writer), STATUS_OVER_LIMIT);
        for (size_t i = size; i < sizeof(bytes); i++) {
            assert_int_equal(bytes[i], 0xee);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_examples_are_met),
        cmocka_unit_test(test_every_short_input_is_canonical_or_refused),
        cmocka_unit_test(test_long_lengths_that_lie_are_refused),
        cmocka_unit_test(test_integers_with_leading_zeros_are_refused),
        cmocka_unit_test(test_a_full_buffer_is_reported_and_not_passed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
