/* layouts.c - see layouts.h. */
#include "engine/models/layouts.h"

#include <stddef.h>
#include <string.h>

/* The names of Llama, which most families kept. */
#define NAMES_EMBEDDING                                                                            \
    .embedding = "model.embed_tokens", .layer = "model.layers.%u", .last_norm = "model.norm",      \
    .head = "lm_head"
#define NAMES_ATTENTION                                                                            \
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",           \
    .query_norm = "self_attn.q_norm", .key_norm = "self_attn.k_norm", .out = "self_attn.o_proj",   \
    .targets = "q_proj,v_proj"
#define NAMES_GATED .gate = "mlp.gate_proj", .up = "mlp.up_proj", .down = "mlp.down_proj"
#define NAMES_EXPERTS                                                                              \
    .router = "mlp.gate", .experts = "mlp.experts.%u", .gate = "gate_proj", .up = "up_proj",       \
    .down = "down_proj"
#define NAMES_NORMS .norm = "input_layernorm", .second_norm = "post_attention_layernorm"

static const struct layout layouts[] = {
    {
        .family = "gpt2",
        .embedding = "wte",
        .positions = "wpe",
        .layer = "h.%u",
        .norm = "ln_1",
        .joined = "attn.c_attn",
        .out = "attn.c_proj",
        .second_norm = "ln_2",
        .up = "mlp.c_fc",
        .down = "mlp.c_proj",
        .last_norm = "ln_f",
        .head = "lm_head",
        .targets = "c_attn",
        .in_first = true,
        .centred = true,
    },
    {.family = "llama", NAMES_EMBEDDING, NAMES_ATTENTION, NAMES_GATED, NAMES_NORMS},
    {
        .family = "gemma",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_GATED,
        NAMES_NORMS,
        .gain_above_one = true,
        .root_of_width = true,
    },
    {
        /* and Gemma 3, whose queries and keys are normed by a choice */
        .family = "gemma2",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_GATED,
        .norm = "input_layernorm",
        .after_attention = "post_attention_layernorm",
        .second_norm = "pre_feedforward_layernorm",
        .after_feed_forward = "post_feedforward_layernorm",
        .gain_above_one = true,
        .root_of_width = true,
    },
    {
        .family = "olmo2",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_GATED,
        .after_attention = "post_attention_layernorm",
        .after_feed_forward = "post_feedforward_layernorm",
        .wide_norms = true,
    },
    {
        .family = "mixtral",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_NORMS,
        .router = "block_sparse_moe.gate",
        .experts = "block_sparse_moe.experts.%u",
        .router_order = ROUTER_CHOICE_FIRST,
        .gate = "w1",
        .up = "w3",
        .down = "w2",
    },
    {
        .family = "qwen3_moe",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_NORMS,
        NAMES_EXPERTS,
    },
    {
        .family = "olmoe",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_NORMS,
        NAMES_EXPERTS,
        .wide_norms = true,
    },
    {
        .family = "phi3",
        NAMES_EMBEDDING,
        NAMES_NORMS,
        .joined = "self_attn.qkv_proj",
        .out = "self_attn.o_proj",
        .gate_up = "mlp.gate_up_proj",
        .down = "mlp.down_proj",
        .targets = "qkv_proj",
    },
    {
        .family = "glm",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_NORMS,
        .gate_up = "mlp.gate_up_proj",
        .down = "mlp.down_proj",
        .neighbours = true,
    },
    {
        .family = "glm4",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_NORMS,
        .after_attention = "post_self_attn_layernorm",
        .gate_up = "mlp.gate_up_proj",
        .down = "mlp.down_proj",
        .after_feed_forward = "post_mlp_layernorm",
        .neighbours = true,
    },
    {
        .family = "gpt_neox",
        .embedding = "gpt_neox.embed_in",
        .layer = "gpt_neox.layers.%u",
        NAMES_NORMS,
        .joined = "attention.query_key_value",
        .order = JOINED_HEADS,
        .out = "attention.dense",
        .up = "mlp.dense_h_to_4h",
        .down = "mlp.dense_4h_to_h",
        .last_norm = "gpt_neox.final_layer_norm",
        .head = "embed_out",
        .targets = "query_key_value",
        .centred = true,
        .parallel = true,
    },
    {
        .family = "stablelm",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_GATED,
        NAMES_NORMS,
        .centred = true,
    },
    {
        .family = "starcoder2",
        NAMES_EMBEDDING,
        NAMES_ATTENTION,
        NAMES_NORMS,
        .up = "mlp.c_fc",
        .down = "mlp.c_proj",
        .centred = true,
    },
    {
        .family = "phi",
        .embedding = "model.embed_tokens",
        .layer = "model.layers.%u",
        .norm = "input_layernorm",
        .query = "self_attn.q_proj",
        .key = "self_attn.k_proj",
        .value = "self_attn.v_proj",
        .out = "self_attn.dense",
        .up = "mlp.fc1",
        .down = "mlp.fc2",
        .last_norm = "model.final_layernorm",
        .head = "lm_head",
        .targets = "q_proj,v_proj",
        .centred = true,
        .parallel = true,
        .head_bias = true,
    },
    {
        .family = "opt",
        .embedding = "model.decoder.embed_tokens",
        .positions = "model.decoder.embed_positions",
        .positions_first = 2,
        .layer = "model.decoder.layers.%u",
        .norm = "self_attn_layer_norm",
        .query = "self_attn.q_proj",
        .key = "self_attn.k_proj",
        .value = "self_attn.v_proj",
        .out = "self_attn.out_proj",
        .second_norm = "final_layer_norm",
        .up = "fc1",
        .down = "fc2",
        .last_norm = "model.decoder.final_layer_norm",
        .head = "lm_head",
        .targets = "q_proj,v_proj",
        .centred = true,
    },
    {
        .family = "falcon",
        .embedding = "word_embeddings",
        .layer = "h.%u",
        .norm = "input_layernorm",
        .joined = "self_attention.query_key_value",
        .out = "self_attention.dense",
        .up = "mlp.dense_h_to_4h",
        .down = "mlp.dense_4h_to_h",
        .last_norm = "ln_f",
        .head = "lm_head",
        .targets = "query_key_value",
        .centred = true,
        .parallel = true,
    },
};

const struct layout *layout_find(const char *family)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (strcmp(layouts[i].family, family) == 0) {
            return &layouts[i];
        }
    }
    return NULL;
}
