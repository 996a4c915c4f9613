/*
 * abi.h - the calling convention of contracts: a 4-byte selector, then 32-byte words.
 *
 * The writer fills a caller's buffer and remembers an overflow. The reader is strict: the unused
 * bytes of a narrow type must be zero, a bool is 0 or 1, and an offset stays inside the input.
 * The caller knows what the words mean. Nothing here allocates.
 */
#ifndef CHAIN_CODEC_ABI_H
#define CHAIN_CODEC_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "chain/codec/address.h"
#include "chain/codec/byte_writer.h"
#include "chain/codec/keccak.h"
#include "chain/codec/uint256.h"

#define ABI_WORD_SIZE     32
#define ABI_SELECTOR_SIZE 4

/* ---- writing -------------------------------------------------------------- */

/* Begins a call: the selector of a signature such as "withdraw(address)". */
void abi_put_selector(struct byte_writer *writer, const char *signature);
void abi_put_hash(struct byte_writer *writer, const struct hash32 *hash);
void abi_put_address(struct byte_writer *writer, const struct address *address);
void abi_put_uint256(struct byte_writer *writer, const struct uint256 *value);
void abi_put_u64(struct byte_writer *writer, uint64_t value);
void abi_put_bool(struct byte_writer *writer, bool value);

/* A dynamic value is an offset in the head and the content behind it: the place of the offset is
 * kept with abi_put_offset, and set with abi_set_offset when writing arrives at the content. base
 * is writer->used at the start of the tuple that the offset counts from. */
size_t abi_put_offset(struct byte_writer *writer);
void abi_set_offset(struct byte_writer *writer, size_t place, size_t base);

/* The content of "bytes" or "string": its length, itself, zeros up to a word. */
void abi_put_blob(struct byte_writer *writer, const void *bytes, size_t size);

/* ---- reading -------------------------------------------------------------- */

struct abi_reader {
    const uint8_t *bytes; /* borrowed: the start of the tuple */
    size_t size;
    size_t at;
};

void abi_reader_init(struct abi_reader *reader, const void *bytes, size_t size);
MUST_CHECK enum status abi_get_hash(struct abi_reader *reader, struct hash32 *hash);
MUST_CHECK enum status abi_get_address(struct abi_reader *reader, struct address *address);
MUST_CHECK enum status abi_get_uint256(struct abi_reader *reader, struct uint256 *value);
MUST_CHECK enum status abi_get_u64(struct abi_reader *reader, uint64_t *value);
MUST_CHECK enum status abi_get_u32(struct abi_reader *reader, uint32_t *value);
MUST_CHECK enum status abi_get_bool(struct abi_reader *reader, bool *value);

/* Reads an offset word and the blob behind it; *bytes points into the input. */
MUST_CHECK enum status abi_get_blob(struct abi_reader *reader, const uint8_t **bytes, size_t *size);

/* The first four bytes of the signature's hash. */
uint32_t abi_selector(const char *signature);

#endif /* CHAIN_CODEC_ABI_H */
