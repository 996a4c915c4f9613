/* job_rows.c - see job_rows.h. */
#include "client/tokens/job_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/tokens/job_pairs.h"
#include "proofs/format/base_config.h"
#include "proofs/format/dataset.h"
#include "proofs/hash/sha256.h"

bool job_rows_is(const char *path)
{
    char name[FILE_PATH_MAX];
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
           file_path_join(name, sizeof(name), NULL, path, MANIFEST_NAME) == STATUS_OK &&
           file_exists(name);
}

/* ---- one side of a folder ------------------------------------------------- */

static enum status refuse_unlearned(const char *folder, bool held_out, struct error *error)
{
    (void)error_set(error, STATUS_REFUSED, "%s: of its %srows no token is learned", folder,
                    held_out ? "held-out " : "");
    error_advise(error, "'lockstep data show %s' prints what is learned between { and }", folder);
    return STATUS_REFUSED;
}

static enum status take_side(struct job_rows *rows, const struct manifest *manifest,
                             const char *folder, bool held_out, struct error *error)
{
    struct row_files files;

    if (manifest->learned[held_out] == 0) {
        return refuse_unlearned(folder, held_out, error);
    }
    *rows = (struct job_rows){.shape = manifest->shape,
                              .count = manifest->rows[held_out],
                              .pairs = manifest->counts.pairs > 0};
    memcpy(rows->roots, manifest->roots[held_out], sizeof(rows->roots));
    row_files_init(&files);
    TRY(row_files_open(&files, error, folder, &rows->shape, held_out));
    const uint64_t there = files.rows_there;
    row_files_close(&files);
    if (there != rows->count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: %" PRIu64 " %srows lie there, and its manifest says %" PRIu64, folder,
                         there, held_out ? "held-out " : "", rows->count);
    }
    for (int i = 0; i < ROW_TENSORS; i++) {
        char name[ROW_NAME_MAX];

        row_file_name(name, &rows->shape, (enum row_tensor)i, held_out);
        TRY(file_path_join(rows->paths[i], sizeof(rows->paths[i]), error, folder, name));
    }
    return STATUS_OK;
}

enum status job_rows_open(struct job_rows *rows, const char *folder, struct error *error)
{
    struct manifest manifest;
    enum status status;

    TRY(manifest_read(&manifest, error, folder));
    status = take_side(rows, &manifest, folder, false, error);
    manifest_release(&manifest);
    return status;
}

static bool is_same_folder(const char *a, const char *b)
{
    struct stat first;
    struct stat second;

    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static enum status open_held_out(struct job_rows *rows, const char *folder, const char *trained,
                                 struct error *error)
{
    struct manifest manifest;
    enum status status;

    if (!job_rows_is(folder)) {
        (void)error_set(error, STATUS_USAGE,
                        "--eval %s: --data has packed rows, and these are none", folder);
        error_advise(error,
                     "name a folder of 'lockstep data pack'; %s itself, if it was packed with "
                     "--held-out",
                     trained);
        return STATUS_USAGE;
    }
    TRY(manifest_read(&manifest, error, folder));
    if (manifest.rows[1] == 0 && is_same_folder(folder, trained)) {
        status = error_set(error, STATUS_USAGE, "--eval %s: it has no held-out rows", folder);
        error_advise(error, "pack it with --held-out SHARE, or name other rows");
    } else {
        status = take_side(rows, &manifest, folder, manifest.rows[1] > 0, error);
    }
    manifest_release(&manifest);
    return status;
}

/* ---- whose rows they are --------------------------------------------------- */

static enum status hash_file(struct digest *digest, const char *path, struct error *error)
{
    struct file_bytes bytes = {0};

    TRY(file_read(&bytes, error, path, TOKENIZER_SIZE_MAX));
    sha256(digest, bytes.data, bytes.size);
    file_bytes_release(&bytes);
    return STATUS_OK;
}

static enum status check_base(const char *folder, const char *base, struct error *error)
{
    struct manifest manifest;
    enum status status = STATUS_OK;

    TRY(manifest_read(&manifest, error, folder));
    for (size_t i = 0; i < manifest.file_count && status == STATUS_OK; i++) {
        const struct tokenizer_file *file = &manifest.files[i];
        char path[FILE_PATH_MAX];
        struct digest found;

        TRY_OUT(file_path_join(path, sizeof(path), error, base, file->name));
        if (!file_exists(path)) {
            continue; /* the folder is published without it */
        }
        TRY_OUT(hash_file(&found, path, error));
        if (memcmp(&found, &file->sha256, sizeof(found)) != 0) {
            (void)error_set(error, STATUS_REFUSED,
                            "%s: its rows are of another %s than the one in %s", folder, file->name,
                            base);
            error_advise(error, "pack them again with --tokenizer %s", base);
            status = STATUS_REFUSED;
        }
    }
    if (manifest.file_count == 0) {
        (void)error_set(error, STATUS_REFUSED, "%s: its rows are bytes, and no tokens of %s",
                        folder, base);
        error_advise(error, "pack them again with --tokenizer %s", base);
        status = STATUS_REFUSED;
    }
out:
    manifest_release(&manifest);
    return status;
}

/* ---- what a model learns from ---------------------------------------------- */

static enum status check_packed(const struct model_options *model, const struct options *options,
                                struct error *error)
{
    static const char *const stated[] = {"mask", "data-type"};
    const char *folder = options_list_item(options, "data", 0);

    if (model->kind != MODEL_GPT2 && model->kind != MODEL_LLAMA) {
        return error_set(error, STATUS_USAGE, "%s has rows of tokens, and %s reads none", folder,
                         model_kind_name(model->kind));
    }
    for (size_t i = 0; i < sizeof(stated) / sizeof(stated[0]); i++) {
        if (options_flagged(options, stated[i])) {
            return error_set(error, STATUS_USAGE, "--%s: %s says it itself", stated[i], folder);
        }
    }
    return STATUS_OK;
}

/* Packed rows say their length themselves, and the model must take it. */
enum status job_rows_measure(struct job_rows *rows, struct model_options *model,
                             const struct options *options, struct error *error)
{
    const char *folder = options_list_item(options, "data", 0);
    const char *base = options_text(options, "base");
    struct dataset tokens;

    TRY(check_packed(model, options, error));
    TRY(job_rows_open(rows, folder, error));
    TRY(job_pairs_check(rows->pairs, model, options, folder, error));
    if (options_flagged(options, "length") &&
        options_number(options, "length") != rows->shape.length) {
        return error_set(error, STATUS_USAGE, "--length: the rows of %s have %u tokens", folder,
                         rows->shape.length);
    }
    if (base != NULL) {
        struct base_config config;

        TRY(check_base(folder, base, error));
        TRY(base_config_read(&config, base, error));
        TRY(base_config_check_length(&config, rows->shape.length, error));
    }
    TRY(dataset_open_tokens(&tokens, error, rows->paths[ROW_TOKENS], rows->shape.types[ROW_TOKENS],
                            model->vocabulary));
    dataset_close(&tokens);
    model->packed = true;
    model->length = rows->shape.length;
    model->data_count = rows->count;
    model->data_dtype = rows->shape.types[ROW_TOKENS];
    model->reach_dtype = rows->shape.types[ROW_REACH];
    return STATUS_OK;
}

enum status job_rows_measure_held_out(struct job_rows *rows, struct model_options *model,
                                      const struct options *options, struct error *error)
{
    const char *folder = options_list_first(options, "eval");
    struct dataset tokens;

    TRY(open_held_out(rows, folder, options_list_item(options, "data", 0), error));
    if (rows->shape.length != model->length || rows->shape.types[ROW_TOKENS] != model->data_dtype) {
        return error_set(error, STATUS_USAGE,
                         "--eval %s: rows of %u tokens of %s; those of --data have %u of %s",
                         folder, rows->shape.length, dtype_name(rows->shape.types[ROW_TOKENS]),
                         model->length, dtype_name(model->data_dtype));
    }
    TRY(dataset_open_tokens(&tokens, error, rows->paths[ROW_TOKENS], model->data_dtype,
                            model->vocabulary));
    dataset_close(&tokens);
    model->held_out.count = rows->count;
    model->held_out.dtype = model->data_dtype;
    return STATUS_OK;
}

/* ---- what the job binds ---------------------------------------------------- */

enum status job_rows_check_roots(const struct job_rows *rows, const struct digest *roots,
                                 struct error *error)
{
    for (int i = 0; i < ROW_TENSORS; i++) {
        if (memcmp(&roots[i], &rows->roots[i], sizeof(roots[i])) != 0) {
            (void)error_set(error, STATUS_BAD_FORMAT, "%s is not what its manifest says",
                            rows->paths[i]);
            error_advise(error, "'lockstep data check' says where it differs from the sources");
            return STATUS_BAD_FORMAT;
        }
    }
    return STATUS_OK;
}
