/* encoder.c - see encoder.h. */
#include "data/token/encoder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/unicode.h"
#include "data/text/utf8.h"
#include "data/token/joined.h"

#define WORDS_KEPT ((size_t)1 << 16)
/* Normalizers may make text longer; this is how much at most. */
#define CUT_MAX    (4 * (size_t)ENCODE_SIZE_MAX)

enum status encoder_init(struct encoder *encoder, struct error *error,
                         const struct tokenizer *tokenizer)
{
    *encoder = (struct encoder){.tokenizer = tokenizer};
    encoder->words = calloc(WORDS_KEPT, sizeof(*encoder->words));
    if (encoder->words == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a tokenizer's cache");
    }
    for (size_t i = 0; i < 2; i++) {
        buffer_init(&encoder->normalized[i], CUT_MAX);
    }
    for (size_t i = 0; i < STEPS_MAX; i++) {
        buffer_init(&encoder->cut[i], CUT_MAX);
    }
    return STATUS_OK;
}

void encoder_release(struct encoder *encoder)
{
    free(encoder->words);
    free(encoder->symbols);
    free(encoder->ids);
    merges_work_release(&encoder->work);
    for (size_t i = 0; i < 2; i++) {
        buffer_release(&encoder->normalized[i]);
    }
    for (size_t i = 0; i < STEPS_MAX; i++) {
        buffer_release(&encoder->cut[i]);
    }
    memset(encoder, 0, sizeof(*encoder));
}

void encoder_clear(struct encoder *encoder)
{
    encoder->count = 0;
}

static enum status add_ids(struct encoder *encoder, struct error *error, const uint32_t *ids,
                           size_t count)
{
    if (encoder->count + count > encoder->capacity) {
        size_t capacity = encoder->capacity == 0 ? 4096 : 2 * encoder->capacity;
        uint32_t *grown;

        capacity = capacity < encoder->count + count ? encoder->count + count : capacity;
        grown = realloc(encoder->ids, capacity * sizeof(*grown));
        if (grown == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "out of memory for %zu tokens", capacity);
        }
        encoder->ids = grown;
        encoder->capacity = capacity;
    }
    memcpy(encoder->ids + encoder->count, ids, count * sizeof(*ids));
    encoder->count += count;
    return STATUS_OK;
}

enum status encoder_add_id(struct encoder *encoder, struct error *error, uint32_t id)
{
    return add_ids(encoder, error, &id, 1);
}

/* ---- a word: symbols, merged ---- */

static enum status make_room(struct encoder *encoder, size_t count, struct error *error)
{
    uint32_t *symbols;

    if (count <= encoder->symbol_capacity) {
        return STATUS_OK;
    }
    if (count > MERGES_SYMBOLS_MAX) {
        (void)error_set(error, STATUS_OVER_LIMIT,
                        "%zu bytes without a place where this tokenizer may cut; at most %u", count,
                        MERGES_SYMBOLS_MAX);
        error_advise(error, "is this text? Leave it out, or break it by blanks or lines");
        return STATUS_OVER_LIMIT;
    }
    symbols = realloc(encoder->symbols, count * sizeof(*symbols));
    if (symbols == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a word");
    }
    encoder->symbols = symbols;
    encoder->symbol_capacity = count;
    return STATUS_OK;
}

/* What has no token: unknown, several in a row perhaps as one. */
static enum status add_unknown(struct encoder *encoder, size_t *count, bool *pending,
                               const uint8_t *text, struct error *error)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    size_t at = 0;

    if (tokenizer->unknown == VOCABULARY_NONE) {
        if (tokenizer->byte_level) {
            return error_set(error, STATUS_REFUSED,
                             "the tokenizer has no token for the byte 0x%02x", text[0]);
        }
        return error_set(error, STATUS_REFUSED,
                         "the tokenizer has no token for the character U+%04" PRIX32,
                         utf8_next(text, &at));
    }
    if (!*pending || !tokenizer->fuse_unknown) {
        encoder->symbols[(*count)++] = tokenizer->unknown;
    }
    *pending = true;
    return STATUS_OK;
}

static enum status symbols_of_bytes(struct encoder *encoder, const uint8_t *text, size_t size,
                                    size_t *count, struct error *error)
{
    const uint32_t *ids = encoder->tokenizer->byte_ids;
    bool pending = false;

    *count = 0;
    for (size_t i = 0; i < size; i++) {
        if (ids[text[i]] == VOCABULARY_NONE) {
            TRY(add_unknown(encoder, count, &pending, text + i, error));
        } else {
            encoder->symbols[(*count)++] = ids[text[i]];
            pending = false;
        }
    }
    return STATUS_OK;
}

static bool has_bytes(const struct tokenizer *tokenizer, const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (tokenizer->byte_ids[text[i]] == VOCABULARY_NONE) {
            return false;
        }
    }
    return tokenizer->byte_fallback;
}

static enum status symbols_of_characters(struct encoder *encoder, const uint8_t *text, size_t size,
                                         size_t *count, struct error *error)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    bool pending = false;
    size_t at = 0;

    *count = 0;
    while (at < size) {
        size_t next = at;
        uint32_t id;

        (void)utf8_next(text, &next);
        id = vocabulary_find(&tokenizer->vocabulary, text + at, next - at);
        if (id != VOCABULARY_NONE) {
            encoder->symbols[(*count)++] = id;
            pending = false;
        } else if (has_bytes(tokenizer, text + at, next - at)) {
            for (size_t i = at; i < next; i++) {
                encoder->symbols[(*count)++] = tokenizer->byte_ids[text[i]];
            }
            pending = false;
        } else {
            TRY(add_unknown(encoder, count, &pending, text + at, error));
        }
        at = next;
    }
    return STATUS_OK;
}

/* The tokens of a word that nothing cuts further, in encoder->symbols. */
static enum status merge_word(struct encoder *encoder, const uint8_t *text, size_t size,
                              size_t *count, struct error *error)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;

    TRY(make_room(encoder, size, error));
    if (tokenizer->ignore_merges) {
        uint32_t id = vocabulary_find(&tokenizer->vocabulary, text, size);

        if (id != VOCABULARY_NONE) {
            encoder->symbols[0] = id;
            *count = 1;
            return STATUS_OK;
        }
    }
    TRY(tokenizer->byte_level ? symbols_of_bytes(encoder, text, size, count, error)
                              : symbols_of_characters(encoder, text, size, count, error));
    if (merges_apply(&tokenizer->merges, &encoder->work, encoder->symbols, *count, count) !=
        STATUS_OK) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a word of %zu bytes", size);
    }
    return STATUS_OK;
}

static enum status add_word(struct encoder *encoder, const uint8_t *text, size_t size,
                            struct error *error)
{
    struct encoder_word *word = NULL;
    size_t count = 0;

    if (size <= sizeof(word->bytes)) {
        word = &encoder->words[vocabulary_hash(text, size) & (WORDS_KEPT - 1)];
        if (word->size == size && memcmp(word->bytes, text, size) == 0) {
            return add_ids(encoder, error, word->ids, word->count);
        }
    }
    TRY(merge_word(encoder, text, size, &count, error));
    if (word != NULL && count <= sizeof(word->ids) / sizeof(word->ids[0])) {
        word->size = (uint8_t)size;
        word->count = (uint8_t)count;
        memcpy(word->bytes, text, size);
        memcpy(word->ids, encoder->symbols, count * sizeof(word->ids[0]));
    }
    return add_ids(encoder, error, encoder->symbols, count);
}

/* A piece of text, cut where no token joins two characters. */
static enum status add_piece(struct encoder *encoder, const uint8_t *text, size_t size,
                             struct error *error)
{
    const uint8_t *joined = encoder->tokenizer->joined;
    size_t start = 0;
    size_t at = 0;
    uint32_t last;

    if (size == 0) {
        return STATUS_OK;
    }
    if (joined == NULL) {
        return add_word(encoder, text, size, error);
    }
    last = utf8_next(text, &at);
    while (at < size) {
        size_t next = at;
        uint32_t code = utf8_next(text, &next);

        if (!joined_may(joined, last, code)) {
            TRY(add_word(encoder, text + start, at - start, error));
            start = at;
        }
        last = code;
        at = next;
    }
    return add_word(encoder, text + start, size - start, error);
}

/* ---- pre-tokenizers ---- */

static enum status add_cut(struct encoder *encoder, struct error *error, size_t step,
                           const uint8_t *text, size_t size, unsigned flags);

/* The part of a text that begins at start: only what begins it is the very beginning. */
static enum status add_part(struct encoder *encoder, struct error *error, size_t step,
                            const uint8_t *text, size_t start, size_t end, unsigned flags)
{
    return start == end ? STATUS_OK
                        : add_cut(encoder, error, step, text + start, end - start,
                                  start == 0 ? flags : flags | ENCODE_INNER);
}

static enum status run_splitter(struct encoder *encoder, struct error *error, size_t index,
                                const uint8_t *text, size_t size, unsigned flags)
{
    const enum splitter splitter = encoder->tokenizer->cuts[index].splitter;
    size_t at = 0;

    while (at < size) {
        size_t end = splitter_next(splitter, text, size, at);

        TRY(add_part(encoder, error, index + 1, text, at, end, flags));
        at = end;
    }
    return STATUS_OK;
}

static enum status run_digits(struct encoder *encoder, struct error *error, size_t index,
                              const uint8_t *text, size_t size, unsigned flags)
{
    const bool alone = encoder->tokenizer->cuts[index].alone;
    size_t start = 0;
    size_t at = 0;
    bool was = false; /* does a run of numbers begin at start? */

    while (at < size) {
        size_t next = at;
        bool is = unicode_class(utf8_next(text, &next)) == UNICODE_NUMBER;

        if (at > start && (is != was || (is && alone))) {
            TRY(add_part(encoder, error, index + 1, text, start, at, flags));
            start = at;
        }
        was = is;
        at = next;
    }
    return add_part(encoder, error, index + 1, text, start, size, flags);
}

/* A cut that is the end of the piece before; one behind another is a piece of its own. */
static enum status cut_with_previous(struct encoder *encoder, struct error *error, size_t index,
                                     const uint8_t *text, size_t size, unsigned flags)
{
    const struct step *step = &encoder->tokenizer->cuts[index];
    size_t start = 0;

    while (start < size) {
        size_t found = step_find(step, text, size, start);
        size_t end = found == size ? size : found + step->from_size;

        TRY(add_part(encoder, error, index + 1, text, start, end, flags));
        start = end;
    }
    return STATUS_OK;
}

/* A cut that begins a piece; one before another is a piece of its own. */
static enum status cut_with_next(struct encoder *encoder, struct error *error, size_t index,
                                 const struct step *step, const uint8_t *text, size_t size,
                                 unsigned flags)
{
    size_t start = 0;
    size_t found = step_find(step, text, size, 0);

    while (start < size) {
        TRY(add_part(encoder, error, index + 1, text, start, found, flags));
        start = found;
        if (found < size) {
            found = step_find(step, text, size, found + step->from_size);
        }
    }
    return STATUS_OK;
}

static enum status run_cut(struct encoder *encoder, struct error *error, size_t index,
                           const uint8_t *text, size_t size, unsigned flags)
{
    const struct step *step = &encoder->tokenizer->cuts[index];
    size_t start = 0;

    if (step->cut == CUT_WITH_PREVIOUS) {
        return cut_with_previous(encoder, error, index, text, size, flags);
    }
    if (step->cut == CUT_WITH_NEXT) {
        return cut_with_next(encoder, error, index, step, text, size, flags);
    }
    while (start < size) {
        size_t found = step_find(step, text, size, start);
        size_t end = found == size ? size : found + step->from_size;

        while (step->cut == CUT_CONTIGUOUS && end < size &&
               step_find(step, text, size, end) == end) {
            end += step->from_size;
        }
        TRY(add_part(encoder, error, index + 1, text, start, found, flags));
        if (step->cut != CUT_REMOVED) {
            TRY(add_part(encoder, error, index + 1, text, found, end, flags));
        }
        start = end;
    }
    return STATUS_OK;
}

static bool begins_with(const uint8_t *text, size_t size, const uint8_t *with, size_t with_size)
{
    return size >= with_size && memcmp(text, with, with_size) == 0;
}

/* Puts `to` before the text, or blanks as `to`: in a buffer of the step. */
static enum status run_put(struct encoder *encoder, struct error *error, size_t index,
                           const uint8_t *text, size_t size, unsigned flags)
{
    const struct step *step = &encoder->tokenizer->cuts[index];
    const bool metaspace = step->kind == STEP_METASPACE;
    struct buffer *out = &encoder->cut[index];
    /* Nothing is put where other text stands before: the mark is for a beginning. */
    bool put = (step->put == PUT_ALWAYS || (step->put == PUT_FIRST && !(flags & ENCODE_INNER))) &&
               !(flags & ENCODE_CONTINUED);

    put = put && !begins_with(text, size, step->to, step->to_size) &&
          !(metaspace && begins_with(text, size, step->from, step->from_size));
    if (!put && !metaspace) {
        return add_cut(encoder, error, index + 1, text, size, flags);
    }
    buffer_clear(out);
    if (put) {
        buffer_add(out, step->to, step->to_size);
    }
    if (metaspace) {
        step_replace(step, out, text, size);
    } else {
        buffer_add(out, text, size);
    }
    TRY(buffer_check(out, error, "text"));
    /* Each mark then begins a piece of its own. */
    if (metaspace && step->alone) {
        struct step marks = {.from_size = step->to_size};

        memcpy(marks.from, step->to, step->to_size);
        return cut_with_next(encoder, error, index, &marks, out->data, out->size, flags);
    }
    return add_cut(encoder, error, index + 1, out->data, out->size, flags);
}

/* Step by step; behind the last a piece is merged. At most STEPS_MAX calls stand in each other. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static enum status add_cut(struct encoder *encoder, struct error *error, size_t index,
                           const uint8_t *text, size_t size, unsigned flags)
{
    if (index == encoder->tokenizer->cut_count) {
        return add_piece(encoder, text, size, error);
    }
    switch (encoder->tokenizer->cuts[index].kind) {
    case STEP_SPLITTER:
        return run_splitter(encoder, error, index, text, size, flags);
    case STEP_CUT:
        return run_cut(encoder, error, index, text, size, flags);
    case STEP_DIGITS:
        return run_digits(encoder, error, index, text, size, flags);
    case STEP_METASPACE:
    case STEP_BYTE_PREFIX:
        return run_put(encoder, error, index, text, size, flags);
    case STEP_NFC:
    case STEP_REPLACE:
    case STEP_PREPEND:
        break;
    }
    return STATUS_OK;
}

/* ---- the text ---- */

/* Text between added tokens: normalized, and then between those of normalized text. */
static enum status add_section(struct encoder *encoder, struct error *error, const uint8_t *text,
                               size_t size, unsigned flags)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct step_text normal = {text, size};
    size_t at = 0;

    TRY(step_normalize(tokenizer->normalizers, tokenizer->normalizer_count, encoder->normalized,
                       &normal, (flags & ENCODE_CONTINUED) != 0, error));
    while (at < normal.size) {
        struct added_match match;

        added_find(&match, &tokenizer->added, true, (flags & ENCODE_SPECIAL) != 0, normal.bytes,
                   normal.size, at);
        TRY(add_part(encoder, error, 0, normal.bytes, at, match.start, flags));
        if (match.token != NULL) {
            TRY(encoder_add_id(encoder, error, match.token->id));
        }
        flags = (flags | ENCODE_INNER) & ~(unsigned)ENCODE_CONTINUED;
        at = match.end;
    }
    return STATUS_OK;
}

enum status encoder_add(struct encoder *encoder, struct error *error, const uint8_t *text,
                        size_t size, unsigned flags)
{
    size_t at = 0;

    if (size > ENCODE_SIZE_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a text of %zu bytes; at most %u", size,
                         ENCODE_SIZE_MAX);
    }
    while (at < size) {
        struct added_match match;

        added_find(&match, &encoder->tokenizer->added, false, (flags & ENCODE_SPECIAL) != 0, text,
                   size, at);
        if (match.start > at) {
            TRY(add_section(encoder, error, text + at, match.start - at, flags));
        }
        if (match.token != NULL) {
            TRY(encoder_add_id(encoder, error, match.token->id));
        }
        flags = (flags | ENCODE_INNER) & ~(unsigned)ENCODE_CONTINUED;
        at = match.end;
    }
    return STATUS_OK;
}
