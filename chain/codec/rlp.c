/* rlp.c - see rlp.h. The encoding is appendix B of the Ethereum yellow paper. */
#include "chain/codec/rlp.h"

#include <assert.h>
#include <string.h>

enum {
    STRING_BASE = 0x80,
    LIST_BASE = 0xc0,
    SHORT_MAX = 55, /* longest content whose length fits in the first byte */
    LENGTH_BYTES_MAX = 8,
};

static uint32_t bytes_of_length(uint64_t length)
{
    uint32_t count = 0;

    /* The second condition holds always: gcc 12 at -O3 does not see that 64 bits have 8 bytes. */
    while (length != 0 && count < LENGTH_BYTES_MAX) {
        count++;
        length >>= 8;
    }
    return count;
}

/* The prefix of a string (base 0x80) or a list (base 0xc0) of that many bytes. */
static size_t make_prefix(uint8_t prefix[1 + LENGTH_BYTES_MAX], uint8_t base, size_t length)
{
    uint32_t count;

    if (length <= SHORT_MAX) {
        prefix[0] = (uint8_t)(base + length);
        return 1;
    }
    count = bytes_of_length(length);
    prefix[0] = (uint8_t)(base + SHORT_MAX + count);
    for (uint32_t i = 0; i < count; i++) {
        prefix[1 + i] = (uint8_t)(length >> (8 * (count - 1 - i)));
    }
    return 1 + count;
}

void rlp_write_bytes(struct byte_writer *writer, const void *bytes, size_t size)
{
    uint8_t prefix[1 + LENGTH_BYTES_MAX];

    if (size == 1 && *(const uint8_t *)bytes < STRING_BASE) {
        byte_writer_put(writer, bytes, 1);
        return;
    }
    byte_writer_put(writer, prefix, make_prefix(prefix, STRING_BASE, size));
    byte_writer_put(writer, bytes, size);
}

void rlp_write_uint256(struct byte_writer *writer, const struct uint256 *value)
{
    uint8_t bytes[UINT256_SIZE];
    uint32_t count = (uint256_bit_length(value) + 7) / 8;

    uint256_to_bytes(bytes, value);
    rlp_write_bytes(writer, bytes + UINT256_SIZE - count, count);
}

void rlp_write_u64(struct byte_writer *writer, uint64_t value)
{
    struct uint256 wide = uint256_of(value);

    rlp_write_uint256(writer, &wide);
}

size_t rlp_list_begin(struct byte_writer *writer)
{
    return writer->used;
}

void rlp_list_end(struct byte_writer *writer, size_t mark)
{
    uint8_t prefix[1 + LENGTH_BYTES_MAX];
    size_t prefix_size;
    size_t length;

    if (writer->overflowed) {
        return;
    }
    assert(mark <= writer->used);
    length = writer->used - mark;
    prefix_size = make_prefix(prefix, LIST_BASE, length);
    if (prefix_size > writer->size - writer->used) {
        writer->overflowed = true;
        return;
    }
    memmove(writer->bytes + mark + prefix_size, writer->bytes + mark, length);
    memcpy(writer->bytes + mark, prefix, prefix_size);
    writer->used += prefix_size;
}
