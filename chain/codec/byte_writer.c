/* byte_writer.c - see byte_writer.h. */
#include "chain/codec/byte_writer.h"

#include <string.h>

void byte_writer_init(struct byte_writer *writer, uint8_t *bytes, size_t size)
{
    *writer = (struct byte_writer){.bytes = bytes, .size = size};
}

void byte_writer_put(struct byte_writer *writer, const void *bytes, size_t size)
{
    if (writer->overflowed || size > writer->size - writer->used) {
        writer->overflowed = true;
        return;
    }
    if (size > 0) {
        memcpy(writer->bytes + writer->used, bytes, size);
        writer->used += size;
    }
}

enum status byte_writer_finish(const struct byte_writer *writer)
{
    return writer->overflowed ? STATUS_OVER_LIMIT : STATUS_OK;
}
