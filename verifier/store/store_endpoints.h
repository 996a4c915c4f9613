/*
 * store_endpoints.h - how the endpoints of the ledger are, in a node's database: for the metrics
 * and the pages, which other processes make.
 */
#ifndef VERIFIER_STORE_STORE_ENDPOINTS_H
#define VERIFIER_STORE_STORE_ENDPOINTS_H

#include "verifier/store/store.h"

/* Writes only what has changed. */
MUST_CHECK enum status store_put_endpoints(struct store *store,
                                           const struct ledger_endpoint *endpoints, size_t count,
                                           struct error *error);

MUST_CHECK enum status store_get_endpoints(struct store *store,
                                           struct ledger_endpoint list[LEDGER_ENDPOINTS_MAX],
                                           uint32_t *count, struct error *error);

#endif /* VERIFIER_STORE_STORE_ENDPOINTS_H */
