/*
 * token_tape.h - a model's tape for a few tokens at a time, as a decoder runs it.
 *
 * Products with weights are plain (token_kernels.h); what depends on weights alone is made once;
 * attention is the caller's: it is asked when the first operation needs its result. All other
 * operations are the engine's own, with its kernels.
 */
#ifndef ENGINE_DECODE_TOKEN_TAPE_H
#define ENGINE_DECODE_TOKEN_TAPE_H

#include "engine/cpu/cpu.h"
#include "engine/decode/token_kernels.h"
#include "engine/models/model.h"

/* A weight in memory, in its own type. */
struct token_weight {
    const struct tensor *tensor; /* of a tape */
    bool turned;                 /* of a matrix (in, out): its rows in memory are its columns */
    void *bytes;
};

struct token_product_op {
    uint32_t x; /* TENSOR_NONE: the operation is no product */
    uint32_t weight;
    bool turned;
    uint32_t index;   /* of each row's expert; TENSOR_NONE: the weight is one for all */
    uint32_t experts; /* the first of its weights in token_tape.experts */
};

/* How threads are used: of a product that reads fewer elements, one. */
struct token_team {
    const struct token_kernels *kernels;
    struct kernel_table table;
    int thread_count;
};

struct token_tape {
    struct model model;
    const struct token_team *team; /* borrowed */
    void **memory;                 /* per tensor */
    uint8_t *block;
    uint8_t *scratch;
    struct token_product_op *products; /* per operation */
    uint8_t *runs;                     /* per operation: enum token_run */
    uint32_t *experts;                 /* weights of experts, one after the other */
    uint32_t expert_count;
    uint32_t *attention_at; /* per attention: the first operation that reads its result */
    uint32_t body_end;      /* from here on nothing is kept for later tokens */
};

/* Is asked for the result of attention number `index`, in tape->memory[]. */
typedef void token_attention(void *context, struct token_tape *tape, uint32_t index);

/* Builds the tape of `rows` tokens. model->decoding is set. */
MUST_CHECK enum status token_tape_open(struct token_tape *tape, const struct model_options *model,
                                       uint32_t rows, const struct token_team *team,
                                       struct error *error);
void token_tape_close(struct token_tape *tape); /* a zero-filled one is allowed */

/* Weight number i is that of tensor model.frozen[i]. Makes what depends on weights alone. */
void token_tape_bind(struct token_tape *tape, const struct token_weight *weights);

/* Runs the operations before `end`; the inputs are written. */
void token_tape_run(struct token_tape *tape, uint32_t end, token_attention *attention,
                    void *context);

/* y = matrix times x, cut among the threads. */
void token_team_product(const struct token_team *team, const struct token_product *product);

#endif /* ENGINE_DECODE_TOKEN_TAPE_H */
