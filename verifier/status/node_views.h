/*
 * node_views.h - the node's database for people and scripts: read only, while the node works.
 */
#ifndef VERIFIER_STATUS_NODE_VIEWS_H
#define VERIFIER_STATUS_NODE_VIEWS_H

#include "base/sheet/sheet.h"
#include "verifier/store/store.h"

/* Rows of any one table that are shown. */
#define NODE_VIEW_ROWS_MAX 1000

MUST_CHECK enum status node_status_view(struct sheet *view, struct store *store,
                                        struct error *error);
MUST_CHECK enum status node_claims_view(struct sheet *view, struct store *store,
                                        struct error *error);

#endif /* VERIFIER_STATUS_NODE_VIEWS_H */
