/*
 * rlp.h - recursive length prefix: how transactions are laid out before they are hashed.
 *
 * The writer fills a caller's buffer and remembers an overflow, so a caller checks once at the end.
 * Nothing here allocates.
 */
#ifndef CHAIN_CODEC_RLP_H
#define CHAIN_CODEC_RLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "chain/codec/byte_writer.h"
#include "chain/codec/uint256.h"

void rlp_write_bytes(struct byte_writer *writer, const void *bytes, size_t size);
void rlp_write_uint256(struct byte_writer *writer, const struct uint256 *value);
void rlp_write_u64(struct byte_writer *writer, uint64_t value);

/* Opens a list and returns its mark; everything written until rlp_list_end(mark) is inside. */
size_t rlp_list_begin(struct byte_writer *writer);
void rlp_list_end(struct byte_writer *writer, size_t mark);

#endif /* CHAIN_CODEC_RLP_H */
