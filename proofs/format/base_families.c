/* base_families.c - see base_families.h. */
#include "proofs/format/base_families.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who has which keys: a bit for each family, as far as their keys differ. */
enum {
    GPT2 = 1 << 0,
    LLAMA = 1 << 1,
    MISTRAL = 1 << 2,
    QWEN2 = 1 << 3,
    QWEN3 = 1 << 4,
    GEMMA = 1 << 5,
    GEMMA2 = 1 << 6,
    GEMMA3 = 1 << 7,
    OLMO2 = 1 << 8,
    GRANITE = 1 << 9,
    SMOLLM3 = 1 << 10,
    PHI3 = 1 << 11,
    GLM = 1 << 12, /* and GLM-4 */
    NEOX = 1 << 13,
    STABLELM = 1 << 14,
    STARCODER2 = 1 << 15,
    PHI = 1 << 16,
    OPT = 1 << 17,
    FALCON = 1 << 19,
    SECTIONS = 1 << 18, /* positions of text are the same in all sections of a rotation */
    MIXTRAL = 1 << 20,
    QWEN3_MOE = 1 << 21,
    OLMOE = 1 << 22,
    EXPERTS = MIXTRAL | QWEN3_MOE | OLMOE,
    GEMMAS = GEMMA | GEMMA2 | GEMMA3,
    WHOLE =
        LLAMA | MISTRAL | QWEN2 | QWEN3 | GEMMAS | OLMO2 | GRANITE | SMOLLM3 | STARCODER2 | EXPERTS,
    PARTIAL = PHI3 | GLM | NEOX | STABLELM | PHI, /* a part of each head turns */
    ROTARY = WHOLE | PARTIAL,
    GROUPED = ROTARY & ~NEOX, /* heads share keys */
    LAYER_NORM = NEOX | STABLELM | PHI,
    RMS_NORM = ROTARY & ~(LAYER_NORM | STARCODER2),
    WIDE = ROTARY | OPT | FALCON, /* hidden_size, and not n_embd */
    ANY = GPT2 | WIDE,
};

/* ---- families ----------------------------------------------------------- */

/* The window itself is no operation yet: up to its length the model is the same. */
#define LONGER     "a `--length` above the window of a layer"
#define ALL_BIASES .qkv_bias = true, .out_bias = true, .mlp_bias = true

#define GLM_SIZES                                                                                  \
    .padding = 151330, .keys = GLM, .kv_heads = 2, .positions = 131072, .head_width = 128,         \
    .norm_epsilon = 1.5625e-07, .rotary_base = 1e4, .rotary_share = 0.5,                           \
    .activation = ACTIVATION_SILU, .qkv_bias = true

static const struct family_row rows[] = {
    {
        .title = "GPT-2",
        .model_type = "gpt2",
        .architecture = "GPT2LMHeadModel",
        .without_head = "GPT2Model",
        .keys = GPT2,
        .refused = "cross attention",
        .positions = 1024,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .activation = ACTIVATION_GELU_TANH,
        .tied_head = true,
        ALL_BIASES,
    },
    {
        .title = "Llama 2, Llama 3, SmolLM",
        .model_type = "llama",
        .architecture = "LlamaForCausalLM",
        .without_head = "LlamaModel",
        .keys = LLAMA,
        .positions = 2048,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
    },
    {
        .title = "Mistral",
        .model_type = "mistral",
        .layout = "llama",
        .architecture = "MistralForCausalLM",
        .without_head = "MistralModel",
        .keys = MISTRAL,
        .refused = LONGER,
        .kv_heads = 8,
        .positions = 131072,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
        .window = 4096,
        .sliding = SLIDING_ALL,
    },
    {
        .title = "Qwen2, Qwen2.5",
        .model_type = "qwen2",
        .layout = "llama",
        .architecture = "Qwen2ForCausalLM",
        .without_head = "Qwen2Model",
        .keys = QWEN2,
        .refused = LONGER,
        .kv_heads = 32,
        .positions = 32768,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
        .qkv_bias = true,
        .window = 4096,
        .sliding = SLIDING_BEHIND,
        .window_layer = 28,
    },
    {
        .title = "Qwen3",
        .model_type = "qwen3",
        .layout = "llama",
        .architecture = "Qwen3ForCausalLM",
        .without_head = "Qwen3Model",
        .keys = QWEN3,
        .refused = LONGER,
        .kv_heads = 32,
        .positions = 32768,
        .head_width = 128,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
        .head_norms = true,
        .window = 4096,
        .sliding = SLIDING_BEHIND,
        .window_layer = 28,
    },
    {
        .title = "Qwen3-VL (text)",
        .model_type = "qwen3_vl_text",
        .layout = "llama",
        .architecture = "Qwen3VLTextModel",
        .keys = QWEN3 | SECTIONS,
        .kv_heads = 32,
        .positions = 128000,
        .head_width = 128,
        .norm_epsilon = 1e-6,
        .rotary_base = 5e6,
        .activation = ACTIVATION_SILU,
        .head_norms = true,
    },
    {
        .title = "Gemma 1",
        .model_type = "gemma",
        .padding = 1,
        .architecture = "GemmaForCausalLM",
        .without_head = "GemmaModel",
        .keys = GEMMA,
        .vocabulary = 256000,
        .kv_heads = 16,
        .positions = 8192,
        .head_width = 256,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .activation = ACTIVATION_GELU_TANH,
        .tied_head = true,
    },
    {
        .title = "Gemma 2",
        .model_type = "gemma2",
        .padding = 1,
        .architecture = "Gemma2ForCausalLM",
        .without_head = "Gemma2Model",
        .keys = GEMMA2,
        .refused = LONGER,
        .vocabulary = 256000,
        .heads = 8,
        .kv_heads = 4,
        .positions = 8192,
        .head_width = 256,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .score_scalar = 256.0,
        .score_cap = 50.0,
        .logit_cap = 30.0,
        .activation = ACTIVATION_GELU_TANH,
        .tied_head = true,
        .window = 4096,
        .sliding = SLIDING_PATTERN,
        .pattern = 2,
    },
    {
        .title = "Gemma 3",
        .model_type = "gemma3_text",
        .padding = 1,
        .layout = "gemma2",
        .architecture = "Gemma3ForCausalLM",
        .without_head = "Gemma3TextModel",
        .keys = GEMMA3,
        .refused = LONGER,
        .vocabulary = 262208,
        .heads = 8,
        .kv_heads = 4,
        .positions = 131072,
        .head_width = 256,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e6,
        .rotary_local_base = 1e4,
        .score_scalar = 256.0,
        .activation = ACTIVATION_GELU_TANH,
        .tied_head = true,
        .head_norms = true,
        .window = 4096,
        .sliding = SLIDING_PATTERN,
        .pattern = 6,
    },
    {
        .title = "OLMo 2",
        .model_type = "olmo2",
        .padding = 2,
        .architecture = "Olmo2ForCausalLM",
        .without_head = "Olmo2Model",
        .keys = OLMO2,
        .positions = 2048,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
        .head_norms = true,
    },
    {
        .title = "Granite 3",
        .model_type = "granite",
        .layout = "llama",
        .architecture = "GraniteForCausalLM",
        .without_head = "GraniteModel",
        .keys = GRANITE,
        .positions = 2048,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .score_scale = 1.0,
        .activation = ACTIVATION_SILU,
    },
    {
        .title = "SmolLM3",
        .model_type = "smollm3",
        .padding = 128005,
        .layout = "llama",
        .architecture = "SmolLM3ForCausalLM",
        .without_head = "SmolLM3Model",
        .keys = SMOLLM3,
        .refused = LONGER,
        .kv_heads = 4,
        .positions = 32768,
        .norm_epsilon = 1e-6,
        .rotary_base = 2e6,
        .activation = ACTIVATION_SILU,
        .tied_head = true,
        .sliding = SLIDING_UNTURNED,
        .unturned_interval = 4,
    },
    {
        .title = "Mixtral",
        .model_type = "mixtral",
        .architecture = "MixtralForCausalLM",
        .without_head = "MixtralModel",
        .keys = MIXTRAL,
        .refused = LONGER ", `router_jitter_noise`",
        .kv_heads = 8,
        .positions = 131072,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e6,
        .activation = ACTIVATION_SILU,
        .sliding = SLIDING_ALL,
        .experts = 8,
        .experts_used = 2,
        .balance = 0.001,
    },
    {
        .title = "Qwen3-MoE",
        .model_type = "qwen3_moe",
        .architecture = "Qwen3MoeForCausalLM",
        .without_head = "Qwen3MoeModel",
        .keys = QWEN3_MOE,
        .refused = "layers without experts, `use_sliding_window`",
        .kv_heads = 4,
        .positions = 32768,
        .norm_epsilon = 1e-6,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
        .head_norms = true,
        .experts = 128,
        .experts_used = 8,
        .balance = 0.001,
    },
    {
        .title = "OLMoE",
        .model_type = "olmoe",
        .padding = 2,
        .architecture = "OlmoeForCausalLM",
        .without_head = "OlmoeModel",
        .keys = OLMOE,
        .refused = "`clip_qkv`",
        .positions = 4096,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
        .head_norms = true,
        .experts = 64,
        .experts_used = 8,
        .balance = 0.01,
    },
    {
        .title = "Phi-3, Phi-3.5, Phi-4, Phi-4-mini",
        .model_type = "phi3",
        .padding = 32001,
        .architecture = "Phi3ForCausalLM",
        .without_head = "Phi3Model",
        .keys = PHI3,
        .refused = LONGER,
        .positions = 4096,
        .positions_before = 4096,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .activation = ACTIVATION_SILU,
        .sliding = SLIDING_ALL,
    },
    {
        .title = "GLM-4 (-hf)",
        .model_type = "glm",
        .architecture = "GlmForCausalLM",
        .without_head = "GlmModel",
        GLM_SIZES,
    },
    {
        .title = "GLM-4-0414",
        .model_type = "glm4",
        .architecture = "Glm4ForCausalLM",
        .without_head = "Glm4Model",
        GLM_SIZES,
    },
    {
        .title = "GPT-NeoX, Pythia",
        .model_type = "gpt_neox",
        .architecture = "GPTNeoXForCausalLM",
        .keys = NEOX,
        .refused = "a head that is the embedding",
        .positions = 2048,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .rotary_share = 0.25,
        .activation = ACTIVATION_GELU,
        ALL_BIASES,
    },
    {
        .title = "StableLM",
        .model_type = "stablelm",
        .architecture = "StableLmForCausalLM",
        .without_head = "StableLmModel",
        .keys = STABLELM,
        .refused = "`qk_layernorm`, `use_parallel_residual`",
        .kv_heads = 32,
        .positions = 4096,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .rotary_share = 0.25,
        .activation = ACTIVATION_SILU,
    },
    {
        .title = "StarCoder2",
        .model_type = "starcoder2",
        .architecture = "Starcoder2ForCausalLM",
        .without_head = "Starcoder2Model",
        .keys = STARCODER2,
        .refused = LONGER,
        .kv_heads = 2,
        .positions = 4096,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .activation = ACTIVATION_GELU_TANH,
        .tied_head = true,
        ALL_BIASES,
        .sliding = SLIDING_ALL,
    },
    {
        .title = "Phi-1, Phi-1.5, Phi-2",
        .model_type = "phi",
        .architecture = "PhiForCausalLM",
        .keys = PHI,
        .refused = "`qk_layernorm`, a head that is the embedding",
        .positions = 2048,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .rotary_share = 0.5,
        .activation = ACTIVATION_GELU_TANH,
        ALL_BIASES,
    },
    {
        .title = "OPT",
        .model_type = "opt",
        .padding = 2,
        .architecture = "OPTForCausalLM",
        .without_head = "OPTModel",
        .keys = OPT,
        .refused = "norms behind the layers, another width of the embedding",
        .positions = 2048,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .activation = ACTIVATION_RELU,
        .tied_head = true,
        ALL_BIASES,
    },
    {
        .title = "Falcon 7B",
        .model_type = "falcon",
        .architecture = "FalconForCausalLM",
        .without_head = "FalconModel",
        .keys = FALCON,
        .refused = "`alibi`, `bias`, `new_decoder_architecture`, heads with keys of their own",
        .kv_heads = 1,
        .positions = 2048,
        .norm_epsilon = 1e-5,
        .rotary_base = 1e4,
        .activation = ACTIVATION_GELU,
        .tied_head = true,
    },
};

const struct family_row *family_at(size_t index)
{
    return index < sizeof(rows) / sizeof(rows[0]) ? &rows[index] : NULL;
}

const struct family_row *family_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].model_type, model_type) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* ---- folders of more than text ------------------------------------------- */

static const struct family_wrapper wrappers[] = {
    {"Gemma 3 with pictures", "gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
    {"Mistral Small 3 with pictures", "mistral3", "Mistral3ForConditionalGeneration", "mistral"},
    {"Qwen3-VL", "qwen3_vl", "Qwen3VLForConditionalGeneration", "qwen3_vl_text"},
};

const struct family_wrapper *family_wrapper_at(size_t index)
{
    return index < sizeof(wrappers) / sizeof(wrappers[0]) ? &wrappers[index] : NULL;
}

const struct family_wrapper *family_wrapper_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
        if (strcmp(wrappers[i].model_type, model_type) == 0) {
            return &wrappers[i];
        }
    }
    return NULL;
}

/* ---- keys --------------------------------------------------------------- */

#define OPTION(field)  offsetof(struct reading, config.model.field)
#define CONFIG(field)  offsetof(struct reading, config.field)
#define READING(field) offsetof(struct reading, field)

static const struct key keys[] = {
    {"model_type", ANY, USE_NOTHING, 0, NULL}, /* read first */
    {"architectures", ANY, USE_ARCHITECTURES, 0, NULL},
    {"vocab_size", ANY, USE_NEED, OPTION(vocabulary), NULL},
    /* The others' embeddings know no padding. */
    {"pad_token_id", ANY & ~(GPT2 | NEOX | FALCON), USE_PADDING, 0, NULL},
    {"tie_word_embeddings", ANY & ~(NEOX | PHI), USE_FLAG, OPTION(tied_head), NULL},
    {"tie_word_embeddings", NEOX | PHI, USE_MUST, 0, "false"},
    /* GPT-2 */
    {"n_embd", GPT2, USE_NEED, OPTION(width), NULL},
    {"n_layer", GPT2, USE_NEED, OPTION(layers), NULL},
    {"n_head", GPT2, USE_NEED, OPTION(heads), NULL},
    {"n_positions", GPT2, USE_COUNT, CONFIG(positions), NULL},
    {"n_ctx", GPT2, USE_COUNT, CONFIG(window), NULL}, /* compared, then forgotten */
    {"n_inner", GPT2, USE_COUNT, OPTION(hidden), NULL},
    {"layer_norm_epsilon", GPT2 | FALCON, USE_REAL, OPTION(norm_epsilon), NULL},
    {"activation_function", GPT2, USE_ACTIVATION, 0, NULL},
    {"scale_attn_weights", GPT2, USE_NO_FLAG, OPTION(raw_scores), NULL},
    {"scale_attn_by_inverse_layer_idx", GPT2, USE_FLAG, OPTION(layer_scores), NULL},
    {"reorder_and_upcast_attn", GPT2, USE_NOTHING, 0, NULL}, /* how, not what */
    {"attn_pdrop", GPT2, USE_DROPOUT, 0, NULL},
    {"embd_pdrop", GPT2, USE_DROPOUT, 0, NULL},
    {"resid_pdrop", GPT2, USE_DROPOUT, 0, NULL},
    {"summary_first_dropout", GPT2, USE_NOTHING, 0, NULL}, /* of classifiers */
    {"summary_activation", GPT2, USE_NOTHING, 0, NULL},
    {"summary_proj_to_labels", GPT2, USE_NOTHING, 0, NULL},
    {"summary_type", GPT2, USE_NOTHING, 0, NULL},
    {"summary_use_proj", GPT2, USE_NOTHING, 0, NULL},
    /* the others: sizes */
    {"hidden_size", WIDE, USE_NEED, OPTION(width), NULL},
    {"intermediate_size", QWEN3_MOE, USE_NOTHING, 0, NULL}, /* of layers without experts */
    {"moe_intermediate_size", QWEN3_MOE, USE_NEED, OPTION(hidden), NULL},
    {"intermediate_size", ROTARY & ~QWEN3_MOE, USE_NEED, OPTION(hidden), NULL},
    {"ffn_dim", OPT, USE_NEED, OPTION(hidden), NULL},
    {"ffn_hidden_size", FALCON, USE_COUNT, OPTION(hidden), NULL},
    {"word_embed_proj_dim", OPT, USE_COUNT, READING(width_too), NULL},
    {"num_hidden_layers", WIDE, USE_NEED, OPTION(layers), NULL},
    {"num_attention_heads", WIDE, USE_NEED, OPTION(heads), NULL},
    {"num_key_value_heads", GROUPED, USE_COUNT, OPTION(kv_heads), NULL},
    {"head_dim", WHOLE | PHI3 | GLM, USE_COUNT, OPTION(head_width), NULL},
    {"max_position_embeddings", WIDE, USE_COUNT, CONFIG(positions), NULL},
    /* experts */
    {"num_local_experts", MIXTRAL, USE_NEED, OPTION(experts), NULL},
    {"num_experts", QWEN3_MOE | OLMOE, USE_NEED, OPTION(experts), NULL},
    {"num_experts_per_tok", EXPERTS, USE_NEED, OPTION(experts_used), NULL},
    {"norm_topk_prob", QWEN3_MOE | OLMOE, USE_FLAG, OPTION(experts_renormed), NULL},
    {"output_router_logits", EXPERTS, USE_FLAG, READING(balances), NULL},
    {"router_aux_loss_coef", EXPERTS, USE_FACTOR, READING(balance), NULL},
    {"router_jitter_noise", MIXTRAL, USE_MUST, 0, "0.0"},
    {"decoder_sparse_step", QWEN3_MOE, USE_MUST, 0, "1"},
    {"mlp_only_layers", QWEN3_MOE, USE_MUST, 0, "[]"},
    {"clip_qkv", OLMOE, USE_MUST, 0, "null"},
    /* norms */
    {"rms_norm_eps", RMS_NORM, USE_REAL, OPTION(norm_epsilon), NULL},
    {"layer_norm_eps", LAYER_NORM, USE_REAL, OPTION(norm_epsilon), NULL},
    {"norm_epsilon", STARCODER2, USE_REAL, OPTION(norm_epsilon), NULL},
    {"norm_type", STARCODER2, USE_MUST, 0, "\"layer_norm\""},
    {"qk_layernorm", STABLELM | PHI, USE_MUST, 0, "false"},
    {"do_layer_norm_before", OPT, USE_MUST, 0, "true"},
    {"_remove_final_layer_norm", OPT, USE_MUST, 0, "false"},
    {"layer_norm_elementwise_affine", OPT, USE_MUST, 0, "true"},
    /* rotations */
    {"rope_theta", ROTARY | FALCON, USE_REAL, OPTION(rotary_base), NULL},
    {"rotary_emb_base", NEOX, USE_REAL, OPTION(rotary_base), NULL},
    {"rope_local_base_freq", GEMMA3, USE_REAL, OPTION(rotary_local_base), NULL},
    {"rope_scaling", ROTARY | FALCON, USE_ROTATION, 0, NULL},
    {"rope_parameters", ROTARY | FALCON, USE_ROTATION, 0, NULL},
    {"original_max_position_embeddings", PHI3, USE_COUNT, READING(positions_before), NULL},
    {"rope_interleaved", ROTARY, USE_MUST, 0, "false"},
    {"partial_rotary_factor", PARTIAL, USE_REAL, READING(rotary_share), NULL},
    {"partial_rotary_factor", WHOLE, USE_MUST, 0, "1.0"},
    {"rotary_pct", NEOX, USE_REAL, READING(rotary_share), NULL},
    {"use_mrope", ROTARY, USE_MUST, 0, "false"},
    {"mrope_section", SECTIONS, USE_NOTHING, 0, NULL},
    {"mrope_interleaved", SECTIONS, USE_NOTHING, 0, NULL},
    {"no_rope_layers", SMOLLM3, USE_TURNED_LAYERS, 0, NULL},
    {"no_rope_layer_interval", SMOLLM3, USE_COUNT, READING(unturned_interval), NULL},
    /* what is scaled */
    {"query_pre_attn_scalar", GEMMA2 | GEMMA3, USE_REAL, READING(score_scalar), NULL},
    {"attention_multiplier", GRANITE, USE_REAL, OPTION(score_scale), NULL},
    {"embedding_multiplier", GRANITE, USE_REAL, OPTION(embedding_scale), NULL},
    {"residual_multiplier", GRANITE, USE_REAL, OPTION(residual_scale), NULL},
    {"logits_scaling", GRANITE, USE_REAL, READING(logit_divisor), NULL},
    {"attn_logit_softcapping", GEMMA2 | GEMMA3, USE_REAL_OR_NONE, OPTION(score_cap), NULL},
    {"final_logit_softcapping", GEMMA2 | GEMMA3, USE_REAL_OR_NONE, OPTION(logit_cap), NULL},
    /* layers */
    {"hidden_act", ROTARY & ~GEMMAS, USE_ACTIVATION, 0, NULL},
    {"hidden_activation", GEMMAS, USE_ACTIVATION_OR_NONE, 0, NULL},
    {"hidden_act", GEMMAS, USE_GELU, 0, NULL},
    {"activation_function", OPT, USE_ACTIVATION, 0, NULL},
    {"mlp_type", STARCODER2, USE_MUST, 0, "\"default\""},
    {"use_parallel_residual", NEOX, USE_NO_FLAG, OPTION(sequential), NULL},
    {"use_parallel_residual", STABLELM, USE_MUST, 0, "false"},
    {"attention_bias",
     LLAMA | QWEN3 | GEMMAS | OLMO2 | GRANITE | SMOLLM3 | NEOX | QWEN3_MOE | OLMOE, USE_BIASES, 0,
     NULL},
    {"attention_bias", GLM, USE_FLAG, OPTION(qkv_bias), NULL},
    {"attention_bias", MISTRAL | PHI3 | MIXTRAL, USE_MUST, 0, "false"},
    {"attention_bias", QWEN2, USE_NOTHING, 0, NULL}, /* biases are where this family has them */
    {"qkv_bias", QWEN2, USE_MUST, 0, "true"},
    {"use_qkv_bias", STABLELM, USE_FLAG, OPTION(qkv_bias), NULL},
    {"use_bias", STARCODER2, USE_BIASES, 0, "with those of mlp"},
    {"enable_bias", OPT, USE_MUST, 0, "true"},
    {"activation", FALCON, USE_ACTIVATION, 0, NULL},
    {"multi_query", FALCON, USE_MUST, 0, "true"},
    {"parallel_attn", FALCON, USE_MUST, 0, "true"},
    {"bias", FALCON, USE_MUST, 0, "false"},
    {"alibi", FALCON, USE_MUST, 0, "false"},
    {"new_decoder_architecture", FALCON, USE_MUST, 0, "false"},
    {"apply_residual_connection_post_layernorm", FALCON, USE_MUST, 0, "false"},
    {"num_ln_in_parallel_attn", FALCON, USE_MUST, 0, "null"},
    {"num_kv_heads", FALCON, USE_NOTHING, 0, NULL}, /* of the other architecture */
    {"mlp_bias", LLAMA | GRANITE | SMOLLM3, USE_FLAG, OPTION(mlp_bias), NULL},
    {"mlp_bias", MISTRAL | QWEN2 | QWEN3 | PHI3 | EXPERTS, USE_MUST, 0, "false"},
    {"lm_head_bias", PHI3, USE_MUST, 0, "false"},
    {"use_bidirectional_attention", GEMMAS, USE_MUST, 0, "false"},
    {"full_attn_mod", PHI3, USE_MUST, 0, "1"},
    {"interpolate_factor", PHI3, USE_MUST, 0, "1"},
    {"auto_map", PHI3 | FALCON, USE_NOTHING, 0, NULL}, /* its own copy of the family's program */
    /* dropout */
    {"attention_dropout", WIDE, USE_DROPOUT, 0, NULL},
    {"hidden_dropout", NEOX | STABLELM | FALCON, USE_DROPOUT, 0, NULL},
    {"embd_pdrop", PHI3 | PHI, USE_DROPOUT, 0, NULL},
    {"resid_pdrop", PHI3 | PHI, USE_DROPOUT, 0, NULL},
    {"embedding_dropout", STARCODER2, USE_DROPOUT, 0, NULL},
    {"residual_dropout", STARCODER2, USE_DROPOUT, 0, NULL},
    {"dropout", OPT, USE_DROPOUT, 0, NULL},
    {"activation_dropout", OPT, USE_DROPOUT, 0, NULL},
    {"layerdrop", OPT, USE_DROPOUT, 0, NULL},
    {"classifier_dropout", NEOX, USE_NOTHING, 0, NULL},
    {"init_std", OPT, USE_NOTHING, 0, NULL},
    /* windows */
    {"sliding_window",
     MISTRAL | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | SMOLLM3 | PHI3 | STARCODER2 | MIXTRAL, USE_COUNT,
     CONFIG(window), NULL},
    {"sliding_window", QWEN3_MOE, USE_NOTHING, 0, NULL}, /* not used without use_sliding_window */
    {"use_sliding_window", QWEN3_MOE, USE_MUST, 0, "false"},
    {"max_window_layers", QWEN3_MOE, USE_NOTHING, 0, NULL},
    {"sliding_window", LLAMA, USE_MUST, 0, "null"},
    {"use_sliding_window", QWEN2 | QWEN3 | SMOLLM3, USE_FLAG, READING(uses_window), NULL},
    {"use_sliding_window", LLAMA | MISTRAL, USE_MUST, 0, "false"},
    {"sliding_window_pattern", GEMMA2 | GEMMA3, USE_NEED, READING(pattern), NULL},
    {"_sliding_window_pattern", GEMMA2 | GEMMA3, USE_NEED, READING(pattern), NULL},
    {"cache_implementation", GEMMAS, USE_NOTHING, 0, NULL}, /* how text is drawn */
    {"max_window_layers", QWEN2 | QWEN3, USE_LAYER, READING(window_layer), NULL},
    {"max_window_layers", LLAMA | MISTRAL | SMOLLM3, USE_NOTHING, 0, NULL}, /* of no such family */
    {"layer_types", ROTARY, USE_LAYER_TYPES, 0, NULL},
    {"pretraining_tp", ROTARY, USE_NOTHING, 0, NULL}, /* in which pieces products are made */
    {"is_llama_config", LLAMA, USE_MUST, 0, "true"},
    /* other shapes of a model */
    {"add_cross_attention", ANY, USE_MUST, 0, "false"},
    {"cross_attention_hidden_size", ANY, USE_MUST, 0, "null"},
    {"is_encoder_decoder", ANY, USE_MUST, 0, "false"},
    {"tie_encoder_decoder", ANY, USE_MUST, 0, "false"},
    {"pruned_heads", ANY, USE_MUST, 0, "{}"},
    {"quantization_config", ANY, USE_MUST, 0, "null"},
};

/* Keys of every family that say nothing about what is computed: whose file it is, in which types it
 * was made, and how text is drawn from the model. */
/* clang-format off */
static const char *const harmless[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash",
    "_flash_attn_2_enabled", "_name_or_path", "_num_labels", "attn_implementation",
    "bad_words_ids", "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward",
    "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype", "early_stopping",
    "encoder_no_repeat_ngram_size", "eos_token_id", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing",
    "id2label", "initializer_range", "is_decoder", "keys_to_ignore_at_inference", "label2id",
    "length_penalty", "max_length", "max_sequence_length", "min_length", "n_special",
    "neftune_noise_alpha", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_past",
    "output_scores", "pad_token_id", "predict_special_tokens", "prefix", "problem_type",
    "remove_invalid_values", "repetition_penalty", "return_dict", "return_dict_in_generate",
    "sep_token_id", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
    "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript", "transformers.js_config",
    "transformers_version", "typical_p", "unk_token_id", "unsloth_fixed", "unsloth_version",
    "use_bfloat16", "use_cache"
};
/* clang-format on */

/* Of folders of more than text: what pictures are made of, and which tokens stand for them. */
static const char *const beside[] = {
    "boi_token_index",      "eoi_token_index",       "image_token_id",
    "image_token_index",    "mm_tokens_per_image",   "multimodal_projector_bias",
    "projector_hidden_act", "spatial_merge_size",    "text_config",
    "video_token_id",       "vision_config",         "vision_end_token_id",
    "vision_feature_layer", "vision_start_token_id",
};

const struct key *family_key(uint32_t families, const char *name)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if ((keys[i].families & families) != 0 && strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

const struct key *family_key_at(size_t index)
{
    return index < sizeof(keys) / sizeof(keys[0]) ? &keys[index] : NULL;
}

static bool is_in(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool family_key_is_harmless(const char *name)
{
    return is_in(harmless, sizeof(harmless) / sizeof(harmless[0]), name);
}

bool family_key_is_beside(const char *name)
{
    return is_in(beside, sizeof(beside) / sizeof(beside[0]), name);
}

/* ---- values ------------------------------------------------------------- */

/* The value as JSON, cut where it is long. */
static void value_text(char text[VALUE_TEXT_MAX], const json_t *value)
{
    char *whole = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    int size = snprintf(text, VALUE_TEXT_MAX, "%s", whole == NULL ? "?" : whole);

    if (size >= VALUE_TEXT_MAX) {
        memcpy(text + VALUE_TEXT_MAX - 4, "...", 4);
    }
    free(whole);
}

enum status config_refuse(struct error *error, const char *name, const json_t *value,
                          const char *why, const char *advice)
{
    char text[VALUE_TEXT_MAX];
    char plain[VALUE_TEXT_MAX]; /* a name reaches terminals */
    enum status status;
    size_t i = 0;

    for (; name[i] != '\0' && i < sizeof(plain) - 1; i++) {
        plain[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '?';
    }
    plain[i] = '\0';
    value_text(text, value);
    status = error_set(error, STATUS_REFUSED, "'%s' is %s; %s", plain, text, why);
    if (advice != NULL) {
        error_advise(error, "%s", advice);
    }
    return status;
}

enum status config_count(uint32_t *count, const char *name, const json_t *value,
                         struct error *error)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > COUNT_MAX) {
        return config_refuse(error, name, value, "it must be a whole number from 1 to 100000000",
                             NULL);
    }
    *count = (uint32_t)json_integer_value(value);
    return STATUS_OK;
}

enum status config_real(double *real, const char *name, const json_t *value, struct error *error)
{
    if (!json_is_number(value) || !(json_number_value(value) > 0.0)) {
        return config_refuse(error, name, value, "it must be a number above 0", NULL);
    }
    *real = json_number_value(value);
    return STATUS_OK;
}

enum status config_must(const char *name, const char *must, const json_t *value,
                        struct error *error)
{
    char text[VALUE_TEXT_MAX];
    char why[VALUE_TEXT_MAX];

    value_text(text, value);
    if (strcmp(text, must) == 0 || json_is_null(value) ||
        (json_is_integer(value) && strcmp(must, "1.0") == 0 && strcmp(text, "1") == 0)) {
        return STATUS_OK;
    }
    (void)snprintf(why, sizeof(why), "we compute only models where it is %s", must);
    return config_refuse(error, name, value, why,
                         strcmp(name, "quantization_config") == 0
                             ? "take the folder of the weights before they were quantized"
                             : NULL);
}
