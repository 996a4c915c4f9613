/*
 * attend.h - attention over the keys and values of all tokens so far.
 *
 * Scores are dot products in the order of token_kernels.h, times the scale. Their softmax is taken
 * from its largest, the sum is a fold; values are added one token after the other.
 */
#ifndef ENGINE_DECODE_ATTEND_H
#define ENGINE_DECODE_ATTEND_H

#include "engine/decode/token_tape.h"

/* The keys, then the values, of one layer: (kv_heads, context, width of a head) each. */
struct kept_layer {
    float *keys;
    float *values;
};

struct attend {
    const struct token_team *team;
    uint32_t context; /* the longest sequence */
    uint32_t before;  /* tokens that are kept; those of the tape follow them */
    float *scores;    /* (threads, context) */
};

/* Keeps the keys and values of the tape's tokens. */
void attend_keep(const struct attend *attend, const struct kept_layer *layer,
                 const struct token_tape *tape, const struct model_attention *attention);

/* What attention gives each of the tape's tokens, which are kept already. */
void attend_all(const struct attend *attend, const struct kept_layer *layer,
                struct token_tape *tape, const struct model_attention *attention);

#endif /* ENGINE_DECODE_ATTEND_H */
