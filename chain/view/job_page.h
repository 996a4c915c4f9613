/*
 * job_page.h - a job view as a page, for client and solver.
 *
 *     GET /            the page
 *     GET /job.json    job_text_json()
 *     GET /health      200, or 503 and why
 *     GET /metrics     for Prometheus, where the source has any
 */
#ifndef CHAIN_VIEW_JOB_PAGE_H
#define CHAIN_VIEW_JOB_PAGE_H

#include "base/sheet/sheet.h"
#include "base/web/web_server.h"
#include "chain/view/job_view.h"

struct job_page;

/* What page and JSON show. */
void job_page_show(struct sheet *view, const struct job_view *job, const char *title);

/* For a command's table. */
#define JOB_PAGE_OPTION                                                                            \
    {                                                                                              \
        .name = "page", .heading = "serving", .often = true, .kind = OPTION_TEXT,                  \
        .value = "ADDRESS:PORT",                                                                   \
        .help = "serve what the command sees as a page at /, and /health; with a port alone to "   \
                "this machine only "                                                               \
                "(default: not at all)"                                                            \
    }

/* What is shown: copy fills in a view. The server's thread calls it. */
struct job_page_source {
    const char *title; /* "Lockstep job" */
    void (*copy)(void *context, struct job_view *view);
    /* NULL: there are none. */
    void (*metrics)(void *context, struct sheet *sheet, const struct job_view *view);
    void *context;
};

/* place: as --page says it. Borrows the title and the context. Starts a thread: open the stop
 * before. */
MUST_CHECK enum status job_page_open(struct job_page **page, const struct job_page_source *source,
                                     const char *place, struct error *error);
void job_page_close(struct job_page *page); /* NULL is fine */

const char *job_page_url(const struct job_page *page);

#endif /* CHAIN_VIEW_JOB_PAGE_H */
