/* rlp_reader.c - see rlp_reader.h. The encoding is appendix B of the Ethereum yellow paper. */
#include "tests/support/chain/rlp_reader.h"

#include <string.h>

enum {
    STRING_BASE = 0x80,
    LIST_BASE = 0xc0,
    SHORT_MAX = 55, /* longest content whose length fits in the first byte */
};

void rlp_reader_init(struct rlp_reader *reader, const void *bytes, size_t size)
{
    reader->bytes = bytes;
    reader->size = size;
}

/* Splits the next item into prefix and content. base is 0x80 or 0xc0, as the item must be. */
static enum status read_item(struct rlp_reader *reader, uint8_t base, const uint8_t **content,
                             size_t *content_size)
{
    size_t prefix_size = 1;
    uint64_t length;

    if (reader->size == 0) {
        return STATUS_BAD_FORMAT;
    }
    if (reader->bytes[0] < base || (base == STRING_BASE && reader->bytes[0] >= LIST_BASE)) {
        return STATUS_BAD_FORMAT;
    }
    length = (uint64_t)(reader->bytes[0] - base);
    if (length > SHORT_MAX) {
        uint32_t count = (uint32_t)length - SHORT_MAX;

        if (count > reader->size - 1 || reader->bytes[1] == 0) {
            return STATUS_BAD_FORMAT;
        }
        length = 0;
        for (uint32_t i = 0; i < count; i++) {
            length = length << 8 | reader->bytes[1 + i];
        }
        if (length <= SHORT_MAX) {
            return STATUS_BAD_FORMAT;
        }
        prefix_size += count;
    }
    if (length > reader->size - prefix_size) {
        return STATUS_BAD_FORMAT;
    }
    *content = reader->bytes + prefix_size;
    *content_size = (size_t)length;
    reader->bytes += prefix_size + length;
    reader->size -= prefix_size + (size_t)length;
    return STATUS_OK;
}

enum status rlp_read_bytes(struct rlp_reader *reader, const uint8_t **bytes, size_t *size)
{
    enum status status;

    if (reader->size > 0 && reader->bytes[0] < STRING_BASE) {
        *bytes = reader->bytes;
        *size = 1;
        reader->bytes++;
        reader->size--;
        return STATUS_OK;
    }
    status = read_item(reader, STRING_BASE, bytes, size);
    if (status == STATUS_OK && *size == 1 && (*bytes)[0] < STRING_BASE) {
        return STATUS_BAD_FORMAT; /* such a byte stands for itself, without a prefix */
    }
    return status;
}

enum status rlp_read_list(struct rlp_reader *reader, struct rlp_reader *inner)
{
    return read_item(reader, LIST_BASE, &inner->bytes, &inner->size);
}

enum status rlp_read_uint256(struct rlp_reader *reader, struct uint256 *value)
{
    uint8_t word[UINT256_SIZE] = {0};
    const uint8_t *bytes;
    size_t size;

    TRY(rlp_read_bytes(reader, &bytes, &size));
    if (size > UINT256_SIZE || (size > 0 && bytes[0] == 0)) {
        return STATUS_BAD_FORMAT;
    }
    memcpy(word + UINT256_SIZE - size, bytes, size);
    *value = uint256_from_bytes(word);
    return STATUS_OK;
}

enum status rlp_read_u64(struct rlp_reader *reader, uint64_t *value)
{
    struct uint256 wide;

    TRY(rlp_read_uint256(reader, &wide));
    return uint256_to_u64(value, &wide) ? STATUS_OK : STATUS_BAD_FORMAT;
}

bool rlp_reader_at_end(const struct rlp_reader *reader)
{
    return reader->size == 0;
}
