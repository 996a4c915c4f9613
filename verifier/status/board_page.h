/*
 * board_page.h - all jobs of a ledger as a page: those that are open with their terms and what they
 * pay, those that run with their progress and when their next verdict can be.
 *
 *     GET /          ?q=WORDS  &is=open|running|over  &sort=newest|hour|reward|stake|deadline
 *     GET /health    200, or 503 where the ledger is not followed
 *
 * A form and links do all of it, so it works without scripts. What an hour of this machine would
 * earn is known for jobs that `lockstep prover probe` measured here.
 */
#ifndef VERIFIER_STATUS_BOARD_PAGE_H
#define VERIFIER_STATUS_BOARD_PAGE_H

#include <pthread.h>

#include "base/web/web_server.h"
#include "verifier/status/watch.h"

#define BOARD_PAGE_JOBS_MAX 200 /* on one page; a search finds the others */

/* What is shown. The thread that follows the ledger changes it under the lock. */
struct board_view {
    pthread_mutex_t lock;
    const struct board *board;
    const struct watch_alarm *alarms;
    uint32_t alarm_count;
    struct ledger_clock clock;
    uint64_t followed_s; /* by the system's clock: when the ledger was read last; 0: not yet */
    const char *device;  /* of which an hour is meant */
};

struct board_page;

/* Borrows the view. Starts a thread: open a stop before. */
MUST_CHECK enum status board_page_open(struct board_page **page, struct board_view *view,
                                       const struct listen_place *place, struct error *error);
void board_page_close(struct board_page *page); /* NULL is fine */

void board_page_url(char url[WEB_SERVER_URL_MAX], const struct board_page *page,
                    const struct listen_place *place);

#endif /* VERIFIER_STATUS_BOARD_PAGE_H */
