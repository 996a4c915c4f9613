/* model_read.c - see model_read.h. All bytes are a stranger's. */
#include "data/token/model_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "data/text/utf8.h"
#include "data/token/joined.h"
#include "data/token/step_read.h"

enum {
    TEXT_MAX = 1 << 16, /* of a token */
    ALPHABET = 324,     /* the code points that stand for bytes are below it */
    NO_BYTE = 256,
};

/* What is read into the tokenizer. */
struct model_reading {
    struct tokenizer *tokenizer;
    const json_t *root;
    const json_t *model;
    uint16_t alphabet[ALPHABET]; /* the byte that a code point stands for, or NO_BYTE */
    uint8_t *scratch;            /* 2 * TEXT_MAX bytes */
};

/* ---- tokens as bytes ---- */

/* Byte-level vocabularies are written in printable characters: a byte that prints is itself, the
 * others follow at 256. */
static void make_alphabet(uint16_t alphabet[ALPHABET])
{
    uint32_t next = 256;

    for (size_t i = 0; i < ALPHABET; i++) {
        alphabet[i] = NO_BYTE;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);

        alphabet[prints ? byte : next++] = (uint16_t)byte;
    }
}

/* The bytes that a token of the vocabulary stands for. What is not written in the alphabet is
 * taken as it is: special tokens are. */
static enum status token_bytes(const struct model_reading *reading, uint8_t *out, size_t *out_size,
                               const char *text, size_t size, struct error *error)
{
    size_t at = 0;

    if (size > TEXT_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a token of %zu bytes; at most %d", size,
                         TEXT_MAX);
    }
    *out_size = 0;
    while (reading->tokenizer->byte_level && at < size) {
        uint32_t code = utf8_next((const uint8_t *)text, &at);

        if (code >= ALPHABET || reading->alphabet[code] == NO_BYTE) {
            break;
        }
        out[(*out_size)++] = (uint8_t)reading->alphabet[code];
        if (at == size) {
            return STATUS_OK;
        }
    }
    memcpy(out, text, size);
    *out_size = size;
    return STATUS_OK;
}

static enum status take_vocabulary(struct model_reading *reading, const json_t *vocabulary,
                                   struct error *error)
{
    const char *text;
    size_t length;
    json_t *id;

    if (!json_is_object(vocabulary) || json_object_size(vocabulary) == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "no 'vocab'");
    }
    json_object_keylen_foreach((json_t *)vocabulary, text, length, id)
    {
        size_t size = 0;

        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= VOCABULARY_MAX) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the id of the token '%.100s' is not a number from 0 to %u", text,
                             VOCABULARY_MAX - 1);
        }
        TRY(token_bytes(reading, reading->scratch, &size, text, length, error));
        TRY(vocabulary_add(&reading->tokenizer->vocabulary, error, (uint32_t)json_integer_value(id),
                           reading->scratch, size));
    }
    return STATUS_OK;
}

/* ---- merges ---- */

/* As much of a token as a sentence shows. */
static int shown_size(size_t size)
{
    return size < 60 ? (int)size : 60;
}

static enum status add_merge(struct model_reading *reading, const char *left, size_t left_size,
                             const char *right, size_t right_size, struct error *error)
{
    struct tokenizer *tokenizer = reading->tokenizer;
    const struct vocabulary *vocabulary = &tokenizer->vocabulary;
    uint8_t *bytes = reading->scratch;
    size_t sizes[2] = {0, 0};
    uint32_t ids[3];

    TRY(token_bytes(reading, bytes, &sizes[0], left, left_size, error));
    TRY(token_bytes(reading, bytes + sizes[0], &sizes[1], right, right_size, error));
    if (sizes[0] == 0 || sizes[1] == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "a part is empty, so the merge would never end");
    }
    ids[0] = vocabulary_find(vocabulary, bytes, sizes[0]);
    ids[1] = vocabulary_find(vocabulary, bytes + sizes[0], sizes[1]);
    ids[2] = vocabulary_find(vocabulary, bytes, sizes[0] + sizes[1]);
    if (ids[0] == VOCABULARY_NONE || ids[1] == VOCABULARY_NONE || ids[2] == VOCABULARY_NONE) {
        return error_set(error, STATUS_BAD_FORMAT, "'%.*s' and '%.*s': %s is not in the vocabulary",
                         shown_size(left_size), left, shown_size(right_size), right,
                         ids[0] == VOCABULARY_NONE || ids[1] == VOCABULARY_NONE ? "one of them"
                                                                                : "what they make");
    }
    if (merges_add(&tokenizer->merges, ids[0], ids[1], ids[2]) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "'%.*s' and '%.*s' are there twice",
                         shown_size(left_size), left, shown_size(right_size), right);
    }
    return STATUS_OK;
}

/* "left right" */
static enum status add_merge_text(struct model_reading *reading, const char *text, size_t size,
                                  struct error *error)
{
    const char *blank = memchr(text, ' ', size);

    if (blank == NULL || memchr(blank + 1, ' ', (size_t)(text + size - blank - 1)) != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "it must be two tokens and one blank");
    }
    return add_merge(reading, text, (size_t)(blank - text), blank + 1,
                     (size_t)(text + size - blank - 1), error);
}

static enum status take_merge(struct model_reading *reading, const json_t *merge,
                              struct error *error)
{
    const json_t *left = json_array_get(merge, 0);
    const json_t *right = json_array_get(merge, 1);

    if (json_is_string(merge)) {
        return add_merge_text(reading, json_string_value(merge), json_string_length(merge), error);
    }
    if (json_array_size(merge) != 2 || !json_is_string(left) || !json_is_string(right)) {
        return error_set(error, STATUS_BAD_FORMAT, "it must be two tokens");
    }
    return add_merge(reading, json_string_value(left), json_string_length(left),
                     json_string_value(right), json_string_length(right), error);
}

static enum status take_merges(struct model_reading *reading, const json_t *merges,
                               struct error *error)
{
    size_t i;
    json_t *merge;

    if (!json_is_array(merges)) {
        return error_set(error, STATUS_BAD_FORMAT, "no 'merges'");
    }
    TRY(merges_init(&reading->tokenizer->merges, error, json_array_size(merges)));
    json_array_foreach(merges, i, merge)
    {
        if (take_merge(reading, merge, error) != STATUS_OK) {
            return error_wrap(error, "merge %zu", i + 1);
        }
    }
    return STATUS_OK;
}

/* ---- bytes, unknown tokens, and where a text can be cut ---- */

static void take_byte_ids(struct tokenizer *tokenizer)
{
    tokenizer->byte_fallback = tokenizer->byte_fallback && !tokenizer->byte_level;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t one = (uint8_t)byte;
        char name[8];

        (void)snprintf(name, sizeof(name), "<0x%02X>", byte);
        tokenizer->all_bytes[byte] = one;
        tokenizer->byte_ids[byte] = VOCABULARY_NONE;
        if (tokenizer->byte_level) {
            tokenizer->byte_ids[byte] = vocabulary_find(&tokenizer->vocabulary, &one, 1);
        } else if (tokenizer->byte_fallback) {
            tokenizer->byte_ids[byte] = vocabulary_find(&tokenizer->vocabulary, name, strlen(name));
        }
    }
}

/* With all bytes at hand nothing is unknown, so a cut between two characters changes nothing that
 * is on either side, unless tokens of bytes are merged too. */
static enum status take_joined(struct tokenizer *tokenizer, struct error *error)
{
    const struct merges *merges = &tokenizer->merges;
    size_t of_bytes = 0;

    for (unsigned byte = 0; byte < 256; byte++) {
        if (tokenizer->byte_ids[byte] == VOCABULARY_NONE) {
            return STATUS_OK;
        }
    }
    if (tokenizer->byte_level || !tokenizer->byte_fallback || tokenizer->ignore_merges) {
        return STATUS_OK;
    }
    tokenizer->joined = calloc(1, JOINED_BYTES);
    if (tokenizer->joined == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a tokenizer");
    }
    for (size_t i = 0; i < merges->slot_count; i++) {
        const struct merge_slot *slot = &merges->slots[i];
        const uint32_t parts[2] = {slot->left, slot->right};
        size_t size = 0;
        const uint8_t *bytes = vocabulary_bytes(&tokenizer->vocabulary, slot->product, &size);

        for (size_t part = 0; slot->left != UINT32_MAX && part < 2; part++) {
            size_t part_size = 0;
            const uint8_t *text = tokenizer_bytes(tokenizer, parts[part], &part_size);

            /* The byte 0x80 of a character stands for itself alone. */
            of_bytes +=
                part_size == 1 && text >= tokenizer->all_bytes && text < tokenizer->all_bytes + 256;
        }
        if (slot->left != UINT32_MAX && bytes != NULL) {
            joined_add(tokenizer->joined, bytes, size);
        }
    }
    if (of_bytes > 0) {
        free(tokenizer->joined);
        tokenizer->joined = NULL;
    }
    return STATUS_OK;
}

static enum status take_unknown(struct model_reading *reading, struct error *error)
{
    const json_t *unknown = json_object_get(reading->model, "unk_token");
    struct tokenizer *tokenizer = reading->tokenizer;

    if (unknown == NULL || json_is_null(unknown)) {
        return STATUS_OK;
    }
    if (json_is_string(unknown)) {
        tokenizer->unknown = vocabulary_find(&tokenizer->vocabulary, json_string_value(unknown),
                                             json_string_length(unknown));
    }
    return tokenizer->unknown == VOCABULARY_NONE
               ? step_read_refuse(error, "unk_token", unknown, "it is not in the vocabulary")
               : STATUS_OK;
}

/* ---- the model ---- */

static bool is_nothing(const json_t *json)
{
    return json == NULL || json_is_null(json) || json_is_false(json) ||
           (json_is_string(json) && json_string_length(json) == 0) ||
           (json_is_number(json) && json_number_value(json) == 0.0);
}

static enum status take_model(struct model_reading *reading, struct error *error)
{
    static const char *const known[] = {"type",          "dropout",
                                        "unk_token",     "continuing_subword_prefix",
                                        "fuse_unk",      "end_of_word_suffix",
                                        "ignore_merges", "byte_fallback",
                                        "vocab",         "merges"};
    /* Settings that change ids and that we do not have: they pass only where they are off. */
    static const char *const nothing[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix"};
    const json_t *model = reading->model;
    const json_t *type = json_object_get(model, "type");
    struct tokenizer *tokenizer = reading->tokenizer;

    if (!json_is_object(model)) {
        return error_set(error, STATUS_BAD_FORMAT, "no 'model': not a tokenizer.json");
    }
    if (type != NULL && !(json_is_string(type) && strcmp(json_string_value(type), "BPE") == 0)) {
        return step_read_refuse(error, "type", type, "we do byte pair encoding (BPE)");
    }
    /* A key that we do not know may change ids too. */
    TRY(strict_json_only(model, error, known, sizeof(known) / sizeof(known[0])));
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        if (!is_nothing(json_object_get(model, nothing[i]))) {
            return step_read_refuse(error, nothing[i], json_object_get(model, nothing[i]),
                                    "we do none");
        }
    }
    tokenizer->fuse_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    tokenizer->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    tokenizer->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    tokenizer->unknown = VOCABULARY_NONE;
    TRY(take_vocabulary(reading, json_object_get(model, "vocab"), error));
    /* A merge names two tokens and makes a third: the vocabulary must have all three by now. */
    TRY(take_merges(reading, json_object_get(model, "merges"), error));
    TRY(take_unknown(reading, error));
    take_byte_ids(tokenizer);
    return take_joined(tokenizer, error);
}

/* ---- added tokens ---- */

static bool is_flagged(const json_t *json, const char *key)
{
    return json_is_true(json_object_get(json, key));
}

static enum status take_added_token(struct model_reading *reading, const json_t *json,
                                    struct error *error)
{
    struct tokenizer *tokenizer = reading->tokenizer;
    const json_t *content = json_object_get(json, "content");
    struct added_token token = {.special = is_flagged(json, "special"),
                                .normalized = is_flagged(json, "normalized"),
                                .lstrip = is_flagged(json, "lstrip"),
                                .rstrip = is_flagged(json, "rstrip")};
    const uint8_t *there;
    uint64_t id = 0;
    size_t size = 0;

    if (!json_is_string(content)) {
        return error_set(error, STATUS_BAD_FORMAT, "it has no 'content'");
    }
    TRY(strict_json_number(json, error, &id, "id", VOCABULARY_MAX - 1));
    if (is_flagged(json, "single_word")) {
        return step_read_refuse(error, "added token", json, "we do not look for single words");
    }
    token.id = (uint32_t)id;
    /* Borrowed from the JSON: added_add() copies the bytes. */
    token.bytes = (uint8_t *)json_string_value(content);
    token.size = json_string_length(content);
    there = vocabulary_bytes(&tokenizer->vocabulary, token.id, &size);
    /* A token may stand in both lists, but then it is the same one. */
    if (there != NULL && (size != token.size || memcmp(there, token.bytes, size) != 0)) {
        return error_set(error, STATUS_BAD_FORMAT, "the vocabulary has another token of id %u",
                         token.id);
    }
    if (added_of_id(&tokenizer->added, token.id) != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "two added tokens have the id %u", token.id);
    }
    return added_add(&tokenizer->added, error, &token);
}

/* Of normalized text a token is looked for as the normalizer writes it. */
static enum status index_added(struct tokenizer *tokenizer, size_t index, struct buffer buffers[2],
                               struct error *error)
{
    const struct added_token *token = &tokenizer->added.tokens[index];
    struct step_text text = {token->bytes, token->size};

    if (token->normalized) {
        TRY(step_normalize(tokenizer->normalizers, tokenizer->normalizer_count, buffers, &text,
                           false, error));
    }
    if (text.size == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "nothing of it is left by the normalizer");
    }
    return added_index(&tokenizer->added, error, index, text.bytes, text.size);
}

static enum status take_added(struct model_reading *reading, struct error *error)
{
    const json_t *list = json_object_get(reading->root, "added_tokens");
    struct buffer buffers[2];
    enum status status = STATUS_OK;
    size_t i;
    json_t *token;

    if (list == NULL || json_is_null(list)) {
        return STATUS_OK;
    }
    if (!json_is_array(list) || json_array_size(list) > ADDED_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "'added_tokens' is not a list of at most %u",
                         ADDED_MAX);
    }
    /* A normalizer may make a token longer: room for each of its bytes becoming as many as a step
     * makes. */
    buffer_init(&buffers[0], (size_t)ADDED_BYTES_MAX * STEP_BYTES_MAX);
    buffer_init(&buffers[1], (size_t)ADDED_BYTES_MAX * STEP_BYTES_MAX);
    json_array_foreach(list, i, token)
    {
        status = take_added_token(reading, token, error);
        if (status == STATUS_OK) {
            status = index_added(reading->tokenizer, i, buffers, error);
        }
        if (status != STATUS_OK) {
            (void)error_wrap(error, "added token %zu", i + 1);
            break;
        }
    }
    buffer_release(&buffers[0]);
    buffer_release(&buffers[1]);
    return status;
}

enum status model_read(struct tokenizer *tokenizer, const json_t *root, struct error *error)
{
    struct model_reading reading = {tokenizer, root, json_object_get(root, "model"), {0}, NULL};
    const struct vocabulary *vocabulary = &tokenizer->vocabulary;
    enum status status;

    make_alphabet(reading.alphabet);
    reading.scratch = malloc(2 * (size_t)TEXT_MAX);
    if (reading.scratch == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a tokenizer");
    }
    TRY_OUT(take_model(&reading, error));
    TRY_OUT(take_added(&reading, error));
    tokenizer->id_count = vocabulary->id_count;
    for (size_t i = 0; i < tokenizer->added.count; i++) {
        uint32_t id = tokenizer->added.tokens[i].id;

        tokenizer->id_count = id >= tokenizer->id_count ? id + 1 : tokenizer->id_count;
    }
out:
    free(reading.scratch);
    return status;
}
