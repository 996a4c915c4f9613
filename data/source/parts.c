/* parts.c - see parts.h. */
#include "data/source/parts.h"

#include <stdlib.h>
#include <string.h>

void parts_init(struct parts *parts)
{
    *parts = (struct parts){0};
    buffer_init(&parts->text, ENCODE_SIZE_MAX);
}

void parts_release(struct parts *parts)
{
    buffer_release(&parts->text);
    free(parts->list);
    *parts = (struct parts){0};
}

void parts_clear(struct parts *parts)
{
    buffer_clear(&parts->text);
    parts->count = 0;
    parts->status = STATUS_OK;
}

static void add_part(struct parts *parts, const struct parts_item *part)
{
    if (parts->count == parts->capacity) {
        size_t capacity = parts->capacity == 0 ? 64 : 2 * parts->capacity;
        struct parts_item *list =
            capacity > PARTS_MAX ? NULL : realloc(parts->list, capacity * sizeof(*list));

        if (list == NULL) {
            parts->status = capacity > PARTS_MAX ? STATUS_OVER_LIMIT : STATUS_NO_MEMORY;
            return;
        }
        parts->list = list;
        parts->capacity = capacity;
    }
    parts->list[parts->count++] = *part;
}

void parts_add_text(struct parts *parts, const void *text, size_t size, bool learned)
{
    struct parts_item *last = parts->count == 0 ? NULL : &parts->list[parts->count - 1];
    const struct parts_item part = {parts->text.size, size, VOCABULARY_NONE, learned};

    if (size == 0 || parts->status != STATUS_OK) {
        return;
    }
    buffer_add(&parts->text, text, size);
    if (last != NULL && last->id == VOCABULARY_NONE && last->learned == learned) {
        last->size += size;
    } else {
        add_part(parts, &part);
    }
}

void parts_add_id(struct parts *parts, uint32_t id, bool learned)
{
    const struct parts_item part = {parts->text.size, 0, id, learned};

    if (parts->status == STATUS_OK) {
        add_part(parts, &part);
    }
}

void parts_add_layout(struct parts *parts, const struct tokenizer *tokenizer, const char *text,
                      bool learned)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t size = strlen(text);
    size_t at = 0;

    while (at < size) {
        struct added_match match;

        added_find(&match, &tokenizer->added, false, true, bytes, size, at);
        parts_add_text(parts, bytes + at, match.start - at, learned);
        if (match.token != NULL) {
            parts_add_id(parts, match.token->id, learned);
        }
        at = match.end;
    }
}

enum status parts_check(const struct parts *parts, struct error *error)
{
    if (parts->status == STATUS_OVER_LIMIT) {
        return error_set(error, STATUS_OVER_LIMIT, "a conversation of more than %u parts",
                         PARTS_MAX);
    }
    if (parts->status != STATUS_OK) {
        return error_set(error, parts->status, "out of memory for an example");
    }
    return buffer_check(&parts->text, error, "example");
}

enum status parts_encode(const struct parts *parts, struct error *error, struct encoder *encoder,
                         struct buffer *learned, unsigned flags)
{
    unsigned before = 0; /* what stands before */

    encoder_clear(encoder);
    buffer_clear(learned);
    for (size_t i = 0; i < parts->count; i++) {
        const struct parts_item *part = &parts->list[i];

        if (part->id != VOCABULARY_NONE) {
            TRY(encoder_add_id(encoder, error, part->id));
            before = ENCODE_INNER;
        } else {
            TRY(encoder_add(encoder, error, parts->text.data + part->start, part->size,
                            flags | before));
            before = ENCODE_INNER | ENCODE_CONTINUED;
        }
        while (learned->size < encoder->count && learned->status == STATUS_OK) {
            buffer_add_u8(learned, part->learned);
        }
    }
    return buffer_check(learned, error, "example");
}
