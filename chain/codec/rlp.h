/*
 * rlp.h - recursive length prefix: how transactions are laid out before they are hashed.
 *
 * The writer fills a caller's buffer and remembers an overflow, so that a caller checks once at
 * the end. The reader accepts only the one canonical encoding of each value: everything that
 * another program could read differently is refused. Nothing here allocates.
 */
#ifndef CHAIN_CODEC_RLP_H
#define CHAIN_CODEC_RLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "chain/codec/uint256.h"

/* ---- writing -------------------------------------------------------------- */

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

/* ---- reading -------------------------------------------------------------- */

struct rlp_reader {
    const uint8_t *bytes; /* borrowed */
    size_t size;          /* bytes that are left */
};

void rlp_reader_init(struct rlp_reader *reader, const void *bytes, size_t size);

/* Reads one string; *bytes points into the input. */
MUST_CHECK enum status rlp_read_bytes(struct rlp_reader *reader, const uint8_t **bytes,
                                      size_t *size);
/* Reads one list; inner walks its items. */
MUST_CHECK enum status rlp_read_list(struct rlp_reader *reader, struct rlp_reader *inner);

/* Integers: no leading zero byte, no more bytes than the type has. */
MUST_CHECK enum status rlp_read_uint256(struct rlp_reader *reader, struct uint256 *value);
MUST_CHECK enum status rlp_read_u64(struct rlp_reader *reader, uint64_t *value);

bool rlp_reader_at_end(const struct rlp_reader *reader);

#endif /* CHAIN_CODEC_RLP_H */
