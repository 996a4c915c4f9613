/*
 * sheet_site.h - a sheet (base/sheet) by HTTP: as a page, as JSON, as figures for Prometheus.
 *
 *     GET /          the page
 *     GET JSON       its facts, where the site names a URL for them
 *     GET /metrics   its figures, where it has any
 *     GET /health    200, or 503 and why
 *
 * The sheet is made once a second at most, and all are written of the same one.
 */
#ifndef BASE_WEB_SHEET_SITE_H
#define BASE_WEB_SHEET_SITE_H

#include "base/sheet/sheet.h"
#include "base/web/web_server.h"

/* All of it is called by the server's thread, one call at a time. */
struct sheet_site {
    const char *json; /* "/job.json"; NULL: there is none */
    bool has_metrics;
    size_t size_max; /* of an answer */
    /* Fills in an empty sheet. A failure is an answer of 503. */
    enum status (*show)(void *context, struct sheet *sheet, uint64_t now_ms, struct error *error);
    /* Of what was shown last, a few words; NULL: well. */
    const char *(*trouble)(void *context);
    void *context;
};

struct sheet_server;

/* Borrows the context. Starts a thread: open a stop before. */
MUST_CHECK enum status sheet_server_open(struct sheet_server **server,
                                         const struct sheet_site *site,
                                         const struct listen_place *place, struct error *error);
void sheet_server_close(struct sheet_server *server); /* NULL is fine */

/* Of its pages, for ports and URLs. */
const struct web_server *sheet_server_web(const struct sheet_server *server);

#endif /* BASE_WEB_SHEET_SITE_H */
