/* content_page.c - see content_page.h. */
#include "prover/serve/content_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/io/strict_json.h"
#include "base/sheet/sheet.h"

#define TARGET_MAX 128

static void add_job(struct sheet *sheet, const json_t *job)
{
    const char *id = strict_json_text_or(job, "job", "");
    char target[TARGET_MAX];

    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/job", id);
    sheet_begin(sheet, SHEET_NOTE, NULL);
    sheet_link(sheet, target, id);
    sheet_begin(sheet, SHEET_ROW, NULL);
    sheet_add(sheet, SHEET_CELL, NULL, "%" PRId64 " of %" PRId64,
              strict_json_number_or_0(job, "steps_done"), strict_json_number_or_0(job, "steps"));
    sheet_add(sheet, SHEET_CELL, NULL, "%" PRId64, strict_json_number_or_0(job, "segments"));
    sheet_add(sheet, SHEET_CELL, NULL, "%zu", json_array_size(json_object_get(job, "checkpoints")));
    sheet_add(sheet, SHEET_CELL, NULL, "%s",
              json_is_true(json_object_get(job, "data")) ? "yes" : "no");
    sheet_add(sheet, SHEET_CELL, NULL, "%s",
              json_is_true(json_object_get(job, "traces")) ? "any step" : "none");
}

void content_page_write(struct buffer *page, const json_t *list)
{
    static const char *const headings[] = {"Steps", "Segments", "Checkpoints", "Data", "Replies"};
    const json_t *job;
    struct sheet sheet;
    size_t i;

    sheet_init(&sheet);
    sheet_add(&sheet, SHEET_WINDOW, NULL, "Lockstep: bundles of a solver");
    sheet_add(&sheet, SHEET_TITLE, NULL, "Bundles of a Lockstep solver");
    sheet_line(&sheet, SHEET_PLAIN,
               "This server gives verifiers what they check: jobs, the roots of every step, "
               "checkpoints, data and replies about any step. Nobody has to trust it: each name "
               "stands for bytes that a root fixes. A node uses this address as a mirror:");
    sheet_begin_line(&sheet, SHEET_PLAIN);
    sheet_words(&sheet, SHEET_CODE, "lockstep verifier node --ledger LEDGER --mirror THIS_ADDRESS");
    sheet_columns(&sheet, headings, sizeof(headings) / sizeof(headings[0]));
    json_array_foreach(json_object_get(list, "jobs"), i, job)
    {
        add_job(&sheet, job);
    }
    sheet_add(&sheet, SHEET_FOOTER, NULL, "The same for scripts: ");
    sheet_link(&sheet, "/v1/jobs.json", "/v1/jobs.json");
    sheet_page_write(page, &sheet, 0);
    sheet_release(&sheet);
}
