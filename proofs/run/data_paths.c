/* data_paths.c - see data_paths.h. */
#include "proofs/run/data_paths.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "proofs/format/dataset.h"
#include "proofs/format/weights.h"

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "no memory for the names of the data");
}

enum status data_paths_open(struct data_paths *paths, uint32_t count, struct error *error)
{
    *paths = (struct data_paths){.of = calloc((size_t)count + 1, sizeof(*paths->of))};
    if (paths->of == NULL) {
        return no_memory(error);
    }
    paths->count = count;
    return STATUS_OK;
}

void data_paths_close(struct data_paths *paths)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        free(paths->of[i]);
    }
    free(paths->of);
    *paths = (struct data_paths){0};
}

enum status data_paths_set(struct data_paths *paths, uint32_t at, const char *path,
                           struct error *error)
{
    char *copy = strdup(path);

    if (copy == NULL) {
        return no_memory(error);
    }
    free(paths->of[at]);
    paths->of[at] = copy;
    return STATUS_OK;
}

/* ---- of files ----------------------------------------------------------- */

static uint32_t count_data(const struct tape *tape)
{
    uint32_t count = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        count += tape->tensors[id].role == ROLE_DATA;
    }
    return count;
}

/* ---- of a folder of packed rows ------------------------------------------ */

/* Beside the files of rows stands where they come from. */
#define ROWS_MANIFEST "manifest.json"

static bool has_rows(const char *folder)
{
    char path[FILE_PATH_MAX];

    return file_path_join(path, sizeof(path), NULL, folder, ROWS_MANIFEST) == STATUS_OK &&
           file_exists(path);
}

/* The file PREFIXNAME.TYPE of the folder, if it has that. */
static bool find_rows(char path[FILE_PATH_MAX], const char *folder, const char *prefix,
                      const char *name, enum dtype dtype)
{
    char file[TENSOR_NAME_MAX + 32];

    (void)snprintf(file, sizeof(file), "%s%s.%s", prefix, name, dtype_name(dtype));
    return file_path_join(path, FILE_PATH_MAX, NULL, folder, file) == STATUS_OK &&
           file_exists(path);
}

/* ---- the files in folders --------------------------------------------------- */

static enum status add_path(struct data_paths *paths, const char *path, struct error *error)
{
    char **more = realloc(paths->of, ((size_t)paths->count + 1) * sizeof(*more));

    if (more == NULL) {
        return no_memory(error);
    }
    paths->of = more;
    more[paths->count++] = NULL;
    return data_paths_set(paths, paths->count - 1, path, error);
}

static enum status add_rows(struct data_paths *paths, const char *folder, struct error *error)
{
    static const char *const prefixes[] = {"", "held-out-"};
    static const char *const names[] = {"tokens", "mask", "reach"};
    static const enum dtype types[] = {DTYPE_U8, DTYPE_U16, DTYPE_U32};

    for (size_t i = 0; i < 2 * 3 * 3; i++) {
        char path[FILE_PATH_MAX];

        if (find_rows(path, folder, prefixes[i / 9], names[i / 3 % 3], types[i % 3])) {
            TRY(add_path(paths, path, error));
        }
    }
    return STATUS_OK;
}

/* A folder that holds no weights is for its reader to refuse. */
static enum status add_weights(struct data_paths *paths, const char *folder, struct error *error)
{
    struct weights weights;
    enum status status;

    if (weights_open(&weights, folder, NULL) != STATUS_OK) {
        return add_path(paths, folder, error);
    }
    status = STATUS_OK;
    for (uint32_t i = 0; i < weights.file_count && status == STATUS_OK; i++) {
        status = add_path(paths, weights.paths[i], error);
    }
    weights_close(&weights);
    return status;
}

enum status data_paths_spread(struct data_paths *paths, const char *const *names, size_t count,
                              struct error *error)
{
    TRY(data_paths_open(paths, 0, error));
    for (size_t i = 0; i < count; i++) {
        if (has_rows(names[i])) {
            TRY(add_rows(paths, names[i], error));
        } else if (dataset_is_named(names[i])) {
            TRY(add_weights(paths, names[i], error));
        } else {
            TRY(add_path(paths, names[i], error));
        }
    }
    return STATUS_OK;
}

/* ---- by name -------------------------------------------------------------------- */

/* Of "NAME=FILE", where NAME is a data tensor's, its number; else the number of tensors. */
static uint32_t find_named(const struct tape *tape, const char *file)
{
    const char *sign = strchr(file, '=');
    const size_t length = sign == NULL ? 0 : (size_t)(sign - file);
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role != ROLE_DATA) {
            continue;
        }
        if (length > 0 && strlen(tensor->name) == length &&
            memcmp(tensor->name, file, length) == 0) {
            return at;
        }
        at++;
    }
    return at;
}

/* Takes what is given by name, and leaves the other files in `rest`. */
static enum status take_given(struct data_paths *paths, const char **rest, size_t *count,
                              const struct tape *tape, const char *const *files,
                              struct error *error)
{
    size_t left = 0;

    for (size_t i = 0; i < *count; i++) {
        const uint32_t at = find_named(tape, files[i]);

        if (at == paths->count) {
            rest[left++] = files[i];
            continue;
        }
        if (paths->of[at] != NULL) {
            return error_set(error, STATUS_USAGE, "%s: another file has that name already",
                             files[i]);
        }
        TRY(data_paths_set(paths, at, strchr(files[i], '=') + 1, error));
    }
    *count = left;
    return STATUS_OK;
}

/* Does the job read rows that it does not only look at? */
static bool trains_on_rows(const struct tape *tape)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA && strcmp(tape->tensors[id].name, "tokens") == 0) {
            return true;
        }
    }
    return false;
}

/* Held-out rows have names of their own; other rows to look at are all of a second folder, or of
 * the only one. */
static enum status take_rows(struct data_paths *paths, const struct tape *tape, const char *folder,
                             struct error *error)
{
    static const char held_out[] = "held_out.";
    const size_t length = sizeof(held_out) - 1;
    const bool second = !trains_on_rows(tape) || (paths->count > 0 && paths->of[0] != NULL);
    bool used = false;
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        const bool beside = strncmp(tensor->name, held_out, length) == 0;
        const char *name = tensor->name + (beside ? length : 0);
        char path[FILE_PATH_MAX];

        if (tensor->role != ROLE_DATA) {
            continue;
        }
        if (paths->of[at] == NULL &&
            (find_rows(path, folder, beside ? "held-out-" : "", name, tensor->dtype) ||
             (beside && second && find_rows(path, folder, "", name, tensor->dtype)))) {
            TRY(data_paths_set(paths, at, path, error));
            used = true;
        }
        at++;
    }
    return used ? STATUS_OK
                : error_set(error, STATUS_USAGE,
                            "%s has no rows that the job reads and no earlier file gives", folder);
}

static bool is_repeated(const char *const *files, size_t at)
{
    size_t i = 0;

    while (strcmp(files[i], files[at]) != 0) {
        i++;
    }
    return i < at;
}

/* Takes from a .safetensors file, or from the files of a folder, what they name and no earlier one
 * gave. */
static enum status take_named(struct data_paths *paths, const struct tape *tape, const char *path,
                              struct error *error)
{
    struct weights weights;
    uint32_t at = 0;
    bool used = false;
    enum status status;

    if (has_rows(path)) {
        return take_rows(paths, tape, path, error);
    }
    TRY(weights_open(&weights, path, error));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct weights_entry *entry;

        if (tape->tensors[id].role != ROLE_DATA) {
            continue;
        }
        entry = weights_find_plain(&weights, tape->tensors[id].name);
        if (paths->of[at] == NULL && entry != NULL) {
            TRY_OUT(data_paths_set(paths, at, weights_path(&weights, entry), error));
            used = true;
        }
        at++;
    }
    status = used
                 ? STATUS_OK
                 : error_set(error, STATUS_USAGE,
                             "%s names no data tensor of the job that no earlier file gives", path);
out:
    weights_close(&weights);
    return status;
}

/* The files that give one tensor each go to the tensors that are left, in order. */
static enum status take_rest(struct data_paths *paths, const char *const *files, size_t count,
                             struct error *error)
{
    uint32_t left = 0;
    size_t rest = 0;
    size_t next = 0;

    for (uint32_t i = 0; i < paths->count; i++) {
        left += paths->of[i] == NULL;
    }
    for (size_t i = 0; i < count; i++) {
        rest += !dataset_is_named(files[i]);
    }
    if (rest != left) {
        (void)error_set(error, STATUS_USAGE, "the job reads %u data files, and %zu are given", left,
                        rest);
        error_advise(error, "name them with --data, once for each");
        return STATUS_USAGE;
    }
    for (uint32_t i = 0; i < paths->count; i++) {
        if (paths->of[i] != NULL) {
            continue;
        }
        while (next + 1 < count && dataset_is_named(files[next])) {
            next++;
        }
        assert(next < count && files[next] != NULL); /* they were counted above */
        TRY(data_paths_set(paths, i, files[next++], error));
    }
    return STATUS_OK;
}

enum status data_paths_of_files(struct data_paths *paths, const struct tape *tape,
                                const char *const *files, size_t count, struct error *error)
{
    const char **rest = calloc(count + 1, sizeof(*rest));
    enum status status;

    if (rest == NULL) {
        return no_memory(error);
    }
    TRY_OUT(data_paths_open(paths, count_data(tape), error));
    TRY_OUT(take_given(paths, rest, &count, tape, files, error));
    for (size_t i = 0; i < count; i++) {
        if (dataset_is_named(rest[i]) && !is_repeated(rest, i)) {
            TRY_OUT(take_named(paths, tape, rest[i], error));
        }
    }
    status = take_rest(paths, rest, count, error);
out:
    free(rest);
    return status;
}

/* ---- of a bundle -------------------------------------------------------- */

void data_paths_note(char name[DATA_PATHS_NOTE_SIZE], uint32_t at)
{
    (void)snprintf(name, DATA_PATHS_NOTE_SIZE, "data.%u", at);
}

enum status data_paths_of_bundle(struct data_paths *paths, const struct job *job,
                                 struct bundle *bundle, struct error *error)
{
    TRY(data_paths_open(paths, job->data_count, error));
    for (uint32_t i = 0; i < job->data_count; i++) {
        char name[DATA_PATHS_NOTE_SIZE];
        char path[FILE_PATH_MAX];

        data_paths_note(name, i);
        TRY(bundle_note(path, bundle, name, error));
        TRY(data_paths_set(paths, i, path, error));
    }
    return STATUS_OK;
}

enum status data_paths_remember(const struct data_paths *paths, struct bundle *bundle,
                                struct error *error)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        char name[DATA_PATHS_NOTE_SIZE];
        char whole[PATH_MAX];

        if (realpath(paths->of[i], whole) == NULL) {
            return error_set_errno(error, "cannot find the data %s", paths->of[i]);
        }
        data_paths_note(name, i);
        TRY(bundle_set_note(bundle, name, whole, error));
    }
    return STATUS_OK;
}
