/*
 * metrics.h - a node's snapshot in the text format of Prometheus (version 0.0.4).
 *
 * Every label has few values, from our own tables; only mirrors and endpoints are named by the
 * operator, and a token by itself. Amounts are in whole coins, exact.
 */
#ifndef VERIFIER_STATUS_METRICS_H
#define VERIFIER_STATUS_METRICS_H

#include "base/buffer.h"
#include "verifier/status/node_snapshot.h"

#define METRICS_SIZE_MAX ((size_t)1 << 20)

void metrics_write(struct buffer *text, const struct node_snapshot *snapshot);

#endif /* VERIFIER_STATUS_METRICS_H */
