/* lineage_origin.c - see lineage_origin.h. */
#include "verifier/lineage/lineage_origin.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "proofs/format/base_config.h"
#include "proofs/job/job_notes.h"

static enum lineage_kind kind_of(const char *name)
{
    return strcmp(name, BASE_CONFIG_NAME) == 0 ? LINEAGE_MODEL : LINEAGE_ADAPTERS;
}

/* The job of the run says how such an item computes: has the item the file that it names? */
bool lineage_origin_is(const struct lineage_item *item, const struct job *job)
{
    const char *notes = job->notes;
    struct job_note note;

    while (job_notes_next(&note, &notes)) {
        char wanted[HEX_SIZE(DIGEST_SIZE)];
        const char *found;

        if (note.kind != JOB_NOTE_FROM || kind_of(note.module) != item->kind) {
            continue;
        }
        hex_encode(wanted, note.sha256.bytes, DIGEST_SIZE);
        found = lineage_parts_file(item, note.module);
        if (found == NULL || strcmp(found, wanted) != 0) {
            return false;
        }
    }
    return true;
}

/* What an export changes of a base's file says nothing of how it computes. */
static json_t *read_config(const struct lineage_item *item, const char *name)
{
    char path[FILE_PATH_MAX];
    json_t *config = NULL;

    if (file_path_join(path, sizeof(path), NULL, item->path, name) != STATUS_OK ||
        strict_json_read(&config, NULL, path, BASE_CONFIG_SIZE_MAX, STRICT_JSON_DEPTH_MAX) !=
            STATUS_OK) {
        return NULL;
    }
    (void)json_object_del(config, "dtype");
    (void)json_object_del(config, "torch_dtype");
    return config;
}

static bool says_the_same(const struct lineage_item *item, const struct lineage_item *other,
                          const char *name)
{
    json_t *one = read_config(item, name);
    json_t *two = read_config(other, name);
    const bool same = one != NULL && two != NULL && json_equal(one, two);

    json_decref(one);
    json_decref(two);
    return same;
}

/*
 * The item that has the file with these bytes, or else the one that must have them; NULL: there is
 * none. What the run stands on must say what the file says, also where another item has it.
 */
static struct lineage_item *find_origin(const struct lineage *lineage,
                                        const struct lineage_item *run, const char *name,
                                        const char *wanted)
{
    const size_t below[] = {run->base, run->first};
    struct lineage_item *under = NULL;
    struct lineage_item *exact = NULL;

    for (size_t i = 0; i < 2 && under == NULL; i++) {
        if (below[i] < lineage->count && lineage->items[below[i]].kind == kind_of(name) &&
            lineage_parts_file(&lineage->items[below[i]], name) != NULL) {
            under = &lineage->items[below[i]];
        }
    }
    for (size_t i = 0; i < lineage->count; i++) {
        struct lineage_item *item = &lineage->items[i];
        const char *found = item->kind == kind_of(name) ? lineage_parts_file(item, name) : NULL;

        if (found != NULL && strcmp(found, wanted) == 0 && (exact == NULL || item == under)) {
            exact = item;
        }
    }
    return exact != NULL && (under == NULL || exact == under || says_the_same(exact, under, name))
               ? exact
               : under;
}

static void check_file(struct lineage *lineage, struct lineage_item *run,
                       const struct job_note *note)
{
    char wanted[HEX_SIZE(DIGEST_SIZE)];
    char path[FILE_PATH_MAX];
    struct lineage_item *item;
    const char *found;

    hex_encode(wanted, note->sha256.bytes, DIGEST_SIZE);
    item = find_origin(lineage, run, note->module, wanted);
    if (item == NULL) {
        findings_say(&lineage->findings, FINDING_MISSING, run->path,
                     "the %s of which its program was made, with the SHA-256 %s", note->module,
                     wanted);
        return;
    }
    item->described = true;
    found = lineage_parts_file(item, note->module);
    if (found != NULL && strcmp(found, wanted) == 0) {
        findings_say(&lineage->findings, FINDING_PROVEN, run->path, "names the %s of %s",
                     note->module, item->path);
        return;
    }
    if (snprintf(path, sizeof(path), "%s/%s", item->path, note->module) >= (int)sizeof(path)) {
        path[0] = '\0';
    }
    findings_say(&lineage->findings, FINDING_REFUTED, path,
                 "is not the one of which the program of %s was made: that has the SHA-256 %s",
                 run->path, wanted);
}

void lineage_origin_check(struct lineage *lineage, struct lineage_item *run)
{
    const char *notes = bundle_job(run->bundle)->notes;
    struct job_note note;
    bool any = false;

    while (job_notes_next(&note, &notes)) {
        if (note.kind == JOB_NOTE_FROM) {
            check_file(lineage, run, &note);
            any = true;
        }
    }
    if (any) {
        findings_say(&lineage->findings, FINDING_TRUSTED, run->path,
                     "that its program computes what the files say that its job names: who "
                     "wrote the job says so");
    }
}
