/* step_read.c - see step_read.h. */
#include "data/token/step_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"

#define SHOWN_MAX 400

enum status step_read_refuse(struct error *error, const char *what, const json_t *json,
                             const char *why)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

    (void)error_set(error, STATUS_REFUSED, "'%s' is %.*s: %s", what, SHOWN_MAX,
                    text == NULL ? "?" : text, why);
    free(text);
    return STATUS_REFUSED;
}

static bool is_type(const json_t *json, const char *type)
{
    const json_t *found = json_object_get(json, "type");

    return json_is_string(found) && strcmp(json_string_value(found), type) == 0;
}

/* A flag that may be left out. */
static bool flag_of(const json_t *json, const char *key, bool fallback)
{
    const json_t *found = json_object_get(json, key);

    return json_is_boolean(found) ? json_is_true(found) : fallback;
}

/* Copies a text of 1 to STEP_BYTES_MAX bytes; none, if it may be empty. */
static enum status take_bytes(uint8_t bytes[STEP_BYTES_MAX], size_t *size, const json_t *json,
                              bool may_be_empty, const char *what, struct error *error)
{
    *size = json_string_length(json);
    if (!json_is_string(json) || *size > STEP_BYTES_MAX || (*size == 0 && !may_be_empty)) {
        return step_read_refuse(error, what, json, "it must be a text of 1 to 64 bytes");
    }
    memcpy(bytes, json_string_value(json), *size);
    return STATUS_OK;
}

/* The next step of a list. */
static enum status new_step(struct step **step, struct step *steps, size_t *count, const char *what,
                            struct error *error)
{
    if (*count == STEPS_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "'%s' has more than %d steps", what, STEPS_MAX);
    }
    *step = &steps[(*count)++];
    **step = (struct step){0};
    return STATUS_OK;
}

/* ---- normalizers ---- */

static enum status take_normalizer(struct tokenizer *tokenizer, const json_t *json,
                                   struct error *error)
{
    const json_t *pattern = json_object_get(json, "pattern");
    struct step *step = NULL;

    if (json == NULL || json_is_null(json)) {
        return STATUS_OK;
    }
    TRY(new_step(&step, tokenizer->normalizers, &tokenizer->normalizer_count, "normalizer", error));
    if (is_type(json, "NFC")) {
        step->kind = STEP_NFC;
        return STATUS_OK;
    }
    if (is_type(json, "Prepend")) {
        step->kind = STEP_PREPEND;
        return take_bytes(step->to, &step->to_size, json_object_get(json, "prepend"), true,
                          "prepend", error);
    }
    if (is_type(json, "Replace") && json_is_object(pattern) &&
        json_object_get(pattern, "String") != NULL) {
        step->kind = STEP_REPLACE;
        TRY(take_bytes(step->from, &step->from_size, json_object_get(pattern, "String"), false,
                       "pattern", error));
        return take_bytes(step->to, &step->to_size, json_object_get(json, "content"), true,
                          "content", error);
    }
    return step_read_refuse(error, "normalizer", json,
                            "we do NFC, Prepend, Replace of a string, and sequences of them");
}

enum status step_read_normalizer(struct tokenizer *tokenizer, const json_t *json,
                                 struct error *error)
{
    const json_t *parts = json_object_get(json, "normalizers");
    size_t i;
    json_t *part;

    if (!is_type(json, "Sequence")) {
        return take_normalizer(tokenizer, json, error);
    }
    if (!json_is_array(parts)) {
        return step_read_refuse(error, "normalizer", json, "a sequence must have 'normalizers'");
    }
    json_array_foreach(parts, i, part)
    {
        TRY(take_normalizer(tokenizer, part, error));
    }
    return STATUS_OK;
}

/* ---- pre-tokenizers ---- */

static enum status take_behavior(struct step *step, const json_t *json, struct error *error)
{
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const json_t *behavior = json_object_get(json, "behavior");

    for (size_t i = 0; json_is_string(behavior) && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(json_string_value(behavior), names[i]) == 0) {
            step->cut = (enum step_cut)i;
            return STATUS_OK;
        }
    }
    return step_read_refuse(error, "behavior", behavior, "we do not know it");
}

/* All expressions of ours cut a text without leaving anything out: what matches is a piece. */
static enum status take_expression(struct step *step, const json_t *json, const json_t *expression,
                                   struct error *error)
{
    const bool invert = flag_of(json, "invert", false);

    step->kind = STEP_SPLITTER;
    step->splitter = json_is_string(expression) &&
                             json_string_length(expression) == strlen(json_string_value(expression))
                         ? splitter_of(json_string_value(expression))
                         : SPLITTER_NONE;
    if (step->splitter == SPLITTER_NONE) {
        return step_read_refuse(error, "Regex", expression,
                                "we cut by the published expressions of GPT-2, cl100k and Llama 3, "
                                "Qwen, o200k and Tekken, by digits and by strings");
    }
    if (invert ? step->cut != CUT_REMOVED : step->cut != CUT_ISOLATED) {
        return step_read_refuse(error, "behavior", json, "we make each match a piece");
    }
    return STATUS_OK;
}

static enum status take_split(struct step *step, const json_t *json, struct error *error)
{
    const json_t *pattern = json_object_get(json, "pattern");
    const json_t *text = json_object_get(pattern, "String");

    TRY(take_behavior(step, json, error));
    if (text == NULL) {
        return take_expression(step, json, json_object_get(pattern, "Regex"), error);
    }
    if (flag_of(json, "invert", false)) {
        return step_read_refuse(error, "pre_tokenizer", json, "we do not invert strings");
    }
    step->kind = STEP_CUT;
    return take_bytes(step->from, &step->from_size, text, false, "pattern", error);
}

static enum status take_metaspace(struct step *step, const json_t *json, struct error *error)
{
    static const char *const names[] = {"never", "first", "always"};
    const json_t *scheme = json_object_get(json, "prepend_scheme");

    step->kind = STEP_METASPACE;
    step->from[0] = ' ';
    step->from_size = 1;
    step->alone = flag_of(json, "split", true);
    step->put = flag_of(json, "add_prefix_space", true) ? PUT_ALWAYS : PUT_NEVER;
    TRY(take_bytes(step->to, &step->to_size, json_object_get(json, "replacement"), false,
                   "replacement", error));
    for (size_t i = 0; scheme != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (json_is_string(scheme) && strcmp(json_string_value(scheme), names[i]) == 0) {
            step->put = (enum step_put)i;
            return STATUS_OK;
        }
    }
    return scheme == NULL ? STATUS_OK
                          : step_read_refuse(error, "prepend_scheme", scheme, "we do not know it");
}

/* Its text becomes bytes; what it does to blanks and its expression are steps before that. */
static enum status take_byte_level(struct tokenizer *tokenizer, const json_t *json,
                                   struct error *error)
{
    struct step *step = NULL;

    if (flag_of(json, "add_prefix_space", true)) {
        TRY(new_step(&step, tokenizer->cuts, &tokenizer->cut_count, "pre_tokenizer", error));
        *step =
            (struct step){.kind = STEP_BYTE_PREFIX, .put = PUT_ALWAYS, .to = {' '}, .to_size = 1};
    }
    if (flag_of(json, "use_regex", true)) {
        TRY(new_step(&step, tokenizer->cuts, &tokenizer->cut_count, "pre_tokenizer", error));
        *step = (struct step){.kind = STEP_SPLITTER, .splitter = SPLITTER_GPT2};
    }
    tokenizer->byte_level = true;
    return STATUS_OK;
}

static enum status take_cut(struct tokenizer *tokenizer, const json_t *json, struct error *error)
{
    struct step *step = NULL;

    if (json == NULL || json_is_null(json)) {
        return STATUS_OK;
    }
    if (tokenizer->byte_level) {
        return step_read_refuse(error, "pre_tokenizer", json, "nothing may follow ByteLevel");
    }
    if (is_type(json, "ByteLevel")) {
        return take_byte_level(tokenizer, json, error);
    }
    TRY(new_step(&step, tokenizer->cuts, &tokenizer->cut_count, "pre_tokenizer", error));
    if (is_type(json, "Split")) {
        return take_split(step, json, error);
    }
    if (is_type(json, "Metaspace")) {
        return take_metaspace(step, json, error);
    }
    if (is_type(json, "Digits")) {
        step->kind = STEP_DIGITS;
        step->alone = flag_of(json, "individual_digits", false);
        return STATUS_OK;
    }
    return step_read_refuse(error, "pre_tokenizer", json,
                            "we do ByteLevel, Split, Digits, Metaspace, and sequences of them");
}

enum status step_read_cuts(struct tokenizer *tokenizer, const json_t *json, struct error *error)
{
    const json_t *parts = json_object_get(json, "pretokenizers");
    size_t i;
    json_t *part;

    if (!is_type(json, "Sequence")) {
        return take_cut(tokenizer, json, error);
    }
    if (!json_is_array(parts)) {
        return step_read_refuse(error, "pre_tokenizer", json,
                                "a sequence must have 'pretokenizers'");
    }
    json_array_foreach(parts, i, part)
    {
        TRY(take_cut(tokenizer, part, error));
    }
    return STATUS_OK;
}
