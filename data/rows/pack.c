/* pack.c - see pack.h. */
#include "data/rows/pack.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/io/whole_file.h"
#include "base/steady.h"
#include "data/rows/pack_state.h"

#define KEPT_EVERY_S 60.0

/* ---- writing ---- */

struct pack_writing {
    struct packing packing;
    struct row_files files[PACKING_SIDES];
    struct file_lock lock;
    char folder[FILE_PATH_MAX]; /* FOLDER.packing */
    char state[FILE_PATH_MAX];
    double kept_s;
};

static enum status keep_state(struct pack_writing *writing, struct error *error)
{
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        TRY(row_files_sync(&writing->files[i], error));
    }
    writing->kept_s = steady_seconds();
    return pack_state_write(&writing->packing, error, writing->state);
}

static enum status pause_writing(void *context, struct error *error)
{
    struct pack_writing *writing = context;

    if (stop_requested(writing->packing.stop)) {
        TRY(keep_state(writing, error));
        (void)error_set(error, STATUS_STOPPED, "stopped after %" PRIu64 " examples",
                        writing->packing.counts.examples);
        error_advise(error, "the same command goes on from there");
        return STATUS_STOPPED;
    }
    return steady_seconds() - writing->kept_s < KEPT_EVERY_S ? STATUS_OK
                                                             : keep_state(writing, error);
}

static void set_sinks(struct packing *packing, struct row_files files[PACKING_SIDES],
                      enum status (*take)(void *context, struct error *error,
                                          const struct packed_row *row))
{
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        const struct row_sink sink = {take, &files[i]};

        row_packer_init(&packing->packers[i], packing->shape.length, &sink);
    }
}

static enum status begin_folder(struct pack_writing *writing, struct error *error,
                                const char *folder)
{
    char lock[FILE_PATH_MAX];

    if (file_exists(folder)) {
        (void)error_set(error, STATUS_REFUSED, "%s is there already", folder);
        error_advise(error, "name another folder with --out, or remove this one");
        return STATUS_REFUSED;
    }
    if (snprintf(writing->folder, FILE_PATH_MAX, "%s.packing", folder) >= FILE_PATH_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "--out: a path that is too long");
    }
    TRY(file_make_folder(writing->folder, error, 0777));
    TRY(file_path_join(writing->state, FILE_PATH_MAX, error, writing->folder, PACK_STATE_NAME));
    TRY(file_path_join(lock, FILE_PATH_MAX, error, writing->folder, "lock"));
    return file_lock_open(&writing->lock, error, lock, "name another folder");
}

/* From the beginning, or from where a run was stopped. */
static enum status begin_rows(struct pack_writing *writing, struct error *error)
{
    struct packing *packing = &writing->packing;

    set_sinks(packing, writing->files, row_files_take);
    if (file_exists(writing->state) &&
        pack_state_read(packing, error, writing->state) != STATUS_OK) {
        error_advise(error, "remove %s to begin again", writing->folder);
        return error->status;
    }
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        TRY(row_files_create(&writing->files[i], error, writing->folder, &packing->shape, i == 1,
                             packing->packers[i].closed));
    }
    writing->kept_s = steady_seconds();
    return STATUS_OK;
}

static enum status check_worth(const struct packing *packing, struct error *error)
{
    if (packing->packers[0].closed + packing->packers[1].closed == 0) {
        return error_set(error, STATUS_REFUSED, "the sources hold no example that has a token");
    }
    if (packing->packers[0].closed == 0) {
        return error_set(error, STATUS_REFUSED, "all %" PRIu64 " examples are held out",
                         packing->counts.examples);
    }
    if (packing->packers[0].learned == 0) {
        (void)error_set(error, STATUS_REFUSED, "nothing would be learned: no token counts");
        error_advise(error,
                     "is --learn right, and --length long enough for a prompt and an answer?");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

static enum status write_manifest(struct pack_writing *writing, struct error *error)
{
    struct digest roots[PACKING_SIDES][ROW_TENSORS] = {0};
    char path[FILE_PATH_MAX];
    struct buffer text;
    enum status status;
    json_t *manifest;

    for (size_t i = 0; i < PACKING_SIDES; i++) {
        /* A side without rows has no files, and no roots. */
        for (int which = 0; which < ROW_TENSORS && writing->files[i].rows > 0; which++) {
            TRY(row_files_root(&writing->files[i], error, (enum row_tensor)which,
                               &roots[i][which]));
        }
    }
    TRY(file_path_join(path, sizeof(path), error, writing->folder, MANIFEST_NAME));
    buffer_init(&text, MANIFEST_SIZE_MAX);
    manifest = manifest_make(&writing->packing, roots);
    status = manifest == NULL ? error_set(error, STATUS_BAD_FORMAT,
                                          "no manifest: a path is not UTF-8, or memory ran out")
                              : strict_json_line(&text, error, manifest);
    if (status == STATUS_OK) {
        status = file_write(path, error, text.data, text.size, 0666);
    }
    json_decref(manifest);
    buffer_release(&text);
    return status;
}

/* Removes a file of the folder, if it is there. */
static void drop_file(const struct pack_writing *writing, const char *name)
{
    char path[FILE_PATH_MAX];

    if (file_path_join(path, sizeof(path), NULL, writing->folder, name) == STATUS_OK) {
        (void)unlink(path);
    }
}

static void drop_side(const struct pack_writing *writing, bool held_out)
{
    char name[ROW_NAME_MAX];

    for (int which = 0; which < ROW_TENSORS; which++) {
        row_file_name(name, &writing->packing.shape, (enum row_tensor)which, held_out);
        drop_file(writing, name);
    }
}

/* What held nothing, the state and the lock go; then the folder gets its name. */
static enum status finish_folder(struct pack_writing *writing, struct error *error,
                                 const char *folder)
{
    if (writing->files[1].rows == 0) {
        drop_side(writing, true);
    }
    drop_file(writing, PACK_STATE_NAME);
    drop_file(writing, "lock");
    if (renameat2(AT_FDCWD, writing->folder, AT_FDCWD, folder, RENAME_NOREPLACE) != 0) {
        return error_set_errno(error, "cannot name %s", folder);
    }
    return whole_file_sync_folder(folder, error);
}

enum status pack_write(const char *folder, struct error *error, const struct pack_options *options,
                       struct progress *progress, struct stop *stop)
{
    struct pack_writing writing = {.lock = {-1}};
    enum status status;

    row_files_init(&writing.files[0]);
    row_files_init(&writing.files[1]);
    TRY(packing_open(&writing.packing, error, options));
    writing.packing.progress = progress;
    writing.packing.stop = stop;
    writing.packing.pause = pause_writing;
    writing.packing.context = &writing;
    TRY_OUT(begin_folder(&writing, error, folder));
    TRY_OUT(begin_rows(&writing, error));
    TRY_OUT(packing_run(&writing.packing, error));
    TRY_OUT(check_worth(&writing.packing, error));
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        TRY_OUT(row_files_sync(&writing.files[i], error));
    }
    TRY_OUT(write_manifest(&writing, error));
    status = finish_folder(&writing, error, folder);
out:
    row_files_close(&writing.files[0]);
    row_files_close(&writing.files[1]);
    if (status != STATUS_OK && writing.lock.descriptor >= 0 && !file_exists(writing.state)) {
        drop_side(&writing, false); /* nothing to go on with */
        drop_side(&writing, true);
        drop_file(&writing, "lock");
        (void)rmdir(writing.folder);
    }
    file_lock_close(&writing.lock);
    packing_release(&writing.packing);
    return status;
}

/* ---- checking ---- */

struct checking {
    struct packing packing;
    struct row_files files[PACKING_SIDES];
    const struct manifest *manifest;
    struct pack_check *check;
};

static enum status pause_check(void *context, struct error *error)
{
    const struct checking *checking = context;

    return stop_requested(checking->packing.stop)
               ? error_set(error, STATUS_STOPPED, "stopped; a check begins again")
               : STATUS_OK;
}

/* The first difference stays. */
__attribute__((format(printf, 2, 3))) static void differ(struct checking *checking,
                                                         const char *format, ...)
{
    va_list arguments;

    if (!checking->check->equal) {
        return;
    }
    checking->check->equal = false;
    va_start(arguments, format);
    (void)vsnprintf(checking->check->difference, sizeof(checking->check->difference), format,
                    arguments);
    va_end(arguments);
}

static void compare_tokenizer(struct checking *checking)
{
    const struct tokenizer *tokenizer = &checking->packing.tokenizer;
    const struct manifest *manifest = checking->manifest;

    for (size_t i = 0; i < tokenizer->file_count && i < manifest->file_count; i++) {
        if (strcmp(tokenizer->files[i].name, manifest->files[i].name) != 0 ||
            memcmp(&tokenizer->files[i].sha256, &manifest->files[i].sha256,
                   sizeof(struct digest)) != 0) {
            differ(checking, "the tokenizer's %s is another: its SHA-256 is not the manifest's",
                   tokenizer->files[i].name);
        }
    }
    if (tokenizer->file_count != manifest->file_count) {
        differ(checking, "the tokenizer has %zu files, and the manifest names %zu",
               tokenizer->file_count, manifest->file_count);
    }
}

static void compare_sources(struct checking *checking)
{
    const struct packing *packing = &checking->packing;

    for (size_t i = 0; i < packing->options->source_count; i++) {
        if (memcmp(&packing->done[i].sha256, &checking->manifest->sources[i].sha256,
                   sizeof(struct digest)) != 0) {
            differ(checking, "%s is another file: its SHA-256 is not the manifest's",
                   packing->options->sources[i]);
        }
    }
}

static void compare_rows(struct checking *checking, size_t side)
{
    const struct row_files *files = &checking->files[side];
    const char *name = side == 0 ? "" : "held-out ";
    const struct row_packer *packer = &checking->packing.packers[side];

    if (files->differs) {
        differ(checking, "%s", files->difference);
    }
    if (packer->closed != checking->manifest->rows[side] || packer->closed != files->rows_there) {
        differ(checking,
               "%srows: the sources make %" PRIu64 ", the manifest says %" PRIu64
               ", the files have %" PRIu64,
               name, packer->closed, checking->manifest->rows[side], files->rows_there);
    }
    if (packer->tokens != checking->manifest->tokens[side] ||
        packer->learned != checking->manifest->learned[side]) {
        differ(checking, "%srows: the manifest's count of tokens is not that of the rows", name);
    }
}

static enum status compare_roots(struct checking *checking, struct error *error, size_t side)
{
    struct row_files *files = &checking->files[side];

    for (int which = 0; which < ROW_TENSORS && files->rows_there > 0; which++) {
        struct digest root;

        TRY(row_files_root(files, error, (enum row_tensor)which, &root));
        if (memcmp(&root, &checking->manifest->roots[side][which], sizeof(root)) != 0) {
            differ(checking, "%s%s: its root is not the manifest's", side == 0 ? "" : "held-out ",
                   row_tensor_name((enum row_tensor)which));
        }
    }
    return STATUS_OK;
}

static enum status run_check(struct checking *checking, struct error *error, const char *folder)
{
    struct packing *packing = &checking->packing;
    const struct manifest *manifest = checking->manifest;

    for (size_t i = 0; i < PACKING_SIDES; i++) {
        checking->check->rows[i] = manifest->rows[i];
        if (manifest->rows[i] > 0) {
            TRY(row_files_open(&checking->files[i], error, folder, &manifest->shape, i == 1));
        } else {
            checking->files[i].shape = manifest->shape;
            checking->files[i].held_out = i == 1;
        }
    }
    /* The rows are packed again, and compared as they come instead of written. */
    set_sinks(packing, checking->files, row_files_compare);
    compare_tokenizer(checking);
    /* Rows of another type differ in every byte: no row is worth a look. */
    if (memcmp(&packing->shape, &manifest->shape, sizeof(packing->shape)) != 0) {
        differ(checking, "the tokenizer has %u ids, for which rows have another type",
               packing->tokenizer.id_count);
        return STATUS_OK;
    }
    TRY(packing_run(packing, error));
    compare_sources(checking);
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        compare_rows(checking, i);
        TRY(compare_roots(checking, error, i));
    }
    if (memcmp(&packing->counts, &manifest->counts, sizeof(packing->counts)) != 0) {
        differ(checking, "the manifest's counts are not those of the sources");
    }
    return STATUS_OK;
}

enum status pack_check(struct pack_check *check, struct error *error, const char *folder,
                       const struct manifest *manifest, const struct pack_options *options,
                       struct progress *progress, struct stop *stop)
{
    struct checking checking = {.manifest = manifest, .check = check};
    enum status status;

    *check = (struct pack_check){.equal = true};
    row_files_init(&checking.files[0]);
    row_files_init(&checking.files[1]);
    TRY(packing_open(&checking.packing, error, options));
    checking.packing.progress = progress;
    checking.packing.stop = stop;
    checking.packing.pause = pause_check;
    checking.packing.context = &checking;
    status = run_check(&checking, error, folder);
    row_files_close(&checking.files[0]);
    row_files_close(&checking.files[1]);
    packing_release(&checking.packing);
    return status;
}
