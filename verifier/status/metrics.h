/*
 * metrics.h - a node's snapshot in the text format of Prometheus (version 0.0.4).
 *
 * Every label has few values, all from tables of ours, but for the mirrors, which the operator
 * named himself. Amounts are in ether, since a number there is a binary64; the exact ones are told
 * by `lockstep verifier status`.
 */
#ifndef VERIFIER_STATUS_METRICS_H
#define VERIFIER_STATUS_METRICS_H

#include "base/buffer.h"
#include "verifier/status/node_snapshot.h"

#define METRICS_TYPE     "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_SIZE_MAX ((size_t)1 << 20)

void metrics_write(struct buffer *text, const struct node_snapshot *snapshot);

#endif /* VERIFIER_STATUS_METRICS_H */
