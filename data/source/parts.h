/*
 * parts.h - one row's worth of text before it is tokens: what is learned of it, and where special
 * tokens stand.
 *
 * Neighbours that are text, and alike learned or not, are one part, so they are encoded together.
 * At a border between what is learned and what is not text is cut: so a model that answers sees the
 * same tokens before its answer as one that learned.
 */
#ifndef DATA_SOURCE_PARTS_H
#define DATA_SOURCE_PARTS_H

#include <stdbool.h>

#include "data/token/encoder.h"

#define PARTS_MAX 1048576u

struct parts_item {
    size_t start; /* in text */
    size_t size;
    uint32_t id; /* of a token; VOCABULARY_NONE: text */
    bool learned;
};

struct parts {
    struct buffer text;
    struct parts_item *list;
    size_t count;
    size_t capacity;
    enum status status; /* of the first that failed; the rest is ignored */
};

void parts_init(struct parts *parts);
void parts_release(struct parts *parts);
void parts_clear(struct parts *parts);

void parts_add_text(struct parts *parts, const void *text, size_t size, bool learned);
void parts_add_id(struct parts *parts, uint32_t id, bool learned);

/* Text of a chat layout: special tokens in it are such. */
void parts_add_layout(struct parts *parts, const struct tokenizer *tokenizer, const char *text,
                      bool learned);

/* STATUS_OK, or why the parts are not whole. */
MUST_CHECK enum status parts_check(const struct parts *parts, struct error *error);

/* Replaces the encoder's ids by those of the parts; learned gets a byte for each.
 * flags: ENCODE_SPECIAL. */
MUST_CHECK enum status parts_encode(const struct parts *parts, struct error *error,
                                    struct encoder *encoder, struct buffer *learned,
                                    unsigned flags);

#endif /* DATA_SOURCE_PARTS_H */
