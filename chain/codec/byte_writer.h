/*
 * byte_writer.h - bytes one behind the other in a buffer of the caller: for abi.h and rlp.h.
 *
 * What does not fit is remembered, not written: look once, at the end. Nothing here allocates.
 */
#ifndef CHAIN_CODEC_BYTE_WRITER_H
#define CHAIN_CODEC_BYTE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct byte_writer {
    uint8_t *bytes; /* borrowed until the end of writing */
    size_t size;
    size_t used;
    bool overflowed;
};

void byte_writer_init(struct byte_writer *writer, uint8_t *bytes, size_t size);
void byte_writer_put(struct byte_writer *writer, const void *bytes, size_t size);

/* STATUS_OVER_LIMIT when something did not fit; then the content is not to be used. */
MUST_CHECK enum status byte_writer_finish(const struct byte_writer *writer);

#endif /* CHAIN_CODEC_BYTE_WRITER_H */
