/*
 * rlp_reader.h - reads RLP in its one canonical encoding, to check what chain/codec/rlp.h writes.
 */
#ifndef TESTS_SUPPORT_CHAIN_RLP_READER_H
#define TESTS_SUPPORT_CHAIN_RLP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "chain/codec/uint256.h"

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

#endif /* TESTS_SUPPORT_CHAIN_RLP_READER_H */
