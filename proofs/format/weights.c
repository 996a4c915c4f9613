/* weights.c - see weights.h. */
#include "proofs/format/weights.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/text.h"

enum {
    BEGINNING_SIZE = 16, /* of a file, to tell what it is */
    INDEX_DEPTH_MAX = 4,
    PIECE = 65536, /* elements that are widened at a time */
};

static const char suffix[] = ".safetensors";

/* ---- files of other kinds ------------------------------------------------ */

#define PYTORCH                                                                                    \
    "import sys, torch; from safetensors.torch import save_file; save_file({k: v.float()."         \
    "contiguous().clone() for k, v in torch.load(sys.argv[1], map_location=\"cpu\", "              \
    "weights_only=True).items()}, sys.argv[2])"

static const struct {
    const char *bytes;
    size_t size;
    const char *what;
    const char *convert; /* a program of Python; NULL: there is no short one */
} kinds[] = {
    {"PK\003\004", 4, "a zip archive, as PyTorch saves .pt, .pth and .bin", PYTORCH},
    {"\200\002", 2, "a pickle, as old PyTorch saves .pt, .pth and .bin", PYTORCH},
    {"\200\003", 2, "a pickle of Python", PYTORCH},
    {"\200\004", 2, "a pickle of Python", PYTORCH},
    {"\200\005", 2, "a pickle of Python", PYTORCH},
    {"GGUF", 4, "a GGUF file, as llama.cpp has them", NULL},
    {"\211HDF", 4, "an HDF5 file, as Keras has them", NULL},
    {"\223NUMPY", 6, "a .npy file of NumPy: one array without a name", NULL},
    {"version https://", 16, "a Git LFS pointer: the file itself was not fetched", NULL},
    {"{", 1, "a JSON text, such as the index of a model in several files", NULL},
};

/* In place of what the reader of safetensors makes of the first bytes of such a file. */
static void name_other_kind(const char *path, struct error *error)
{
    char bytes[BEGINNING_SIZE] = "";
    uint64_t size = 0;
    int descriptor = -1;

    if (whole_file_read_open(&descriptor, &size, NULL, path) != STATUS_OK) {
        return;
    }
    if (size >= sizeof(bytes) &&
        whole_file_read_at(descriptor, NULL, bytes, sizeof(bytes), 0, path) != STATUS_OK) {
        size = 0;
    }
    (void)close(descriptor);
    for (size_t i = 0; size >= sizeof(bytes) && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        /* A short mark may also be the length of a header that is there. */
        if (memcmp(bytes, kinds[i].bytes, kinds[i].size) != 0 ||
            (kinds[i].size <= 2 && endian_load_le64((const uint8_t *)bytes) <= size - 8)) {
            continue;
        }
        (void)error_set(error, STATUS_BAD_FORMAT,
                        "%s: this is %s; a first state is one .safetensors file, or a folder of "
                        "Hugging Face",
                        path, kinds[i].what);
        if (kinds[i].convert == NULL) {
            error_advise(error, "save the weights as one .safetensors file, by their names in the "
                                "model, as F32");
        } else {
            error_advise(error, "python3 -c '%s' %.80s first.safetensors", kinds[i].convert, path);
        }
        return;
    }
}

/* ---- the index ---------------------------------------------------------- */

/* A file beside the index: no path, nothing hidden, nothing that a terminal should not print. */
static bool is_shard_name(const char *name)
{
    size_t length = strlen(name);

    if (length > 200 || name[0] == '.' || !text_ends_with(name, suffix)) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '/') {
            return false;
        }
    }
    return true;
}

static enum status check_index(const json_t *root, const char *what, struct error *error)
{
    static const char *const known[] = {"metadata", "weight_map"};
    json_t *map = json_object_get(root, "weight_map");
    const char *name;
    json_t *file;

    if (!json_is_object(map) || json_object_size(map) == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: no 'weight_map' of names to files", what);
    }
    if (strict_json_only(root, error, known, 2) != STATUS_OK) {
        return error_wrap(error, "%s", what);
    }
    json_object_foreach(map, name, file)
    {
        if (!json_is_string(file) || !is_shard_name(json_string_value(file))) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "%s: a tensor's file is not the plain name of a .safetensors file "
                             "beside the index",
                             what);
        }
    }
    return STATUS_OK;
}

enum status weights_index_parse(struct weights_index *index, const void *bytes, size_t size,
                                const char *what, struct error *error)
{
    enum status status;
    json_t *root;

    *index = (struct weights_index){NULL};
    TRY(strict_json_parse(&root, error, what, bytes, size, WEIGHTS_INDEX_SIZE_MAX,
                          INDEX_DEPTH_MAX));
    status = check_index(root, what, error);
    if (status == STATUS_OK) {
        index->map = json_incref(json_object_get(root, "weight_map"));
    }
    json_decref(root);
    return status;
}

void weights_index_release(struct weights_index *index)
{
    json_decref(index->map);
    index->map = NULL;
}

/* ---- opening ------------------------------------------------------------ */

static enum status add_file(struct weights *weights, const char *path, struct error *error)
{
    size_t count = (size_t)weights->file_count + 1;
    struct safetensors *larger;
    char **paths;
    enum status status;

    if (count > WEIGHTS_SHARDS_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "%s: more than %d files", weights->path,
                         WEIGHTS_SHARDS_MAX);
    }
    larger = realloc(weights->files, count * sizeof(*larger));
    weights->files = larger == NULL ? weights->files : larger;
    paths = realloc(weights->paths, count * sizeof(*paths));
    weights->paths = paths == NULL ? weights->paths : paths;
    if (larger == NULL || paths == NULL || (paths[count - 1] = strdup(path)) == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the weights in %s", path);
    }
    status = safetensors_open(&weights->files[weights->file_count], error, path);
    if (status == STATUS_BAD_FORMAT || status == STATUS_OVER_LIMIT) {
        name_other_kind(path, error);
    }
    if (status != STATUS_OK) {
        free(paths[count - 1]);
        return status;
    }
    weights->file_count++;
    return STATUS_OK;
}

/* The modules that hold the layers, in the two layouts. */
static const char of_gpt2[] = "transformer.";
static const char of_llama[] = "model.";
/* And the modules of a text part beside others. */
static const char of_peft[] = "base_model.model.";
static const char of_text[] = "language_model.";
static const char inside_model[] = "model.language_model.";

static bool begins_with(const char *name, const char *begin)
{
    return strncmp(name, begin, strlen(begin)) == 0;
}

static bool is_of_text(const char *name)
{
    return begins_with(name, of_text) || begins_with(name, inside_model);
}

static int by_name(const void *left, const void *right)
{
    const struct weights_entry *a = left;
    const struct weights_entry *b = right;

    return strcmp(a->entry->name, b->entry->name);
}

/* Once all files are open: they do not move any more. */
static enum status collect_entries(struct weights *weights, struct error *error)
{
    size_t count = 0;

    for (uint32_t i = 0; i < weights->file_count; i++) {
        count += weights->files[i].entry_count;
    }
    weights->entries = calloc(count + 1, sizeof(*weights->entries));
    if (weights->entries == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the weights in %s", weights->path);
    }
    for (uint32_t i = 0; i < weights->file_count; i++) {
        for (uint32_t j = 0; j < weights->files[i].entry_count; j++) {
            const struct safetensors_entry *entry = &weights->files[i].entries[j];

            weights->entries[weights->entry_count++] =
                (struct weights_entry){entry, &weights->files[i]};
            weights->text_part = weights->text_part || is_of_text(entry->name);
            weights->adapters = weights->adapters || begins_with(entry->name, of_peft);
        }
    }
    qsort(weights->entries, weights->entry_count, sizeof(*weights->entries), by_name);
    for (uint32_t i = 1; i < weights->entry_count; i++) {
        if (by_name(&weights->entries[i - 1], &weights->entries[i]) == 0) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s' is in %s and in %s",
                             weights->entries[i].entry->name, weights->entries[i - 1].file->path,
                             weights->entries[i].file->path);
        }
    }
    return STATUS_OK;
}

/* Is the file among the first `count` of the map's? */
static bool is_earlier(json_t *map, const char *file, const char *before)
{
    const char *name;
    json_t *other;

    json_object_foreach(map, name, other)
    {
        if (strcmp(name, before) == 0) {
            return false;
        }
        if (strcmp(json_string_value(other), file) == 0) {
            return true;
        }
    }
    return false;
}

static enum status open_shards(struct weights *weights, const struct weights_index *index,
                               const char *folder, struct error *error)
{
    const char *name;
    json_t *file;

    json_object_foreach(index->map, name, file)
    {
        char path[FILE_PATH_MAX];
        bool open =
            weights->file_count > 0 && is_earlier(index->map, json_string_value(file), name);

        if (open) {
            continue;
        }
        TRY(file_path_join(path, sizeof(path), error, folder, json_string_value(file)));
        if (!file_exists(path)) {
            (void)error_set(error, STATUS_NOT_FOUND,
                            "%s: %s names it, for '%.100s' among others, and it is missing", path,
                            WEIGHTS_INDEX_NAME, name);
            error_advise(error, "fetch the whole folder");
            return STATUS_NOT_FOUND;
        }
        TRY(add_file(weights, path, error));
    }
    return collect_entries(weights, error);
}

/* The last part of a path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* The index and its shards must say the same. */
static enum status check_shards(const struct weights *weights, const struct weights_index *index,
                                struct error *error)
{
    const char *name;
    json_t *file;

    json_object_foreach(index->map, name, file)
    {
        const struct weights_entry *entry = weights_find(weights, name);

        if (entry == NULL ||
            strcmp(base_name(weights_path(weights, entry)), json_string_value(file)) != 0) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "%s: %s says that '%.100s' is in %s, and it is not", weights->path,
                             WEIGHTS_INDEX_NAME, name, json_string_value(file));
        }
    }
    for (uint32_t i = 0; i < weights->entry_count; i++) {
        if (json_object_get(index->map, weights->entries[i].entry->name) == NULL) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: '%s' is in no line of %s",
                             weights->entries[i].file->path, weights->entries[i].entry->name,
                             WEIGHTS_INDEX_NAME);
        }
    }
    return STATUS_OK;
}

static enum status open_index(struct weights *weights, const char *folder, const char *path,
                              struct error *error)
{
    struct weights_index index = {NULL};
    struct file_bytes bytes = {0};
    enum status status;

    TRY(file_read(&bytes, error, path, WEIGHTS_INDEX_SIZE_MAX));
    TRY_OUT(weights_index_parse(&index, bytes.data, bytes.size, path, error));
    TRY_OUT(open_shards(weights, &index, folder, error));
    TRY_OUT(check_shards(weights, &index, error));
out:
    weights_index_release(&index);
    file_bytes_release(&bytes);
    return status;
}

static void advise_conversion(const char *folder, const char *other, struct error *error)
{
    if (text_ends_with(other, ".gguf")) {
        error_advise(error, "take the folder that the .gguf was made from");
    } else if (strstr(other, "-of-") != NULL || text_ends_with(other, ".h5") ||
               text_ends_with(other, ".msgpack")) {
        error_advise(error,
                     "python3 -c 'import sys; from transformers import AutoModelForCausalLM as M; "
                     "M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2])' %.60s NEW",
                     folder);
    } else {
        error_advise(error,
                     "for a .bin, .pt or .pth of PyTorch: python3 -c '%s' %.60s/%.60s "
                     "%.60s/model.safetensors",
                     PYTORCH, folder, other, folder);
    }
}

enum status weights_only_adapters(const char *folder, struct error *error)
{
    (void)error_set(error, STATUS_NOT_FOUND, "%s: adapters of PEFT, and not a whole model", folder);
    error_advise(error,
                 "merge them into their base first: 'lockstep base merge BASE --adapter %s --out "
                 "FOLDER'",
                 folder);
    return STATUS_NOT_FOUND;
}

/* A folder without weights that we read: says what is there instead. */
static enum status say_missing(const char *folder, struct error *error)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    char other[256] = "";
    bool adapters = false;
    bool shards = false;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        shards = shards || text_ends_with(entry->d_name, suffix);
        adapters = adapters || strcmp(entry->d_name, "adapter_model.safetensors") == 0;
        /* Formats that are programs (pickles) or that hold names of their own: said by name, never
         * opened. */
        if (text_ends_with(entry->d_name, ".bin") || text_ends_with(entry->d_name, ".pt") ||
            text_ends_with(entry->d_name, ".pth") || text_ends_with(entry->d_name, ".gguf") ||
            text_ends_with(entry->d_name, ".h5") || text_ends_with(entry->d_name, ".msgpack")) {
            (void)snprintf(other, sizeof(other), "%s", entry->d_name);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    if (adapters) {
        return weights_only_adapters(folder, error);
    }
    if (shards) {
        (void)error_set(error, STATUS_NOT_FOUND,
                        "%s: .safetensors files, and neither model.safetensors nor %s", folder,
                        WEIGHTS_INDEX_NAME);
        error_advise(error, "fetch the whole folder: the index says which tensor is where");
    } else if (other[0] != '\0') {
        (void)error_set(error, STATUS_NOT_FOUND,
                        "%s: the weights are in '%s', and we read .safetensors only: other formats "
                        "can run programs, or hold no names",
                        folder, other);
        advise_conversion(folder, other, error);
    } else {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no model.safetensors", folder);
        error_advise(error, "name a folder as Hugging Face publishes it");
    }
    return STATUS_NOT_FOUND;
}

/* A folder has model.safetensors and an index only where the index names this file alone. */
static enum status check_twice(const struct weights *weights, const char *whole,
                               struct error *error)
{
    if (!file_exists(whole) ||
        (weights->file_count == 1 && strcmp(weights->paths[0], whole) == 0)) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_BAD_FORMAT,
                    "%s: the weights are there twice, as model.safetensors and by %s",
                    weights->path, WEIGHTS_INDEX_NAME);
    error_advise(error, "remove the one that is not meant");
    return STATUS_BAD_FORMAT;
}

static enum status open_folder(struct weights *weights, const char *folder, struct error *error)
{
    char whole[FILE_PATH_MAX];
    char index[FILE_PATH_MAX];

    TRY(file_path_join(whole, sizeof(whole), error, folder, "model.safetensors"));
    TRY(file_path_join(index, sizeof(index), error, folder, WEIGHTS_INDEX_NAME));
    if (file_exists(index)) {
        TRY(open_index(weights, folder, index, error));
        return check_twice(weights, whole, error);
    }
    if (!file_exists(whole)) {
        return say_missing(folder, error);
    }
    TRY(add_file(weights, whole, error));
    return collect_entries(weights, error);
}

enum status weights_open(struct weights *weights, const char *path, struct error *error)
{
    struct stat info;
    enum status status;

    *weights = (struct weights){0};
    (void)snprintf(weights->path, sizeof(weights->path), "%s", path);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        status = open_folder(weights, path, error);
    } else {
        status = add_file(weights, path, error);
        status = status == STATUS_OK ? collect_entries(weights, error) : status;
    }
    if (status != STATUS_OK) {
        weights_close(weights);
    }
    return status;
}

void weights_close(struct weights *weights)
{
    for (uint32_t i = 0; i < weights->file_count; i++) {
        safetensors_close(&weights->files[i]);
        free(weights->paths[i]);
    }
    free(weights->files);
    free(weights->paths);
    free(weights->entries);
    *weights = (struct weights){0};
}

const struct weights_entry *weights_find(const struct weights *weights, const char *name)
{
    uint32_t low = 0;
    uint32_t high = weights->entry_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(weights->entries[middle].entry->name, name);

        if (order == 0) {
            return &weights->entries[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* Modules of a base can stand before a name in many ways: each is looked at. */
static const struct weights_entry *find_adapter(const struct weights *weights, const char *name)
{
    for (uint32_t i = 0; i < weights->entry_count; i++) {
        char plain[WEIGHTS_NAME_MAX + 1];

        weights_plain_name(plain, weights->entries[i].entry->name);
        if (strcmp(plain, name) == 0) {
            return &weights->entries[i];
        }
    }
    return NULL;
}

const struct weights_entry *weights_find_plain(const struct weights *weights, const char *name)
{
    const struct weights_entry *entry = weights_find(weights, name);
    bool model = begins_with(name, of_llama);
    char longer[WEIGHTS_NAME_MAX + sizeof(inside_model)];

    if (weights->adapters) {
        return find_adapter(weights, name);
    }
    if (entry == NULL && weights->text_part) {
        (void)snprintf(longer, sizeof(longer), "%s%s", of_text, name);
        entry = weights_find(weights, longer);
        if (entry == NULL && model) {
            (void)snprintf(longer, sizeof(longer), "%s%s", inside_model, name + strlen(of_llama));
            entry = weights_find(weights, longer);
        }
        return entry;
    }
    if (entry == NULL && model) {
        return weights_find(weights, name + strlen(of_llama));
    }
    if (entry == NULL) {
        (void)snprintf(longer, sizeof(longer), "%s%s", of_gpt2, name);
        entry = weights_find(weights, longer);
    }
    return entry;
}

const struct safetensors_entry *weights_find_in(const struct safetensors *file, const char *name)
{
    const struct safetensors_entry *entry = safetensors_find(file, name);
    char longer[WEIGHTS_NAME_MAX + sizeof(inside_model)];

    if (entry == NULL) {
        (void)snprintf(longer, sizeof(longer), "%s%s", of_text, name);
        entry = safetensors_find(file, longer);
    }
    if (entry == NULL && begins_with(name, of_llama)) {
        (void)snprintf(longer, sizeof(longer), "%s%s", inside_model, name + strlen(of_llama));
        entry = safetensors_find(file, longer);
    }
    return entry;
}

void weights_plain_name(char plain[WEIGHTS_NAME_MAX + 1], const char *name)
{
    static const char *const inside[] = {"layers.", "embed_tokens.", "norm.", "decoder."};
    const char *module = "";

    name += begins_with(name, of_peft) ? strlen(of_peft) : 0;
    if (begins_with(name, inside_model)) {
        name += strlen(inside_model);
        module = of_llama;
    }
    name += begins_with(name, of_text) ? strlen(of_text) : 0;
    name += begins_with(name, of_gpt2) ? strlen(of_gpt2) : 0;
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
        module = begins_with(name, inside[i]) ? of_llama : module;
    }
    (void)snprintf(plain, WEIGHTS_NAME_MAX + 1, "%s%s", module, name);
}

bool weights_is_beside(const struct weights *weights, const char *name)
{
    return weights->text_part && !is_of_text(name) && !begins_with(name, "lm_head.");
}

const char *weights_path(const struct weights *weights, const struct weights_entry *entry)
{
    return weights->paths[entry->file - weights->files];
}

/* ---- reading ------------------------------------------------------------ */

bool weights_widen(enum element element)
{
    return element == ELEMENT_F32 || element == ELEMENT_F16 || element == ELEMENT_BF16;
}

/* Exact: every binary16 is a binary32. */
static uint32_t widen_f16(uint32_t half)
{
    uint32_t sign = (half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3FF;

    if (exponent == 31) {
        return sign | 0x7F800000 | fraction << 13;
    }
    if (exponent != 0) {
        return sign | (exponent + 112) << 23 | fraction << 13;
    }
    if (fraction == 0) {
        return sign;
    }
    for (exponent = 113; (fraction & 0x400) == 0; exponent--) {
        fraction <<= 1;
    }
    return sign | exponent << 23 | (fraction & 0x3FF) << 13;
}

static enum status read_piece(float *out, const struct weights_entry *entry, uint64_t from,
                              size_t count, uint8_t *narrow, struct error *error)
{
    enum element element = entry->entry->element;
    size_t size = element_size(element);

    TRY(safetensors_read(entry->file, error, size == 4 ? (void *)out : narrow, entry->entry,
                         count * size, from * size));
    for (size_t i = 0; size == 2 && i < count; i++) {
        uint32_t bits = (uint32_t)narrow[2 * i] | (uint32_t)narrow[2 * i + 1] << 8;

        bits = element == ELEMENT_BF16 ? bits << 16 : widen_f16(bits);
        memcpy(&out[i], &bits, sizeof(bits));
    }
    if (!element_all_finite(out, count)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: '%s' holds a NaN or an infinity",
                         entry->file->path, entry->entry->name);
    }
    return STATUS_OK;
}

enum status weights_read(float *out, const struct weights_entry *entry, uint64_t from,
                         uint64_t count, struct error *error)
{
    uint8_t *narrow = malloc((size_t)PIECE * 2);
    enum status status = STATUS_OK;

    if (narrow == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to read '%s'", entry->entry->name);
    }
    for (uint64_t at = 0; at < count; at += PIECE) {
        size_t piece = count - at < PIECE ? (size_t)(count - at) : PIECE;

        TRY_OUT(read_piece(out + at, entry, from + at, piece, narrow, error));
    }
out:
    free(narrow);
    return status;
}
