/*
 * node_view.h - a solver's node as JSON: what it does, holds and refuses.
 *
 * The node writes it into a file after its rounds, whole each time. The page and `lockstep prover
 * jobs` read that file, so neither has a part in the node.
 */
#ifndef PROVER_NODE_NODE_VIEW_H
#define PROVER_NODE_NODE_VIEW_H

#include <jansson.h>

#include "prover/node/node_parts.h"

#define NODE_VIEW_SIZE_MAX    (4u << 20)
#define NODE_VIEW_REFUSED_MAX 200 /* open jobs that are told of */

/* Writes the file at path; started_s and now_s are of the system's clock. */
MUST_CHECK enum status node_view_write(const struct solver_node *node, const char *path,
                                       uint64_t started_s, uint64_t now_s, struct error *error);

/* The caller releases it. STATUS_NOT_FOUND: no node ever ran here. */
MUST_CHECK enum status node_view_read(json_t **view, const char *path, struct error *error);

/* An amount of an object, for people; "-" where there is none. */
#define NODE_VIEW_AMOUNT_SIZE WEI_TEXT_SIZE
void node_view_amount(char text[NODE_VIEW_AMOUNT_SIZE], const struct currency *currency,
                      const json_t *object, const char *name);

/* The money of its account; false: the view has none. */
bool node_view_money(struct money *money, const json_t *view);

/* What its amounts are in. */
struct currency node_view_currency(const json_t *view);

/* What is not well, in a few words; NULL: nothing. */
const char *node_view_trouble(const json_t *view, uint64_t now_s);

#endif /* PROVER_NODE_NODE_VIEW_H */
