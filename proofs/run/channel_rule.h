/*
 * channel_rule.h - by which powers of two the channels of a product are shifted, so that those
 * which are much larger in one operand and much smaller in the other take no bits from their
 * neighbours; and how far a product is from the truth, shifted and not.
 *
 * With d = a - b - median(a - b), where a and b are log2 of the largest number of a channel in the
 * first and the second operand: h = 0 where |d| < 2, else (d + 1) >> 1. With r = log2 of the root
 * of the mean square of the second operand's channel: w = -round(r - median(r)), 0 where that is
 * below 2. c is the larger of both where h is 0 or the signs agree, else h; at most 24. Channels of
 * zeros have no part in a median, and c = 0. The first operand is divided by 2^c.
 *
 * The two medians may stand on different sides where half of the channels are larger: then h and w
 * shift both halves, one against the other. So c may also be h alone, and the caller compares both.
 */
#ifndef PROOFS_RUN_CHANNEL_RULE_H
#define PROOFS_RUN_CHANNEL_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Of one channel in one operand. */
struct channel {
    double largest; /* |number| */
    double squares; /* their sum */
};

/* *worth: is a channel shifted so far that a shift may be worth its time? */
MUST_CHECK enum status channel_rule(int16_t *c, bool *worth, const struct channel *a,
                                    const struct channel *b, uint64_t count, bool h_alone,
                                    struct error *error);

/* How far the products of rows of numbers are from their true values. */
struct product_error {
    double exact;    /* sum of the squares of the true values */
    double ours;     /* of the differences: operands as QUANTIZE makes them */
    double bfloat16; /* operands in bfloat16 */
};

/* Adds the product of two rows of k numbers; c NULL: not shifted. */
void product_error_add(struct product_error *sum, const float *a, const float *b, uint64_t k,
                       const int16_t *c, uint32_t bits, uint32_t block);

#endif /* PROOFS_RUN_CHANNEL_RULE_H */
