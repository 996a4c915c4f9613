/* vocabulary.c - see vocabulary.h. */
#include "data/token/vocabulary.h"

#include <stdlib.h>
#include <string.h>

void vocabulary_release(struct vocabulary *vocabulary)
{
    free(vocabulary->bytes);
    free(vocabulary->starts);
    free(vocabulary->sizes);
    free(vocabulary->slots);
    memset(vocabulary, 0, sizeof(*vocabulary));
}

uint64_t vocabulary_hash(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t hash = size * UINT64_C(0x9e3779b97f4a7c15);

    while (size >= 8) {
        uint64_t word;

        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
        at += 8;
        size -= 8;
    }
    if (size > 0) {
        uint64_t word = 0;

        memcpy(&word, at, size);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    hash *= UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 29;
}

const uint8_t *vocabulary_bytes(const struct vocabulary *vocabulary, uint32_t id, size_t *size)
{
    if (id >= vocabulary->id_count || vocabulary->starts[id] == VOCABULARY_NONE) {
        return NULL;
    }
    *size = vocabulary->sizes[id];
    return vocabulary->bytes + vocabulary->starts[id];
}

/* The slot that holds these bytes, or the empty one where they would go. */
static size_t slot_of(const struct vocabulary *vocabulary, const void *bytes, size_t size)
{
    const size_t mask = vocabulary->slot_count - 1;
    size_t slot = vocabulary_hash(bytes, size) & mask;

    while (vocabulary->slots[slot] != VOCABULARY_NONE) {
        uint32_t id = vocabulary->slots[slot];

        if (vocabulary->sizes[id] == size &&
            memcmp(vocabulary->bytes + vocabulary->starts[id], bytes, size) == 0) {
            break;
        }
        slot = (slot + 1) & mask;
    }
    return slot;
}

uint32_t vocabulary_find(const struct vocabulary *vocabulary, const void *bytes, size_t size)
{
    return vocabulary->slot_count == 0 ? VOCABULARY_NONE
                                       : vocabulary->slots[slot_of(vocabulary, bytes, size)];
}

/* Room for one more token and one more id. */
static enum status grow_slots(struct vocabulary *vocabulary)
{
    size_t old_count = vocabulary->slot_count;
    uint32_t *old = vocabulary->slots;
    size_t count = old_count == 0 ? 1024 : 2 * old_count;

    if (2 * (vocabulary->used + 1) <= old_count) {
        return STATUS_OK;
    }
    vocabulary->slots = malloc(count * sizeof(*vocabulary->slots));
    if (vocabulary->slots == NULL) {
        vocabulary->slots = old;
        return STATUS_NO_MEMORY;
    }
    memset(vocabulary->slots, 0xff, count * sizeof(*vocabulary->slots));
    vocabulary->slot_count = count;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i] != VOCABULARY_NONE) {
            uint32_t id = old[i];

            vocabulary->slots[slot_of(vocabulary, vocabulary->bytes + vocabulary->starts[id],
                                      vocabulary->sizes[id])] = id;
        }
    }
    free(old);
    return STATUS_OK;
}

static enum status grow_ids(struct vocabulary *vocabulary, uint32_t id)
{
    uint32_t capacity = vocabulary->id_capacity == 0 ? 1024 : vocabulary->id_capacity;
    uint32_t *starts;
    uint32_t *sizes;

    while (capacity <= id) {
        capacity *= 2;
    }
    if (capacity == vocabulary->id_capacity) {
        return STATUS_OK;
    }
    starts = realloc(vocabulary->starts, capacity * sizeof(*starts));
    if (starts == NULL) {
        return STATUS_NO_MEMORY;
    }
    vocabulary->starts = starts;
    sizes = realloc(vocabulary->sizes, capacity * sizeof(*sizes));
    if (sizes == NULL) {
        return STATUS_NO_MEMORY;
    }
    vocabulary->sizes = sizes;
    memset(starts + vocabulary->id_capacity, 0xff,
           (capacity - vocabulary->id_capacity) * sizeof(*starts));
    vocabulary->id_capacity = capacity;
    return STATUS_OK;
}

static enum status grow_bytes(struct vocabulary *vocabulary, size_t size)
{
    size_t capacity = vocabulary->bytes_capacity == 0 ? 65536 : vocabulary->bytes_capacity;
    uint8_t *bytes;

    while (capacity < vocabulary->bytes_size + size) {
        capacity *= 2;
    }
    if (capacity == vocabulary->bytes_capacity) {
        return STATUS_OK;
    }
    bytes = realloc(vocabulary->bytes, capacity);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    vocabulary->bytes = bytes;
    vocabulary->bytes_capacity = capacity;
    return STATUS_OK;
}

static enum status check_token(const struct vocabulary *vocabulary, uint32_t id, const void *bytes,
                               size_t size, struct error *error)
{
    uint32_t other;

    if (id >= VOCABULARY_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "the id %u is not below %u", id, VOCABULARY_MAX);
    }
    if (size == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the token of id %u is empty", id);
    }
    if (size > VOCABULARY_BYTES_MAX - vocabulary->bytes_size) {
        return error_set(error, STATUS_OVER_LIMIT, "the tokens have more than %u bytes",
                         VOCABULARY_BYTES_MAX);
    }
    if (id < vocabulary->id_count && vocabulary->starts[id] != VOCABULARY_NONE) {
        return error_set(error, STATUS_BAD_FORMAT, "two tokens have the id %u", id);
    }
    other = vocabulary_find(vocabulary, bytes, size);
    if (other != VOCABULARY_NONE) {
        return error_set(error, STATUS_BAD_FORMAT, "one token has the ids %u and %u", other, id);
    }
    return STATUS_OK;
}

enum status vocabulary_add(struct vocabulary *vocabulary, struct error *error, uint32_t id,
                           const void *bytes, size_t size)
{
    TRY(check_token(vocabulary, id, bytes, size, error));
    if (grow_slots(vocabulary) != STATUS_OK || grow_ids(vocabulary, id) != STATUS_OK ||
        grow_bytes(vocabulary, size) != STATUS_OK) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a vocabulary");
    }
    vocabulary->slots[slot_of(vocabulary, bytes, size)] = id;
    vocabulary->used++;
    memcpy(vocabulary->bytes + vocabulary->bytes_size, bytes, size);
    vocabulary->starts[id] = (uint32_t)vocabulary->bytes_size;
    vocabulary->sizes[id] = (uint32_t)size;
    vocabulary->bytes_size += size;
    vocabulary->id_count = id >= vocabulary->id_count ? id + 1 : vocabulary->id_count;
    return STATUS_OK;
}
