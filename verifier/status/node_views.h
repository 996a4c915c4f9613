/*
 * node_views.h - the node's database for people and scripts: read only, while the node works.
 */
#ifndef VERIFIER_STATUS_NODE_VIEWS_H
#define VERIFIER_STATUS_NODE_VIEWS_H

#include <jansson.h>
#include <stdio.h>

#include "verifier/store/store.h"

/* Rows of any one table that are shown. */
#define NODE_VIEW_ROWS_MAX 1000

MUST_CHECK enum status node_status_view(json_t **made, struct store *store, struct error *error);
void node_status_print(FILE *out, const json_t *made);

MUST_CHECK enum status node_claims_view(json_t **made, struct store *store, struct error *error);
void node_claims_print(FILE *out, const json_t *made);

#endif /* VERIFIER_STATUS_NODE_VIEWS_H */
