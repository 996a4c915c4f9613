/*
 * metrics.h - a node's snapshot as figures for Prometheus.
 *
 * Every label has few values, from our own tables; only mirrors and endpoints are named by the
 * operator, and a token by itself. Amounts are in whole coins, exact.
 */
#ifndef VERIFIER_STATUS_METRICS_H
#define VERIFIER_STATUS_METRICS_H

#include "base/sheet/sheet.h"
#include "verifier/status/node_snapshot.h"

void metrics_show(struct sheet *sheet, const struct node_snapshot *snapshot);

#endif /* VERIFIER_STATUS_METRICS_H */
