/* content_data.c - see content_data.h. */
#include "prover/serve/content_data.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/io/file.h"
#include "proofs/run/run.h"

void content_data_close(struct content_data *data)
{
    for (size_t i = 0; i < data->count; i++) {
        (void)close(data->of[i].pieces);
    }
    free(data->of);
    *data = (struct content_data){0};
}

/* Does the file hold the tensor of datum->root? A file that cannot be read does not. */
static bool is_data(struct content_datum *datum, const struct tensor *tensor, const char *path)
{
    struct dataset dataset;
    struct digest root;
    struct error none;
    bool found;

    error_init(&none);
    if (run_data_open(&dataset, NULL, tensor, path, &none) != STATUS_OK) {
        return false;
    }
    datum->offset = dataset.offset;
    datum->size = dataset_is_named(path) ? tensor_size(tensor) : 0;
    found = run_data_pieces(&datum->pieces, &root, &dataset, tensor, &none) == STATUS_OK;
    dataset_close(&dataset);
    if (found && !digest_equal(&root, &datum->root)) {
        (void)close(datum->pieces);
        found = false;
    }
    return found;
}

static enum status find_one(struct content_data *data, struct data_paths *paths, uint32_t at,
                            const struct tensor *tensor, struct bundle *bundle,
                            const char *const *files, size_t file_count, struct error *error)
{
    struct content_datum datum = {.root = bundle_job(bundle)->data_roots[at]};
    const char *found = NULL;
    char noted[FILE_PATH_MAX];
    char name[DATA_PATHS_NOTE_SIZE];

    for (size_t i = 0; i < file_count && found == NULL; i++) {
        found = is_data(&datum, tensor, files[i]) ? files[i] : NULL;
    }
    data_paths_note(name, at);
    if (found == NULL && bundle_note(noted, bundle, name, error) == STATUS_OK &&
        is_data(&datum, tensor, noted)) {
        found = noted;
    }
    error_init(error);
    if (found == NULL) {
        return STATUS_OK;
    }
    data->of[data->count++] = datum;
    TRY(data_paths_set(paths, at, found, error));
    data->of[data->count - 1].path = paths->of[at];
    return STATUS_OK;
}

enum status content_data_find(struct content_data *data, struct data_paths *paths, bool *whole,
                              struct bundle *bundle, const char *const *files, size_t file_count,
                              struct error *error)
{
    const struct job *job = bundle_job(bundle);
    const size_t before = data->count;
    struct content_datum *more = realloc(data->of, (before + job->data_count + 1) * sizeof(*more));
    uint32_t at = 0;

    if (more == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the names of the data");
    }
    data->of = more;
    TRY(data_paths_open(paths, job->data_count, error));
    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        if (job->tape->tensors[id].role == ROLE_DATA) {
            TRY(find_one(data, paths, at++, &job->tape->tensors[id], bundle, files, file_count,
                         error));
        }
    }
    *whole = data->count - before == job->data_count;
    return STATUS_OK;
}

const struct content_datum *content_data_of(const struct content_data *data,
                                            const struct digest *root)
{
    for (size_t i = 0; i < data->count; i++) {
        if (digest_equal(root, &data->of[i].root)) {
            return &data->of[i];
        }
    }
    return NULL;
}
