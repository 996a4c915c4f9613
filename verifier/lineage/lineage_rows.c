/* lineage_rows.c - see lineage_rows.h. */
#include "verifier/lineage/lineage_rows.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/io/file.h"
#include "data/rows/moved_sources.h"
#include "data/rows/pack.h"
#include "proofs/model/file_hash.h"

struct rows_check {
    struct lineage *lineage;
    struct lineage_item *item;
    struct pack_options options;
    bool same;  /* all that was found has the manifest's SHA-256 */
    bool whole; /* all was found */
};

/* ---- what the rows are made of --------------------------------------------- */

static void hold_file(struct rows_check *check, const char *path, const char *what,
                      const struct digest *wanted)
{
    struct digest sha256;
    struct error why;
    uint64_t size;

    error_init(&why);
    if (!file_exists(path)) {
        check->whole = false;
        findings_say(&check->lineage->findings, FINDING_MISSING, path, "%s of %s is not there",
                     what, check->item->path);
        return;
    }
    if (file_hash(&sha256, &size, path, &why) != STATUS_OK) {
        check->whole = false;
        lineage_parts_blame(check->lineage, path, &why);
        return;
    }
    if (!digest_equal(&sha256, wanted)) {
        check->same = false;
        findings_say(&check->lineage->findings, FINDING_REFUTED, path,
                     "is another file than %s of %s: its SHA-256 is not the manifest's", what,
                     check->item->path);
    }
}

static enum status hold_inputs(struct rows_check *check, struct error *error)
{
    const struct manifest *manifest = &check->item->manifest;
    const char *tokenizer = check->options.tokenizer;
    struct stat about;
    const bool folder = stat(tokenizer, &about) != 0 || S_ISDIR(about.st_mode);

    for (size_t i = 0; i < check->options.source_count; i++) {
        hold_file(check, check->options.sources[i], "the source", &manifest->sources[i].sha256);
    }
    for (size_t i = 0; i < manifest->file_count; i++) {
        char path[FILE_PATH_MAX];

        TRY(file_path_join(path, sizeof(path), error, tokenizer, manifest->files[i].name));
        hold_file(check, folder ? path : tokenizer, "the tokenizer", &manifest->files[i].sha256);
    }
    return STATUS_OK;
}

/* ---- the rows ----------------------------------------------------------------- */

/* The files against the manifest, without the sources. */
static enum status hold_roots(struct rows_check *check, bool held_out, struct error *error)
{
    const struct manifest *manifest = &check->item->manifest;
    struct row_files files;
    enum status status;

    row_files_init(&files);
    TRY_OUT(row_files_open(&files, error, check->item->path, &manifest->shape, held_out));
    for (int i = 0; i < ROW_TENSORS; i++) {
        struct digest root;

        TRY_OUT(row_files_root(&files, error, (enum row_tensor)i, &root));
        if (!digest_equal(&root, &manifest->roots[held_out][i])) {
            status = error_set(error, STATUS_REFUSED, "%s%s: its root is not the manifest's",
                               held_out ? "held-out " : "", row_tensor_name((enum row_tensor)i));
            goto out;
        }
    }
out:
    row_files_close(&files);
    return status;
}

static void check_without_sources(struct rows_check *check)
{
    const struct lineage_item *item = check->item;
    struct error why;
    enum status status = STATUS_OK;

    error_init(&why);
    for (size_t side = 0; side < PACKING_SIDES && status == STATUS_OK; side++) {
        if (item->manifest.rows[side] > 0) {
            status = hold_roots(check, side == 1, &why);
        }
    }
    if (status != STATUS_OK) {
        lineage_parts_blame(check->lineage, item->path, &why);
        return;
    }
    findings_say(&check->lineage->findings, FINDING_PROVEN, item->path,
                 "its rows have the roots that its manifest names");
    findings_say(&check->lineage->findings, FINDING_TRUSTED, item->path,
                 "that its rows follow from their sources, which are not all there");
}

static void check_again(struct rows_check *check)
{
    struct lineage_item *item = check->item;
    struct pack_check found;
    struct error why;

    error_init(&why);
    if (pack_check(&found, &why, item->path, &item->manifest, &check->options, NULL,
                   check->lineage->options->audit->stop) != STATUS_OK) {
        lineage_parts_blame(check->lineage, item->path, &why);
    } else if (!found.equal) {
        findings_say(&check->lineage->findings, FINDING_REFUTED, item->path, "%s",
                     found.difference);
    } else {
        item->followed = true;
        findings_say(&check->lineage->findings, FINDING_PROVEN, item->path,
                     "%" PRIu64 " rows and %" PRIu64
                     " that are held out follow from their sources by the tokenizer %s",
                     found.rows[0], found.rows[1], check->options.tokenizer);
    }
}

enum status lineage_rows_check(struct lineage *lineage, struct lineage_item *item,
                               struct error *error)
{
    const struct lineage_options *options = lineage->options;
    struct rows_check check = {.lineage = lineage,
                               .item = item,
                               .options = item->manifest.options,
                               .same = true,
                               .whole = true};
    struct moved_sources moved = {0};
    enum status status;

    if (options->tokenizer != NULL) {
        check.options.tokenizer = options->tokenizer;
    }
    if (options->sources != NULL) {
        TRY_OUT(moved_sources_set(&moved, &check.options, options->sources, error));
    }
    TRY_OUT(hold_inputs(&check, error));
    if (check.same && check.whole) {
        check_again(&check);
    } else if (check.same) {
        check_without_sources(&check);
    }
    findings_say(&lineage->findings, FINDING_TRUSTED, item->path,
                 "that its sources are what they are called, and may be used");
out:
    moved_sources_release(&moved);
    return status;
}

bool lineage_rows_find(char path[FILE_PATH_MAX], const struct lineage_item *item,
                       const struct digest *root)
{
    const struct manifest *manifest = &item->manifest;

    for (size_t side = 0; side < PACKING_SIDES; side++) {
        for (int i = 0; i < ROW_TENSORS && manifest->rows[side] > 0; i++) {
            char name[ROW_NAME_MAX];

            if (digest_equal(&manifest->roots[side][i], root)) {
                row_file_name(name, &manifest->shape, (enum row_tensor)i, side == 1);
                return file_path_join(path, FILE_PATH_MAX, NULL, item->path, name) == STATUS_OK;
            }
        }
    }
    return false;
}
