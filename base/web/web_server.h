/*
 * web_server.h - a few pages by HTTP, read-only, from one thread.
 *
 *     GET URL        what the route of that URL writes
 *     GET /health    200 or 503, and one line that says why
 *
 * What is shown is looked at once a second at most: many readers do not slow down what they look
 * at. Connections, requests, answers and time are bounded, and who is slow or silent keeps nobody
 * out (base/http/http_server.h). There is no password: bind it to this machine or a network of your
 * own, or show nothing that is not public.
 */
#ifndef BASE_WEB_WEB_SERVER_H
#define BASE_WEB_WEB_SERVER_H

#include "base/buffer.h"
#include "base/io/listen.h"

#define WEB_SERVER_TIMEOUT_S 10
#define WEB_SERVER_PAGE      "text/html; charset=utf-8"
#define WEB_SERVER_METRICS   "text/plain; version=0.0.4; charset=utf-8" /* of Prometheus */

/* The words behind the "?" of a URL. */
struct web_query;

/* NULL: it has no such word. Borrowed until the answer is written. */
const char *web_query_text(const struct web_query *query, const char *name);

struct web_route {
    const char *url;  /* "/" */
    const char *type; /* WEB_SERVER_PAGE */
    void (*write)(struct buffer *answer, void *context, const struct web_query *query);
};

/* All of it is called by the server's thread, one call at a time. */
struct web_site {
    const struct web_route *routes;
    size_t route_count;
    size_t size_max; /* of an answer */
    /* Reads what the routes write of. A failure is an answer of 503. */
    enum status (*look)(void *context, uint64_t now_ms, struct error *error);
    /* A few words; NULL: well. */
    const char *(*trouble)(void *context);
    void *context;
};

struct web_server;

/* Borrows the routes and the context. Starts a thread: open a stop before. */
MUST_CHECK enum status web_server_open(struct web_server **server, const struct web_site *site,
                                       const struct listen_place *place, struct error *error);
void web_server_close(struct web_server *server); /* NULL is fine */

uint16_t web_server_port(const struct web_server *server);

/* "http://127.0.0.1:7571/" */
#define WEB_SERVER_URL_MAX 128
void web_server_url(char url[WEB_SERVER_URL_MAX], const struct web_server *server,
                    const struct listen_place *place);

#endif /* BASE_WEB_WEB_SERVER_H */
