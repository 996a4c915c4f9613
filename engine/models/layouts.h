/*
 * layouts.h - the table of decoders: how each published family lays out a layer and what it calls
 * its tensors. A family is a row here and one in proofs/format/base_families.c, which reads its
 * config; what a config chooses is an option (model.h). Inside engine/models/ a row is read by the
 * composer alone (decoder.c).
 */
#ifndef ENGINE_MODELS_LAYOUTS_H
#define ENGINE_MODELS_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

/* Queries, keys and values of one matrix. */
enum joined_order {
    JOINED_PARTS = 0, /* all queries, then all keys, then all values */
    JOINED_HEADS,     /* those of the first head, then those of the second ... */
};

/* How a router weighs the experts that a token goes to. */
enum router_order {
    ROUTER_SOFTMAX_FIRST = 0, /* softmax over all experts, then the largest; renormed or not */
    ROUTER_CHOICE_FIRST,      /* the largest, then softmax over them */
};

/* Names are without ".weight" and ".bias"; NULL: the family has no such tensor. */
struct layout {
    const char *family; /* model_type of its config */
    const char *embedding;
    const char *positions;    /* a learned table; NULL: positions turn queries and keys */
    uint32_t positions_first; /* the row of the first token */
    const char *layer;        /* the scope of layer %u */
    const char *norm;         /* before the attention */
    const char *joined;       /* query, key and value in one matrix; NULL: three */
    enum joined_order order;
    const char *query;
    const char *key;
    const char *value;
    const char *query_norm;
    const char *key_norm;
    const char *out;
    const char *after_attention; /* a norm of what attention adds */
    const char *second_norm;     /* before the feed-forward layers */
    const char *gate;            /* NULL: no gate, or a joined one */
    const char *gate_up;         /* the gate and then the layer up in one matrix */
    const char *up;
    const char *down;
    const char *router;  /* of a mixture of experts, whose layers are gate, up and down */
    const char *experts; /* the scope of expert %u */
    enum router_order router_order;
    const char *after_feed_forward; /* a norm of what the feed-forward layers add */
    const char *last_norm;
    const char *head;
    const char *targets; /* layers that get adapters where nobody says, as PEFT has them */
    bool in_first;       /* matrices are (in, out) */
    bool centred;        /* layer norms; else RMS norms */
    bool gain_above_one; /* a gain is 1 + w */
    bool wide_norms;     /* queries and keys are normed over all heads together */
    bool parallel;       /* both halves of a layer read x, and both are added to it */
    bool neighbours;     /* a rotation turns pairs of neighbours; else halves of a head */
    bool root_of_width;  /* the embedding counts the root of the width times */
    bool head_bias;
};

/* The layout of that model_type, or NULL. */
const struct layout *layout_find(const char *family);

#endif /* ENGINE_MODELS_LAYOUTS_H */
