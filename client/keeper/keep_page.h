/*
 * keep_page.h - a keeper as a page, for `job keep` and for `job serve --keeper-of`: the job as
 * chain/view shows it, what the keeper holds and did, and its metrics.
 */
#ifndef CLIENT_KEEPER_KEEP_PAGE_H
#define CLIENT_KEEPER_KEEP_PAGE_H

#include "chain/view/job_page.h"
#include "client/keeper/keeper.h"

struct keep_page {
    struct watch_sight sight; /* the keeper fills it in */
    struct keeper_counts counts;
    struct job_page *page; /* NULL: none is served */
};

/* Before the keeper is opened, which wants the sight. */
void keep_page_init(struct keep_page *page);
/* Before the keeper is closed, whose thread fills the sight in. */
void keep_page_close(struct keep_page *page);
void keep_page_release(struct keep_page *page);

/* At the place that --page names, if it names one. Starts a thread: open the stop before. */
MUST_CHECK enum status keep_page_open(struct keep_page *page, const struct command_context *context,
                                      const struct keeper *keeper, struct error *error);

/* What the keeper did until now; after each of its rounds. */
void keep_page_take(struct keep_page *page, const struct keeper *keeper);

#endif /* CLIENT_KEEPER_KEEP_PAGE_H */
