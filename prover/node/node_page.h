/*
 * node_page.h - a solver's node as a page, as JSON and as one line of health, by HTTP.
 *
 *     GET /             the page
 *     GET /node.json    node_view.h
 *     GET /metrics      for Prometheus
 *     GET /health       200 or 503, and why
 *
 * It reads the node's file, so a node that hangs is seen as silent.
 */
#ifndef PROVER_NODE_NODE_PAGE_H
#define PROVER_NODE_NODE_PAGE_H

#include "base/sheet/sheet.h"
#include "base/web/web_server.h"

/* What page, text and JSON show; made: what node_view_read() gave. */
void node_page_show(struct sheet *view, json_t *made, uint64_t now_s);

struct node_page;

/* path: the node's file; it may not be there yet. Starts a thread: open the stop before. */
MUST_CHECK enum status node_page_open(struct node_page **page, const char *path,
                                      const struct listen_place *place, struct error *error);
void node_page_close(struct node_page *page); /* NULL is fine */

/* Where it is. */
void node_page_url(char url[WEB_SERVER_URL_MAX], const struct node_page *page,
                   const struct listen_place *place);

#endif /* PROVER_NODE_NODE_PAGE_H */
