/* shelf.c - see shelf.h. */
#include "prover/node/shelf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/commands/job_source.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_file.h"
#include "proofs/run/run.h"

void shelf_release(struct shelf *shelf)
{
    for (uint32_t i = 0; i < shelf->count; i++) {
        free(shelf->items[i].path);
        free(shelf->items[i].state);
        data_paths_close(&shelf->items[i].data);
    }
    free(shelf->items);
    shelf->items = NULL;
    shelf->count = 0;
}

const struct shelf_item *shelf_find(const struct shelf *shelf, const struct digest *job_id)
{
    const struct shelf_item *found = NULL;

    for (uint32_t i = 0; i < shelf->count; i++) {
        const struct shelf_item *item = &shelf->items[i];

        if (item->is_job && digest_equal(&item->id, job_id) &&
            (found == NULL || (!shelf_is_complete(found) && shelf_is_complete(item)))) {
            found = item;
        }
    }
    return found;
}

bool shelf_is_complete(const struct shelf_item *item)
{
    return item->has_data && (!item->gives_state || item->state != NULL);
}

/* ---- one job file ------------------------------------------------------------------ */

/* Is the file the job's data number `at`? A file that cannot be read is not. */
static bool is_data(const struct job *job, const struct tensor *tensor, uint32_t at,
                    const char *path)
{
    struct dataset dataset;
    struct digest root;
    struct error none;

    error_init(&none);
    if (run_data_open(&dataset, &root, tensor, path, &none) != STATUS_OK) {
        return false;
    }
    dataset_close(&dataset);
    return digest_equal(&root, &job->data_roots[at]);
}

/* "NAME" of NAME.job: what was fetched with it has names that begin so (job_source_name()). */
static void prefix_of(char prefix[FILE_PATH_MAX], const struct shelf_item *item)
{
    (void)snprintf(prefix, FILE_PATH_MAX, "%.*s", (int)strlen(item->path) - 4, item->path);
}

static enum status find_beside(struct shelf_item *item, const struct job *job,
                               const struct tensor *tensor, uint32_t at, struct error *error)
{
    static const char *const endings[] = {"", ".npy"};
    char prefix[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];

    prefix_of(prefix, item);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (job_source_name(path, prefix, &job->data_roots[at], endings[i]) && file_exists(path) &&
            is_data(job, tensor, at, path)) {
            return data_paths_set(&item->data, at, path, error);
        }
    }
    return STATUS_OK;
}

static bool is_first_state(const struct job *job, const char *path)
{
    struct first_state first = {0};
    struct digest root;
    struct error none;
    enum status status;

    error_init(&none);
    TRY_OUT(first_state_open(&first, job->tape, path, &none));
    TRY_OUT(first_state_root(&root, &first, &none));
out:
    first_state_close(&first);
    return status == STATUS_OK && digest_equal(&root, &job->first_state_root);
}

static enum status find_state(struct shelf_item *item, const struct job *job, struct error *error)
{
    char prefix[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];

    free(item->state);
    item->state = NULL;
    prefix_of(prefix, item);
    if (!job->first_state_given ||
        !job_source_name(path, prefix, &job->first_state_root, ".safetensors") ||
        !file_exists(path) || !is_first_state(job, path)) {
        return STATUS_OK;
    }
    item->state = strdup(path);
    return item->state != NULL
               ? STATUS_OK
               : error_set(error, STATUS_NO_MEMORY, "no memory for the name of a first state");
}

static enum status find_data(struct shelf_item *item, const struct shelf *shelf,
                             const struct job *job, struct error *error)
{
    const struct tape *tape = job->tape;
    uint32_t at = 0;

    data_paths_close(&item->data);
    TRY(data_paths_open(&item->data, job->data_count, error));
    item->has_data = true;
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role != ROLE_DATA) {
            continue;
        }
        TRY(find_beside(item, job, &tape->tensors[id], at, error));
        for (size_t i = 0; i < shelf->data_count && item->data.of[at] == NULL; i++) {
            if (is_data(job, &tape->tensors[id], at, shelf->data[i])) {
                TRY(data_paths_set(&item->data, at, shelf->data[i], error));
            }
        }
        item->has_data = item->has_data && item->data.of[at] != NULL;
        at++;
    }
    return STATUS_OK;
}

static enum status read_item(struct shelf_item *item, const struct shelf *shelf,
                             struct error *error)
{
    struct job *job = NULL;
    struct error none;
    enum status status = STATUS_OK;

    error_init(&none);
    item->is_job = job_read(&job, item->path, &none) == STATUS_OK;
    if (item->is_job) {
        item->id = job->id;
        item->steps = job->steps;
        item->segment_steps = job->segment_length;
        item->gives_state = job->first_state_given;
        TRY_OUT(find_data(item, shelf, job, error));
        TRY_OUT(find_state(item, job, error));
    }
out:
    job_free(job);
    return status;
}

/* ---- looking -------------------------------------------------------------------------- */

static enum status look_at_file(struct shelf *shelf, const char *path, struct error *error)
{
    struct shelf_item *item = NULL;
    struct stat info;
    char *copy;

    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < shelf->count && item == NULL; i++) {
        const char *known = shelf->items[i].path;

        item = known != NULL && strcmp(known, path) == 0 ? &shelf->items[i] : NULL;
    }
    if (item != NULL && item->size == (uint64_t)info.st_size &&
        memcmp(&item->changed, &info.st_mtim, sizeof(item->changed)) == 0) {
        return STATUS_OK;
    }
    if (item == NULL) {
        if (shelf->count == SHELF_ITEMS_MAX) {
            return STATUS_OK;
        }
        copy = strdup(path);
        if (copy == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the names of job files");
        }
        item = &shelf->items[shelf->count++];
        *item = (struct shelf_item){.path = copy};
    }
    item->changed = info.st_mtim;
    item->size = (uint64_t)info.st_size;
    return read_item(item, shelf, error);
}

static bool is_named_job(const char *name)
{
    size_t length = strlen(name);

    return length > 4 && strcmp(name + length - 4, ".job") == 0;
}

static enum status look_into(struct shelf *shelf, const char *folder, DIR *open_folder,
                             struct error *error)
{
    const struct dirent *entry;

    while ((entry = readdir(open_folder)) != NULL) {
        char path[FILE_PATH_MAX];

        if (is_named_job(entry->d_name) &&
            file_path_join(path, sizeof(path), NULL, folder, entry->d_name) == STATUS_OK) {
            TRY(look_at_file(shelf, path, error));
        }
    }
    return STATUS_OK;
}

enum status shelf_look(struct shelf *shelf, struct error *error)
{
    if (shelf->items == NULL) {
        shelf->items = calloc(SHELF_ITEMS_MAX, sizeof(*shelf->items));
        if (shelf->items == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for job files");
        }
    }
    for (size_t i = 0; i < shelf->place_count; i++) {
        DIR *folder = opendir(shelf->places[i]);
        enum status status;

        if (folder == NULL) {
            TRY(look_at_file(shelf, shelf->places[i], error));
            continue;
        }
        status = look_into(shelf, shelf->places[i], folder, error);
        (void)closedir(folder);
        TRY(status);
    }
    return STATUS_OK;
}

enum status shelf_look_again(struct shelf *shelf, struct error *error)
{
    for (uint32_t i = 0; i < shelf->count; i++) {
        if (shelf->items[i].is_job && !shelf_is_complete(&shelf->items[i])) {
            shelf->items[i].size = UINT64_MAX; /* of no file: it is read again */
        }
    }
    return shelf_look(shelf, error);
}
