/* statement.c - see statement.h. */
#include "verifier/lineage/statement.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/strict_json.h"
#include "base/text.h"
#include "base/version.h"
#include "verifier/lineage/certificate.h"
#include "verifier/lineage/lineage_parts.h"

#define DATA_TAG "lockstep.data.v1"
#define SUBJECTS (LINEAGE_PRODUCT | LINEAGE_ANSWER)

/* The last part of a path, without a slash at its end: no folder of somebody's machine. */
static void short_name(char name[FILE_PATH_MAX], const char *path)
{
    size_t end = strlen(path);
    size_t begin;

    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    (void)snprintf(name, FILE_PATH_MAX, "%.*s", (int)(end - begin), path + begin);
}

/* "name" of a file in the folder of an item, or of a file alone. */
static json_t *full_name(const char *path, const char *file)
{
    char name[FILE_PATH_MAX];
    char whole[2 * FILE_PATH_MAX];

    short_name(name, path);
    (void)snprintf(whole, sizeof(whole), "%s%s%s", name, file[0] == '\0' ? "" : "/", file);
    return findings_text(whole);
}

/* ---- files --------------------------------------------------------------------------- */

static size_t count_weights(const struct lineage_item *item)
{
    const json_t *file;
    size_t count = 0;
    size_t i;

    json_array_foreach(item->files, i, file)
    {
        const char *name = strict_json_text_or(file, "name", "");

        count += name[0] == '\0' || text_ends_with(name, ".safetensors");
    }
    return count;
}

/* The data root of a file of packed rows. */
static void add_row_root(json_t *digests, const struct manifest *manifest, const char *file)
{
    for (size_t side = 0; side < PACKING_SIDES; side++) {
        for (int i = 0; i < ROW_TENSORS && manifest->rows[side] > 0; i++) {
            char name[ROW_NAME_MAX];

            row_file_name(name, &manifest->shape, (enum row_tensor)i, side == 1);
            if (strcmp(name, file) == 0) {
                (void)json_object_set_new(digests, DATA_TAG,
                                          strict_json_digest(&manifest->roots[side][i]));
            }
        }
    }
}

/* Each file of the item by its SHA-256; of a subject those that were proven. Our root stands beside
 * that of the only file that it is of, or else with the name of the item alone. */
static void add_files(json_t *list, const struct lineage_item *item)
{
    const bool one = item->kind == LINEAGE_RUN || count_weights(item) == 1;
    const json_t *file;
    size_t i;

    json_array_foreach(item->files, i, file)
    {
        const char *name = strict_json_text_or(file, "name", "");
        json_t *digests;

        if ((item->roles & SUBJECTS) != 0 && json_object_get(file, "proven") == NULL) {
            continue;
        }
        digests = json_pack("{s:s}", "sha256", strict_json_text_or(file, "sha256", ""));
        if (item->kind == LINEAGE_ROWS) {
            add_row_root(digests, &item->manifest, name);
        } else if (item->root_tag != NULL && one &&
                   (item->kind == LINEAGE_RUN || name[0] == '\0' ||
                    text_ends_with(name, ".safetensors"))) {
            (void)json_object_set_new(digests, item->root_tag, strict_json_digest(&item->root));
        }
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o}", "name", full_name(item->path, name), "digest", digests));
    }
    if (item->root_tag != NULL && !one) {
        json_t *digests = json_object();

        (void)json_object_set_new(digests, item->root_tag, strict_json_digest(&item->root));
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o}", "name", full_name(item->path, ""), "digest", digests));
    }
}

/* What packed rows were made of, by the manifest that was held to it. */
static void add_manifest(json_t *list, const struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->options.source_count; i++) {
        json_t *digests = json_object();

        (void)json_object_set_new(digests, "sha256",
                                  strict_json_digest(&manifest->sources[i].sha256));
        (void)json_array_append_new(list, json_pack("{s:o, s:o}", "name",
                                                    full_name(manifest->source_paths[i], ""),
                                                    "digest", digests));
    }
    for (size_t i = 0; i < manifest->file_count; i++) {
        json_t *digests = json_object();

        (void)json_object_set_new(digests, "sha256",
                                  strict_json_digest(&manifest->files[i].sha256));
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o}", "name",
                            full_name(manifest->options.tokenizer, manifest->files[i].name),
                            "digest", digests));
    }
}

/* ---- the statement --------------------------------------------------------------------- */

static json_t *make_subjects(const struct lineage *lineage)
{
    json_t *subjects = json_array();

    for (size_t i = 0; i < lineage->count; i++) {
        if ((lineage->items[i].roles & SUBJECTS) != 0) {
            add_files(subjects, &lineage->items[i]);
        }
    }
    return subjects;
}

static json_t *make_dependencies(const struct lineage *lineage)
{
    json_t *list = json_array();

    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];

        if ((item->roles & SUBJECTS) == 0) {
            add_files(list, item);
        }
        if (item->kind == LINEAGE_ROWS && item->followed) {
            add_manifest(list, &item->manifest);
        }
    }
    return list;
}

static json_t *make_jobs(const struct lineage *lineage)
{
    json_t *jobs = json_array();

    for (size_t i = 0; i < lineage->count; i++) {
        char hex[HEX_SIZE(DIGEST_SIZE)];

        if (lineage->items[i].kind == LINEAGE_RUN) {
            hex_encode(hex, lineage->items[i].root.bytes, DIGEST_SIZE);
            (void)json_array_append_new(jobs, json_string(hex));
        }
    }
    return jobs;
}

static json_t *make_statement(const struct lineage *lineage, json_t *subjects)
{
    /* The whole certificate stands beside the files: also what it takes on trust. */
    return json_pack(
        "{s:s, s:O, s:s, s:{s:{s:s, s:{s:o}, s:{}, s:o}, s:{s:{s:s, s:{s:s}}, s:[{s:s, "
        "s:{s:o}}]}}}",
        "_type", "https://in-toto.io/Statement/v1", "subject", subjects, "predicateType",
        "https://slsa.dev/provenance/v1", "predicate", "buildDefinition", "buildType",
        "urn:lockstep:training:1", "externalParameters", "jobs", make_jobs(lineage),
        "internalParameters", "resolvedDependencies", make_dependencies(lineage), "runDetails",
        "builder", "id", "urn:lockstep:replay:1", "version", "lockstep", LOCKSTEP_VERSION,
        "byproducts", "name", "certificate", "annotations", "lockstep", certificate_facts(lineage));
}

enum status statement_write(struct buffer *text, const struct lineage *lineage, struct error *error)
{
    json_t *subjects;
    json_t *statement;
    enum status status;

    if (lineage_answer(lineage) != AUDIT_PROVEN) {
        return error_set(error, STATUS_REFUSED,
                         "there is nothing to attest: the lineage is not "
                         "proven");
    }
    subjects = make_subjects(lineage);
    if (json_array_size(subjects) == 0) {
        json_decref(subjects);
        (void)error_set(error, STATUS_REFUSED, "there is nothing to attest: no model is given");
        error_advise(error, "name the folder of 'bundle export --hf' too");
        return STATUS_REFUSED;
    }
    statement = make_statement(lineage, subjects);
    status = strict_json_write(text, error, statement, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(statement);
    json_decref(subjects);
    return status;
}
