/*
 * status_page.h - a node's snapshot as one page for people: plots, no outside assets.
 *
 * The page holds its style, its drawings (inline SVG) and the script that refreshes it: a browser
 * requests nothing but the page. All foreign text is escaped.
 */
#ifndef VERIFIER_STATUS_STATUS_PAGE_H
#define VERIFIER_STATUS_STATUS_PAGE_H

#include "base/sheet/sheet.h"
#include "verifier/status/node_snapshot.h"

#define STATUS_PAGE_SIZE_MAX ((size_t)8 << 20)

void status_page_show(struct sheet *sheet, const struct node_snapshot *snapshot);

#endif /* VERIFIER_STATUS_STATUS_PAGE_H */
