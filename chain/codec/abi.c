/* abi.c - see abi.h. The layout is the contract ABI specification of the Solidity documents. */
#include "chain/codec/abi.h"

#include <string.h>

uint32_t abi_selector(const char *signature)
{
    struct hash32 hash = keccak256(signature, strlen(signature));

    return (uint32_t)hash.bytes[0] << 24 | (uint32_t)hash.bytes[1] << 16 |
           (uint32_t)hash.bytes[2] << 8 | hash.bytes[3];
}

void abi_put_selector(struct byte_writer *writer, const char *signature)
{
    struct hash32 hash = keccak256(signature, strlen(signature));

    byte_writer_put(writer, hash.bytes, ABI_SELECTOR_SIZE);
}

void abi_put_hash(struct byte_writer *writer, const struct hash32 *hash)
{
    byte_writer_put(writer, hash->bytes, HASH32_SIZE);
}

void abi_put_address(struct byte_writer *writer, const struct address *address)
{
    uint8_t word[ABI_WORD_SIZE] = {0};

    memcpy(word + ABI_WORD_SIZE - ADDRESS_SIZE, address->bytes, ADDRESS_SIZE);
    byte_writer_put(writer, word, sizeof(word));
}

void abi_put_uint256(struct byte_writer *writer, const struct uint256 *value)
{
    uint8_t word[ABI_WORD_SIZE];

    uint256_to_bytes(word, value);
    byte_writer_put(writer, word, sizeof(word));
}

void abi_put_u64(struct byte_writer *writer, uint64_t value)
{
    struct uint256 wide = uint256_of(value);

    abi_put_uint256(writer, &wide);
}

void abi_put_bool(struct byte_writer *writer, bool value)
{
    abi_put_u64(writer, value ? 1 : 0);
}

size_t abi_put_offset(struct byte_writer *writer)
{
    size_t place = writer->used;

    abi_put_u64(writer, 0);
    return place;
}

void abi_set_offset(struct byte_writer *writer, size_t place, size_t base)
{
    struct uint256 offset = uint256_of(writer->used - base);

    if (!writer->overflowed) {
        uint256_to_bytes(writer->bytes + place, &offset);
    }
}

void abi_put_blob(struct byte_writer *writer, const void *bytes, size_t size)
{
    static const uint8_t zeros[ABI_WORD_SIZE];
    size_t rest = size % ABI_WORD_SIZE;

    abi_put_u64(writer, size);
    byte_writer_put(writer, bytes, size);
    byte_writer_put(writer, zeros, rest == 0 ? 0 : ABI_WORD_SIZE - rest);
}

void abi_reader_init(struct abi_reader *reader, const void *bytes, size_t size)
{
    reader->bytes = bytes;
    reader->size = size;
    reader->at = 0;
}

enum status abi_get_hash(struct abi_reader *reader, struct hash32 *hash)
{
    if (reader->size - reader->at < ABI_WORD_SIZE) {
        return STATUS_BAD_FORMAT;
    }
    memcpy(hash->bytes, reader->bytes + reader->at, HASH32_SIZE);
    reader->at += ABI_WORD_SIZE;
    return STATUS_OK;
}

enum status abi_get_uint256(struct abi_reader *reader, struct uint256 *value)
{
    struct hash32 word;
    enum status status = abi_get_hash(reader, &word);

    if (status == STATUS_OK) {
        *value = uint256_from_bytes(word.bytes);
    }
    return status;
}

enum status abi_get_address(struct abi_reader *reader, struct address *address)
{
    static const uint8_t zeros[ABI_WORD_SIZE - ADDRESS_SIZE];
    struct hash32 word;

    TRY(abi_get_hash(reader, &word));
    if (memcmp(word.bytes, zeros, sizeof(zeros)) != 0) {
        return STATUS_BAD_FORMAT;
    }
    memcpy(address->bytes, word.bytes + sizeof(zeros), ADDRESS_SIZE);
    return STATUS_OK;
}

enum status abi_get_u64(struct abi_reader *reader, uint64_t *value)
{
    struct uint256 wide;

    TRY(abi_get_uint256(reader, &wide));
    return uint256_to_u64(value, &wide) ? STATUS_OK : STATUS_BAD_FORMAT;
}

enum status abi_get_u32(struct abi_reader *reader, uint32_t *value)
{
    uint64_t wide;

    TRY(abi_get_u64(reader, &wide));
    if (wide > UINT32_MAX) {
        return STATUS_BAD_FORMAT;
    }
    *value = (uint32_t)wide;
    return STATUS_OK;
}

enum status abi_get_bool(struct abi_reader *reader, bool *value)
{
    uint64_t wide;

    TRY(abi_get_u64(reader, &wide));
    if (wide > 1) {
        return STATUS_BAD_FORMAT;
    }
    *value = wide == 1;
    return STATUS_OK;
}

enum status abi_get_blob(struct abi_reader *reader, const uint8_t **bytes, size_t *size)
{
    struct abi_reader behind = *reader;
    uint64_t offset;
    uint64_t length;

    TRY(abi_get_u64(reader, &offset));
    if (offset > reader->size) {
        return STATUS_BAD_FORMAT;
    }
    behind.at = (size_t)offset;
    TRY(abi_get_u64(&behind, &length));
    if (length > behind.size - behind.at) {
        return STATUS_BAD_FORMAT;
    }
    *bytes = behind.bytes + behind.at;
    *size = (size_t)length;
    return STATUS_OK;
}
