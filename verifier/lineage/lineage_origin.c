/* lineage_origin.c - see lineage_origin.h. */
#include "verifier/lineage/lineage_origin.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/strict_json.h"
#include "proofs/format/base_config.h"
#include "proofs/job/job_notes.h"

/* The SHA-256 of a file of the item, in hexadecimal; NULL: there is no such file. */
static const char *hash_in(const struct lineage_item *item, const char *name)
{
    const json_t *file;
    size_t i;

    json_array_foreach(item->files, i, file)
    {
        if (strcmp(strict_json_text_or(file, "name", ""), name) == 0) {
            return strict_json_text_or(file, "sha256", NULL);
        }
    }
    return NULL;
}

/* The item below the run that has such a file: the one with these bytes, or else the one that must
 * have them; NULL: there is none. */
static struct lineage_item *find_origin(const struct lineage *lineage,
                                        const struct lineage_item *run, const char *name,
                                        const char *wanted)
{
    const enum lineage_kind kind =
        strcmp(name, BASE_CONFIG_NAME) == 0 ? LINEAGE_MODEL : LINEAGE_ADAPTERS;
    struct lineage_item *other = NULL;

    for (size_t i = 0; i < lineage->count; i++) {
        struct lineage_item *item = &lineage->items[i];
        const char *found = item->kind == kind ? hash_in(item, name) : NULL;
        const bool below =
            i == run->base || (kind == LINEAGE_ADAPTERS && (item->roles & LINEAGE_BASE) != 0);

        if (found != NULL && strcmp(found, wanted) == 0) {
            return item;
        }
        other = found != NULL && below ? item : other;
    }
    return other;
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
        lineage_parts_say(lineage, LINEAGE_MISSING, run->path,
                          "the %s of which its program was made, with the SHA-256 %s", note->module,
                          wanted);
        return;
    }
    item->described = true;
    found = hash_in(item, note->module);
    if (found != NULL && strcmp(found, wanted) == 0) {
        lineage_parts_say(lineage, LINEAGE_PROVEN, run->path, "names the %s of %s", note->module,
                          item->path);
        return;
    }
    if (snprintf(path, sizeof(path), "%s/%s", item->path, note->module) >= (int)sizeof(path)) {
        path[0] = '\0';
    }
    lineage_parts_say(lineage, LINEAGE_REFUTED, path,
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
        lineage_parts_say(lineage, LINEAGE_TRUSTED, run->path,
                          "that its program computes what the files say that its job names: who "
                          "wrote the job says so");
    }
}
