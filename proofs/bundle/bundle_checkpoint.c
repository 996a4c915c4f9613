/* bundle_checkpoint.c - see bundle.h: checkpoints, written, found, checked and loaded. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/bundle/bundle.h"
#include "proofs/bundle/bundle_parts.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/bundle/checkpoint_write.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"
#include "proofs/format/safetensors.h"
#include "proofs/job/first_state.h"

void bundle_checkpoint_name(char name[BUNDLE_CONTEXT_MAX], uint64_t step)
{
    (void)snprintf(name, BUNDLE_CONTEXT_MAX, "checkpoints/%012" PRIu64 ".safetensors", step);
}

enum status bundle_checkpoint_path(char *path, const struct bundle *bundle, uint64_t step,
                                   struct error *error)
{
    char name[BUNDLE_CONTEXT_MAX];

    bundle_checkpoint_name(name, step);
    return bundle_file(path, bundle, name, error);
}

/* ---- writing ------------------------------------------------------------ */

/* Where the states of a checkpoint come from: a machine, or the file of a first state. */
struct supply {
    struct machine *machine; /* NULL: first */
    const struct first_state *first;
};

static enum status write_file(struct bundle *bundle, const struct supply *supply, uint64_t step,
                              const struct digest *root, struct error *error)
{
    char context[BUNDLE_CONTEXT_MAX];
    char path[FILE_PATH_MAX];
    const struct checkpoint_write what = {.job = bundle->job,
                                          .step = step,
                                          .root = root,
                                          .machine = supply->machine,
                                          .first = supply->first,
                                          .key = bundle_encryption_key(bundle),
                                          .context = context};

    bundle_checkpoint_name(context, step);
    TRY(bundle_checkpoint_path(path, bundle, step, error));
    return checkpoint_write(&what, path, error);
}

enum status bundle_checkpoint_enter(struct bundle *bundle, uint64_t step, const struct digest *root,
                                    struct error *error)
{
    TRY(bundle_flush(bundle, error));
    return database_run(bundle->database, error, "INSERT OR REPLACE INTO checkpoints VALUES (?, ?)",
                        "id", step, root);
}

static enum status write_checkpoint(struct bundle *bundle, const struct supply *supply,
                                    uint64_t step, const struct digest *root, struct error *error)
{
    struct digest wanted;

    TRY(bundle_state_root(&wanted, bundle, step, error));
    if (!digest_equal(root, &wanted)) {
        return error_set(error, STATUS_REFUSED,
                         "this is not the state before step %" PRIu64 " that was committed to",
                         step);
    }
    TRY(bundle_require_key(bundle, error));
    TRY(write_file(bundle, supply, step, root, error));
    return bundle_checkpoint_enter(bundle, step, root, error);
}

enum status bundle_checkpoint_write(struct bundle *bundle, struct machine *machine, uint64_t step,
                                    struct error *error)
{
    const struct supply supply = {.machine = machine};
    struct digest root;

    TRY(state_root_of(&root, machine, error));
    return write_checkpoint(bundle, &supply, step, &root, error);
}

enum status bundle_give_first_state(struct bundle *bundle, const char *path, struct error *error)
{
    struct first_state first = {0};
    const struct supply supply = {.first = &first};
    struct digest root;
    enum status status;

    if (!bundle->job->first_state_given) {
        return error_set(error, STATUS_USAGE, "the job draws its first state; none can be given");
    }
    TRY_OUT(first_state_open(&first, bundle->job->tape, path, error));
    TRY_OUT(first_state_root(&root, &first, error));
    TRY_OUT(digest_equal(&root, &bundle->job->first_state_root)
                ? STATUS_OK
                : error_set(error, STATUS_REFUSED, "%s is not the first state of the job", path));
    TRY_OUT(write_checkpoint(bundle, &supply, 0, &root, error));
out:
    first_state_close(&first);
    return status;
}

/* ---- reading ------------------------------------------------------------ */

/* Opens the checkpoint before a step and finds the root that it must have. */
static enum status open_checkpoint(struct safetensors *file, struct digest *root,
                                   struct bundle *bundle, uint64_t step, struct error *error)
{
    char path[FILE_PATH_MAX];
    char context[BUNDLE_CONTEXT_MAX];

    TRY(bundle_state_root(root, bundle, step, error));
    TRY(bundle_require_key(bundle, error));
    TRY(bundle_checkpoint_path(path, bundle, step, error));
    bundle_checkpoint_name(context, step);
    TRY(bundle->encrypted ? safetensors_open_encrypted(file, error, path, &bundle->key, context)
                          : safetensors_open(file, error, path));
    if (!checkpoint_file_is(file, bundle->job, step, root)) {
        safetensors_close(file);
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s does not say that it is the state before step %" PRIu64 " of this job",
                         path, step);
    }
    return STATUS_OK;
}

static enum status compare_root(const struct digest *root, const struct digest *wanted,
                                const struct safetensors *file, struct error *error)
{
    return digest_equal(root, wanted)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%s is not the state that was committed to",
                           file->path);
}

enum status bundle_checkpoint_open(struct safetensors *file, struct bundle *bundle, uint64_t step,
                                   struct error *error)
{
    struct digest wanted;
    struct digest root;
    enum status status;

    TRY(open_checkpoint(file, &wanted, bundle, step, error));
    TRY_OUT(checkpoint_file_root(&root, file, bundle->job->tape, error));
    TRY_OUT(compare_root(&root, &wanted, file, error));
    return STATUS_OK;
out:
    safetensors_close(file);
    return status;
}

enum status bundle_checkpoint_check(struct bundle *bundle, uint64_t step, struct error *error)
{
    struct safetensors file;

    TRY(bundle_checkpoint_open(&file, bundle, step, error));
    safetensors_close(&file);
    return STATUS_OK;
}

/* ---- loading ------------------------------------------------------------ */

static enum status load_checkpoint(struct bundle *bundle, struct machine *machine, uint64_t step,
                                   struct error *error)
{
    struct safetensors file;
    struct digest wanted;
    struct digest root;
    enum status status;

    TRY(open_checkpoint(&file, &wanted, bundle, step, error));
    TRY_OUT(checkpoint_file_load(machine, &file, error));
    TRY_OUT(state_root_of(&root, machine, error));
    TRY_OUT(compare_root(&root, &wanted, &file, error));
out:
    safetensors_close(&file);
    return status;
}

static enum status check_first_state(const struct bundle *bundle, struct machine *machine,
                                     struct error *error)
{
    struct digest root;

    TRY(state_root_of(&root, machine, error));
    return digest_equal(&root, &bundle->job->first_state_root)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT,
                           "the job's draws do not give the first state that it commits to");
}

static enum status load_first_state(struct bundle *bundle, struct machine *machine,
                                    struct error *error)
{
    const struct tape *tape = bundle->job->tape;

    if (bundle->job->first_state_given) {
        (void)error_set(error, STATUS_NOT_FOUND,
                        "the job's first state is given as a checkpoint, and it is not there%s%s",
                        bundle->damaged > 0 ? ": " : "", bundle->damage.text);
        error_advise(error, "name its file with --first-state");
        return STATUS_NOT_FOUND;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t tensor = tape->states[i].before;
        void *bytes = malloc(commit_tensor_size(&tape->tensors[tensor]));
        enum status status;

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'",
                             tape->tensors[tensor].name);
        }
        job_first_state(bytes, bundle->job, tensor);
        status = machine->backend->write(machine, tensor, bytes, error);
        free(bytes);
        TRY(status);
    }
    return check_first_state(bundle, machine, error);
}

/* The newest checkpoint before step `below`. Each call queries again, so that a hostile journal
 * that repeats one checkpoint still ends. */
static enum status find_before(uint64_t *step, struct bundle *bundle, uint64_t below,
                               struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status;

    TRY_OUT(database_first(&row, bundle->database, error,
                           "SELECT step FROM checkpoints WHERE step < ? "
                           "ORDER BY step DESC LIMIT 1",
                           "i", below));
    TRY_OUT(journal_number(step, &bundle->journal, row, 0, below - 1, error));
out:
    database_done(bundle->database, row);
    return status;
}

enum status bundle_restore(uint64_t *step, struct bundle *bundle, struct machine *machine,
                           uint64_t most, struct error *error)
{
    uint64_t below = (most < bundle->job->steps ? most : bundle->job->steps) + 1;

    bundle->damaged = 0;
    error_init(&bundle->damage);
    while (below > 0) {
        struct error why;
        enum status status = find_before(step, bundle, below, error);

        if (status == STATUS_NOT_FOUND) {
            break;
        }
        TRY(status);
        error_init(&why);
        if (load_checkpoint(bundle, machine, *step, &why) == STATUS_OK) {
            return STATUS_OK;
        }
        bundle->damage = bundle->damaged == 0 ? why : bundle->damage;
        bundle->damaged++;
        below = *step;
    }
    *step = 0;
    return load_first_state(bundle, machine, error);
}

uint32_t bundle_damaged(const struct bundle *bundle, const char **why)
{
    *why = bundle->damage.text;
    return bundle->damaged;
}

enum status bundle_checkpoint_find(uint64_t *step, struct bundle *bundle, uint64_t from,
                                   struct error *error)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_first(&row, bundle->database, error,
                                        "SELECT step FROM checkpoints WHERE step >= ? "
                                        "ORDER BY step LIMIT 1",
                                        "i", from < JOB_STEPS_MAX ? from : JOB_STEPS_MAX + 1);

    if (status == STATUS_NOT_FOUND) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no checkpoint from step %" PRIu64 " on",
                        bundle->path, from);
    }
    if (status != STATUS_OK) {
        goto out;
    }
    TRY_OUT(journal_number(step, &bundle->journal, row, 0, bundle->job->steps, error));
    if (*step < from) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s: the list of checkpoints is not in order",
                           bundle->journal.path);
    }
out:
    database_done(bundle->database, row);
    return status;
}

/* ---- retention ---------------------------------------------------------- */

static enum status remove_checkpoint(struct bundle *bundle, uint64_t step, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_checkpoint_path(path, bundle, step, error));
    /* Entry first: a crash in between leaves a file without an entry, which is only waste. */
    TRY(database_run(bundle->database, error, "DELETE FROM checkpoints WHERE step = ?", "i", step));
    return unlink(path) != 0 && file_exists(path) ? error_set_errno(error, "cannot remove %s", path)
                                                  : STATUS_OK;
}

/* The step in "000000000100.safetensors"; false: it is not the name of a checkpoint. */
static bool step_of_name(uint64_t *step, const char *file_name)
{
    char name[BUNDLE_CONTEXT_MAX];
    const char *own = strchr(file_name, '/');

    if (own != NULL || strspn(file_name, "0123456789") != 12) {
        return false;
    }
    *step = strtoull(file_name, NULL, 10);
    bundle_checkpoint_name(name, *step);
    return strcmp(strchr(name, '/') + 1, file_name) == 0;
}

/* A crash between the two removals leaves a file without an entry: remove it now. */
static enum status remove_forgotten(struct bundle *bundle, uint64_t newest, struct error *error)
{
    char path[FILE_PATH_MAX];
    struct dirent *entry;
    enum status status = STATUS_OK;
    DIR *folder;

    TRY(bundle_file(path, bundle, BUNDLE_CHECKPOINTS, error));
    folder = opendir(path);
    if (folder == NULL) {
        return error_set_errno(error, "cannot read %s", path);
    }
    while ((entry = readdir(folder)) != NULL) {
        uint64_t step;
        uint64_t found = UINT64_MAX;

        if (step_of_name(&step, entry->d_name) && step < newest) {
            TRY_OUT(bundle_checkpoint_find(&found, bundle, step, error));
            if (found != step) {
                (void)unlinkat(dirfd(folder), entry->d_name, 0);
            }
        }
    }
out:
    (void)closedir(folder);
    return status;
}

enum status bundle_checkpoint_prune(struct bundle *bundle, uint64_t keep, uint64_t every,
                                    struct error *error)
{
    uint64_t length = bundle->job->segment_length;
    uint64_t newest = 0;
    uint64_t seen = 0;
    uint64_t below = bundle->job->steps + 1;

    TRY(bundle_flush(bundle, error));
    while (below > 0) {
        uint64_t step;
        enum status status = find_before(&step, bundle, below, error);
        bool wanted;

        if (status == STATUS_NOT_FOUND) {
            break;
        }
        TRY(status);
        below = step;
        newest = seen == 0 ? step : newest;
        /* The bundle holds the only copy of a first state that was given. */
        wanted = seen++ < keep ||
                 (every != 0 && step % length == 0 && step / length % every == 0) ||
                 (step == 0 && bundle->job->first_state_given);
        if (!wanted) {
            TRY(remove_checkpoint(bundle, step, error));
        }
    }
    return remove_forgotten(bundle, newest, error);
}
