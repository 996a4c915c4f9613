/*
 * channel_shifts.h - channels of published weights that are much larger or smaller than others: by
 * which powers of two the operands of a product are shifted, so that they take no bits from their
 * neighbours.
 *
 * With d = a - b - median(a - b), where a is log2 of a channel's gain in the norm before the
 * product and b that of its largest weight: h = 0 where |d| < 2, else (d + 1) >> 1. With r = log2
 * of the root of the mean square of a channel's weights: w = -round(r - median(r)), 0 where that is
 * below 2. c is the larger of both where h is 0 or the signs agree, else h; at most 24. Channels of
 * zeros have no part in a median, and c = 0.
 */
#ifndef PROOFS_FORMAT_CHANNEL_SHIFTS_H
#define PROOFS_FORMAT_CHANNEL_SHIFTS_H

#include "engine/models/model.h"
#include "proofs/format/weights.h"

/* For struct model_options: weights is a struct weights. False where no channel is worth it, or
 * where a tensor is not there: who reads the weights says so. */
bool channel_shifts_of(const void *weights, int16_t *c, const struct channel_readers *readers);

#endif /* PROOFS_FORMAT_CHANNEL_SHIFTS_H */
