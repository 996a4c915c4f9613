/* receipt_state.c - see receipt_state.h. */
#include "proofs/receipt/receipt_state.h"

#include <inttypes.h>
#include <string.h>

#include "proofs/bundle/model_export.h"
#include "proofs/format/new_folder.h"
#include "proofs/model/model_root.h"

static bool has_file(const char *folder, const char *name)
{
    char path[FILE_PATH_MAX];

    return file_path_join(path, sizeof(path), NULL, folder, name) == STATUS_OK && file_exists(path);
}

bool receipt_state_is_bundle(const char *path)
{
    return has_file(path, "job") && has_file(path, "journal.db");
}

static enum status open_bundle(struct receipt_state *state, const char *path, struct error *error)
{
    TRY(bundle_open(&state->bundle, path, BUNDLE_READ, error));
    if (!bundle_is_locked(state->bundle)) {
        return new_folder_scratch(state->scratch, error);
    }
    (void)error_set(error, STATUS_REFUSED, "%s is encrypted", path);
    error_advise(error, "export the model with 'bundle export --hf FOLDER --merge', and name "
                        "FOLDER");
    return STATUS_REFUSED;
}

static enum status check_base(const struct receipt_state *state, const char *path, const char *base,
                              struct error *error)
{
    const struct job *job = bundle_job(state->bundle);

    return base != NULL || (!job->first_state_given && !model_export_has_adapters(job->tape))
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "the training of %s began with a folder, which must be named", path);
}

/* Writes the checkpoint before that step as a folder, in place of the one before. */
static enum status write_folder(struct receipt_state *state, const char *base, uint64_t step,
                                struct error *error)
{
    const struct job *job = bundle_job(state->bundle);
    struct model_export wanted = {.folder = state->folder,
                                  .base = base,
                                  .merge = model_export_has_adapters(job->tape),
                                  .job = job,
                                  .step = step};
    struct safetensors file;
    enum status status;

    file_remove_folder(state->folder);
    TRY(bundle_state_root(&wanted.root, state->bundle, step, error));
    TRY(bundle_checkpoint_open(&file, state->bundle, step, error));
    wanted.state = &file;
    status = model_export(&wanted, error);
    safetensors_close(&file);
    state->step = step;
    state->root = wanted.root;
    return status;
}

/* The last checkpoint before that step; STATUS_NOT_FOUND: there is none. */
static enum status checkpoint_before(uint64_t *step, struct bundle *bundle, uint64_t before,
                                     struct error *error)
{
    uint64_t at;
    bool any = false;

    for (uint64_t from = 0; from < before; from = at + 1) {
        if (bundle_checkpoint_find(&at, bundle, from, NULL) != STATUS_OK || at >= before) {
            break;
        }
        *step = at;
        any = true;
    }
    return any ? STATUS_OK : error_set(error, STATUS_NOT_FOUND, "there is no checkpoint");
}

static enum status find_step(uint64_t *found, struct bundle *bundle, uint64_t step,
                             struct error *error)
{
    if (step == UINT64_MAX) {
        return checkpoint_before(found, bundle, UINT64_MAX, error);
    }
    TRY(bundle_checkpoint_find(found, bundle, step, error));
    return *found == step
               ? STATUS_OK
               : error_set(error, STATUS_NOT_FOUND,
                           "no checkpoint after %" PRIu64 " steps; the next is after %" PRIu64,
                           step, *found);
}

static enum status take_folder(struct receipt_state *state, const char *path, struct error *error)
{
    const size_t size = strlen(path);

    if (size >= sizeof(state->folder)) {
        return error_set(error, STATUS_OVER_LIMIT, "path too long: %.60s...", path);
    }
    memcpy(state->folder, path, size + 1);
    return STATUS_OK;
}

/* Of a bundle no state is written yet. */
static enum status begin_state(struct receipt_state *state, const char *path, const char *base,
                               struct error *error)
{
    *state = (struct receipt_state){0};
    if (!receipt_state_is_bundle(path)) {
        return take_folder(state, path, error);
    }
    TRY(open_bundle(state, path, error));
    TRY(check_base(state, path, base, error));
    return file_path_join(state->folder, sizeof(state->folder), error, state->scratch, "model");
}

enum status receipt_state_open(struct receipt_state *state, const char *path, const char *base,
                               uint64_t step, struct error *error)
{
    enum status status;
    uint64_t found;

    TRY_OUT(begin_state(state, path, base, error));
    if (state->bundle == NULL) {
        return STATUS_OK;
    }
    TRY_OUT(find_step(&found, state->bundle, step, error));
    TRY_OUT(write_folder(state, base, found, error));
out:
    if (status != STATUS_OK) {
        receipt_state_close(state);
    }
    return status;
}

/* From the newest on. One that cannot be written hides none of the others; it is told where none is
 * found. */
static enum status find_root(struct receipt_state *state, bool *found, const char *base,
                             const struct digest *wanted, struct error *error)
{
    enum status broken = STATUS_OK;
    uint64_t step = UINT64_MAX;
    uint32_t count;
    bool any = false;

    while (!*found && checkpoint_before(&step, state->bundle, step, NULL) == STATUS_OK) {
        struct digest root;
        struct error why;
        enum status status;

        error_init(&why);
        status = write_folder(state, base, step, &why);
        if (status == STATUS_OK) {
            status = model_root_of(&root, &count, state->folder, &why);
        }
        if (status != STATUS_OK && broken == STATUS_OK) {
            broken = status;
            *error = why;
        }
        *found = status == STATUS_OK && digest_equal(&root, wanted);
        any = true;
    }
    if (!any) {
        return error_set(error, STATUS_NOT_FOUND, "there is no checkpoint");
    }
    return *found ? STATUS_OK : broken;
}

enum status receipt_state_find(struct receipt_state *state, bool *found, const char *path,
                               const char *base, const struct receipt *receipt, struct error *error)
{
    struct error why;
    enum status status;

    error_init(&why);
    *found = false;
    TRY_OUT(begin_state(state, path, base, error));
    *found = state->bundle == NULL;
    if (!*found) {
        status = find_root(state, found, base, &receipt->model_root, &why);
        if (status != STATUS_OK) {
            *error = why;
        }
    }
out:
    if (status != STATUS_OK || !*found) {
        receipt_state_close(state);
    }
    return status;
}

void receipt_state_close(struct receipt_state *state)
{
    if (state->scratch[0] != '\0') {
        file_remove_folder(state->scratch);
    }
    bundle_close(state->bundle);
    *state = (struct receipt_state){0};
}
