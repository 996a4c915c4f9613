/* content_page.c - see content_page.h. */
#include "prover/serve/content_page.h"

#include <inttypes.h>

static const char beginning[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Lockstep: bundles of a solver</title>\n<style>\n"
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 "
    "1em; }\n"
    "table { border-collapse: collapse; } th, td { text-align: left; padding: .2em 1.2em .2em 0; "
    "}\n"
    "code { overflow-wrap: anywhere; }\n</style>\n</head>\n<body>\n"
    "<h1>Bundles of a Lockstep solver</h1>\n"
    "<p>This server gives verifiers what they check: jobs, the roots of every step, checkpoints, "
    "data and replies about any step. Nobody has to trust it: each name stands for bytes that a "
    "root fixes. A node uses this address as a mirror:</p>\n"
    "<pre>lockstep verifier run --ledger LEDGER --mirror THIS_ADDRESS</pre>\n";

static int64_t number_of(const json_t *job, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(job, name));
}

static void write_job(struct buffer *page, const json_t *job)
{
    const char *id = json_string_value(json_object_get(job, "job"));
    int64_t steps = number_of(job, "steps");

    buffer_add_format(page,
                      "<tr><td><a href=\"/v1/jobs/%s/job\"><code>%.16s...</code></a></td>"
                      "<td>%" PRId64 " of %" PRId64 "</td><td>%" PRId64 "</td><td>%zu</td>"
                      "<td>%s</td><td>%s</td></tr>\n",
                      id, id, number_of(job, "steps_done"), steps, number_of(job, "segments"),
                      json_array_size(json_object_get(job, "checkpoints")),
                      json_is_true(json_object_get(job, "data")) ? "yes" : "no",
                      json_is_true(json_object_get(job, "traces")) ? "any step" : "none");
}

void content_page_write(struct buffer *page, const json_t *list)
{
    const json_t *jobs = json_object_get(list, "jobs");
    const json_t *job;
    size_t i;

    buffer_add_text(page, beginning);
    buffer_add_text(page, "<table>\n<tr><th>Job</th><th>Steps</th><th>Segments</th>"
                          "<th>Checkpoints</th><th>Data</th><th>Replies about</th></tr>\n");
    json_array_foreach(jobs, i, job)
    {
        write_job(page, job);
    }
    buffer_add_text(page, "</table>\n<p>The same for scripts: <a href=\"/v1/jobs.json\">"
                          "/v1/jobs.json</a></p>\n</body>\n</html>\n");
}
