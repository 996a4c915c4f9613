/* lineage_product.c - see lineage_product.h. */
#include "verifier/lineage/lineage_product.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/io/whole_file.h"
#include "base/text.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/bundle/model_export.h"
#include "proofs/format/new_folder.h"
#include "verifier/lineage/lineage_run.h"

enum { PIECE_SIZE = 1 << 20, CONFIG_SIZE_MAX = 1 << 20, DEPTH_MAX = 16 };

struct product_check {
    struct lineage *lineage;
    struct lineage_item *product;
    struct lineage_item *run;
    struct model_export options;
    char again[FILE_PATH_MAX]; /* the folder that is written once more */
    char base_name[MODEL_CARD_BASE_MAX + 1];
    bool same;
};

/* ---- comparing files -------------------------------------------------------------- */

/* The first byte that differs, or UINT64_MAX. Files of other sizes differ at the shorter's end. */
static enum status find_difference(uint64_t *place, const char *path, const char *other,
                                   struct error *error)
{
    uint8_t *pieces = malloc(2 * PIECE_SIZE);
    int descriptors[2] = {-1, -1};
    uint64_t sizes[2] = {0, 0};
    enum status status;

    *place = UINT64_MAX;
    if (pieces == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to compare %s", path);
    }
    TRY_OUT(whole_file_read_open(&descriptors[0], &sizes[0], error, path));
    TRY_OUT(whole_file_read_open(&descriptors[1], &sizes[1], error, other));
    const uint64_t shorter = sizes[0] < sizes[1] ? sizes[0] : sizes[1];

    for (uint64_t at = 0; at < shorter && *place == UINT64_MAX; at += PIECE_SIZE) {
        const size_t taken = shorter - at < PIECE_SIZE ? (size_t)(shorter - at) : PIECE_SIZE;

        TRY_OUT(whole_file_read_at(descriptors[0], error, pieces, taken, at, path));
        TRY_OUT(whole_file_read_at(descriptors[1], error, pieces + PIECE_SIZE, taken, at, other));
        for (size_t i = 0; i < taken && *place == UINT64_MAX; i++) {
            *place = pieces[i] != pieces[PIECE_SIZE + i] ? at + i : UINT64_MAX;
        }
    }
    if (*place == UINT64_MAX && sizes[0] != sizes[1]) {
        *place = shorter;
    }
out:
    for (int i = 0; i < 2; i++) {
        if (descriptors[i] >= 0) {
            (void)close(descriptors[i]);
        }
    }
    free(pieces);
    return status;
}

/* The tensor that holds the byte of a file of ours; "" where it is of none. */
static void name_tensor(char name[SAFETENSORS_NAME_MAX + 1], const char *path, uint64_t place)
{
    struct safetensors file;

    name[0] = '\0';
    if (safetensors_open(&file, NULL, path) != STATUS_OK) {
        return;
    }
    for (uint32_t i = 0; i < file.entry_count; i++) {
        const uint64_t begin = file.data_offset + file.entries[i].offset;

        if (place >= begin && place - begin < file.entries[i].size) {
            (void)snprintf(name, SAFETENSORS_NAME_MAX + 1, "%s", file.entries[i].name);
        }
    }
    safetensors_close(&file);
}

static void say_difference(struct product_check *check, const char *path, const char *again,
                           uint64_t place)
{
    char name[SAFETENSORS_NAME_MAX + 1];

    name_tensor(name, again, place);
    check->same = false;
    findings_say(&check->lineage->findings, FINDING_REFUTED, path,
                 "is not what the state of %s after %" PRIu64 " steps makes: byte %" PRIu64
                 "%s%s%s differs",
                 check->run->path, check->options.step, place, name[0] == '\0' ? "" : ", in '",
                 name, name[0] == '\0' ? "" : "',");
}

/* The name of the base is nobody's proof: the line that holds it is left out of a card. */
static enum status read_card(struct buffer *text, const char *path, struct error *error)
{
    static const char base[] = "base_model: ";
    struct file_bytes bytes = {0};
    bool named = false;
    size_t next;

    TRY(file_read(&bytes, error, path, MODEL_CARD_SIZE_MAX));
    for (size_t at = 0; at < bytes.size; at = next) {
        const char *line = (const char *)bytes.data + at;
        const char *end = memchr(line, '\n', bytes.size - at);

        next = end == NULL ? bytes.size : (size_t)(end + 1 - (const char *)bytes.data);
        if (!named && next - at >= strlen(base) && memcmp(line, base, strlen(base)) == 0) {
            named = true;
        } else {
            buffer_add(text, line, next - at);
        }
    }
    file_bytes_release(&bytes);
    return buffer_check(text, error, path);
}

/* A card is what people write on. */
static enum status compare_cards(struct product_check *check, json_t *file, const char *path,
                                 const char *again, struct error *error)
{
    struct buffer texts[2];
    enum status status;

    buffer_init(&texts[0], MODEL_CARD_SIZE_MAX);
    buffer_init(&texts[1], MODEL_CARD_SIZE_MAX);
    TRY_OUT(read_card(&texts[0], path, error));
    TRY_OUT(read_card(&texts[1], again, error));
    if (texts[0].size != texts[1].size ||
        memcmp(texts[0].data, texts[1].data, texts[0].size) != 0) {
        findings_say(&check->lineage->findings, FINDING_TRUSTED, path,
                     "what it says: it is not the card that the program writes");
    } else {
        (void)json_object_set_new(file, "proven", json_true());
    }
out:
    buffer_release(&texts[0]);
    buffer_release(&texts[1]);
    return status;
}

/* Do programs read a model from files that are called so? */
static bool is_of_model(const char *name)
{
    static const char *const ends[] = {".safetensors", ".index.json", ".bin",  ".pt",
                                       ".pth",         ".ckpt",       ".gguf", ".onnx",
                                       ".msgpack",     ".h5",         ".pkl"};
    bool is = strcmp(name, "config.json") == 0 || strcmp(name, "adapter_config.json") == 0;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        is = is || text_ends_with(name, ends[i]);
    }
    return is;
}

static enum status compare_file(struct product_check *check, json_t *file, struct error *error)
{
    const char *name = strict_json_text_or(file, "name", "");
    char path[FILE_PATH_MAX];
    char again[FILE_PATH_MAX];
    uint64_t place;

    TRY(file_path_join(path, sizeof(path), error, check->product->path, name));
    TRY(file_path_join(again, sizeof(again), error, check->again, name));
    if (!file_exists(again) && is_of_model(name)) {
        check->same = false;
        findings_say(&check->lineage->findings, FINDING_REFUTED, path,
                     "is none of the model's files: an export does not write it, and programs "
                     "read models from such files");
        return STATUS_OK;
    }
    if (!file_exists(again)) {
        findings_say(&check->lineage->findings, FINDING_TRUSTED, path,
                     "what it says: an export does not write it");
        return STATUS_OK;
    }
    if (strcmp(name, MODEL_CARD_NAME) == 0) {
        return compare_cards(check, file, path, again, error);
    }
    TRY(find_difference(&place, path, again, error));
    if (place != UINT64_MAX) {
        say_difference(check, path, again, place);
    } else {
        (void)json_object_set_new(file, "proven", json_true());
    }
    return STATUS_OK;
}

static enum status compare_folders(struct product_check *check, struct error *error)
{
    static const char *const needed[] = {"model.safetensors", "config.json", WEIGHTS_ADAPTERS_NAME,
                                         "adapter_config.json"};
    json_t *file;
    size_t i;

    json_array_foreach(check->product->files, i, file)
    {
        TRY(compare_file(check, file, error));
    }
    for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (lineage_parts_has(check->again, needed[i]) &&
            !lineage_parts_has(check->product->path, needed[i])) {
            check->same = false;
            findings_say(&check->lineage->findings, FINDING_REFUTED, check->product->path,
                         "lacks %s", needed[i]);
        }
    }
    return STATUS_OK;
}

/* ---- writing it again ---------------------------------------------------------------- */

/* How the folder calls its base, which is nobody's proof. */
static void find_base_name(struct product_check *check)
{
    char path[FILE_PATH_MAX];
    const char *name = check->product->card.base;
    json_t *config = NULL;

    if (check->product->kind == LINEAGE_ADAPTERS &&
        file_path_join(path, sizeof(path), NULL, check->product->path, "adapter_config.json") ==
            STATUS_OK &&
        strict_json_read(&config, NULL, path, CONFIG_SIZE_MAX, DEPTH_MAX) == STATUS_OK) {
        name = strict_json_text_or(config, "base_model_name_or_path", "");
    }
    (void)snprintf(check->base_name, sizeof(check->base_name), "%.*s", MODEL_CARD_BASE_MAX, name);
    json_decref(config);
}

/* Of a model from a seed: the tokenizer that was laid beside it. */
static const char *find_tokenizer(const struct product_check *check)
{
    const struct lineage *lineage = check->lineage;

    if (!lineage_parts_has(check->product->path, "tokenizer.json")) {
        return NULL;
    }
    for (size_t i = 0; i < lineage->count; i++) {
        if (lineage->items[i].kind == LINEAGE_ROWS) {
            return lineage->options->tokenizer != NULL
                       ? lineage->options->tokenizer
                       : lineage->items[i].manifest.options.tokenizer;
        }
    }
    return TOKENIZER_BYTES;
}

static bool is_bf16(const struct weights *weights)
{
    return weights->entry_count > 0 && weights->entries[0].entry->element == ELEMENT_BF16;
}

/* The state that the card names, or the newest. */
static enum status find_step(uint64_t *step, const struct product_check *check, struct error *error)
{
    struct bundle *bundle = check->run->bundle;
    uint64_t at = 0;

    while (check->product->card.root_known &&
           bundle_checkpoint_find(&at, bundle, at, NULL) == STATUS_OK) {
        struct digest root;

        if (bundle_state_root(&root, bundle, at, NULL) == STATUS_OK &&
            digest_equal(&root, &check->product->card.root)) {
            *step = at;
            return STATUS_OK;
        }
        at++;
    }
    return lineage_run_newest(step, bundle, error);
}

static void fill_options(struct product_check *check)
{
    const struct lineage *lineage = check->lineage;
    const struct job *job = bundle_job(check->run->bundle);
    const bool adapters = model_export_has_adapters(job->tape);
    const struct lineage_item *base =
        check->run->base == SIZE_MAX ? NULL : &lineage->items[check->run->base];

    find_base_name(check);
    check->options = (struct model_export){
        .folder = check->again,
        .base = base == NULL ? NULL : base->path,
        .base_name = base == NULL || check->base_name[0] == '\0' ? NULL : check->base_name,
        .tokenizer = base == NULL ? find_tokenizer(check) : NULL,
        .merge = adapters && check->product->kind == LINEAGE_MODEL,
        .bf16 = is_bf16(&check->product->weights),
        .job = job};
}

/* The state, or the mean of several, as a file that the caller closes. */
static enum status open_state(struct safetensors *state, struct product_check *check,
                              struct error *error)
{
    struct model_export *options = &check->options;
    const uint32_t count = check->product->card.averaged_count;
    char path[FILE_PATH_MAX];

    TRY(find_step(&options->step, check, error));
    TRY(bundle_state_root(&options->root, check->run->bundle, options->step, error));
    if (count < 2) {
        return bundle_checkpoint_open(state, check->run->bundle, options->step, error);
    }
    if (snprintf(path, sizeof(path), "%s.mean", check->again) >= (int)sizeof(path)) {
        return error_set(error, STATUS_USAGE, "TMPDIR is too long a path");
    }
    options->averaged_count = count;
    TRY(average_write_bundle(path, options->averaged, check->run->bundle, options->step, count,
                             error));
    return safetensors_open(state, error, path);
}

static enum status write_again(struct product_check *check, struct error *error)
{
    struct safetensors state;
    enum status status;

    fill_options(check);
    TRY(open_state(&state, check, error));
    check->options.state = &state;
    status = model_export(&check->options, error);
    check->options.state = NULL;
    safetensors_close(&state);
    return status;
}

/* Of a folder. Says what differs, or that nothing does. */
static enum status check_folder(struct product_check *check, struct error *error)
{
    char scratch[FILE_PATH_MAX];
    struct error why;
    enum status status;

    error_init(&why);
    TRY(new_folder_scratch(scratch, error));
    TRY_OUT(file_path_join(check->again, sizeof(check->again), error, scratch, "model"));
    status = write_again(check, &why);
    if (status != STATUS_OK) {
        /* The base, or the state, is to blame: it was held to its root there. */
        findings_say(&check->lineage->findings, FINDING_NOT_TOLD, check->product->path,
                     "%s could not be made again: %s", check->run->path, why.text);
        check->same = false;
        status = STATUS_OK;
        goto out;
    }
    TRY_OUT(compare_folders(check, error));
out:
    file_remove_folder(scratch);
    return status;
}

/* ---- a file of ours ------------------------------------------------------------------- */

static enum status check_state(struct product_check *check, struct error *error)
{
    const struct safetensors *file = &check->product->weights.files[0];
    const char *step = safetensors_metadata(file, "lockstep.step");
    struct bundle *bundle = check->run->bundle;
    struct digest wanted;
    struct digest root;

    check->options.step = step == NULL ? 0 : strtoull(step, NULL, 10);
    TRY(bundle_state_root(&wanted, bundle, check->options.step, error));
    TRY(checkpoint_file_root(&root, file, bundle_job(bundle)->tape, error));
    check->product->root = root;
    check->product->root_tag = "lockstep.state.v1";
    check->same = digest_equal(&root, &wanted);
    if (!check->same) {
        findings_say(&check->lineage->findings, FINDING_REFUTED, check->product->path,
                     "is not the state of %s after %" PRIu64 " steps: it has another root",
                     check->run->path, check->options.step);
    } else {
        (void)json_object_set_new(json_array_get(check->product->files, 0), "proven", json_true());
    }
    return STATUS_OK;
}

/* ---- of which run -------------------------------------------------------------------------- */

static bool is_of_run(const struct lineage_item *product, const struct lineage_item *run)
{
    const struct digest *id = &bundle_job(run->bundle)->id;
    char hex[HEX_SIZE(DIGEST_SIZE)];

    if (product->kind == LINEAGE_STATE) {
        hex_encode(hex, id->bytes, DIGEST_SIZE);
        return strcmp(safetensors_metadata(&product->weights.files[0], "lockstep.job"), hex) == 0;
    }
    return product->card.job_known && digest_equal(&product->card.job, id);
}

/* The run that its card names; else, of what is no base, the last. SIZE_MAX: none. */
static size_t find_run(const struct lineage *lineage, const struct lineage_item *product)
{
    size_t last = SIZE_MAX;

    for (size_t i = 0; i < lineage->count; i++) {
        if (lineage->items[i].kind != LINEAGE_RUN ||
            bundle_is_encrypted(lineage->items[i].bundle)) {
            continue;
        }
        if (is_of_run(product, &lineage->items[i])) {
            return i;
        }
        last = i;
    }
    return (product->roles & LINEAGE_BASE) == 0 && product->kind != LINEAGE_STATE ? last : SIZE_MAX;
}

/* Cards and adapters call their base so, and no byte of the base says it. */
static void say_base_name(const struct product_check *check)
{
    const char *name = check->base_name[0] != '\0' ? check->base_name : check->product->card.base;

    if (name[0] != '\0') {
        findings_say(&check->lineage->findings, FINDING_TRUSTED, check->product->path,
                     "that its base is called '%s'", name);
    }
}

enum status lineage_product_check(struct lineage *lineage, size_t product, struct error *error)
{
    struct lineage_item *item = &lineage->items[product];
    const size_t run = find_run(lineage, item);
    struct product_check check = {.lineage = lineage, .product = item, .same = true};
    struct error why;
    enum status status;

    if (run == SIZE_MAX) {
        return STATUS_OK;
    }
    check.run = &lineage->items[run];
    item->roles |= is_of_run(item, check.run) ? LINEAGE_PRODUCT : 0u;
    error_init(&why);
    if (item->kind == LINEAGE_STATE) {
        status = check_state(&check, &why);
    } else {
        status = check_folder(&check, &why);
    }
    if (status == STATUS_NO_MEMORY || status == STATUS_USAGE) {
        *error = why;
        return status;
    }
    if (status != STATUS_OK) {
        lineage_parts_blame(lineage, item->path, &why);
        return STATUS_OK;
    }
    if (!check.same) {
        return STATUS_OK;
    }
    item->roles |= LINEAGE_PRODUCT;
    item->run = run;
    item->step = check.options.step;
    findings_say(&lineage->findings, FINDING_PROVEN, item->path,
                 "is what the state of %s after %" PRIu64 " of %" PRIu64
                 " steps makes, byte for byte",
                 check.run->path, item->step, bundle_job(check.run->bundle)->steps);
    say_base_name(&check);
    if (check.run->audit.answer == AUDIT_PROVEN) {
        lineage_run_figures(lineage, check.run, item->step);
    }
    return STATUS_OK;
}
