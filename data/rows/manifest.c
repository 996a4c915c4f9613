/* manifest.c - see manifest.h. */
#include "data/rows/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/version.h"
#include "data/text/unicode.h"

#define DEPTH_MAX  8
#define NUMBER_MAX ((UINT64_C(1) << 63) - 1)

static const char *const too_longs[] = {"cut", "split", "leave"};
static const char *const splits[] = {"file", "line", "blank"};
static const char *const learns[] = {"assistant", "last", "all"};
static const char *const sides[PACKING_SIDES] = {"rows", "held_out"};
/* In the order of struct packing_counts. */
static const char *const count_names[PACKING_COUNTS] = {"examples", "held_out", "empty", "too_long",
                                                        "dropped",  "replaced", "pairs"};

/* ---- writing ---- */

static json_t *text_or_null(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

json_t *manifest_options(const struct pack_options *options)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:b, s:s, s:b, s:b, s:s}", "length",
                     (int)options->length, "long", too_longs[options->too_long], "split_on",
                     splits[options->split], "chat", options->chat, "learn", learns[options->learn],
                     "system", text_or_null(options->system), "date", text_or_null(options->date),
                     "bos", options->bos, "eos", options->eos, "special", options->special,
                     "replace_invalid", options->replace, "share", options->held_out);
}

static json_t *tokenizer_json(const struct packing *packing)
{
    const struct tokenizer *tokenizer = &packing->tokenizer;
    json_t *files = json_array();

    for (size_t i = 0; i < tokenizer->file_count; i++) {
        const struct tokenizer_file *file = &tokenizer->files[i];

        (void)json_array_append_new(files, json_pack("{s:s, s:o, s:I}", "name", file->name,
                                                     "sha256", strict_json_digest(&file->sha256),
                                                     "size", (json_int_t)file->size));
    }
    return json_pack("{s:s, s:I, s:s, s:o}", "path", packing->options->tokenizer, "ids",
                     (json_int_t)tokenizer->id_count, "unicode", UNICODE_VERSION, "files", files);
}

static json_t *sources_json(const struct packing *packing)
{
    json_t *list = json_array();

    for (size_t i = 0; i < packing->options->source_count; i++) {
        (void)json_array_append_new(list, json_pack("{s:s, s:o, s:I}", "path",
                                                    packing->options->sources[i], "sha256",
                                                    strict_json_digest(&packing->done[i].sha256),
                                                    "size", (json_int_t)packing->done[i].size));
    }
    return list;
}

static json_t *side_json(const struct packing *packing, size_t side, const struct digest *roots)
{
    const struct row_packer *packer = &packing->packers[side];
    const uint64_t tokens = packer->tokens == 0 ? 1 : packer->tokens;
    char share[32];
    json_t *json;

    /* By whole numbers: the same text on every machine. */
    (void)snprintf(share, sizeof(share), "%" PRIu64 ".%04" PRIu64, packer->learned / tokens,
                   (uint64_t)((unsigned __int128)packer->learned * 10000 / tokens) % 10000);
    json = json_pack("{s:I, s:I, s:I, s:s}", "count", (json_int_t)packer->closed, "token_count",
                     (json_int_t)packer->tokens, "learned_count", (json_int_t)packer->learned,
                     "learned_share", share);
    for (int i = 0; i < ROW_TENSORS && packer->closed > 0; i++) {
        const enum row_tensor which = (enum row_tensor)i;

        (void)json_object_set_new(json, row_tensor_name(which),
                                  json_pack("{s:s, s:o}", "type",
                                            dtype_name(packing->shape.types[i]), "root",
                                            strict_json_digest(&roots[i])));
    }
    return json;
}

json_t *manifest_make(const struct packing *packing,
                      const struct digest roots[PACKING_SIDES][ROW_TENSORS])
{
    uint64_t counts[PACKING_COUNTS];
    json_t *counted = json_object();
    json_t *root;

    memcpy(counts, &packing->counts, sizeof(counts));
    for (size_t i = 0; i < PACKING_COUNTS; i++) {
        (void)json_object_set_new(counted, count_names[i], json_integer((json_int_t)counts[i]));
    }
    root = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "format", MANIFEST_FORMAT, "program",
                     LOCKSTEP_VERSION, "options", manifest_options(packing->options), "tokenizer",
                     tokenizer_json(packing), "sources", sources_json(packing), "counts", counted);
    for (size_t i = 0; i < PACKING_SIDES && root != NULL; i++) {
        (void)json_object_set_new(root, sides[i], side_json(packing, i, roots[i]));
    }
    return root;
}

/* ---- reading ---- */

static enum status object_of(const json_t *from, struct error *error, const json_t **object,
                             const char *key)
{
    *object = json_object_get(from, key);
    return json_is_object(*object)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "'%s' is missing, or no object", key);
}

static enum status choice_of(const json_t *from, struct error *error, unsigned *choice,
                             const char *key, const char *const *words, size_t count)
{
    const char *text;

    TRY(strict_json_text(from, error, &text, key));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *choice = (unsigned)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_FORMAT, "'%s' is '%.40s'", key, text);
}

static enum status text_or_null_of(const json_t *from, struct error *error, const char **text,
                                   const char *key)
{
    *text = NULL;
    return json_is_null(json_object_get(from, key)) ? STATUS_OK
                                                    : strict_json_text(from, error, text, key);
}

static enum status take_options(struct manifest *manifest, struct error *error)
{
    static const char *const eos[] = {"always", "tokenizer", "never"};
    struct pack_options *options = &manifest->options;
    const json_t *json;
    uint64_t below;
    uint64_t length = 0;
    unsigned choice = 0;

    TRY(object_of(manifest->root, error, &json, "options"));
    TRY(strict_json_number(json, error, &length, "length", ROW_LENGTH_MAX));
    /* A token learns to say the next one: a row of one token teaches nothing. */
    if (length < 2) {
        return error_set(error, STATUS_BAD_FORMAT, "'length' is below 2");
    }
    options->length = (uint32_t)length;
    TRY(choice_of(json, error, &choice, "long", too_longs, 3));
    options->too_long = (enum packing_long)choice;
    TRY(choice_of(json, error, &choice, "split_on", splits, 3));
    options->split = (enum packing_split)choice;
    TRY(choice_of(json, error, &choice, "learn", learns, 3));
    options->learn = (enum example_learn)choice;
    TRY(choice_of(json, error, &choice, "eos", eos, 3));
    options->eos = eos[choice];
    TRY(strict_json_text(json, error, &options->chat, "chat"));
    TRY(text_or_null_of(json, error, &options->system, "system"));
    TRY(text_or_null_of(json, error, &options->date, "date"));
    TRY(strict_json_flag(json, error, &options->bos, "bos"));
    TRY(strict_json_flag(json, error, &options->special, "special"));
    TRY(strict_json_flag(json, error, &options->replace, "replace_invalid"));
    TRY(strict_json_text(json, error, &options->held_out, "share"));
    /* Kept as it was written, since the decimal is part of the manifest; here it must only be a
     * share. */
    return packing_share(&below, error, options->held_out);
}

static enum status take_tokenizer(struct manifest *manifest, struct error *error)
{
    const json_t *json;
    const json_t *files;
    uint64_t ids = 0;
    size_t i;
    json_t *file;

    TRY(object_of(manifest->root, error, &json, "tokenizer"));
    TRY(strict_json_text(json, error, &manifest->options.tokenizer, "path"));
    TRY(strict_json_number(json, error, &ids, "ids", VOCABULARY_MAX));
    TRY(strict_json_array(json, error, &files, "files", TOKENIZER_FILES_MAX));
    json_array_foreach(files, i, file)
    {
        struct tokenizer_file *taken = &manifest->files[manifest->file_count++];
        const char *name;

        TRY(strict_json_text(file, error, &name, "name"));
        TRY(strict_json_hex(file, error, taken->sha256.bytes, DIGEST_SIZE, "sha256"));
        TRY(strict_json_number(file, error, &taken->size, "size", NUMBER_MAX));
        (void)snprintf(taken->name, sizeof(taken->name), "%s", name);
    }
    row_shape_of(&manifest->shape, manifest->options.length, (uint32_t)ids);
    return STATUS_OK;
}

static enum status take_sources(struct manifest *manifest, struct error *error)
{
    const json_t *list;
    size_t count;
    size_t i;
    json_t *source;

    TRY(strict_json_array(manifest->root, error, &list, "sources", PACKING_SOURCES_MAX));
    count = json_array_size(list);
    manifest->source_paths = calloc(count + 1, sizeof(*manifest->source_paths));
    manifest->sources = calloc(count + 1, sizeof(*manifest->sources));
    if (manifest->source_paths == NULL || manifest->sources == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a manifest");
    }
    json_array_foreach(list, i, source)
    {
        TRY(strict_json_text(source, error, &manifest->source_paths[i], "path"));
        TRY(strict_json_hex(source, error, manifest->sources[i].sha256.bytes, DIGEST_SIZE,
                            "sha256"));
        TRY(strict_json_number(source, error, &manifest->sources[i].size, "size", NUMBER_MAX));
    }
    manifest->options.sources = manifest->source_paths;
    manifest->options.source_count = count;
    return STATUS_OK;
}

static enum status take_counts(struct manifest *manifest, struct error *error)
{
    uint64_t counts[PACKING_COUNTS];
    const json_t *json;

    TRY(object_of(manifest->root, error, &json, "counts"));
    for (size_t i = 0; i < PACKING_COUNTS; i++) {
        TRY(strict_json_number(json, error, &counts[i], count_names[i], NUMBER_MAX));
    }
    memcpy(&manifest->counts, counts, sizeof(counts));
    return STATUS_OK;
}

static enum status take_side(struct manifest *manifest, struct error *error, size_t side)
{
    const json_t *json;

    TRY(object_of(manifest->root, error, &json, sides[side]));
    TRY(strict_json_number(json, error, &manifest->rows[side], "count",
                           TENSOR_COUNT_MAX / manifest->shape.length));
    TRY(strict_json_number(json, error, &manifest->tokens[side], "token_count", NUMBER_MAX));
    TRY(strict_json_number(json, error, &manifest->learned[side], "learned_count", NUMBER_MAX));
    for (int i = 0; i < ROW_TENSORS && manifest->rows[side] > 0; i++) {
        const json_t *tensor;
        const char *type;

        TRY(object_of(json, error, &tensor, row_tensor_name((enum row_tensor)i)));
        TRY(strict_json_text(tensor, error, &type, "type"));
        if (strcmp(type, dtype_name(manifest->shape.types[i])) != 0) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s' has the type '%.20s'",
                             row_tensor_name((enum row_tensor)i), type);
        }
        TRY(strict_json_hex(tensor, error, manifest->roots[side][i].bytes, DIGEST_SIZE, "root"));
    }
    return STATUS_OK;
}

static enum status take_all(struct manifest *manifest, struct error *error)
{
    static const char *const known[] = {"format",  "program", "options", "tokenizer",
                                        "sources", "counts",  "rows",    "held_out"};
    const char *format;

    TRY(strict_json_text(manifest->root, error, &format, "format"));
    if (strcmp(format, MANIFEST_FORMAT) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the format is '%.40s', not %s", format,
                         MANIFEST_FORMAT);
    }
    TRY(strict_json_only(manifest->root, error, known, sizeof(known) / sizeof(known[0])));
    TRY(take_options(manifest, error));
    TRY(take_tokenizer(manifest, error));
    TRY(take_sources(manifest, error));
    TRY(take_counts(manifest, error));
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        if (take_side(manifest, error, i) != STATUS_OK) {
            return error_wrap(error, "%s", sides[i]);
        }
    }
    return STATUS_OK;
}

enum status manifest_parse(struct manifest *manifest, struct error *error, const void *bytes,
                           size_t size)
{
    enum status status;

    *manifest = (struct manifest){0};
    TRY(strict_json_parse(&manifest->root, error, MANIFEST_NAME, bytes, size, MANIFEST_SIZE_MAX,
                          DEPTH_MAX));
    status = take_all(manifest, error);
    if (status != STATUS_OK) {
        manifest_release(manifest);
        (void)error_wrap(error, MANIFEST_NAME);
    }
    return status;
}

enum status manifest_read(struct manifest *manifest, struct error *error, const char *folder)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(file_path_join(path, sizeof(path), error, folder, MANIFEST_NAME));
    status = file_read(&bytes, error, path, MANIFEST_SIZE_MAX);
    if (status == STATUS_NOT_FOUND) {
        error_advise(error, "name a folder that 'lockstep data pack' made");
        return status;
    }
    TRY(status);
    status = manifest_parse(manifest, error, bytes.data, bytes.size);
    file_bytes_release(&bytes);
    return status;
}

void manifest_release(struct manifest *manifest)
{
    json_decref(manifest->root);
    free(manifest->source_paths);
    free(manifest->sources);
    memset(manifest, 0, sizeof(*manifest));
}
