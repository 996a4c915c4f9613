/*
 * tokenizer_read.c - the part of tokenizer.h that reads files: tokenizer.json, its config and chat
 * template, or vocab.json with merges.txt.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "data/token/model_read.h"
#include "data/token/step_read.h"
#include "proofs/hash/sha256.h"

enum {
    DEPTH_MAX = 16,
    CONFIG_SIZE_MAX = 16 << 20,
    TEMPLATE_SIZE_MAX = 1 << 20,
};

/* ---- what is put before and behind a text ---- */

static enum status take_end(struct tokenizer *tokenizer, const json_t *part, bool behind,
                            struct error *error)
{
    const json_t *id = json_object_get(json_object_get(part, "SpecialToken"), "id");
    size_t *count = behind ? &tokenizer->behind_count : &tokenizer->before_count;
    uint32_t *ids = behind ? tokenizer->behind : tokenizer->before;
    uint32_t found = VOCABULARY_NONE;

    if (json_is_string(id)) {
        found = tokenizer_id(tokenizer, json_string_value(id));
    }
    if (found == VOCABULARY_NONE || *count == TOKENIZER_ENDS_MAX) {
        return step_read_refuse(error, "post_processor", part, "this is no token of the tokenizer");
    }
    ids[(*count)++] = found;
    return STATUS_OK;
}

static enum status take_template(struct tokenizer *tokenizer, const json_t *json,
                                 struct error *error)
{
    const json_t *single = json_object_get(json, "single");
    bool behind = false;
    size_t i;
    json_t *part;

    json_array_foreach(single, i, part)
    {
        if (json_object_get(part, "Sequence") != NULL && !behind) {
            behind = true;
        } else {
            TRY(take_end(tokenizer, part, behind, error));
        }
    }
    return behind ? STATUS_OK
                  : step_read_refuse(error, "post_processor", json, "it has no place for the text");
}

static enum status take_one_end(struct tokenizer *tokenizer, const json_t *json,
                                struct error *error)
{
    const json_t *type = json_object_get(json, "type");
    const char *name = json_is_string(type) ? json_string_value(type) : "";

    if (json == NULL || json_is_null(json) || strcmp(name, "ByteLevel") == 0) {
        return STATUS_OK; /* moves offsets, and no ids */
    }
    if (strcmp(name, "TemplateProcessing") == 0) {
        return take_template(tokenizer, json, error);
    }
    return step_read_refuse(error, "post_processor", json,
                            "we do TemplateProcessing and ByteLevel");
}

static enum status take_ends(struct tokenizer *tokenizer, const json_t *json, struct error *error)
{
    const json_t *parts = json_object_get(json, "processors");
    size_t i;
    json_t *part;

    if (!json_is_array(parts)) {
        return take_one_end(tokenizer, json, error);
    }
    json_array_foreach(parts, i, part)
    {
        TRY(take_one_end(tokenizer, part, error));
    }
    return STATUS_OK;
}

/* What the decoder shows as a blank: ids do not depend on it. */
static void take_blanks(struct tokenizer *tokenizer, const json_t *decoder)
{
    const json_t *text = json_object_get(decoder, "replacement"); /* Metaspace */
    size_t i;
    json_t *part;

    json_array_foreach(json_object_get(decoder, "decoders"), i, part)
    {
        const json_t *content = json_object_get(part, "content");

        if (json_is_string(content) && strcmp(json_string_value(content), " ") == 0 &&
            json_object_get(part, "pattern") != NULL) {
            text = json_object_get(json_object_get(part, "pattern"), "String");
        }
    }
    if (json_is_string(text) && json_string_length(text) <= STEP_BYTES_MAX) {
        tokenizer->shown_from_size = json_string_length(text);
        memcpy(tokenizer->shown_from, json_string_value(text), tokenizer->shown_from_size);
    }
}

/* ---- tokenizer.json ---- */

static enum status read_root(struct tokenizer *tokenizer, const json_t *root, struct error *error)
{
    static const char *const known[] = {"version",        "truncation", "padding",
                                        "added_tokens",   "normalizer", "pre_tokenizer",
                                        "post_processor", "decoder",    "model"};

    if (!json_is_object(root)) {
        return error_set(error, STATUS_BAD_FORMAT, "no object: not a tokenizer.json");
    }
    TRY(strict_json_only(root, error, known, sizeof(known) / sizeof(known[0])));
    TRY(step_read_normalizer(tokenizer, json_object_get(root, "normalizer"), error));
    TRY(step_read_cuts(tokenizer, json_object_get(root, "pre_tokenizer"), error));
    TRY(model_read(tokenizer, root, error));
    take_blanks(tokenizer, json_object_get(root, "decoder"));
    return take_ends(tokenizer, json_object_get(root, "post_processor"), error);
}

enum status tokenizer_parse(struct tokenizer *tokenizer, struct error *error, const void *bytes,
                            size_t size, const char *what)
{
    enum status status;
    json_t *root;

    *tokenizer = (struct tokenizer){
        .unknown = VOCABULARY_NONE, .bos = VOCABULARY_NONE, .eos = VOCABULARY_NONE};
    TRY(strict_json_parse_escaped_nul(&root, error, what, bytes, size, TOKENIZER_SIZE_MAX,
                                      DEPTH_MAX));
    status = read_root(tokenizer, root, error);
    json_decref(root);
    if (status != STATUS_OK) {
        tokenizer_release(tokenizer);
        (void)error_wrap(error, "%s", what);
    }
    return status;
}

/* ---- files ---- */

/* Reads a file of the folder, which must be there or may not, and remembers its hash. */
static enum status read_file(struct tokenizer *tokenizer, struct file_bytes *bytes,
                             const char *folder, const char *name, size_t size_max,
                             struct error *error)
{
    struct tokenizer_file *file = &tokenizer->files[tokenizer->file_count];
    char path[FILE_PATH_MAX];

    TRY(file_path_join(path, sizeof(path), error, folder, name));
    TRY(file_read(bytes, error, path, size_max));
    (void)snprintf(file->name, sizeof(file->name), "%s", name);
    sha256(&file->sha256, bytes->data, bytes->size);
    file->size = bytes->size;
    tokenizer->file_count++;
    return STATUS_OK;
}

static bool is_there(const char *folder, const char *name)
{
    char path[FILE_PATH_MAX];

    return file_path_join(path, sizeof(path), NULL, folder, name) == STATUS_OK && file_exists(path);
}

/* A token of the config: its text, or an object with its content. Others are no tokens of ours. */
static uint32_t config_token(const struct tokenizer *tokenizer, const json_t *config,
                             const char *key)
{
    const json_t *token = json_object_get(config, key);
    const json_t *text = json_is_object(token) ? json_object_get(token, "content") : token;

    return json_is_string(text) ? tokenizer_id(tokenizer, json_string_value(text))
                                : VOCABULARY_NONE;
}

/* One template, or several by name of which "default" is meant. */
static const json_t *config_template(const json_t *config)
{
    const json_t *found = json_object_get(config, "chat_template");
    size_t i;
    json_t *named;

    json_array_foreach(found, i, named)
    {
        const json_t *name = json_object_get(named, "name");

        if (json_is_string(name) && strcmp(json_string_value(name), "default") == 0) {
            return json_object_get(named, "template");
        }
    }
    return found;
}

static enum status keep_template(struct tokenizer *tokenizer, const char *text, size_t size,
                                 struct error *error)
{
    free(tokenizer->chat_template);
    tokenizer->chat_template = strndup(text, size);
    return tokenizer->chat_template == NULL
               ? error_set(error, STATUS_NO_MEMORY, "out of memory for a chat template")
               : STATUS_OK;
}

static enum status read_config(struct tokenizer *tokenizer, const char *folder, struct error *error)
{
    static const char name[] = "tokenizer_config.json";
    struct file_bytes bytes = {0};
    const json_t *template;
    json_t *config = NULL;
    enum status status;

    if (!is_there(folder, name)) {
        return STATUS_OK;
    }
    TRY_OUT(read_file(tokenizer, &bytes, folder, name, CONFIG_SIZE_MAX, error));
    TRY_OUT(strict_json_parse_texts(&config, error, name, bytes.data, bytes.size, CONFIG_SIZE_MAX,
                                    DEPTH_MAX));
    tokenizer->bos = config_token(tokenizer, config, "bos_token");
    tokenizer->eos = config_token(tokenizer, config, "eos_token");
    template = config_template(config);
    if (json_is_string(template)) {
        status = keep_template(tokenizer, json_string_value(template), json_string_length(template),
                               error);
    }
out:
    json_decref(config);
    file_bytes_release(&bytes);
    return status;
}

/* Newer folders have the template beside the config. */
static enum status read_template(struct tokenizer *tokenizer, const char *folder,
                                 struct error *error)
{
    static const char name[] = "chat_template.jinja";
    struct file_bytes bytes = {0};
    enum status status;

    if (!is_there(folder, name)) {
        return STATUS_OK;
    }
    TRY_OUT(read_file(tokenizer, &bytes, folder, name, TEMPLATE_SIZE_MAX, error));
    status = keep_template(tokenizer, (const char *)bytes.data, bytes.size, error);
out:
    file_bytes_release(&bytes);
    return status;
}

/* ---- vocab.json and merges.txt ---- */

/* The lines of merges.txt as a list of texts; the first says its version. */
static enum status list_merges(json_t **list, const struct file_bytes *bytes, struct error *error)
{
    const char *at = (const char *)bytes->data;
    const char *end = at + bytes->size;

    *list = json_array();
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((line_end == NULL ? end : line_end) - at);
        size_t kept = size > 0 && at[size - 1] == '\r' ? size - 1 : size;

        if (kept > 0 && !(at == (const char *)bytes->data && at[0] == '#') &&
            json_array_append_new(*list, json_stringn(at, kept)) != 0) {
            return error_set(error, STATUS_BAD_FORMAT, "merges.txt: not UTF-8, or out of memory");
        }
        at += size + 1;
    }
    return STATUS_OK;
}

/* GPT-2's two files say the same as its tokenizer.json. */
static enum status read_gpt2(struct tokenizer *tokenizer, const char *folder, struct error *error)
{
    struct file_bytes vocabulary = {0};
    struct file_bytes merges = {0};
    json_t *ids = NULL;
    json_t *list = NULL;
    json_t *root = NULL;
    enum status status;

    TRY_OUT(read_file(tokenizer, &vocabulary, folder, "vocab.json", TOKENIZER_SIZE_MAX, error));
    TRY_OUT(read_file(tokenizer, &merges, folder, "merges.txt", TOKENIZER_SIZE_MAX, error));
    TRY_OUT(strict_json_parse(&ids, error, "vocab.json", vocabulary.data, vocabulary.size,
                              TOKENIZER_SIZE_MAX, DEPTH_MAX));
    TRY_OUT(list_merges(&list, &merges, error));
    root = json_pack("{s:{s:s, s:b}, s:{s:O, s:O}}", "pre_tokenizer", "type", "ByteLevel",
                     "add_prefix_space", 0, "model", "vocab", ids, "merges", list);
    status = root == NULL ? error_set(error, STATUS_NO_MEMORY, "out of memory for a tokenizer")
                          : read_root(tokenizer, root, error);
out:
    json_decref(root);
    json_decref(list);
    json_decref(ids);
    file_bytes_release(&merges);
    file_bytes_release(&vocabulary);
    return status;
}

static enum status read_json(struct tokenizer *tokenizer, const char *folder, struct error *error)
{
    struct file_bytes bytes = {0};
    json_t *root = NULL;
    enum status status;

    TRY_OUT(read_file(tokenizer, &bytes, folder, "tokenizer.json", TOKENIZER_SIZE_MAX, error));
    TRY_OUT(strict_json_parse_escaped_nul(&root, error, "tokenizer.json", bytes.data, bytes.size,
                                          TOKENIZER_SIZE_MAX, DEPTH_MAX));
    status = read_root(tokenizer, root, error);
out:
    json_decref(root);
    file_bytes_release(&bytes);
    return status;
}

/* Ids are bytes, and nothing else is. */
static enum status make_bytes(struct tokenizer *tokenizer, struct error *error)
{
    for (unsigned i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;

        TRY(vocabulary_add(&tokenizer->vocabulary, error, i, &byte, 1));
        tokenizer->all_bytes[i] = byte;
        tokenizer->byte_ids[i] = i;
    }
    tokenizer->byte_level = true;
    tokenizer->cuts[0] = (struct step){.kind = STEP_SPLITTER, .splitter = SPLITTER_GPT2};
    tokenizer->cut_count = 1; /* so that words are remembered */
    tokenizer->id_count = 256;
    return STATUS_OK;
}

/* The folder of a tokenizer.json that is named itself. */
static enum status folder_of(char folder[FILE_PATH_MAX], const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;

    if (strcmp(name, "tokenizer.json") != 0) {
        slash = path + strlen(path);
    } else if (slash == NULL) {
        path = ".";
        slash = path + 1;
    }
    if (snprintf(folder, FILE_PATH_MAX, "%.*s", (int)(slash - path), path) >= FILE_PATH_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a path of more than %d bytes", FILE_PATH_MAX);
    }
    return STATUS_OK;
}

static enum status read_folder(struct tokenizer *tokenizer, const char *folder, struct error *error)
{
    if (!is_there(folder, "tokenizer.json") && !is_there(folder, "vocab.json")) {
        (void)error_set(error, STATUS_NOT_FOUND, "no tokenizer.json and no vocab.json");
        error_advise(error,
                     "name the folder of a model as it is published, or '%s' for a model of "
                     "your own that reads bytes",
                     TOKENIZER_BYTES);
        return STATUS_NOT_FOUND;
    }
    TRY(is_there(folder, "tokenizer.json") ? read_json(tokenizer, folder, error)
                                           : read_gpt2(tokenizer, folder, error));
    TRY(read_config(tokenizer, folder, error));
    return read_template(tokenizer, folder, error);
}

enum status tokenizer_open(struct tokenizer *tokenizer, struct error *error, const char *path)
{
    char folder[FILE_PATH_MAX];
    enum status status;

    *tokenizer = (struct tokenizer){
        .unknown = VOCABULARY_NONE, .bos = VOCABULARY_NONE, .eos = VOCABULARY_NONE};
    if (strcmp(path, TOKENIZER_BYTES) == 0) {
        status = make_bytes(tokenizer, error);
    } else {
        TRY(folder_of(folder, path, error));
        status = read_folder(tokenizer, folder, error);
    }
    if (status != STATUS_OK) {
        tokenizer_release(tokenizer);
        (void)error_wrap(error, "tokenizer '%s'", path);
    }
    return status;
}
