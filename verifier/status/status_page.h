/*
 * status_page.h - a node's snapshot as one page for people: plots, no outside assets.
 *
 * The page stands alone: style, drawings (inline SVG) and the few lines that refresh it are in it,
 * and a browser asks nothing else than the page again. All words that are not ours are escaped.
 */
#ifndef VERIFIER_STATUS_STATUS_PAGE_H
#define VERIFIER_STATUS_STATUS_PAGE_H

#include "base/buffer.h"
#include "verifier/status/node_snapshot.h"

#define STATUS_PAGE_SIZE_MAX ((size_t)8 << 20)
#define STATUS_PAGE_POLICY                                                                         \
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "                               \
    "script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; "        \
    "frame-ancestors 'none'"

void status_page_write(struct buffer *page, const struct node_snapshot *snapshot);

#endif /* VERIFIER_STATUS_STATUS_PAGE_H */
