/*
 * tokenizer.h - text to token ids and back, as a published tokenizer does it.
 *
 * Taken: tokenizer.json with byte pair encoding (byte-level, or with byte fallback), the
 * normalizers NFC, Replace and Prepend, the pre-tokenizers ByteLevel, Split, Digits and Metaspace,
 * sequences of these, added tokens; vocab.json with merges.txt of GPT-2; and "bytes", whose ids are
 * the bytes of the text. Everything else that a file asks for is refused and shown: no id is ever
 * guessed.
 *
 * ids -> bytes -> text: tokenizer_bytes() of the ids of a text, one behind the other, are the
 * normalized text, byte for byte.
 */
#ifndef DATA_TOKEN_TOKENIZER_H
#define DATA_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "base/error.h"
#include "data/token/added.h"
#include "data/token/merges.h"
#include "data/token/step.h"
#include "data/token/vocabulary.h"

#define TOKENIZER_SIZE_MAX  (UINT32_C(1) << 27) /* of tokenizer.json */
#define TOKENIZER_ENDS_MAX  8 /* tokens that a template puts before or behind a text */
#define TOKENIZER_FILES_MAX 4
#define TOKENIZER_BYTES     "bytes"             /* in place of a folder: ids are bytes */
#define ENCODE_SIZE_MAX     (UINT32_C(1) << 26) /* bytes of a text */

struct tokenizer_file {
    char name[32]; /* "tokenizer.json" */
    struct digest sha256;
    uint64_t size;
};

struct tokenizer {
    struct vocabulary vocabulary; /* bytes as text has them, also of a byte-level vocabulary */
    struct merges merges;
    struct added added;
    struct step normalizers[STEPS_MAX];
    size_t normalizer_count;
    struct step cuts[STEPS_MAX];
    size_t cut_count;
    bool byte_level;    /* symbols are bytes, else characters */
    bool byte_fallback; /* a character without a token is written as the tokens of its bytes */
    bool fuse_unknown;
    bool ignore_merges; /* a piece that is a token is that token */
    uint32_t unknown;   /* VOCABULARY_NONE: what has no token is refused */
    uint32_t byte_ids[256];
    uint8_t all_bytes[256]; /* 0, 1, 2, ...: the bytes of tokens of one byte */
    uint8_t
        *joined; /* pairs of characters that stand beside each other in a token; NULL: unknown */
    uint32_t before[TOKENIZER_ENDS_MAX]; /* what its template puts before a text: BOS */
    size_t before_count;
    uint32_t behind[TOKENIZER_ENDS_MAX];
    size_t behind_count;
    uint32_t bos; /* as its config names them; VOCABULARY_NONE: it names none */
    uint32_t eos;
    char *chat_template;                /* owned; NULL: it publishes none */
    uint8_t shown_from[STEP_BYTES_MAX]; /* what its decoder shows as a blank */
    size_t shown_from_size;
    uint32_t id_count; /* one above the largest id */
    struct tokenizer_file files[TOKENIZER_FILES_MAX];
    size_t file_count;
};

/* ---- reading ---- */

/* A folder as it is published, a tokenizer.json, or TOKENIZER_BYTES. On failure there is nothing to
 * release. */
MUST_CHECK enum status tokenizer_open(struct tokenizer *tokenizer, struct error *error,
                                      const char *path);

/* The same from the bytes of a tokenizer.json, without its config. */
MUST_CHECK enum status tokenizer_parse(struct tokenizer *tokenizer, struct error *error,
                                       const void *bytes, size_t size, const char *what);

/* Accepts a zeroed tokenizer. */
void tokenizer_release(struct tokenizer *tokenizer);

/* ---- ids ---- */

/* A token's bytes; NULL: no token has this id. */
const uint8_t *tokenizer_bytes(const struct tokenizer *tokenizer, uint32_t id, size_t *size);

/* The id of a token by its text, added ones first; VOCABULARY_NONE: there is none. */
uint32_t tokenizer_id(const struct tokenizer *tokenizer, const char *text);

/* Appends a token as a person reads it: blanks as blanks, bytes as they are. */
void tokenizer_show(const struct tokenizer *tokenizer, struct buffer *out, uint32_t id);

#endif /* DATA_TOKEN_TOKENIZER_H */
