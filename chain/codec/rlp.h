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
#include "chain/codec/uint256.h"

struct rlp_writer {
    uint8_t *bytes; /* borrowed until the end of writing */
    size_t size;
    size_t used;
    bool overflowed;
};

void rlp_writer_init(struct rlp_writer *writer, uint8_t *bytes, size_t size);
void rlp_write_bytes(struct rlp_writer *writer, const void *bytes, size_t size);
void rlp_write_uint256(struct rlp_writer *writer, const struct uint256 *value);
void rlp_write_u64(struct rlp_writer *writer, uint64_t value);

/* Opens a list and returns its mark; everything written until rlp_list_end(mark) is inside. */
size_t rlp_list_begin(struct rlp_writer *writer);
void rlp_list_end(struct rlp_writer *writer, size_t mark);

/* STATUS_OVER_LIMIT when something did not fit; then the content is not to be used. */
MUST_CHECK enum status rlp_writer_finish(const struct rlp_writer *writer);

#endif /* CHAIN_CODEC_RLP_H */
