/*
 * decode.h - a model that goes on with a text: it takes tokens, and says what may come next.
 *
 * Keys and values of all tokens so far are kept. What a token gives does not depend on how many are
 * taken at a time, nor on the instruction set, nor on threads. It is not what a training step gives
 * in its last bits: there operands are rounded, and here they are not.
 */
#ifndef ENGINE_DECODE_DECODE_H
#define ENGINE_DECODE_DECODE_H

#include "engine/cpu/isa/isa.h"
#include "engine/models/model.h"

#define DECODE_THREADS_MAX 1024

struct decode; /* opaque */

struct decode_options {
    const struct model_options *model; /* of the decoder; lora.find says what the files hold */
    uint32_t context;                  /* the most tokens of a sequence */
    enum isa isa;
    int thread_count; /* 0: as many as the system offers */
    /* Writes a weight, in the type and shape of the tensor, whose name is that of lora.find. */
    enum status (*read)(void *context, void *bytes, const struct tensor *weight,
                        struct error *error);
    void *read_context;
};

MUST_CHECK enum status decode_open(struct decode **decode, const struct decode_options *options,
                                   struct error *error);
void decode_close(struct decode *decode); /* NULL is allowed */

/* Bytes of weights and of what is kept. */
uint64_t decode_memory(const struct decode *decode);

/*
 * Takes tokens behind those it has. Then the logits of what follows the last one are there;
 * STATUS_REFUSED: a token is none of the model's, the sequence would be too long, or the logits are
 * no numbers. No token is taken then.
 */
MUST_CHECK enum status decode_take(struct decode *decode, const uint32_t *tokens, size_t count,
                                   struct error *error);

/* How many tokens it has. */
uint32_t decode_count(const struct decode *decode);
/* The most that it takes. */
uint32_t decode_context(const struct decode *decode);
/* Forgets all tokens but the first `count`; the logits say nothing until more are taken. */
void decode_forget(struct decode *decode, uint32_t count);

/* One number for each token of the vocabulary. */
const float *decode_logits(const struct decode *decode);
uint32_t decode_vocabulary(const struct decode *decode);

#endif /* ENGINE_DECODE_DECODE_H */
