/*
 * gpt2_case.h - one GPT-2 training job for all sides of a comparison: the model's tape, training
 * data made up for it, the first state, and the batches that the tape will draw.
 */
#ifndef BENCH_SUPPORT_GPT2_CASE_H
#define BENCH_SUPPORT_GPT2_CASE_H

#include "engine/models/model.h"
#include "engine/plan/backend.h"

struct gpt2_case {
    const char *name;
    struct model model;
    uint16_t *data;
    uint32_t *tokens;  /* of the batch that gpt2_case_batch() drew last */
    uint32_t *targets; /* the same, one ahead */
};

/* GPT-2 with the published sizes' proportions; options the case does not name are the defaults. */
struct gpt2_size {
    const char *name;
    uint32_t layers;
    uint32_t width;
    uint32_t heads;
    uint32_t vocabulary;
    uint32_t positions;
    uint32_t batch;
    uint32_t length;
    uint32_t micro_batches;
};

MUST_CHECK enum status gpt2_case_init(struct gpt2_case *one, const struct gpt2_size *size,
                                      struct error *error);
void gpt2_case_release(struct gpt2_case *one);

/* Tokens of a batch. */
size_t gpt2_case_rows(const struct gpt2_case *one);

/* Draws the batch of a step as OP_BATCH_TOKENS does. */
void gpt2_case_batch(struct gpt2_case *one, uint32_t step);

/* Opens a machine as a prover does, with the case's data, constants and first state in it. */
MUST_CHECK enum status gpt2_case_open(struct machine **machine, const struct gpt2_case *one,
                                      const struct machine_options *options, struct error *error);

#endif /* BENCH_SUPPORT_GPT2_CASE_H */
