/*
 * base_families.h - the families of published decoders: one row each, and which keys of config.json
 * say what of them. For base_config.c and for the table in docs/FINETUNE.md.
 *
 * What a row says is what the program that published the family takes where a config says nothing.
 * How a family lays out its tensors is a row of engine/models/layouts.c, of the same model_type.
 */
#ifndef PROOFS_FORMAT_BASE_FAMILIES_H
#define PROOFS_FORMAT_BASE_FAMILIES_H

#include <jansson.h>

#include "engine/models/model.h"

enum {
    VALUE_TEXT_MAX = 80,   /* a value in an error is cut here */
    COUNT_MAX = 100000000, /* of anything that a config counts */
};

struct family_row {
    const char *title; /* as people call its models */
    const char *model_type;
    const char *layout; /* NULL: model_type */
    const char *architecture;
    const char *without_head; /* the same, saved without its head: the embedding is the head */
    uint32_t keys;            /* whose keys it has */
    const char *refused;      /* for people; NULL: nothing of its own */
    uint32_t padding;         /* 1 + the token of padding; 0: there is none */
    uint32_t vocabulary;      /* 0, of any number: the config must say it, or another rule does */
    uint32_t heads;
    uint32_t kv_heads; /* 0: as many as heads */
    uint32_t positions;
    uint32_t positions_before; /* that longrope was stretched from, where the config is silent */
    uint32_t head_width;       /* 0: width / heads */
    double norm_epsilon;
    double rotary_base;
    double rotary_local_base;
    double rotary_share; /* of a head, that turns; 0: all */
    double score_scalar; /* scores are divided by its root; 0: by that of the head's width */
    double score_scale;  /* or they count so many times */
    double score_cap;
    double logit_cap;
    enum activation activation;
    bool tied_head;
    bool qkv_bias;
    bool out_bias;
    bool mlp_bias;
    bool head_norms;
    uint32_t experts;
    uint32_t experts_used;
    double balance; /* with output_router_logits */
    uint32_t window;
    enum sliding {
        SLIDING_NONE = 0,
        SLIDING_ALL,            /* every layer has the window */
        SLIDING_BEHIND,         /* from max_window_layers on, with use_sliding_window */
        SLIDING_PATTERN,        /* all but every so many */
        SLIDING_UNTURNED,       /* those without rotation, with use_sliding_window */
    } sliding;                  /* where layer_types does not say */
    uint32_t window_layer;      /* max_window_layers */
    uint32_t pattern;           /* every so many layers one sees all; 0: there is no such rule */
    uint32_t unturned_interval; /* every so many layers one has no rotation; 0: none has */
};

/* Row number `index`, or NULL behind the last. */
const struct family_row *family_at(size_t index);
/* The row of a model_type, or NULL. */
const struct family_row *family_find(const char *model_type);

/* A folder of more than text: its text part is a model of another family. */
struct family_wrapper {
    const char *title;
    const char *model_type;
    const char *architecture;
    const char *text; /* model_type of the part */
};
const struct family_wrapper *family_wrapper_at(size_t index);
const struct family_wrapper *family_wrapper_find(const char *model_type);

/* What a config says. */
struct base_config {
    /* The defaults of the kind, with what the config says of the decoder. */
    struct model_options model;
    uint32_t window;    /* a token sees so many, itself included; 0: all before it */
    uint32_t positions; /* the longest sequence */
    bool text_part;     /* the folder holds more than this model */
};

/* ---- a config while it is read ------------------------------------------- */

struct reading {
    struct base_config config;
    const struct family_row *row;
    const json_t *root;
    bool uses_window;      /* use_sliding_window */
    uint32_t window_layer; /* max_window_layers: the first that has the window */
    bool dynamic;          /* a rotation that changes beyond the positions alone */
    double rotary_base;    /* rope_theta in the description of the rotation; 0: not there */
    bool slides;           /* a layer of layer_types does */
    uint32_t typed;        /* layers in layer_types; 0: it is not there */
    uint32_t turning;      /* layers in no_rope_layers; likewise */
    bool scaled;           /* the rotation was described once */
    double amplitude;      /* attention_factor; 0: not there */
    double rotary_share;
    double score_scalar;
    double logit_divisor;
    uint32_t pattern;
    uint32_t unturned_interval;
    uint32_t positions_before; /* original_max_position_embeddings */
    bool balances;             /* output_router_logits: the balance of experts counts in the loss */
    double balance;            /* router_aux_loss_coef */
    uint32_t width_too;        /* word_embed_proj_dim */
    const json_t *padding;     /* pad_token_id; NULL: not there */
};

enum use {
    USE_NOTHING, /* says nothing about what is computed */
    USE_MUST,    /* must have the value `must`, as JSON */
    USE_COUNT,   /* a whole number from 1; null: as if it were absent */
    USE_NEED,    /* the same, and the row or the config must have it */
    USE_REAL,
    USE_REAL_OR_NONE, /* the same; null: 0 */
    USE_FACTOR,       /* a number from 0 */
    USE_FLAG,
    USE_NO_FLAG, /* the other way round */
    USE_BIASES,  /* a flag of several layers */
    USE_LAYER,   /* a whole number from 0 */
    USE_DROPOUT, /* of a training: the job's own options decide */
    USE_ACTIVATION,
    USE_ACTIVATION_OR_NONE, /* the same; null: as if it were absent */
    USE_GELU,               /* whichever is named, the tanh form is meant */
    USE_ROTATION,
    USE_LAYER_TYPES,
    USE_TURNED_LAYERS, /* 1 or 0 for each layer */
    USE_ARCHITECTURES,
    USE_PADDING, /* a token, from behind where it is below 0; null: none */
};

struct key {
    const char *name;
    uint32_t families;
    enum use use;
    size_t at; /* of the number in struct reading */
    const char *must;
};

/* The key as the families have it, or NULL. */
const struct key *family_key(uint32_t families, const char *name);
/* Key number `index` of the table, or NULL behind the last. */
const struct key *family_key_at(size_t index);
/* A key of every family that says nothing about what is computed. */
bool family_key_is_harmless(const char *name);
/* A key of a folder of more than text that says nothing of its text. */
bool family_key_is_beside(const char *name);

/* ---- values ----------------------------------------------------------- */

/* A value that is refused: by name and value, and why. advice may be NULL. */
enum status config_refuse(struct error *error, const char *name, const json_t *value,
                          const char *why, const char *advice);
enum status config_count(uint32_t *count, const char *name, const json_t *value,
                         struct error *error);
enum status config_real(double *real, const char *name, const json_t *value, struct error *error);
enum status config_must(const char *name, const char *must, const json_t *value,
                        struct error *error);

#endif /* PROOFS_FORMAT_BASE_FAMILIES_H */
