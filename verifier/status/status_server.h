/*
 * status_server.h - a node's metrics and status page by HTTP, read-only.
 *
 *     GET /          the page           status_page.h
 *     GET /metrics   for Prometheus     metrics.h
 *     GET /health    200 or 503, and one line that says why
 *
 * One thread with a read-only view of the database, which it reads at most once a second: many
 * readers do not slow the node down (base/web/web_server.h). It shows no secret, but nothing that
 * the public needs: bind it to this machine or a network of your own.
 */
#ifndef VERIFIER_STATUS_STATUS_SERVER_H
#define VERIFIER_STATUS_STATUS_SERVER_H

#include "base/web/web_server.h"

struct status_server;

/* path: the node's database, which must exist. Starts a thread: open the stop before. */
MUST_CHECK enum status status_server_open(struct status_server **server, const char *path,
                                          const struct listen_place *place, struct error *error);
void status_server_close(struct status_server *server); /* NULL is fine */

uint16_t status_server_port(const struct status_server *server);

#endif /* VERIFIER_STATUS_STATUS_SERVER_H */
