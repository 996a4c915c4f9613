/* reader.c - see reader.h. */
#include "base/reader.h"

#include <string.h>

#include "base/endian.h"

void reader_init(struct reader *reader, const void *bytes, size_t size)
{
    reader->bytes = bytes;
    reader->size = size;
    reader->at = 0;
    reader->failed = false;
}

const uint8_t *reader_take(struct reader *reader, size_t size)
{
    const uint8_t *here;

    if (reader->failed || size > reader->size - reader->at) {
        reader->failed = true;
        return NULL;
    }
    here = reader->bytes + reader->at;
    reader->at += size;
    return here;
}

void reader_copy(struct reader *reader, void *out, size_t size)
{
    const uint8_t *here = reader_take(reader, size);

    if (size == 0) {
        return; /* memcpy wants real pointers even for nothing */
    }
    if (here == NULL) {
        memset(out, 0, size);
    } else {
        memcpy(out, here, size);
    }
}

uint8_t reader_u8(struct reader *reader)
{
    const uint8_t *here = reader_take(reader, 1);

    return here == NULL ? 0 : here[0];
}

uint16_t reader_u16(struct reader *reader)
{
    const uint8_t *here = reader_take(reader, 2);

    return here == NULL ? 0 : endian_load_be16(here);
}

uint32_t reader_u32(struct reader *reader)
{
    const uint8_t *here = reader_take(reader, 4);

    return here == NULL ? 0 : endian_load_be32(here);
}

uint64_t reader_u64(struct reader *reader)
{
    const uint8_t *here = reader_take(reader, 8);

    return here == NULL ? 0 : endian_load_be64(here);
}

size_t reader_left(const struct reader *reader)
{
    return reader->failed ? 0 : reader->size - reader->at;
}

enum status reader_end(const struct reader *reader, struct error *error, const char *what)
{
    if (reader->failed) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: cut short after %zu bytes", what,
                         reader->size);
    }
    if (reader->at != reader->size) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %zu bytes too many", what,
                         reader->size - reader->at);
    }
    return STATUS_OK;
}
