/* model_source.c - see model_source.h. */
#include "client/generate/model_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proofs/model/frozen.h"

static const struct weights *names_of(const struct model_source *source)
{
    return source->merged != NULL ? model_weights_base(source->merged) : &source->weights;
}

/* ---- opening -------------------------------------------------------------- */

static bool has_file(const char *folder, const char *name)
{
    char path[FILE_PATH_MAX];

    return file_path_join(path, sizeof(path), NULL, folder, name) == STATUS_OK && file_exists(path);
}

static enum status newest_step(uint64_t *step, struct bundle *bundle, struct error *error)
{
    uint64_t at;

    TRY(bundle_checkpoint_find(step, bundle, 0, error));
    while (bundle_checkpoint_find(&at, bundle, *step + 1, NULL) == STATUS_OK) {
        *step = at;
    }
    return STATUS_OK;
}

static enum status open_state(struct model_source *source, const char *path, uint64_t step,
                              struct error *error)
{
    uint64_t found = step;

    TRY(bundle_open(&source->bundle, path, BUNDLE_READ, error));
    if (bundle_is_locked(source->bundle)) {
        (void)error_set(error, STATUS_REFUSED, "%s is encrypted", path);
        error_advise(error,
                     "export the model with 'bundle export --hf FOLDER --merge', and name FOLDER");
        return STATUS_REFUSED;
    }
    if (step == UINT64_MAX) {
        TRY(newest_step(&found, source->bundle, error));
    } else {
        TRY(bundle_checkpoint_find(&found, source->bundle, step, error));
    }
    if (step != UINT64_MAX && found != step) {
        return error_set(error, STATUS_NOT_FOUND,
                         "no checkpoint after %" PRIu64 " steps; the next is after %" PRIu64, step,
                         found);
    }
    TRY(bundle_checkpoint_open(&source->state, source->bundle, found, error));
    source->state_open = true;
    return STATUS_OK;
}

static enum status needs_base(const char *path, struct error *error)
{
    (void)error_set(error, STATUS_USAGE, "%s is no folder of a model: it has no %s", path,
                    BASE_CONFIG_NAME);
    error_advise(error, "name the folder that the training began with: --base FOLDER");
    return STATUS_USAGE;
}

static enum status open_weights(struct model_source *source, const char *path, const char *base,
                                uint64_t step, struct error *error)
{
    const bool bundle = has_file(path, "job") && has_file(path, "journal.db");

    if (!bundle && step != UINT64_MAX) {
        return error_set(error, STATUS_USAGE, "--step says nothing: %s is no bundle", path);
    }
    if (base == NULL && !has_file(path, BASE_CONFIG_NAME)) {
        return needs_base(path, error);
    }
    source->folder = base != NULL ? base : path;
    TRY(base_config_read(&source->config, source->folder, error));
    if (!bundle) {
        return weights_open(&source->weights, path, error);
    }
    TRY(open_state(source, path, step, error));
    return model_weights_open(&source->merged, source->folder, bundle_job(source->bundle),
                              &source->state, error);
}

enum status model_source_open(struct model_source *source, const char *path, const char *base,
                              uint64_t step, struct error *error)
{
    struct stat found;
    enum status status;

    *source = (struct model_source){0};
    if (stat(path, &found) != 0) {
        return errno == ENOENT ? error_set(error, STATUS_NOT_FOUND, "%s: no such file", path)
                               : error_set_errno(error, "cannot open %s", path);
    }
    status = open_weights(source, path, base, step, error);
    if (status != STATUS_OK) {
        model_source_close(source);
    }
    return status;
}

void model_source_close(struct model_source *source)
{
    model_weights_close(source->merged);
    if (source->state_open) {
        safetensors_close(&source->state);
    }
    bundle_close(source->bundle);
    weights_close(&source->weights);
    *source = (struct model_source){0};
}

/* ---- the decoder ---------------------------------------------------------- */

uint32_t model_source_longest(const struct model_source *source)
{
    const struct base_config *config = &source->config;

    return config->window != 0 && config->window < config->positions ? config->window
                                                                     : config->positions;
}

/* How the files call and hold a tensor; of a merged model it is binary32. */
static const char *find_weight(enum dtype *dtype, const void *files, const char *name)
{
    const struct model_source *source = files;
    const char *named = frozen_find(dtype, names_of(source), name);

    *dtype = source->merged != NULL ? DTYPE_F32 : *dtype;
    return named;
}

struct model_options model_source_options(const struct model_source *source)
{
    struct model_options options = source->config.model;

    /* That of the base, as in training. */
    options.embedding_type = frozen_embedding_type(names_of(source), &options);
    options.lora = (struct lora){.find = find_weight, .files = source};
    return options;
}

static bool has_shape(const struct safetensors_entry *entry, const struct tensor *weight)
{
    if (entry->rank != weight->rank) {
        return false;
    }
    for (uint32_t i = 0; i < weight->rank; i++) {
        if (entry->dims[i] != weight->dims[i]) {
            return false;
        }
    }
    return true;
}

enum status model_source_read(void *context, void *bytes, const struct tensor *weight,
                              struct error *error)
{
    const struct model_source *source = context;
    const struct weights *names = names_of(source);
    const struct weights_entry *found = weights_find(names, weight->name);

    if (found == NULL) {
        found = weights_find_plain(names, weight->name);
    }
    if (found == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%s: there is no '%s'", names->path,
                         weight->name);
    }
    if (!weights_widen(found->entry->element) || !has_shape(found->entry, weight)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: '%s' has not the type or the shape that %s says",
                         weights_path(names, found), weight->name, BASE_CONFIG_NAME);
    }
    if (source->merged != NULL) {
        return model_weights_read(bytes, source->merged, found->entry->name, weight->count, error);
    }
    return safetensors_read(found->file, error, bytes, found->entry, (size_t)tensor_size(weight),
                            0);
}
