/* base_config.c - see base_config.h. */
#include "proofs/format/base_config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"

enum {
    CONFIG_DEPTH_MAX = 8,
    VALUE_TEXT_MAX = 80,
    COUNT_MAX = 100000000, /* of anything that a config counts */
};

/* ---- families ----------------------------------------------------------- */

enum family {
    GPT2 = 1,
    LLAMA = 2,
    MISTRAL = 4,
    QWEN2 = 8,
    QWEN3 = 16,
    ROTARY = LLAMA | MISTRAL | QWEN2 | QWEN3,
    ANY = GPT2 | ROTARY,
};

/* What the programs that published a family take where its config says nothing. */
static const struct family_row {
    const char *model_type;
    const char *architecture;
    const char *without_head; /* the same, saved without its head: the embedding is the head */
    enum family family;
    uint32_t kv_heads; /* 0: as many as heads */
    uint32_t positions;
    uint32_t head_width; /* 0: width / heads */
    double norm_epsilon;
    bool qkv_bias;
    bool head_norms;
    uint32_t window;
} families[] = {
    {"gpt2", "GPT2LMHeadModel", "GPT2Model", GPT2, 0, 1024, 0, 1e-5, true, false, 0},
    {"llama", "LlamaForCausalLM", "LlamaModel", LLAMA, 0, 2048, 0, 1e-6, false, false, 0},
    {"mistral", "MistralForCausalLM", "MistralModel", MISTRAL, 8, 131072, 0, 1e-6, false, false,
     4096},
    {"qwen2", "Qwen2ForCausalLM", "Qwen2Model", QWEN2, 32, 32768, 0, 1e-6, true, false, 4096},
    {"qwen3", "Qwen3ForCausalLM", "Qwen3Model", QWEN3, 32, 32768, 128, 1e-6, false, true, 4096},
};

/* ---- keys --------------------------------------------------------------- */

/* A config while it is read. */
struct reading {
    struct base_config *config;
    const struct family_row *row;
    bool uses_window;      /* use_sliding_window */
    uint64_t window_layer; /* max_window_layers: the first that has the window */
    bool dynamic;          /* a rotation that changes beyond the positions alone */
    double rotary_base;    /* rope_theta in the description of the rotation; 0: not there */
    bool slides;           /* a layer of layer_types does */
    bool typed;            /* layer_types is there */
    bool scaled;           /* the rotation was described once */
    const json_t *root;
};

enum use {
    USE_NOTHING, /* says nothing about what is computed */
    USE_MUST,    /* must have the value `must`, as JSON */
    USE_COUNT,   /* a whole number from 1; null: as if it were absent */
    USE_NEED,    /* the same, and it must be there */
    USE_REAL,
    USE_FLAG,
    USE_NO_FLAG, /* the other way round */
    USE_LAYER,   /* a whole number from 0: max_window_layers */
    USE_DROPOUT, /* of a training: the job's own options decide */
    USE_ACTIVATION,
    USE_ROTATION,
    USE_LAYER_TYPES,
    USE_ARCHITECTURES,
};

struct key {
    const char *name;
    uint32_t families;
    enum use use;
    size_t at; /* of the number in struct base_config, or of the flag in struct reading */
    const char *must;
};

#define OPTION(field) offsetof(struct base_config, model.field)
#define CONFIG(field) offsetof(struct base_config, field)

static const struct key keys[] = {
    {"model_type", ANY, USE_NOTHING, 0, NULL}, /* read first */
    {"architectures", ANY, USE_ARCHITECTURES, 0, NULL},
    {"vocab_size", ANY, USE_NEED, OPTION(vocabulary), NULL},
    {"tie_word_embeddings", ANY, USE_FLAG, OPTION(tied_head), NULL},
    /* GPT-2 */
    {"n_embd", GPT2, USE_NEED, OPTION(width), NULL},
    {"n_layer", GPT2, USE_NEED, OPTION(layers), NULL},
    {"n_head", GPT2, USE_NEED, OPTION(heads), NULL},
    {"n_positions", GPT2, USE_COUNT, CONFIG(positions), NULL},
    {"n_ctx", GPT2, USE_COUNT, CONFIG(window), NULL}, /* compared, then forgotten */
    {"n_inner", GPT2, USE_COUNT, OPTION(hidden), NULL},
    {"layer_norm_epsilon", GPT2, USE_REAL, OPTION(norm_epsilon), NULL},
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
    /* the others */
    {"hidden_size", ROTARY, USE_NEED, OPTION(width), NULL},
    {"intermediate_size", ROTARY, USE_NEED, OPTION(hidden), NULL},
    {"num_hidden_layers", ROTARY, USE_NEED, OPTION(layers), NULL},
    {"num_attention_heads", ROTARY, USE_NEED, OPTION(heads), NULL},
    {"num_key_value_heads", ROTARY, USE_COUNT, OPTION(kv_heads), NULL},
    {"head_dim", ROTARY, USE_COUNT, OPTION(head_width), NULL},
    {"max_position_embeddings", ROTARY, USE_COUNT, CONFIG(positions), NULL},
    {"rms_norm_eps", ROTARY, USE_REAL, OPTION(norm_epsilon), NULL},
    {"rope_theta", ROTARY, USE_REAL, OPTION(rotary_base), NULL},
    {"rope_scaling", ROTARY, USE_ROTATION, 0, NULL},
    {"rope_parameters", ROTARY, USE_ROTATION, 0, NULL},
    {"rope_interleaved", ROTARY, USE_MUST, 0, "false"},
    {"partial_rotary_factor", ROTARY, USE_MUST, 0, "1.0"},
    {"use_mrope", ROTARY, USE_MUST, 0, "false"},
    {"hidden_act", ROTARY, USE_ACTIVATION, 0, NULL},
    {"attention_bias", LLAMA | QWEN3, USE_FLAG, OPTION(out_bias), NULL},
    {"attention_bias", MISTRAL, USE_MUST, 0, "false"},
    {"attention_bias", QWEN2, USE_NOTHING, 0, NULL}, /* biases are where this family has them */
    {"qkv_bias", QWEN2, USE_MUST, 0, "true"},
    {"mlp_bias", LLAMA, USE_FLAG, OPTION(mlp_bias), NULL},
    {"mlp_bias", MISTRAL | QWEN2 | QWEN3, USE_MUST, 0, "false"},
    {"attention_dropout", ROTARY, USE_DROPOUT, 0, NULL},
    {"sliding_window", MISTRAL | QWEN2 | QWEN3, USE_COUNT, CONFIG(window), NULL},
    {"sliding_window", LLAMA, USE_MUST, 0, "null"},
    {"use_sliding_window", QWEN2 | QWEN3, USE_FLAG, 0, NULL},
    {"use_sliding_window", LLAMA | MISTRAL, USE_MUST, 0, "false"},
    {"max_window_layers", QWEN2 | QWEN3, USE_LAYER, 0, NULL},
    {"max_window_layers", LLAMA | MISTRAL, USE_NOTHING, 0, NULL}, /* of no such family */
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
static const char *const harmless[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "_num_labels",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "length_penalty",
    "max_length",
    "max_sequence_length",
    "min_length",
    "n_special",
    "neftune_noise_alpha",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "predict_special_tokens",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};

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

static enum status refuse_key(struct error *error, const char *name, const json_t *value,
                              const char *why)
{
    char text[VALUE_TEXT_MAX];
    char plain[VALUE_TEXT_MAX]; /* a name reaches terminals */
    size_t i = 0;

    for (; name[i] != '\0' && i < sizeof(plain) - 1; i++) {
        plain[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '?';
    }
    plain[i] = '\0';
    value_text(text, value);
    return error_set(error, STATUS_REFUSED, "'%s' is %s; %s", plain, text, why);
}

/* The same, and what to do about it. */
static enum status refuse_advised(struct error *error, const char *name, const json_t *value,
                                  const char *why, const char *advice)
{
    enum status status = refuse_key(error, name, value, why);

    error_advise(error, "%s", advice);
    return status;
}

static enum status take_count(uint32_t *count, const char *name, const json_t *value,
                              struct error *error)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > COUNT_MAX) {
        return refuse_key(error, name, value, "it must be a whole number from 1 to 100000000");
    }
    *count = (uint32_t)json_integer_value(value);
    return STATUS_OK;
}

static enum status take_real(double *real, const char *name, const json_t *value,
                             struct error *error)
{
    if (!json_is_number(value) || !(json_number_value(value) > 0.0)) {
        return refuse_key(error, name, value, "it must be a number above 0");
    }
    *real = json_number_value(value);
    return STATUS_OK;
}

static enum status check_must(const struct key *key, const json_t *value, struct error *error)
{
    char text[VALUE_TEXT_MAX];
    char why[VALUE_TEXT_MAX];

    value_text(text, value);
    if (strcmp(text, key->must) == 0 || json_is_null(value) ||
        (json_is_integer(value) && strcmp(key->must, "1.0") == 0 && strcmp(text, "1") == 0)) {
        return STATUS_OK;
    }
    (void)snprintf(why, sizeof(why), "we compute only models where it is %s", key->must);
    if (strcmp(key->name, "quantization_config") == 0) {
        return refuse_advised(error, key->name, value, why,
                              "take the folder of the weights before they were quantized");
    }
    return refuse_key(error, key->name, value, why);
}

static enum status take_activation(struct reading *reading, const char *name, const json_t *value,
                                   struct error *error)
{
    static const struct {
        const char *name;
        enum activation activation;
    } words[] = {
        {"gelu_new", ACTIVATION_GELU_TANH},  {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
        {"gelu_fast", ACTIVATION_GELU_TANH}, {"gelu_python", ACTIVATION_GELU},
        {"gelu", ACTIVATION_GELU},           {"silu", ACTIVATION_SILU},
        {"swish", ACTIVATION_SILU},          {"relu", ACTIVATION_RELU},
    };
    const char *text = json_string_value(value);

    for (size_t i = 0; text != NULL && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].name, text) == 0) {
            reading->config->model.activation = words[i].activation;
            return STATUS_OK;
        }
    }
    return refuse_key(error, name, value,
                      "we compute gelu_new, gelu_pytorch_tanh, gelu, silu, relu");
}

/* ---- the rotation ------------------------------------------------------- */

/* A key of the description of the rotation. */
static enum status take_rotation_key(struct reading *reading, const char *name, const json_t *value,
                                     struct error *error)
{
    struct rotary_scaling *scaling = &reading->config->model.rotary_scaling;
    double unused;

    if (strcmp(name, "rope_type") == 0 || strcmp(name, "type") == 0) {
        return STATUS_OK; /* read first */
    }
    if (strcmp(name, "rope_theta") == 0) {
        return take_real(&reading->rotary_base, name, value, error);
    }
    if (strcmp(name, "partial_rotary_factor") == 0) {
        return check_must(&(struct key){.name = name, .must = "1.0"}, value, error);
    }
    if (strcmp(name, "factor") == 0 && reading->dynamic) {
        return take_real(&unused, name, value, error);
    }
    if (strcmp(name, "factor") == 0 && scaling->kind != ROTARY_PLAIN) {
        return take_real(&scaling->factor, name, value, error);
    }
    if (scaling->kind == ROTARY_LLAMA3) {
        if (strcmp(name, "low_freq_factor") == 0) {
            return take_real(&scaling->low, name, value, error);
        }
        if (strcmp(name, "high_freq_factor") == 0) {
            return take_real(&scaling->high, name, value, error);
        }
        if (strcmp(name, "original_max_position_embeddings") == 0) {
            return take_count(&scaling->positions, name, value, error);
        }
    }
    return refuse_key(error, name, value, "it is unknown for this type of rotation");
}

static enum status check_rotation(const struct rotary_scaling *scaling, struct error *error)
{
    if (scaling->kind != ROTARY_PLAIN && scaling->factor < 1.0) {
        return error_set(error, STATUS_REFUSED, "'factor' is missing or below 1");
    }
    if (scaling->kind == ROTARY_LLAMA3 &&
        (scaling->low <= 0.0 || scaling->high <= scaling->low || scaling->positions == 0)) {
        return error_set(error, STATUS_REFUSED,
                         "'low_freq_factor', 'high_freq_factor' or "
                         "'original_max_position_embeddings' is missing, or the first is not below "
                         "the second");
    }
    return STATUS_OK;
}

/* rope_scaling, or rope_parameters of newer configs, which also hold the base. */
static enum status take_rotation(struct reading *reading, const char *name, json_t *value,
                                 struct error *error)
{
    static const char *const kinds[ROTARY_COUNT] = {"default", "linear", "llama3"};
    static const char why[] =
        "we compute one rotation, of the type default, linear, dynamic or llama3";
    struct rotary_scaling *scaling = &reading->config->model.rotary_scaling;
    const json_t *old = json_object_get(value, "type");
    const json_t *type = json_object_get(value, "rope_type");
    const char *key;
    json_t *part;
    uint32_t kind = 0;

    if (json_is_null(value)) {
        return STATUS_OK;
    }
    type = type == NULL ? old : type;
    reading->dynamic = json_is_string(type) && strcmp(json_string_value(type), "dynamic") == 0;
    while (kind < ROTARY_COUNT && !reading->dynamic &&
           (!json_is_string(type) || strcmp(json_string_value(type), kinds[kind]) != 0)) {
        kind++;
    }
    if (!json_is_object(value) || kind == ROTARY_COUNT || reading->scaled ||
        (old != NULL && !json_equal(type, old))) {
        return refuse_advised(error, name, value, why,
                              "choose a base that turns by one of these, or one from before its "
                              "context was extended");
    }
    reading->scaled = true;
    *scaling = (struct rotary_scaling){.kind = (enum rotary_kind)kind};
    json_object_foreach(value, key, part)
    {
        if (take_rotation_key(reading, key, part, error) != STATUS_OK) {
            return error_wrap(error, "'%s'", name);
        }
    }
    return check_rotation(scaling, error) == STATUS_OK ? STATUS_OK
                                                       : error_wrap(error, "'%s'", name);
}

/* ---- lists -------------------------------------------------------------- */

static enum status take_layer_types(struct reading *reading, const char *name, json_t *value,
                                    struct error *error)
{
    size_t i;
    json_t *type;

    if (json_is_null(value)) {
        return STATUS_OK;
    }
    if (!json_is_array(value)) {
        return refuse_key(error, name, value, "it must be a list");
    }
    reading->typed = true;
    json_array_foreach(value, i, type)
    {
        const char *text = json_is_string(type) ? json_string_value(type) : "";

        if (strcmp(text, "sliding_attention") == 0) {
            reading->slides = true;
        } else if (strcmp(text, "full_attention") != 0) {
            return refuse_key(error, name, type, "we compute full_attention and sliding_attention");
        }
    }
    return STATUS_OK;
}

/* A folder of another head than a language model's has other tensors. */
static enum status check_architectures(const struct reading *reading, const char *name,
                                       const json_t *value, struct error *error)
{
    const json_t *first = json_array_get(value, 0);
    const char *text = json_is_string(first) ? json_string_value(first) : "";
    char why[VALUE_TEXT_MAX];

    if (json_is_null(value) ||
        (json_array_size(value) == 1 && (strcmp(text, reading->row->architecture) == 0 ||
                                         strcmp(text, reading->row->without_head) == 0))) {
        return STATUS_OK;
    }
    (void)snprintf(why, sizeof(why), "we compute [\"%s\"]", reading->row->architecture);
    return refuse_advised(error, name, value, why, "take the folder of the language model itself");
}

/* ---- the whole ---------------------------------------------------------- */

static const struct key *find_key(const struct reading *reading, const char *name)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if ((keys[i].families & reading->row->family) != 0 && strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

static bool is_harmless(const char *name)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (strcmp(harmless[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static enum status take_flag(struct reading *reading, const struct key *key, const json_t *value,
                             struct error *error)
{
    if (!json_is_boolean(value)) {
        return refuse_key(error, key->name, value, "it must be true or false");
    }
    if (key->at == 0) { /* use_sliding_window: no number of a config stands first */
        reading->uses_window = json_is_true(value);
    } else {
        *(bool *)((char *)reading->config + key->at) =
            json_is_true(value) == (key->use == USE_FLAG);
    }
    return STATUS_OK;
}

static enum status take_layer(struct reading *reading, const char *name, const json_t *value,
                              struct error *error)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return refuse_key(error, name, value, "it must be a whole number from 0");
    }
    reading->window_layer = (uint64_t)json_integer_value(value);
    return STATUS_OK;
}

static enum status take_key(struct reading *reading, const struct key *key, json_t *value,
                            struct error *error)
{
    char *place = (char *)reading->config + key->at;

    switch (key->use) {
    case USE_NOTHING:
        return STATUS_OK;
    case USE_MUST:
        return check_must(key, value, error);
    case USE_COUNT:
        if (json_is_null(value)) {
            *(uint32_t *)(void *)place = 0;
            return STATUS_OK;
        }
        return take_count((uint32_t *)(void *)place, key->name, value, error);
    case USE_NEED:
        return take_count((uint32_t *)(void *)place, key->name, value, error);
    case USE_REAL:
        return take_real((double *)(void *)place, key->name, value, error);
    case USE_FLAG:
    case USE_NO_FLAG:
        return take_flag(reading, key, value, error);
    case USE_LAYER:
        return take_layer(reading, key->name, value, error);
    case USE_DROPOUT:
        return json_is_number(value) && json_number_value(value) >= 0.0 &&
                       json_number_value(value) < 1.0
                   ? STATUS_OK
                   : refuse_key(error, key->name, value, "it must be from 0 to below 1");
    case USE_ACTIVATION:
        return take_activation(reading, key->name, value, error);
    case USE_ROTATION:
        return take_rotation(reading, key->name, value, error);
    case USE_LAYER_TYPES:
        return take_layer_types(reading, key->name, value, error);
    case USE_ARCHITECTURES:
        break;
    }
    return check_architectures(reading, key->name, value, error);
}

static enum status find_family(struct reading *reading, struct error *error)
{
    const json_t *type = json_object_get(reading->root, "model_type");

    if (!json_is_object(reading->root) || !json_is_string(type)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "no 'model_type': not the config of a model of Hugging Face");
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strcmp(families[i].model_type, json_string_value(type)) == 0) {
            reading->row = &families[i];
            return STATUS_OK;
        }
    }
    return refuse_advised(error, "model_type", type,
                          "we compute gpt2, llama, mistral, qwen2 and qwen3",
                          "choose a base of one of these families");
}

/* What the family's program takes where the config says nothing. */
static void take_defaults(struct reading *reading)
{
    struct base_config *config = reading->config;
    struct model_options *model = &config->model;
    const struct family_row *row = reading->row;

    *config = (struct base_config){.window = row->window, .positions = row->positions};
    reading->window_layer = row->family == QWEN2 || row->family == QWEN3 ? 28 : 0;
    model_options_default(model, row->family == GPT2 ? MODEL_GPT2 : MODEL_LLAMA);
    model->kv_heads = row->kv_heads;
    model->hidden = 0;
    model->head_width = row->head_width;
    model->norm_epsilon = row->norm_epsilon;
    model->qkv_bias = row->qkv_bias;
    model->head_norms = row->head_norms;
}

/* Newer configs hold the base of the rotation where they describe it, older ones beside. */
static enum status settle_rotation(struct reading *reading, struct error *error)
{
    double *base = &reading->config->model.rotary_base;

    if (reading->rotary_base == 0.0) {
        return STATUS_OK;
    }
    if (json_object_get(reading->root, "rope_theta") != NULL && *base != reading->rotary_base) {
        (void)error_set(error, STATUS_REFUSED,
                        "'rope_theta' is %g, and %g where the rotation is described", *base,
                        reading->rotary_base);
        error_advise(error, "remove the one that is not meant");
        return STATUS_REFUSED;
    }
    *base = reading->rotary_base;
    return STATUS_OK;
}

/* What follows from several keys. */
static enum status settle_model(struct reading *reading, struct error *error)
{
    struct base_config *config = reading->config;
    struct model_options *model = &config->model;
    uint32_t family = reading->row->family;
    bool slides =
        family == MISTRAL || (reading->uses_window && reading->window_layer < model->layers);

    TRY(settle_rotation(reading, error));
    if (family == GPT2) {
        if (config->window != 0 && config->window != config->positions) {
            return error_set(error, STATUS_REFUSED,
                             "'n_ctx' is %u; we compute only models where it is n_positions",
                             config->window);
        }
        config->window = 0;
        model->positions = config->positions;
    }
    if ((family & (LLAMA | QWEN3)) != 0) {
        model->qkv_bias = model->out_bias;
    }
    slides = reading->typed ? reading->slides : slides;
    if (slides && reading->typed && config->window == 0) {
        return error_set(error, STATUS_REFUSED,
                         "'layer_types' has layers with a window, and 'sliding_window' is none");
    }
    config->window = slides ? config->window : 0;
    if (model->kv_heads > model->heads || (model->kv_heads == 0 && model->heads > 10000)) {
        return error_set(error, STATUS_REFUSED, "%u heads for keys, and %u for queries",
                         model->kv_heads, model->heads);
    }
    if (model->head_width == 0 && model->width % model->heads != 0) {
        return error_set(error, STATUS_REFUSED, "a width of %u is not a multiple of %u heads",
                         model->width, model->heads);
    }
    return STATUS_OK;
}

static enum status read_root(struct reading *reading, json_t *root, struct error *error)
{
    const char *name;
    json_t *value;

    TRY(find_family(reading, error));
    take_defaults(reading);
    json_object_foreach(root, name, value)
    {
        const struct key *key = find_key(reading, name);

        if (key != NULL) {
            TRY(take_key(reading, key, value, error));
        } else if (!is_harmless(name)) {
            return refuse_advised(error, name, value,
                                  "we do not know this key, and ignoring it could be another model",
                                  "remove it from config.json if you know that the model computes "
                                  "the same without it");
        }
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].use == USE_NEED && (keys[i].families & reading->row->family) != 0 &&
            json_object_get(root, keys[i].name) == NULL) {
            return error_set(error, STATUS_BAD_FORMAT, "no '%s'", keys[i].name);
        }
    }
    return settle_model(reading, error);
}

enum status base_config_parse(struct base_config *config, const void *bytes, size_t size,
                              const char *what, struct error *error)
{
    struct reading reading = {.config = config};
    enum status status;
    json_t *root;

    TRY(strict_json_parse(&root, error, what, bytes, size, BASE_CONFIG_SIZE_MAX, CONFIG_DEPTH_MAX));
    reading.root = root;
    status = read_root(&reading, root, error);
    json_decref(root);
    return status == STATUS_OK ? STATUS_OK : error_wrap(error, "%s", what);
}

static enum status check_there(const char *folder, const char *path, struct error *error)
{
    char adapters[FILE_PATH_MAX];

    if (file_exists(path)) {
        return STATUS_OK;
    }
    TRY(file_path_join(adapters, sizeof(adapters), error, folder, "adapter_config.json"));
    if (file_exists(adapters)) {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: adapters of PEFT, and not a whole model",
                        folder);
        error_advise(error, "merge them into their base first: PEFT's merge_and_unload(), then "
                            "save_pretrained()");
    } else {
        (void)error_set(error, STATUS_NOT_FOUND, "%s: no such file", path);
        error_advise(error, "name a folder as Hugging Face publishes it: config.json and "
                            ".safetensors");
    }
    return STATUS_NOT_FOUND;
}

enum status base_config_read(struct base_config *config, const char *folder, struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(file_path_join(path, sizeof(path), error, folder, BASE_CONFIG_NAME));
    TRY(check_there(folder, path, error));
    TRY(file_read(&bytes, error, path, BASE_CONFIG_SIZE_MAX));
    status = base_config_parse(config, bytes.data, bytes.size, path, error);
    file_bytes_release(&bytes);
    return status;
}

enum status base_config_check_length(const struct base_config *config, uint32_t length,
                                     struct error *error)
{
    if (length > config->positions) {
        return error_set(error, STATUS_USAGE,
                         "sequences of %u tokens; the model takes at most %u positions", length,
                         config->positions);
    }
    if (config->window != 0 && length > config->window) {
        (void)error_set(error, STATUS_REFUSED,
                        "'sliding_window' is %u; sequences of %u tokens would look further back",
                        config->window, length);
        error_advise(error, "--length %u is the most that is the same model", config->window);
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}
