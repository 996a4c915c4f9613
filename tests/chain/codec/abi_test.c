/*
 * Goal: calls are laid out as contracts read them, and words from outside are checked.
 * Method: the examples of the ABI specification; narrow types with dirt in their unused bytes;
 * offsets and lengths that point outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chain/codec/abi.h"
#include "tests/chain/codec/hex_bytes.h"

static void expect(const struct byte_writer *writer, const char *hex)
{
    uint8_t expected[512];
    size_t size = hex_bytes(expected, sizeof(expected), hex);

    assert_int_equal(byte_writer_finish(writer), STATUS_OK);
    assert_int_equal(writer->used, size);
    assert_memory_equal(writer->bytes, expected, size);
}

/* Solidity documents, "Contract ABI Specification", section "Examples". */
static void test_published_examples_are_met(void **state)
{
    uint8_t bytes[512];
    struct byte_writer writer;
    size_t base;
    size_t blob;
    size_t list;

    (void)state;
    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_selector(&writer, "baz(uint32,bool)");
    abi_put_u64(&writer, 69);
    abi_put_bool(&writer, true);
    expect(&writer, "cdcd77c0"
                    "0000000000000000000000000000000000000000000000000000000000000045"
                    "0000000000000000000000000000000000000000000000000000000000000001");

    byte_writer_init(&writer, bytes, sizeof(bytes)); /* sam("dave", true, [1,2,3]) */
    abi_put_selector(&writer, "sam(bytes,bool,uint256[])");
    base = writer.used;
    blob = abi_put_offset(&writer);
    abi_put_bool(&writer, true);
    list = abi_put_offset(&writer);
    abi_set_offset(&writer, blob, base);
    abi_put_blob(&writer, "dave", 4);
    abi_set_offset(&writer, list, base);
    for (uint64_t word = 3; word <= 6; word++) { /* the count, then 1, 2, 3 */
        abi_put_u64(&writer, word == 3 ? 3 : word - 3);
    }
    expect(&writer, "a5643bf2"
                    "0000000000000000000000000000000000000000000000000000000000000060"
                    "0000000000000000000000000000000000000000000000000000000000000001"
                    "00000000000000000000000000000000000000000000000000000000000000a0"
                    "0000000000000000000000000000000000000000000000000000000000000004"
                    "6461766500000000000000000000000000000000000000000000000000000000"
                    "0000000000000000000000000000000000000000000000000000000000000003"
                    "0000000000000000000000000000000000000000000000000000000000000001"
                    "0000000000000000000000000000000000000000000000000000000000000002"
                    "0000000000000000000000000000000000000000000000000000000000000003");
}

static void test_dirty_words_are_refused(void **state)
{
    uint8_t word[ABI_WORD_SIZE];
    struct abi_reader reader;
    struct address address;
    uint64_t wide;
    uint32_t narrow;
    bool flag;

    (void)state;
    for (int dirty = 0; dirty < ABI_WORD_SIZE; dirty++) {
        memset(word, 0, sizeof(word));
        word[dirty] = 2;
        abi_reader_init(&reader, word, sizeof(word));
        assert_int_equal(abi_get_address(&reader, &address),
                         dirty < 12 ? STATUS_BAD_FORMAT : STATUS_OK);
        abi_reader_init(&reader, word, sizeof(word));
        assert_int_equal(abi_get_u64(&reader, &wide), dirty < 24 ? STATUS_BAD_FORMAT : STATUS_OK);
        abi_reader_init(&reader, word, sizeof(word));
        assert_int_equal(abi_get_u32(&reader, &narrow), dirty < 28 ? STATUS_BAD_FORMAT : STATUS_OK);
        abi_reader_init(&reader, word, sizeof(word));
        assert_int_equal(abi_get_bool(&reader, &flag), STATUS_BAD_FORMAT);
    }
}

static void test_short_input_is_refused(void **state)
{
    uint8_t bytes[ABI_WORD_SIZE] = {0};

    (void)state;
    for (size_t size = 0; size < sizeof(bytes); size++) {
        struct abi_reader reader;
        struct hash32 hash;

        abi_reader_init(&reader, bytes, size);
        assert_int_equal(abi_get_hash(&reader, &hash), STATUS_BAD_FORMAT);
    }
}

static enum status read_blob(uint64_t offset, uint64_t length, size_t size)
{
    uint8_t bytes[4 * ABI_WORD_SIZE];
    struct byte_writer writer;
    struct abi_reader reader;
    const uint8_t *blob;
    size_t blob_size;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_u64(&writer, offset);
    abi_put_u64(&writer, length);
    abi_put_u64(&writer, 0);
    abi_put_u64(&writer, 0);
    assert_int_equal(byte_writer_finish(&writer), STATUS_OK);
    abi_reader_init(&reader, bytes, size);
    return abi_get_blob(&reader, &blob, &blob_size);
}

static void test_blobs_that_point_outside_are_refused(void **state)
{
    (void)state;
    assert_int_equal(read_blob(32, 64, 128), STATUS_OK);
    assert_int_equal(read_blob(32, 65, 128), STATUS_BAD_FORMAT);
    assert_int_equal(read_blob(32, UINT64_MAX, 128), STATUS_BAD_FORMAT);
    assert_int_equal(read_blob(97, 0, 128), STATUS_BAD_FORMAT);
    assert_int_equal(read_blob(128, 0, 128), STATUS_BAD_FORMAT);
    assert_int_equal(read_blob(UINT64_MAX, 0, 128), STATUS_BAD_FORMAT);
    assert_int_equal(read_blob(32, 0, 63), STATUS_BAD_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_examples_are_met),
        cmocka_unit_test(test_dirty_words_are_refused),
        cmocka_unit_test(test_short_input_is_refused),
        cmocka_unit_test(test_blobs_that_point_outside_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
