/* model_export.c - see model_export.h. */
#include "proofs/bundle/model_export.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/text.h"
#include "engine/ops/element.h"
#include "proofs/commit/commit.h"
#include "proofs/format/new_folder.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_adapters.h"
#include "proofs/job/job_notes.h"
#include "proofs/model/adapter.h"
#include "proofs/model/model_root.h"
#include "proofs/model/seed_model.h"

#define CONFIG_MAX     (1u << 20)
#define CARD_MAX       8192
#define WEIGHT         ".weight"
#define ADAPTER_PREFIX "base_model.model."

struct exporter {
    const struct model_export *options;
    const struct job *job;
    const struct tape *tape;
    const struct safetensors *state;
    struct weights base;
    bool in_first;            /* matrices of GPT-2 are (in, out) */
    char part[FILE_PATH_MAX]; /* the new folder until it is whole */
};

/* ---- names -------------------------------------------------------------- */

bool model_export_has_adapters(const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (job_adapter_is_part(tape->tensors[tape->states[i].before].name)) {
            return true;
        }
    }
    return false;
}

/* The state of that name in the checkpoint, or NULL. */
static const struct safetensors_entry *find_state(const struct exporter *exporter, const char *name)
{
    return safetensors_find(exporter->state, name);
}

/* ---- is it the base of this job? ---------------------------------------- */

static enum status not_the_base(const struct exporter *exporter, const char *name,
                                struct error *error)
{
    return error_set(error, STATUS_REFUSED,
                     "%s is not what the job began with: '%s' has another root",
                     exporter->options->base, name);
}

/* Every frozen weight of the job, by its root. */
static enum status check_frozen(const struct exporter *exporter, struct error *error)
{
    const struct job *job = exporter->job;
    uint32_t at = 0;

    for (uint32_t id = 0; id < exporter->tape->tensor_count; id++) {
        const struct tensor *tensor = &exporter->tape->tensors[id];
        const struct weights_entry *entry;
        struct digest root;

        if (tensor->role != ROLE_DATA) {
            continue;
        }
        entry = weights_find_plain(&exporter->base, tensor->name);
        if (entry != NULL && !safetensors_entry_fits(entry->entry, tensor)) {
            return not_the_base(exporter, tensor->name, error);
        }
        if (entry != NULL) {
            TRY(model_tensor_root(&root, COMMIT_DATA, tensor, entry, error));
            if (!digest_equal(&root, &job->data_roots[at])) {
                return not_the_base(exporter, tensor->name, error);
            }
        }
        at++;
    }
    return STATUS_OK;
}

static enum status check_first_state(const struct exporter *exporter, struct error *error)
{
    const struct job *job = exporter->job;
    struct first_state first = {0};
    struct digest root;
    enum status status;

    TRY_OUT(first_state_open(&first, job->tape, exporter->options->base, error));
    TRY_OUT(first_state_root(&root, &first, error));
    if (!digest_equal(&root, &job->first_state_root)) {
        status = error_set(error, STATUS_REFUSED, "%s is not what the job began with",
                           exporter->options->base);
    }
out:
    first_state_close(&first);
    return status;
}

/* ---- weights ------------------------------------------------------------ */

/* What a tensor becomes in the new model, of its name and shape. */
struct exported {
    const struct weights_entry *from;      /* of the base; NULL: an adapter, or there is no base */
    const struct safetensors_entry *state; /* in the checkpoint; NULL: the base's, perhaps merged */
};

/* Its numbers: of the state, or of the base with its adapter added. */
static enum status read_exported(float *values, const struct exporter *exporter,
                                 const struct exported *exported, uint64_t count,
                                 struct error *error)
{
    struct adapter adapter;

    if (exported->state != NULL) {
        if (exported->state->size != count * sizeof(*values)) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s' has another size in the state",
                             exported->state->name);
        }
        return safetensors_read(exporter->state, error, values, exported->state,
                                (size_t)(count * sizeof(*values)), 0);
    }
    TRY(weights_read(values, exported->from, 0, count, error));
    adapter_find(&adapter, exporter->tape, exporter->state, exported->from->entry->name);
    return adapter.a == NULL
               ? STATUS_OK
               : adapter_merge(values, &adapter, exporter->state, count, exporter->in_first, error);
}

/* Rounds to bfloat16, in place; the first half of the memory has them then. */
static enum status narrow_numbers(float *values, uint64_t count, const char *name,
                                  struct error *error)
{
    uint16_t *narrow = (uint16_t *)(void *)values;

    for (uint64_t i = 0; i < count; i++) {
        const uint32_t bits = element_to_bf16(values[i]);

        if ((bits & 0x7f80) == 0x7f80) {
            return error_set(error, STATUS_REFUSED, "'%s' has %g, which bfloat16 cannot hold", name,
                             (double)values[i]);
        }
        memcpy(&narrow[i], &(uint16_t){(uint16_t)bits}, sizeof(uint16_t));
    }
    return STATUS_OK;
}

static enum status write_tensor(struct safetensors_writer *writer, const struct exporter *exporter,
                                const struct exported *exported, struct error *error)
{
    const struct safetensors_entry *entry =
        exported->from == NULL ? exported->state : exported->from->entry;
    const bool bf16 = exporter->options->bf16;
    uint64_t count = entry->size / element_size(entry->element);
    float *values = malloc(count * sizeof(*values) + 1);
    enum status status;

    if (values == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", entry->name);
    }
    TRY_OUT(read_exported(values, exporter, exported, count, error));
    if (bf16) {
        TRY_OUT(narrow_numbers(values, count, entry->name, error));
    }
    TRY_OUT(safetensors_writer_add(writer, error, values,
                                   count * (bf16 ? sizeof(uint16_t) : sizeof(*values))));
out:
    free(values);
    return status;
}

static bool is_frozen(const struct tape *tape, const char *name)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA && strcmp(tape->tensors[id].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The tensors of the base that the job trains or reads, and those beside a text part; masks and the
 * like stay behind. */
static uint32_t choose_tensors(struct exported *chosen, struct safetensors_entry *entries,
                               const struct exporter *exporter, bool adapters)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < exporter->base.entry_count; i++) {
        const struct weights_entry *from = &exporter->base.entries[i];
        const struct safetensors_entry *state;
        char plain[WEIGHTS_NAME_MAX + 1];
        bool frozen;

        weights_plain_name(plain, from->entry->name);
        state = find_state(exporter, plain);
        frozen = adapters &&
                 (is_frozen(exporter->tape, from->entry->name) || is_frozen(exporter->tape, plain));
        if (weights_widen(from->entry->element) &&
            (frozen || state != NULL || weights_is_beside(&exporter->base, from->entry->name))) {
            chosen[count] = (struct exported){from, state};
            entries[count] = *from->entry;
            entries[count++].element = exporter->options->bf16 ? ELEMENT_BF16 : ELEMENT_F32;
        }
    }
    return count;
}

/* Of a model from a seed: all its parameters. */
static uint32_t choose_parameters(struct exported *chosen, struct safetensors_entry *entries,
                                  const struct exporter *exporter)
{
    const struct tape *tape = exporter->tape;
    uint32_t count = 0;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];
        const struct safetensors_entry *state =
            first_state_is_parameter(tape, i) ? find_state(exporter, tensor->name) : NULL;

        if (state != NULL && state->element == ELEMENT_F32) {
            chosen[count] = (struct exported){NULL, state};
            entries[count] = *state;
            entries[count++].element = exporter->options->bf16 ? ELEMENT_BF16 : ELEMENT_F32;
        }
    }
    return count;
}

static enum status part_path(char path[FILE_PATH_MAX], const struct exporter *exporter,
                             const char *name, struct error *error)
{
    return file_path_join(path, FILE_PATH_MAX, error, exporter->part, name);
}

static const struct safetensors_text pytorch[] = {{"format", "pt"}};

/* One tensor at a time in memory: those of all layers together may not fit. */
static enum status write_tensors(
    const struct exporter *exporter, const char *name, struct safetensors_entry *entries,
    const struct exported *chosen, uint32_t count,
    enum status (*write)(struct safetensors_writer *writer, const struct exporter *exporter,
                         const struct exported *exported, struct error *error),
    struct error *error)
{
    struct safetensors_writer writer;
    char path[FILE_PATH_MAX];
    enum status status = STATUS_OK;

    TRY(part_path(path, exporter, name, error));
    TRY(safetensors_writer_open(&writer, error, path, entries, count, pytorch, 1));
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = write(&writer, exporter, &chosen[i], error);
    }
    return safetensors_writer_end(&writer, status, error);
}

static enum status write_model(const struct exporter *exporter, struct error *error)
{
    const bool seed = exporter->options->base == NULL;
    size_t room = (size_t)(seed ? exporter->tape->state_count : exporter->base.entry_count) + 1;
    struct safetensors_entry *entries = calloc(room, sizeof(*entries));
    struct exported *chosen = calloc(room, sizeof(*chosen));
    enum status status;

    if (entries == NULL || chosen == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a model");
        goto out;
    }
    uint32_t count =
        seed ? choose_parameters(chosen, entries, exporter)
             : choose_tensors(chosen, entries, exporter, model_export_has_adapters(exporter->tape));

    status =
        write_tensors(exporter, "model.safetensors", entries, chosen, count, write_tensor, error);
out:
    free(entries);
    free(chosen);
    return status;
}

/* Does the base hold a weight that is trained whole under this name? */
static bool is_whole(const struct exporter *exporter, const char *name)
{
    return strchr(name, '.') != NULL && weights_find_plain(&exporter->base, name) != NULL &&
           !is_frozen(exporter->tape, name);
}

/* Is it a part of an adapter, or a module that is trained whole beside adapters? */
static bool has_whole(const struct exporter *exporter)
{
    for (uint32_t i = 0; i < exporter->state->entry_count; i++) {
        if (is_whole(exporter, exporter->state->entries[i].name)) {
            return true;
        }
    }
    return false;
}

static bool is_published(const struct exporter *exporter, const char *name)
{
    return job_adapter_is_part(name) || is_whole(exporter, name);
}

/* The name of a tensor in a folder of PEFT: under the module as the base names it. */
static void published_name(char published[SAFETENSORS_NAME_MAX + 1],
                           const struct exporter *exporter, const char *name)
{
    const char *end = job_adapter_end(name);
    size_t length = end != NULL ? (size_t)(end - name) : strlen(name) - strlen(strrchr(name, '.'));
    const char *middle = exporter->in_first ? "transformer." : "";
    const struct weights_entry *weight = NULL;
    char module[WEIGHTS_NAME_MAX + 1];

    (void)snprintf(module, sizeof(module), "%.*s%s", (int)length, name, WEIGHT);
    if (!exporter->in_first) {
        weight = weights_find_plain(&exporter->base, module);
        if (weight != NULL && !exporter->base.text_part &&
            strncmp(weight->entry->name, "transformer.", strlen("transformer.")) != 0) {
            weight = NULL; /* "model." may be left out in a base, and never in PEFT */
        }
    }
    if (weight != NULL) {
        (void)snprintf(module, sizeof(module), "%.*s",
                       (int)(strlen(weight->entry->name) - strlen(WEIGHT)), weight->entry->name);
    } else {
        module[length] = '\0';
    }
    (void)snprintf(published, SAFETENSORS_NAME_MAX + 1, ADAPTER_PREFIX "%s%.150s%s", middle, module,
                   name + length);
}

static enum status write_adapter(struct safetensors_writer *writer, const struct exporter *exporter,
                                 const struct exported *exported, struct error *error)
{
    enum status status;
    float *values;

    status = adapter_read_part(&values, exporter->state, exported->state, error);
    if (status == STATUS_OK) {
        status = safetensors_writer_add(writer, error, values, (size_t)exported->state->size);
    }
    free(values);
    return status;
}

static enum status write_adapters(const struct exporter *exporter, struct error *error)
{
    const struct safetensors *from = exporter->state;
    size_t room = (size_t)from->entry_count + 1;
    struct safetensors_entry *entries = calloc(room, sizeof(*entries));
    struct exported *chosen = calloc(room, sizeof(*chosen));
    enum status status;
    uint32_t count = 0;

    if (entries == NULL || chosen == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for adapters");
        goto out;
    }
    for (uint32_t i = 0; i < from->entry_count; i++) {
        if (is_published(exporter, from->entries[i].name)) {
            chosen[count].state = &from->entries[i];
            entries[count] = from->entries[i];
            published_name(entries[count].name, exporter, from->entries[i].name);
            count++;
        }
    }
    status = write_tensors(exporter, "adapter_model.safetensors", entries, chosen, count,
                           write_adapter, error);
out:
    free(entries);
    free(chosen);
    return status;
}

/* ---- texts -------------------------------------------------------------- */

static enum status read_config(json_t **config, const struct exporter *exporter,
                               struct error *error)
{
    char path[FILE_PATH_MAX];

    if (exporter->options->base == NULL) {
        return seed_model_config(config, exporter->job, error);
    }
    TRY(file_path_join(path, sizeof(path), error, exporter->options->base, "config.json"));
    return strict_json_read(config, error, path, CONFIG_MAX, STRICT_JSON_DEPTH_MAX);
}

/* The base's config, which says the type of the weights now. */
static enum status write_config(const struct exporter *exporter, struct error *error)
{
    json_t *config = NULL;

    TRY(read_config(&config, exporter, error));
    return new_folder_config(exporter->part, config,
                             exporter->options->bf16 ? "bfloat16" : "float32", 0, error);
}

static enum status write_bytes_tokenizer(const struct exporter *exporter, struct error *error)
{
    TRY(new_folder_json(exporter->part, "tokenizer.json", seed_model_tokenizer(), 0, error));
    return new_folder_json(exporter->part, "tokenizer_config.json", seed_model_tokenizer_config(),
                           0, error);
}

/* The last parts of the names of the modules that have adapters, or that are trained whole. */
static json_t *modules_of(const struct exporter *exporter, bool whole)
{
    json_t *modules = json_array();
    const struct safetensors *file = exporter->state;

    for (uint32_t i = 0; i < file->entry_count; i++) {
        const char *name = file->entries[i].name;
        char module[SAFETENSORS_NAME_MAX + 1];
        const char *end;
        const char *dot;
        size_t at;
        json_t *other;
        bool known = false;

        if (!(whole ? is_whole(exporter, name)
                    : job_adapter_is_part(name) && job_adapter_is_a(name))) {
            continue;
        }
        end = whole ? strrchr(name, '.') : job_adapter_end(name);
        (void)snprintf(module, sizeof(module), "%.*s", (int)(end - name), name);
        dot = strrchr(module, '.');
        dot = dot == NULL ? module : dot + 1;
        json_array_foreach(modules, at, other)
        {
            known = known || strcmp(json_string_value(other), dot) == 0;
        }
        if (!known) {
            (void)json_array_append_new(modules, json_string(dot));
        }
    }
    return modules;
}

static double dropout_of(const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind == OP_DROPOUT) {
            return (double)(uint32_t)tape->ops[at].attributes[DROPOUT_THRESHOLD] / 0x1p32;
        }
    }
    return 0.0;
}

static const char *base_name_of(const struct model_export *options)
{
    return options->base_name != NULL ? options->base_name : options->base;
}

static enum status write_adapter_config(const struct exporter *exporter, struct error *error)
{
    const struct safetensors *file = exporter->state;
    const struct safetensors_entry *b = NULL;
    json_t *config;
    json_t *whole;
    double scale;

    for (uint32_t i = 0; i < file->entry_count && b == NULL; i++) {
        b = job_adapter_is_part(file->entries[i].name) && !job_adapter_is_a(file->entries[i].name)
                ? &file->entries[i]
                : NULL;
    }
    if (b == NULL || b->rank != 2) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: no adapters", file->path);
    }
    whole = modules_of(exporter, true);
    if (json_array_size(whole) == 0) {
        json_decref(whole);
        whole = json_null();
    }
    scale = job_adapter_scale(exporter->tape, b->name);
    config = json_pack(
        "{s:s, s:s, s:s, s:I, s:f, s:f, s:o, s:b, s:s, s:b, s:o, s:b}", "peft_type", "LORA",
        "task_type", "CAUSAL_LM", "base_model_name_or_path", base_name_of(exporter->options), "r",
        (json_int_t)b->dims[1], "lora_alpha", round(scale * (double)b->dims[1] * 1e6) / 1e6,
        "lora_dropout", round(dropout_of(exporter->tape) * 1e6) / 1e6, "target_modules",
        modules_of(exporter, false), "fan_in_fan_out", (int)exporter->in_first, "bias", "none",
        "inference_mode", 1, "modules_to_save", whole, "init_lora_weights", 1);
    return new_folder_json(exporter->part, "adapter_config.json", config, 0, error);
}

static void add_root(struct buffer *text, const char *what, const uint8_t *bytes)
{
    char hex[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(hex, bytes, DIGEST_SIZE);
    buffer_add_format(text, "| %s | `%s` |\n", what, hex);
}

/* Which state it is. */
static void add_state(struct buffer *text, const struct exporter *exporter)
{
    const struct model_export *options = exporter->options;

    if (options->rounds != NULL) {
        buffer_add_format(text, "| rounds of many owners | %s |\n| mean of round | %" PRIu32 " |\n",
                          options->rounds, options->round);
        add_root(text, "root of the mean", options->root.bytes);
        return;
    }
    buffer_add_format(text, "| steps done | %" PRIu64 " of %" PRIu64 " |\n", options->step,
                      exporter->job->steps);
    if (options->averaged_count != 0) {
        buffer_add_text(text, "| mean of the states after steps |");
        for (uint32_t i = 0; i < options->averaged_count; i++) {
            buffer_add_format(text, " %" PRIu64, options->averaged[i]);
        }
        buffer_add_text(text, " |\n");
    }
    add_root(text,
             options->averaged_count == 0 ? "root of this state"
                                          : "root of the last of these states",
             options->root.bytes);
}

static enum status write_card(const struct exporter *exporter, const struct digest *weights_root,
                              struct error *error)
{
    const struct job *job = exporter->job;
    bool adapters = model_export_has_adapters(job->tape) && !exporter->options->merge;
    struct buffer text;
    char path[FILE_PATH_MAX];
    enum status status;

    buffer_init(&text, CARD_MAX);
    buffer_add_format(&text, "---\nlibrary_name: %s\n", adapters ? "peft" : "transformers");
    if (exporter->options->base_name != NULL) {
        buffer_add_format(&text, "base_model: %s\n", exporter->options->base_name);
    }
    buffer_add_text(&text, "tags:\n- lockstep\n---\n\n");
    buffer_add_format(&text,
                      "# %s\n\nTrained by Lockstep: every step gives "
                      "the same bits on every machine, and every step is committed to.\n\n"
                      "| what | value |\n|---|---|\n",
                      adapters ? "Adapters" : "Model");
    add_root(&text, exporter->options->rounds == NULL ? "job" : "job of the first owner",
             job->id.bytes);
    add_state(&text, exporter);
    if (weights_root != NULL) {
        add_root(&text, "root of the weights here", weights_root->bytes);
    }
    add_root(&text, "root of the first state", job->first_state_root.bytes);
    add_root(&text, "root of the program", job->header + JOB_AT_PROGRAM);
    add_root(&text, "root of the data", job->header + JOB_AT_DATA);
    buffer_add_format(&text, "| rules | version %u |\n", job->rules_version);
    buffer_add_text(&text, exporter->options->rounds == NULL
                               ? "\nAnybody with the job file, the data and the bundle can check "
                                 "it: `lockstep audit BUNDLE`.\n"
                               : "\nAnybody with the folder of the rounds can check it: `lockstep "
                                 "audit FOLDER`.\n");
    TRY_OUT(buffer_check(&text, error, "the model card"));
    TRY_OUT(part_path(path, exporter, "README.md", error));
    TRY_OUT(file_write_new(path, error, text.data, text.size, 0644));
out:
    buffer_release(&text);
    return status;
}

/* ---- the folder --------------------------------------------------------- */

static enum status write_beside(const struct exporter *exporter, struct error *error)
{
    const struct model_export *options = exporter->options;
    const char *folder = options->base != NULL ? options->base : options->tokenizer;

    if (folder == NULL) {
        return STATUS_OK;
    }
    return options->base == NULL && strcmp(folder, "bytes") == 0
               ? write_bytes_tokenizer(exporter, error)
               : new_folder_copy_rest(exporter->part, folder, error);
}

static enum status write_parts(const struct exporter *exporter, struct error *error)
{
    const bool adapters = model_export_has_adapters(exporter->tape) && !exporter->options->merge;
    struct digest root;
    uint32_t count;

    if (adapters) {
        TRY(write_adapters(exporter, error));
        TRY(write_adapter_config(exporter, error));
    } else {
        TRY(write_config(exporter, error));
        TRY(write_model(exporter, error));
    }
    TRY(write_beside(exporter, error));
    if (adapters) { /* a part of a model has no root of its own */
        return write_card(exporter, NULL, error);
    }
    TRY(model_root_of(&root, &count, exporter->part, error));
    return write_card(exporter, &root, error);
}

static enum status make_folder(struct exporter *exporter, struct error *error)
{
    const char *folder = exporter->options->folder;

    TRY(new_folder_begin(exporter->part, folder, error));
    return new_folder_end(exporter->part, folder, write_parts(exporter, error), error);
}

static enum status open_base(struct exporter *exporter, struct error *error)
{
    bool adapters = model_export_has_adapters(exporter->tape);

    TRY(job_notes_check_from(exporter->job->notes, exporter->options->base, "config.json", error));
    TRY(weights_open(&exporter->base, exporter->options->base, error));
    exporter->in_first = weights_find_plain(&exporter->base, "wte.weight") != NULL;
    if (adapters) {
        TRY(check_frozen(exporter, error));
    }
    /* Adapters that went on with others began with those, and not with the base. */
    return !adapters || has_whole(exporter) ? check_first_state(exporter, error) : STATUS_OK;
}

static enum status check_wanted(const struct model_export *options, struct error *error)
{
    const bool adapters = model_export_has_adapters(options->job->tape);

    if (options->base == NULL && (options->job->first_state_given || adapters)) {
        return error_set(error, STATUS_USAGE,
                         "name the folder that the training began with: --base DIR");
    }
    if (options->base == NULL && options->base_name != NULL) {
        return error_set(error, STATUS_USAGE, "--base-name: the model began with a seed");
    }
    if (options->base != NULL && options->tokenizer != NULL) {
        return error_set(error, STATUS_USAGE,
                         "--tokenizer: the one of --base is taken along already");
    }
    if (options->bf16 && adapters && !options->merge) {
        return error_set(error, STATUS_USAGE,
                         "--dtype bf16: adapters stay as they were trained; --merge makes a model");
    }
    return STATUS_OK;
}

enum status model_export(const struct model_export *options, struct error *error)
{
    struct exporter exporter = {.options = options,
                                .job = options->job,
                                .tape = options->job->tape,
                                .state = options->state};
    enum status status;

    TRY(check_wanted(options, error));
    if (options->base != NULL) {
        TRY_OUT(open_base(&exporter, error));
    }
    TRY_OUT(make_folder(&exporter, error));
out:
    weights_close(&exporter.base);
    return status;
}

/* ---- weights without a folder --------------------------------------------- */

struct model_weights {
    struct model_export options;
    struct exporter exporter;
};

enum status model_weights_open(struct model_weights **weights, const char *base,
                               const struct job *job, const struct safetensors *state,
                               struct error *error)
{
    struct model_weights *made = calloc(1, sizeof(*made));
    enum status status;

    *weights = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a model");
    }
    made->options = (struct model_export){.base = base, .job = job, .state = state};
    made->exporter =
        (struct exporter){.options = &made->options, .job = job, .tape = job->tape, .state = state};
    status = open_base(&made->exporter, error);
    if (status != STATUS_OK) {
        model_weights_close(made);
        return status;
    }
    *weights = made;
    return STATUS_OK;
}

void model_weights_close(struct model_weights *weights)
{
    if (weights != NULL) {
        weights_close(&weights->exporter.base);
        free(weights);
    }
}

const struct weights *model_weights_base(const struct model_weights *weights)
{
    return &weights->exporter.base;
}

enum status model_weights_read(float *values, const struct model_weights *weights, const char *name,
                               uint64_t count, struct error *error)
{
    const struct exporter *exporter = &weights->exporter;
    struct exported exported = {.from = weights_find(&exporter->base, name)};
    char plain[WEIGHTS_NAME_MAX + 1];

    if (exported.from == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%s: there is no '%s'", exporter->options->base,
                         name);
    }
    weights_plain_name(plain, name);
    exported.state = find_state(exporter, plain);
    return read_exported(values, exporter, &exported, count, error);
}
