/* merkle_multi.c - see merkle_multi.h. */
#include "tests/support/proofs/merkle_multi.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"

enum status merkle_multi_build(struct merkle_multi *multi, const struct merkle_leaves *leaves)
{
    struct merkle_place *places = calloc((size_t)multi->sibling_capacity + 1, sizeof(*places));
    enum status status;

    if (places == NULL) {
        abort();
    }
    multi->leaf_count = leaves->count;
    status = merkle_multi_places(places, &multi->sibling_count, multi->sibling_capacity, multi);
    for (uint32_t i = 0; i < multi->sibling_count; i++) {
        merkle_node(&multi->siblings[i], leaves, places[i].level, places[i].index);
    }
    free(places);
    return status;
}

/*
 * docs/FORMATS.md, proof of many: 0 leaf count (8), 8 index count (4), 12 sibling count (4), 16
 * indexes (8 each), then siblings (32 each).
 */
size_t merkle_multi_bytes(const struct merkle_multi *multi)
{
    return 16 + (size_t)multi->index_count * 8 + (size_t)multi->sibling_count * DIGEST_SIZE;
}

void merkle_multi_write(uint8_t *bytes, const struct merkle_multi *multi)
{
    endian_store_be64(bytes, multi->leaf_count);
    endian_store_be32(bytes + 8, multi->index_count);
    endian_store_be32(bytes + 12, multi->sibling_count);
    for (uint32_t i = 0; i < multi->index_count; i++) {
        endian_store_be64(bytes + 16 + 8 * (size_t)i, multi->indexes[i]);
    }
    memcpy(bytes + 16 + 8 * (size_t)multi->index_count, multi->siblings,
           (size_t)multi->sibling_count * DIGEST_SIZE);
}

enum status merkle_multi_read(struct merkle_multi *multi, const uint8_t *bytes, size_t size)
{
    if (size < 16) {
        return STATUS_BAD_FORMAT;
    }

    uint64_t index_count = endian_load_be32(bytes + 8);
    uint64_t sibling_count = endian_load_be32(bytes + 12);
    uint32_t places;

    if (index_count > multi->index_capacity || sibling_count > multi->sibling_capacity) {
        return STATUS_OVER_LIMIT;
    }
    if (size != 16 + index_count * 8 + sibling_count * DIGEST_SIZE) {
        return STATUS_BAD_FORMAT;
    }
    multi->leaf_count = endian_load_be64(bytes);
    multi->index_count = (uint32_t)index_count;
    multi->sibling_count = (uint32_t)sibling_count;
    for (uint32_t i = 0; i < multi->index_count; i++) {
        multi->indexes[i] = endian_load_be64(bytes + 16 + 8 * (size_t)i);
    }
    memcpy(multi->siblings, bytes + 16 + 8 * index_count, sibling_count * DIGEST_SIZE);
    return merkle_multi_places(NULL, &places, 0, multi) == STATUS_BAD_FORMAT ? STATUS_BAD_FORMAT
                                                                             : STATUS_OK;
}
