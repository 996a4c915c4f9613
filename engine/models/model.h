/*
 * model.h - writes the tapes of whole models from options: an MLP, a convolutional net, GPT-2,
 * Llama.
 *
 * The engine, the referee and the contract know operations and no models: a model is only a way to
 * write a tape. It also holds the constants, so that equal options give equal bits.
 */
#ifndef ENGINE_MODELS_MODEL_H
#define ENGINE_MODELS_MODEL_H

#include "engine/models/recipe.h"
#include "engine/tape/builder.h"

enum model_kind {
    MODEL_MLP = 0, /* samples, hidden layers with ReLU, classes */
    MODEL_CONVNET, /* two convolutions with pools, then classes */
    MODEL_GPT2,    /* learned positions, layer norm, GELU, tied head; published names and layouts */
    MODEL_LLAMA,   /* rotary positions, RMS norm, SwiGLU, grouped heads */
    MODEL_COUNT,
};

/* The function between feed-forward layers. */
enum activation {
    ACTIVATION_GELU_TANH = 0, /* GPT-2's */
    ACTIVATION_GELU,          /* x Phi(x) */
    ACTIVATION_SILU,
    ACTIVATION_RELU,
    ACTIVATION_COUNT,
};

/* How the angles of a model that was trained on shorter sequences are stretched. */
#define ROTARY_PAIRS_LISTED_MAX 256
struct rotary_scaling {
    enum rotary_kind {
        ROTARY_PLAIN = 0,
        ROTARY_LINEAR,   /* every frequency is divided by factor */
        ROTARY_LLAMA3,   /* low frequencies are; between low and high turns it changes over */
        ROTARY_YARN,     /* likewise, pair by pair; then the table counts `amplitude` times */
        ROTARY_LONGROPE, /* pair by pair, by one of two lists; then likewise */
        ROTARY_COUNT,
    } kind;
    double factor;
    double low; /* turns in so many positions */
    double high;
    uint32_t positions;
    bool whole_pairs; /* yarn: it changes over between whole pairs */
    double amplitude;
    uint32_t pair_count;                           /* of each list */
    double short_factors[ROTARY_PAIRS_LISTED_MAX]; /* of sequences up to so many positions */
    double long_factors[ROTARY_PAIRS_LISTED_MAX];
};

/* Of a layer of a mixture of experts; and choices of a token that one operation joins. */
#define EXPERTS_MAX      1024
#define EXPERTS_USED_MAX 8

/* What is told of single layers. */
#define LAYERS_LISTED_MAX 512
enum layer_flag {
    LAYER_LOCAL = 1,    /* it has the window, and the local base of the rotation */
    LAYER_UNTURNED = 2, /* no rotation */
};

/*
 * Low-rank adapters: the model's own weights are data that no step changes, under the names, types
 * and shapes of their files; what is trained is a pair of small matrices beside each target,
 * y = W x + alpha / rank * B A x.
 */
#define LORA_TARGETS_MAX 256
#define LORA_ALL         "all-linear"
/* What the tensors of an adapter are called behind their module: (rank, in) and (out, rank); beside
 * an embedding `in` counts tokens. */
#define LORA_A           ".lora_A.weight"
#define LORA_B           ".lora_B.weight"
#define LORA_TOKENS_A    ".lora_embedding_A"
#define LORA_TOKENS_B    ".lora_embedding_B"
struct lora {
    uint32_t rank; /* 0: no adapters; all weights are trained */
    double alpha;
    bool stabilized; /* an adapter counts alpha / sqrt(rank) times, not alpha / rank: rsLoRA */
    double dropout;  /* of what enters A */
    char targets[LORA_TARGETS_MAX]; /* "q_proj,v_proj", or LORA_ALL but the head */
    /* Modules that are trained whole, such as "lm_head,norm": by the last parts of their names. */
    char whole[LORA_TARGETS_MAX];
    /* The name of a tensor in the files, and how they hold it: DTYPE_F32, DTYPE_F16 or DTYPE_BF16.
     * A tensor that they lack keeps its name. */
    const char *(*find)(enum dtype *dtype, const void *files, const char *name);
    const void *files;
};

/*
 * What a calibration chooses for single products, which are numbered as builder.h says. A shift has
 * an exponent for each element along K of each batch: the first operand is divided by 2^c, the
 * second multiplied.
 */
#define CALIBRATION_NONE UINT32_MAX
struct calibrated_product {
    uint32_t bits;  /* 0: those of the job */
    uint32_t shift; /* its number, or CALIBRATION_NONE */
};
struct calibrated_shift {
    char name[TENSOR_NAME_MAX + 1];
    uint64_t count;
    int16_t *c;
};
struct calibration {
    uint32_t product_count;
    struct calibrated_product *products;
    uint32_t shift_count;
    struct calibrated_shift *shifts;
};

/*
 * A finished row of tokens, and how its answer was chosen: what a receipt claims. A step of the
 * model decides it (receipt.c, docs/FINETUNE.md); each position of the answer has two thresholds of
 * the probability, which are 0 where a rule is off.
 */
#define RECEIPT_TOKENS_MAX     65536
#define RECEIPT_VOCABULARY_MAX (1u << 24)
#define RECEIPT_SLICE          64 /* positions made together, whose draws are one stream */
struct receipt_row {
    uint32_t *tokens; /* the prompt, and the answer behind it */
    uint32_t count;
    uint32_t prompt;     /* tokens of it, one or more */
    float temperature;   /* 0: the likeliest; then the other rules are off */
    uint32_t top_k;      /* 0: off */
    float top_p;         /* 1: off */
    uint64_t seed;       /* of the draws */
    float *thresholds_p; /* one for each token of the answer */
    float *thresholds_k;
};

/* The tokens of the step: those of the row, on a multiple of 16. */
uint32_t receipt_row_length(const struct receipt_row *row);
/* How many conditions there are: all of them hold, or the row is refuted. */
uint32_t receipt_row_conditions(const struct receipt_row *row);

struct layout; /* layouts.h */
struct graph;  /* graph.h */

/* model_build() refuses zero in a field that the kind uses, and names the field. */
struct model_options {
    enum model_kind kind;
    const struct graph *graph;   /* NULL; or the calls of a program, in place of a kind */
    const struct layout *layout; /* of language models; NULL: the kind's own */
    struct precision precision;
    bool equilibrate; /* gradients of weights shift their tokens: builder.h */
    uint64_t seed;
    uint32_t batch;      /* of a micro-batch */
    uint32_t accumulate; /* micro-batches of a step */
    uint32_t group;      /* micro-batches that are summed in order; 0: all of them */
    bool inference;      /* forward only: inputs instead of data, outputs instead of an update */
    /* A job that evaluates: forward only, without dropout. Its state holds the logits of the batch
     * ("answers") and the sum of all losses ("loss_sum"), so each step commits to them. */
    bool evaluation;
    /* A job of one step that decides a receipt: of an evaluation, without data but the weights,
     * which lie in files (lora.find). Its state holds how many conditions hold ("held"). */
    const struct receipt_row *receipt;
    /* A tape of `length` tokens that stand somewhere in one sequence of at most this many: their
     * places are an input, and so is what attention gives, which is made outside of the tape from
     * keys and values that were kept (model.attentions). Weights are data in the types of their
     * files: lora.find. With inference only; 0: it is no such tape. */
    uint32_t decoding;

    /* Language models. */
    uint32_t length;    /* tokens of a sequence */
    uint32_t positions; /* the most a sequence may have, and rows of GPT-2's table; 0: length */
    uint32_t vocabulary;
    uint32_t
        padding; /* 1 + the token of padding, which as an input trains nothing; 0: there is none */
    uint32_t layers;
    uint32_t heads;
    uint32_t kv_heads; /* Llama; 0: heads */
    uint32_t width;
    uint32_t hidden;       /* width of the feed-forward layers; 0: the kind's usual multiple */
    uint32_t head_width;   /* 0: width / heads */
    uint32_t experts;      /* of a layer of a mixture of experts */
    uint32_t experts_used; /* by a token */
    bool experts_renormed; /* the weights of those that are used sum to one */
    double balance;        /* how often the balance of experts counts in the loss; 0: it does not */
    enum activation activation;
    bool qkv_bias;      /* of queries, keys and values; the others likewise */
    bool out_bias;      /* of what attention adds */
    bool mlp_bias;      /* of the feed-forward layers */
    bool head_norms;    /* queries and keys are normed, head by head or over all of them */
    bool tied_head;     /* the head is the embedding */
    bool sequential;    /* halves of a layer follow each other although the layout is parallel */
    bool raw_scores;    /* of attention: not divided by the root of the head's width */
    bool layer_scores;  /* of attention: those of layer n, from 1 on, are divided by n too */
    double score_scale; /* of attention; 0: one over the root of the head's width */
    double score_cap;   /* c: scores become c * tanh(score / c); 0: they do not */
    double logit_scale; /* 0: 1 */
    double logit_cap;   /* likewise, after it */
    double embedding_scale;    /* 0: 1, or as the layout says */
    enum dtype embedding_type; /* in which the files hold it: the layout's scale is rounded to it */
    double residual_scale;     /* of what a layer adds; 0: 1 */
    uint32_t rotary_width;     /* of a head, the first elements, which turn; 0: all */
    double rotary_base;        /* angles of pair j turn by base^(-2j/d) */
    double rotary_local_base;  /* of local layers, which are not stretched; 0: as the others */
    struct rotary_scaling rotary_scaling;
    uint8_t layer_flags[LAYERS_LISTED_MAX]; /* of the first layers; the others have none */
    double norm_epsilon;
    double dropout;
    struct lora lora;
    const struct calibration *calibration; /* NULL: none */

    /* Classifiers. */
    uint32_t image_height;
    uint32_t image_width;
    uint32_t channels;
    uint32_t classes;

    /* The data. */
    uint64_t data_count; /* tokens, samples, or packed rows */
    bool masked;         /* a mask says which tokens are targets; the loss is their mean */
    /* Rows of `length` tokens with a mask and a reach, each once per epoch, instead of windows at
     * any place of one stream: a token sees the tokens of its own example, and GPT-2's positions
     * count them. The loss is the mean over the targets that the mask counts. */
    bool packed;
    enum dtype reach_dtype;
    /* Above 0: rows 2i and 2i+1 are a chosen and a rejected answer, drawn together, and the loss is
     * that of preference pairs (DPO) of this beta. The reference is the model without adapters, or
     * of weights that are data under the names of the files: lora.find. */
    double preference;
    uint32_t sample_rank; /* of a sample in the data, whose shape the job binds; 0: a row */
    uint64_t sample_dims[TENSOR_RANK_MAX - 1];
    enum dtype data_dtype;

    /*
     * Held-out data: after every so many steps, and after the last, the loss over as many batches
     * as this, without dropout. It is a state ("held_out.loss"), and of classifiers and packed rows
     * the share of right answers too ("held_out.accuracy"). Batches are drawn once for all; those
     * of packed rows are the first ones, in their order, and the figures are over the counted
     * targets.
     */
    struct held_out_options {
        uint32_t batches; /* 0: there is none */
        uint32_t every;   /* steps */
        uint64_t count;   /* tokens, samples, or packed rows */
        enum dtype dtype;
    } held_out;

    /* The update. */
    enum optimizer optimizer;
    enum schedule schedule;
    uint32_t steps; /* rows of the schedule */
    uint32_t warmup;
    double rate;
    double rate_min;
    double momentum;
    double beta1;
    double beta2;
    double epsilon;
    double decay; /* weight decay of matrices; vectors have none */
    double clip;  /* limit of the gradient's norm; 0: none */
    struct recipe recipe;
};

/* The options of a small model that trains in minutes on a CPU. */
void model_options_default(struct model_options *options, enum model_kind kind);

/* Attention of a tape that decodes: `out` is an input, which follows from the other three. */
struct model_attention {
    uint32_t query; /* (1, length, heads * width of a head) */
    uint32_t key;   /* (1, length, kv_heads * width of a head) */
    uint32_t value;
    uint32_t out;
    uint32_t heads;
    uint32_t kv_heads;
    float scale; /* of scores; then they become cap * tanh(score / cap), but with a cap of 0 */
    float cap;
};

struct model_constant {
    uint32_t tensor;
    void *bytes; /* owned by the model */
};

struct model {
    struct model_options options;
    struct tape *tape;
    uint32_t parameter_count;
    uint32_t *parameters; /* state tensors */
    uint32_t frozen_count;
    uint32_t *frozen; /* data tensors: the weights under adapters */
    uint32_t constant_count;
    struct model_constant *constants;
    uint32_t data;            /* tokens or samples; TENSOR_NONE for inference */
    uint32_t labels;          /* of samples, or TENSOR_NONE */
    uint32_t mask;            /* of tokens, or TENSOR_NONE */
    uint32_t reach;           /* of packed rows, or TENSOR_NONE */
    uint32_t held_out;        /* tokens or samples, or TENSOR_NONE */
    uint32_t held_out_labels; /* of samples, or TENSOR_NONE */
    uint32_t held_out_mask;   /* of packed rows, or TENSOR_NONE */
    uint32_t held_out_reach;  /* likewise */
    uint32_t input;           /* inference: the tensor to write, or TENSOR_NONE */
    uint32_t output;          /* inference: the logits, or TENSOR_NONE */
    uint32_t places;          /* of a tape that decodes: where each token stands; or TENSOR_NONE */
    uint32_t attention_count;
    struct model_attention *attentions;
    uint32_t slice_count; /* of a receipt: the logits of its positions, slice by slice */
    uint32_t *slices;
    /* Of a graph: lines "at TENSOR MODULE" and "end TENSOR", by which what is made from that tensor
     * on is of a module of the program, or of none. NULL: nobody says, or they are very many. */
    char *modules;
};

MUST_CHECK enum status model_build(struct model *model, const struct model_options *options,
                                   struct error *error);
void model_release(struct model *model);

/* The family of the layout, or the kind. */
const char *model_name(const struct model_options *options);
const char *model_kind_name(enum model_kind kind);

/* The natural logarithm of a number above 0, the same bits on every machine. */
double model_log(double x);

#endif /* ENGINE_MODELS_MODEL_H */
