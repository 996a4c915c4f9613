/* lineage.c - see lineage.h. */
#include "verifier/lineage/lineage.h"

#include <stdlib.h>

#include "verifier/lineage/lineage_merge.h"
#include "verifier/lineage/lineage_parts.h"
#include "verifier/lineage/lineage_product.h"
#include "verifier/lineage/lineage_receipt.h"
#include "verifier/lineage/lineage_rows.h"
#include "verifier/lineage/lineage_run.h"

/* ---- what no check can give -------------------------------------------------- */

static size_t count_roles(const struct lineage *lineage, unsigned role)
{
    size_t count = 0;

    for (size_t i = 0; i < lineage->count; i++) {
        count += (lineage->items[i].roles & role) != 0;
    }
    return count;
}

static void say_bases(struct lineage *lineage)
{
    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];

        if ((item->roles & (LINEAGE_BASE | LINEAGE_ASKED)) != 0 &&
            (item->roles & LINEAGE_PRODUCT) == 0 && item->kind != LINEAGE_RUN) {
            findings_say(&lineage->findings, FINDING_TRUSTED, item->path,
                         "that it is what its publisher published: compare its root or its "
                         "SHA-256");
        }
        if ((item->roles & LINEAGE_BASE) != 0 && (item->roles & LINEAGE_PRODUCT) == 0 &&
            !item->described && (item->kind == LINEAGE_MODEL || item->kind == LINEAGE_ADAPTERS)) {
            findings_say(&lineage->findings, FINDING_TRUSTED, item->path,
                         "how it computes, which is its %s: no job that was given names it",
                         item->kind == LINEAGE_MODEL ? "config.json" : "adapter_config.json");
        }
    }
}

static void say_missing(struct lineage *lineage)
{
    if (count_roles(lineage, LINEAGE_TRAINING) == 0) {
        findings_say(&lineage->findings, FINDING_MISSING, "", "the run of a training");
    }
    if (count_roles(lineage, LINEAGE_DATA) == 0) {
        findings_say(&lineage->findings, FINDING_MISSING, "", "the data of a training");
    }
    if (count_roles(lineage, LINEAGE_PRODUCT) == 0) {
        findings_say(&lineage->findings, FINDING_MISSING, "", "the files of the trained model");
    }
    if (count_roles(lineage, LINEAGE_ANSWER) == 0) {
        findings_say(&lineage->findings, FINDING_MISSING, "", "the receipt of an answer");
    }
}

static void say_unlinked(struct lineage *lineage)
{
    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];

        if (item->roles == 0 && item->kind != LINEAGE_UNKNOWN &&
            !lineage_parts_is_blamed(lineage, item->path)) {
            findings_say(&lineage->findings, FINDING_REFUTED, item->path,
                         "is no part of this lineage: no run that was given reads it, begins "
                         "with it or makes it");
        }
    }
}

/* ---- all of it -------------------------------------------------------------------- */

static enum status trace_items(struct lineage *lineage, struct error *error)
{
    for (size_t i = 0; i < lineage->count; i++) {
        if (lineage->items[i].kind == LINEAGE_ROWS) {
            TRY(lineage_rows_check(lineage, &lineage->items[i], error));
        }
    }
    for (size_t i = 0; i < lineage->count; i++) {
        if (lineage->items[i].kind == LINEAGE_RUN) {
            TRY(lineage_run_check(lineage, i, error));
        }
    }
    for (size_t i = 0; i < lineage->count; i++) {
        if (lineage_merge_is(&lineage->items[i])) {
            TRY(lineage_merge_check(lineage, &lineage->items[i], error));
        }
    }
    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];
        const bool model = item->kind == LINEAGE_MODEL || item->kind == LINEAGE_ADAPTERS ||
                           item->kind == LINEAGE_STATE;

        const bool merged =
            lineage_merge_is(item) && (item->roles & (LINEAGE_BASE | LINEAGE_PRODUCT)) != 0;

        /* A note that names a merge is no way around the run. */
        if (model && !merged && !lineage_parts_is_blamed(lineage, item->path)) {
            TRY(lineage_product_check(lineage, i, error));
        }
    }
    for (size_t i = 0; i < lineage->count; i++) {
        if (lineage->items[i].kind == LINEAGE_RECEIPT) {
            TRY(lineage_receipt_check(lineage, &lineage->items[i], error));
        }
    }
    return STATUS_OK;
}

enum status lineage_trace(struct lineage **lineage, const char *const *paths, size_t count,
                          const struct lineage_options *options, struct error *error)
{
    struct lineage *made = calloc(1, sizeof(*made));

    *lineage = made;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a lineage");
    }
    if (count > LINEAGE_FILES_MAX) {
        return error_set(error, STATUS_USAGE, "at most %d files are one lineage",
                         LINEAGE_FILES_MAX);
    }
    TRY(lineage_parts_open(made, paths, count, options, error));
    TRY(trace_items(made, error));
    say_bases(made);
    say_missing(made);
    say_unlinked(made);
    return STATUS_OK;
}

void lineage_close(struct lineage *lineage)
{
    if (lineage != NULL) {
        lineage_parts_close(lineage);
        free(lineage);
    }
}

enum audit_answer lineage_answer(const struct lineage *lineage)
{
    return findings_answer(&lineage->findings);
}
