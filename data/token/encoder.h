/*
 * encoder.h - text to ids, with the memory that takes: one encoder for each thread.
 */
#ifndef DATA_TOKEN_ENCODER_H
#define DATA_TOKEN_ENCODER_H

#include "data/token/tokenizer.h"

/* A word that was cut before. */
struct encoder_word {
    uint8_t size; /* 0: empty */
    uint8_t count;
    uint8_t bytes[30];
    uint32_t ids[8];
};

struct encoder {
    const struct tokenizer *tokenizer; /* borrowed */
    struct encoder_word *words;        /* by the hash of their bytes */
    uint32_t *symbols;
    size_t symbol_capacity;
    struct merges_work work;
    struct buffer normalized[2];
    struct buffer cut[STEPS_MAX];
    uint32_t *ids; /* what was encoded */
    size_t count;
    size_t capacity;
};

enum encode_flags {
    ENCODE_SPECIAL = 1,   /* special tokens in the text are taken as such */
    ENCODE_CONTINUED = 2, /* text stands before: nothing is put before this one */
    ENCODE_INNER = 4,     /* a token stands before: it is not the very beginning */
};

MUST_CHECK enum status encoder_init(struct encoder *encoder, struct error *error,
                                    const struct tokenizer *tokenizer);

/* Accepts a zeroed encoder. */
void encoder_release(struct encoder *encoder);

/* Forgets the ids. */
void encoder_clear(struct encoder *encoder);

MUST_CHECK enum status encoder_add_id(struct encoder *encoder, struct error *error, uint32_t id);

/* Appends the ids of a text, which is valid UTF-8 of at most ENCODE_SIZE_MAX bytes. */
MUST_CHECK enum status encoder_add(struct encoder *encoder, struct error *error,
                                   const uint8_t *text, size_t size, unsigned flags);

#endif /* DATA_TOKEN_ENCODER_H */
