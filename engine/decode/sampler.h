/*
 * sampler.h - which token comes next: a rule that anybody can apply again.
 *
 * All numbers are binary32, and each operation rounds once.
 *
 *   1. temperature 0: the first of the largest logits. Else z = logit * (1/temperature), and
 *      p = softmax(z), as the engine takes it.
 *   2. A token may be chosen if p >= tau for both thresholds. top_k in 1 .. vocabulary: tau is the
 *      p of the k-th largest. top_p < 1: tau is the largest p for which the sum of the p that are
 *      at least tau, a fold over the whole vocabulary, is top_p or more. A rule that is off has
 *      tau = 0.
 *   3. For draw number n of a seed, from 0, token i has the word w that UNIFORM (op.h) gives as
 *      element (n mod 64) * vocabulary + i of stream n / 64 in step 0. v = w * 2^-32 + 2^-33;
 *      e = v + v*v/2 where v < 2^-12, else -log(1-v).
 *   4. The token is the first of the largest z - log(e) among those that may be chosen.
 *
 * That draws each token with its share of the probability that is left.
 */
#ifndef ENGINE_DECODE_SAMPLER_H
#define ENGINE_DECODE_SAMPLER_H

#include <stdint.h>

#include "base/error.h"

#define SAMPLER_SLICE 64 /* draws of one stream */

struct sampler_rule {
    float temperature; /* 0: the likeliest; at most SAMPLER_TEMPERATURE_MAX */
    uint32_t top_k;    /* 0: off */
    float top_p;       /* above 0; from 1 on: off */
    uint64_t seed;
};
#define SAMPLER_TEMPERATURE_MAX   100.0f
#define SAMPLER_TEMPERATURE_LEAST 0.001f /* above 0 */

/* A rule, and the memory it takes. */
struct sampler {
    struct sampler_rule rule;
    uint32_t vocabulary;
    float *z;
    float *p;
    float *sorted; /* p, the largest first */
    uint32_t drawn;
};

/* What decided. */
struct sampler_choice {
    uint32_t token;
    float threshold_p;
    float threshold_k;
};

/* STATUS_USAGE: a number of the rule is out of its range. On failure there is nothing to release.
 */
MUST_CHECK enum status sampler_init(struct sampler *sampler, const struct sampler_rule *rule,
                                    uint32_t vocabulary, struct error *error);
void sampler_release(struct sampler *sampler); /* a zero-filled one is allowed */

/* Begins again with draw 0 of a seed. */
void sampler_restart(struct sampler *sampler, uint64_t seed);

/* The next draw. The logits are finite. */
void sampler_next(struct sampler_choice *choice, struct sampler *sampler, const float *logits);

#endif /* ENGINE_DECODE_SAMPLER_H */
