/* content_page.c - see content_page.h. */
#include "prover/serve/content_page.h"

#include <inttypes.h>

#include "base/io/strict_json.h"
#include "base/web/web_page.h"
#include "base/web/web_parts.h"

static void write_job(struct buffer *page, const json_t *job)
{
    const char *id = json_string_value(json_object_get(job, "job"));
    int64_t steps = strict_json_number_or_0(job, "steps");

    buffer_add_format(page,
                      "<tr class=\"more\"><td class=\"own\" colspan=\"5\">"
                      "<a href=\"/v1/jobs/%s/job\"><code>%s</code></a></td></tr>\n<tr>"
                      "<td>%" PRId64 " of %" PRId64 "</td><td>%" PRId64 "</td><td>%zu</td>"
                      "<td>%s</td><td>%s</td></tr>\n",
                      id, id, strict_json_number_or_0(job, "steps_done"), steps,
                      strict_json_number_or_0(job, "segments"),
                      json_array_size(json_object_get(job, "checkpoints")),
                      json_is_true(json_object_get(job, "data")) ? "yes" : "no",
                      json_is_true(json_object_get(job, "traces")) ? "any step" : "none");
}

void content_page_write(struct buffer *page, const json_t *list)
{
    static const char *const headings[] = {"Steps", "Segments", "Checkpoints", "Data", "Replies"};
    const json_t *jobs = json_object_get(list, "jobs");
    const json_t *job;
    size_t i;

    web_page_begin(page, "Lockstep: bundles of a solver");
    buffer_add_text(
        page, "<h1>Bundles of a Lockstep solver</h1>\n<p>This server gives verifiers what they "
              "check: jobs, the roots of every step, checkpoints, data and replies about any step. "
              "Nobody has to trust it: each name stands for bytes that a root fixes. A node uses "
              "this address as a mirror:</p>\n<p><code>lockstep verifier node --ledger LEDGER "
              "--mirror THIS_ADDRESS</code></p>\n");
    web_parts_table(page, headings, sizeof(headings) / sizeof(headings[0]));
    json_array_foreach(jobs, i, job)
    {
        write_job(page, job);
    }
    buffer_add_text(page, "</table>\n");
    web_page_end(page, 0, "The same for scripts: <a href=\"/v1/jobs.json\">/v1/jobs.json</a>");
}
