/*
 * model_writer.h - what the writers of models share. Inside engine/models/ only.
 */
#ifndef ENGINE_MODELS_MODEL_WRITER_H
#define ENGINE_MODELS_MODEL_WRITER_H

#include "engine/models/model.h"

#define MODEL_SCOPE_MAX 28 /* with the zero */

struct model_writer {
    struct builder *builder;
    struct model *model;
    const struct model_options *options;
    uint32_t parameter_room;
    uint32_t frozen_room;
    char scope[MODEL_SCOPE_MAX]; /* of the builder: write_scope() */
    uint32_t mask;               /* of the batch's targets, or TENSOR_NONE */
    uint32_t reach;              /* of the batch's tokens, or TENSOR_NONE */
    struct shifts *shifts;       /* of the calibration, as far as they are written */
    uint32_t first_product;      /* of the pass */
    uint32_t stream;             /* the next stream of random draws that no other operation uses */
    uint32_t chosen;   /* tokens of each expert so far, over the layers; TENSOR_NONE: none */
    uint32_t probable; /* likewise, the sums of what the routers gave them */
    uint32_t penalty;  /* what is added to the loss of a training, or TENSOR_NONE */
    uint32_t tokens;   /* of the batch */
    struct reference_pass *reference; /* the model is written once more, as the reference of
                                         preference pairs; NULL: not */
    struct held_out_pass *pass; /* the model is written once more, on held-out data; NULL: not */
};

/* What a further pass of a model's writer takes from the first: tensors in the order of its calls,
 * parameters as the update has left them. */
struct held_out_pass {
    uint32_t *updated; /* per parameter */
    uint32_t parameters;
    uint32_t frozen;
    uint32_t constants;
    uint32_t counter;  /* that its batch is drawn by */
    uint32_t loss;     /* sums over the passes so far; TENSOR_NONE at first */
    uint32_t accuracy; /* likewise; TENSOR_NONE of windows of tokens */
    uint32_t marked;   /* likewise: targets that count; TENSOR_NONE but of packed rows */
};

/* What the reference takes from the model that is trained: its batch, its constants, and under
 * adapters its frozen weights, in the order of its calls. */
struct reference_pass {
    uint32_t tokens;
    uint32_t targets;
    uint32_t frozen;
    uint32_t constants;
    uint32_t logits; /* what it gives */
};

/* A parameter of rank 1 (columns 0) or 2, drawn as init says. */
uint32_t write_parameter(struct model_writer *writer, const char *name, uint64_t rows,
                         uint64_t columns, struct init init);
uint32_t write_shaped_parameter(struct model_writer *writer, const char *name, uint32_t rank,
                                const uint64_t *dims, struct init init);
/* A weight under adapters, of the files' own name and type. */
uint32_t write_frozen(struct model_writer *writer, const char *name, uint64_t rows,
                      uint64_t columns);
/* build_scope(), remembered. */
void write_scope(struct model_writer *writer, const char *scope);
/* A tensor of the frozen weights, by its own name. */
uint32_t write_shaped_frozen(struct model_writer *writer, const char *name, enum dtype dtype,
                             uint32_t rank, const uint64_t *dims);
/* A state that is zero at first. */
uint32_t write_zeros(struct model_writer *writer, const char *name, const struct tensor *like);
struct init init_normal(double deviation);
#define INIT_AT_ZERO ((struct init){INIT_ZEROS, 0})
#define INIT_AT_ONE  ((struct init){INIT_ONES, 0})

/* A constant tensor. Takes bytes, which may be NULL after a failed allocation. */
uint32_t write_constant(struct model_writer *writer, const char *name, enum dtype dtype,
                        uint64_t rows, uint64_t columns, void *bytes);

/* From now on products are built as the calibration of the options says. */
void write_calibrated(struct model_writer *writer);
/* A further pass of a model's writer has the products of the first, in their order. */
void write_calibrated_pass(struct model_writer *writer);

/* The tokens of a batch and their targets; for inference the tokens alone, as an input. */
void write_token_batch(struct model_writer *writer, uint32_t *tokens, uint32_t *targets);
/* The samples of a batch as (batch, width) in 0..1, and their labels. */
void write_sample_batch(struct model_writer *writer, uint32_t *x, uint32_t *labels, uint64_t width);

uint32_t write_dropout(struct model_writer *writer, uint32_t x);

/* The rows of a table of the vocabulary, by tokens. Where the token of padding stands, no gradient
 * passes. */
uint32_t write_token_rows(struct model_writer *writer, uint32_t table, uint32_t tokens);

/* Causal attention; q (B,T,H*D), k and v (B,T,HKV*D); returns (B,T,H*D). Scores count scale times:
 * mostly 1/sqrt(D). Then they become cap * tanh(score / cap); a cap of 0 stands for none. */
uint32_t write_attention(struct model_writer *writer, uint32_t q, uint32_t k, uint32_t v,
                         uint64_t heads, uint64_t kv_heads, double scale, double cap);

/* The same of a tape that decodes (decoding.c): what attention gives is an input. */
uint32_t write_attention_outside(struct model_writer *writer, const uint32_t qkv[3], uint64_t heads,
                                 uint64_t kv_heads, double scale, double cap);
/* The rows of a table that has one for each place of the sequence: those of the tokens. */
uint32_t write_rows_of_places(struct model_writer *writer, uint32_t table);

/* Refuses a row that no receipt has (receipt.c). */
MUST_CHECK enum status check_receipt(const struct model_options *options, struct error *error);
/* The tokens of its step, with zeros behind the row. NULL: no memory. */
uint32_t *receipt_row_tokens(const struct receipt_row *row);

/* Ends every model: the loss, the reverse pass and the update; or the output. */
void write_end(struct model_writer *writer, uint32_t logits, uint32_t targets);

/* The loss of a batch (losses.c): a mean, or a sum under a mask and micro-batches. */
uint32_t write_loss(struct model_writer *writer, uint32_t logits, uint32_t targets);
/* Is a step more than one micro-batch? */
bool write_repeats(const struct model_writer *writer);

/* The next values of all parameters (updates.c). */
void write_updates(struct model_writer *writer, const uint32_t *gradients);
/* The loss of preference pairs (preference.c). */
uint32_t write_preference_loss(struct model_writer *writer, uint32_t logits, uint32_t targets,
                               void (*write_model)(struct model_writer *));

/* The end of a training from its loss on: the reverse pass and the update. */
void write_training(struct model_writer *writer, uint32_t loss);

/* Writes the model's figures on held-out data behind the update (held_out.c). */
void write_held_out(struct model_writer *writer, void (*write_model)(struct model_writer *));
/* Adds the figures of one pass; or, where the model says it itself, its loss. */
void write_held_out_end(struct model_writer *writer, uint32_t logits, uint32_t targets);
void write_held_out_loss(struct model_writer *writer, uint32_t loss);

/* The deviation of a linear layer's weight: 1/sqrt(width). */
double init_fan_in(uint64_t width);

/* Fails the builder when an option that must be positive is zero. */
void model_require(struct model_writer *writer, uint64_t value, const char *name);

/* The models: forward operations up to the logits, then write_end(). */
void write_mlp(struct model_writer *writer);
void write_convnet(struct model_writer *writer);
void write_decoder(struct model_writer *writer);
/* The calls of a graph, and write_training() where it has a loss. */
void write_graph(struct model_writer *writer);

/* ---- constants (schedules.c, tables.c) ------------------------------------ */

/* Rates and AdamW's corrections: rows of (rate) or (rate, correct1, correct2). NULL: no memory. */
float *schedule_table(const struct model_options *options);
uint32_t schedule_columns(enum optimizer optimizer);

double table_exponential(double x);
/* From 0 to 1 along half a cosine, for a share of it from 0 to 1. */
double table_half_cosine(double share);

/* (length, width/2, 2): cosine and sine of position * base^(-2j/width), stretched as scaling says,
 * amplitude times. NULL: no memory. */
float *rotary_table(uint64_t length, uint64_t width, double base,
                    const struct rotary_scaling *scaling);

#endif /* ENGINE_MODELS_MODEL_WRITER_H */
