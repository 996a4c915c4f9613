/* base_config.c - see base_config.h. */
#include "proofs/format/base_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "engine/models/layouts.h"
#include "proofs/format/base_rotation.h"
#include "proofs/format/weights.h"

enum {
    CONFIG_DEPTH_MAX = 8,
};

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
            reading->config.model.activation = words[i].activation;
            return STATUS_OK;
        }
    }
    return config_refuse(error, name, value,
                         "we compute gelu_new, gelu_pytorch_tanh, gelu, silu, relu", NULL);
}

/* ---- lists -------------------------------------------------------------- */

static enum status check_list(uint32_t *count, const char *name, const json_t *value,
                              struct error *error)
{
    if (!json_is_array(value) || json_array_size(value) == 0 ||
        json_array_size(value) > LAYERS_LISTED_MAX) {
        return config_refuse(error, name, value, "it must be a list of at most 512 layers", NULL);
    }
    *count = (uint32_t)json_array_size(value);
    return STATUS_OK;
}

static enum status take_layer_types(struct reading *reading, const char *name, json_t *value,
                                    struct error *error)
{
    uint8_t *flags = reading->config.model.layer_flags;
    size_t i;
    json_t *type;

    if (json_is_null(value)) {
        return STATUS_OK;
    }
    TRY(check_list(&reading->typed, name, value, error));
    json_array_foreach(value, i, type)
    {
        const char *text = json_is_string(type) ? json_string_value(type) : "";

        if (strcmp(text, "sliding_attention") == 0) {
            reading->slides = true;
            flags[i] |= LAYER_LOCAL;
        } else if (strcmp(text, "full_attention") != 0) {
            return config_refuse(error, name, type,
                                 "we compute full_attention and sliding_attention", NULL);
        }
    }
    return STATUS_OK;
}

/* 1 for a layer that turns queries and keys, 0 for one that does not. */
static enum status take_turned_layers(struct reading *reading, const char *name, json_t *value,
                                      struct error *error)
{
    size_t i;
    json_t *turns;

    if (json_is_null(value)) {
        return STATUS_OK;
    }
    TRY(check_list(&reading->turning, name, value, error));
    json_array_foreach(value, i, turns)
    {
        if (!json_is_integer(turns) ||
            (json_integer_value(turns) != 0 && json_integer_value(turns) != 1)) {
            return config_refuse(error, name, turns, "it must be 1 or 0 for each layer", NULL);
        }
        if (json_integer_value(turns) == 0) {
            reading->config.model.layer_flags[i] |= LAYER_UNTURNED;
        }
    }
    return STATUS_OK;
}

/* A folder of another head than a language model's has other tensors. */
static enum status check_architecture(const char *name, const json_t *value, const char *with_head,
                                      const char *without_head, struct error *error)
{
    const json_t *first = json_array_get(value, 0);
    const char *text = json_is_string(first) ? json_string_value(first) : "";
    char why[VALUE_TEXT_MAX];

    if (json_is_null(value) || (json_array_size(value) == 1 &&
                                (strcmp(text, with_head) == 0 ||
                                 (without_head != NULL && strcmp(text, without_head) == 0)))) {
        return STATUS_OK;
    }
    (void)snprintf(why, sizeof(why), "we compute [\"%s\"]", with_head);
    return config_refuse(error, name, value, why, "take the folder of the language model itself");
}

/* ---- the whole ---------------------------------------------------------- */

static enum status take_flag(struct reading *reading, const struct key *key, const json_t *value,
                             struct error *error)
{
    if (!json_is_boolean(value)) {
        return config_refuse(error, key->name, value, "it must be true or false", NULL);
    }
    *(bool *)((char *)reading + key->at) = json_is_true(value) == (key->use == USE_FLAG);
    return STATUS_OK;
}

/* One flag for the biases of queries, keys, values and what attention adds; with `must` there, of
 * the feed-forward layers too. */
static enum status take_biases(struct reading *reading, const struct key *key, const json_t *value,
                               struct error *error)
{
    struct model_options *model = &reading->config.model;

    if (!json_is_boolean(value)) {
        return config_refuse(error, key->name, value, "it must be true or false", NULL);
    }
    model->qkv_bias = model->out_bias = json_is_true(value);
    model->mlp_bias = key->must != NULL ? json_is_true(value) : model->mlp_bias;
    return STATUS_OK;
}

static enum status take_layer(uint32_t *layer, const char *name, const json_t *value,
                              struct error *error)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return config_refuse(error, name, value, "it must be a whole number from 0", NULL);
    }
    *layer =
        json_integer_value(value) > COUNT_MAX ? COUNT_MAX : (uint32_t)json_integer_value(value);
    return STATUS_OK;
}

/* A number, or null where the key allows it. */
static enum status take_number(void *place, const struct key *key, const json_t *value,
                               struct error *error)
{
    if (json_is_null(value) && key->use == USE_COUNT) {
        *(uint32_t *)place = 0;
        return STATUS_OK;
    }
    if (key->use == USE_FACTOR && json_is_number(value) && json_number_value(value) == 0.0) {
        *(double *)place = 0.0;
        return STATUS_OK;
    }
    if (json_is_null(value) && key->use == USE_REAL_OR_NONE) {
        *(double *)place = 0.0;
        return STATUS_OK;
    }
    return key->use == USE_COUNT || key->use == USE_NEED
               ? config_count(place, key->name, value, error)
               : config_real(place, key->name, value, error);
}

static enum status take_key(struct reading *reading, const struct key *key, json_t *value,
                            struct error *error)
{
    void *place = (char *)reading + key->at;

    switch (key->use) {
    case USE_NOTHING:
        return STATUS_OK;
    case USE_MUST:
        return config_must(key->name, key->must, value, error);
    case USE_COUNT:
    case USE_NEED:
    case USE_REAL:
    case USE_REAL_OR_NONE:
    case USE_FACTOR:
        return take_number(place, key, value, error);
    case USE_FLAG:
    case USE_NO_FLAG:
        return take_flag(reading, key, value, error);
    case USE_BIASES:
        return take_biases(reading, key, value, error);
    case USE_LAYER:
        return take_layer(place, key->name, value, error);
    case USE_DROPOUT:
        return json_is_number(value) && json_number_value(value) >= 0.0 &&
                       json_number_value(value) < 1.0
                   ? STATUS_OK
                   : config_refuse(error, key->name, value, "it must be from 0 to below 1", NULL);
    case USE_ACTIVATION_OR_NONE:
        return json_is_null(value) ? STATUS_OK : take_activation(reading, key->name, value, error);
    case USE_ACTIVATION:
        return take_activation(reading, key->name, value, error);
    case USE_GELU: /* Gemma 1 was published with "gelu" here, and computes the other */
        return json_is_string(value) && strcmp(json_string_value(value), "gelu") == 0
                   ? STATUS_OK
                   : config_must(key->name, "\"gelu_pytorch_tanh\"", value, error);
    case USE_ROTATION:
        return rotation_take(reading, key->name, value, error);
    case USE_LAYER_TYPES:
        return take_layer_types(reading, key->name, value, error);
    case USE_TURNED_LAYERS:
        return take_turned_layers(reading, key->name, value, error);
    case USE_PADDING:
        reading->padding = value;
        return STATUS_OK;
    case USE_ARCHITECTURES:
        break;
    }
    return check_architecture(key->name, value, reading->row->architecture,
                              reading->row->without_head, error);
}

static enum status say_unknown(const json_t *type, struct error *error)
{
    char why[512] = "we compute ";
    size_t size = strlen(why);

    for (size_t i = 0; family_at(i) != NULL && size < sizeof(why); i++) {
        size += (size_t)snprintf(why + size, sizeof(why) - size, "%s%s", i == 0 ? "" : ", ",
                                 family_at(i)->model_type);
    }
    for (size_t i = 0; family_wrapper_at(i) != NULL && size < sizeof(why); i++) {
        size += (size_t)snprintf(why + size, sizeof(why) - size, ", %s",
                                 family_wrapper_at(i)->model_type);
    }
    return config_refuse(error, "model_type", type, why, "choose a base of one of these families");
}

static enum status find_family(struct reading *reading, struct error *error)
{
    const json_t *type = json_object_get(reading->root, "model_type");

    if (!json_is_object(reading->root) || !json_is_string(type)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "no 'model_type': not the config of a model of Hugging Face");
    }
    reading->row = family_find(json_string_value(type));
    return reading->row != NULL ? STATUS_OK : say_unknown(type, error);
}

/* What the family's program takes where the config says nothing. */
static void take_defaults(struct reading *reading)
{
    struct base_config *config = &reading->config;
    struct model_options *model = &config->model;
    const struct family_row *row = reading->row;
    const struct layout *layout = layout_find(row->layout == NULL ? row->model_type : row->layout);

    *config = (struct base_config){.window = row->window, .positions = row->positions};
    reading->window_layer = row->window_layer;
    reading->rotary_share = row->rotary_share;
    reading->positions_before = row->positions_before;
    reading->score_scalar = row->score_scalar;
    reading->pattern = row->pattern;
    reading->unturned_interval = row->unturned_interval;
    model_options_default(model, strcmp(layout->family, "gpt2") == 0 ? MODEL_GPT2 : MODEL_LLAMA);
    model->layout = layout;
    model->vocabulary = row->vocabulary;
    model->layers = model->width = model->hidden = 0;
    model->heads = row->heads;
    model->kv_heads = row->kv_heads;
    model->head_width = row->head_width;
    model->norm_epsilon = row->norm_epsilon;
    model->rotary_base = row->rotary_base;
    model->rotary_local_base = row->rotary_local_base;
    model->score_scale = row->score_scale;
    model->score_cap = row->score_cap;
    model->logit_cap = row->logit_cap;
    model->activation = row->activation;
    model->tied_head = row->tied_head;
    model->qkv_bias = row->qkv_bias;
    model->out_bias = row->out_bias;
    model->mlp_bias = row->mlp_bias;
    model->head_norms = row->head_norms;
    model->experts = row->experts;
    model->experts_used = row->experts_used;
    reading->balance = row->balance;
}

/* ---- what follows from several keys -------------------------------------- */

static enum status settle_sizes(struct reading *reading, struct error *error)
{
    struct base_config *config = &reading->config;
    struct model_options *model = &config->model;

    if (model->kv_heads > model->heads || (model->kv_heads == 0 && model->heads > 10000)) {
        return error_set(error, STATUS_REFUSED, "%u heads for keys, and %u for queries",
                         model->kv_heads, model->heads);
    }
    if (model->head_width == 0 && model->width % model->heads != 0) {
        return error_set(error, STATUS_REFUSED, "a width of %u is not a multiple of %u heads",
                         model->width, model->heads);
    }
    if (reading->width_too != 0 && reading->width_too != model->width) {
        return error_set(error, STATUS_REFUSED,
                         "'word_embed_proj_dim' is %u; we compute only models where it is "
                         "hidden_size",
                         reading->width_too);
    }
    if (model->layout->positions == NULL) {
        return STATUS_OK;
    }
    if (config->window != 0 && config->window != config->positions) {
        return error_set(error, STATUS_REFUSED,
                         "'n_ctx' is %u; we compute only models where it is n_positions",
                         config->window);
    }
    config->window = 0;
    model->positions = config->positions;
    return STATUS_OK;
}

/* A rule for single layers, which a list of them may replace, tells of so many layers. */
static enum status check_listed(const struct reading *reading, struct error *error)
{
    uint32_t layers = reading->config.model.layers;

    if (reading->typed != 0 && reading->typed != layers) {
        return error_set(error, STATUS_REFUSED, "'layer_types' has %u layers, and the model %u",
                         reading->typed, layers);
    }
    if (reading->turning != 0 && reading->turning < layers) {
        return error_set(error, STATUS_REFUSED, "'no_rope_layers' has %u layers, and the model %u",
                         reading->turning, layers);
    }
    if (layers > LAYERS_LISTED_MAX && (reading->pattern != 0 || reading->unturned_interval != 0)) {
        return error_set(error, STATUS_REFUSED,
                         "%u layers; of models whose layers differ we compute at most %d", layers,
                         LAYERS_LISTED_MAX);
    }
    return STATUS_OK;
}

/* Has the layer the window, where layer_types does not say? */
static bool has_window(const struct reading *reading, uint32_t layer)
{
    const uint8_t *flags = reading->config.model.layer_flags;

    switch (reading->row->sliding) {
    case SLIDING_ALL:
        return true;
    case SLIDING_BEHIND:
        return reading->uses_window && layer >= reading->window_layer;
    case SLIDING_PATTERN:
        return (layer + 1) % reading->pattern != 0;
    case SLIDING_UNTURNED:
        return reading->uses_window && (flags[layer] & LAYER_UNTURNED) != 0;
    case SLIDING_NONE:
        break;
    }
    return false;
}

static enum status settle_layers(struct reading *reading, struct error *error)
{
    struct base_config *config = &reading->config;
    uint8_t *flags = config->model.layer_flags;
    uint32_t layers = config->model.layers;

    TRY(check_listed(reading, error));
    for (uint32_t i = 0; i < layers && i < LAYERS_LISTED_MAX; i++) {
        if (reading->turning == 0 && reading->unturned_interval != 0 &&
            (i + 1) % reading->unturned_interval == 0) {
            flags[i] |= LAYER_UNTURNED;
        }
        if (reading->typed == 0 && has_window(reading, i)) {
            flags[i] |= LAYER_LOCAL;
            reading->slides = true;
        }
    }
    if (reading->typed == 0 && reading->row->sliding == SLIDING_BEHIND) {
        reading->slides = reading->uses_window && reading->window_layer < layers;
    }
    if (reading->slides && reading->typed != 0 && config->window == 0) {
        return error_set(error, STATUS_REFUSED,
                         "'layer_types' has layers with a window, and 'sliding_window' is none");
    }
    config->window = reading->slides ? config->window : 0;
    return STATUS_OK;
}

static enum status settle_experts(struct reading *reading, struct error *error)
{
    struct model_options *model = &reading->config.model;

    if (model->experts_used > model->experts || model->experts_used > EXPERTS_USED_MAX) {
        return error_set(
            error, STATUS_REFUSED,
            "'num_experts_per_tok' is %u, of %u experts; we compute at most %d, and no "
            "more than there are",
            model->experts_used, model->experts, EXPERTS_USED_MAX);
    }
    if (model->experts > EXPERTS_MAX) {
        return error_set(error, STATUS_REFUSED, "a layer of %u experts; we compute at most %d",
                         model->experts, EXPERTS_MAX);
    }
    model->balance = reading->balances ? reading->balance : 0.0;
    return STATUS_OK;
}

/* A token from behind where it is below 0, as PyTorch counts. The family's own is none in a
 * vocabulary that has it not. */
static enum status settle_padding(struct reading *reading, struct error *error)
{
    const json_int_t count = (json_int_t)reading->config.model.vocabulary;
    const json_int_t own = (json_int_t)reading->row->padding;
    const json_t *value = reading->padding;
    json_int_t token = json_integer_value(value);

    if (value == NULL || json_is_null(value)) {
        reading->config.model.padding = value == NULL && own <= count ? reading->row->padding : 0;
        return STATUS_OK;
    }
    if (!json_is_integer(value) || token >= count || token < -count) {
        return config_refuse(error, "pad_token_id", value,
                             "it must be null or a token of the vocabulary",
                             "the published program does not load such a folder either; say null "
                             "if there is no padding");
    }
    token = token < 0 ? token + count : token;
    reading->config.model.padding = (uint32_t)token + 1;
    return STATUS_OK;
}

static enum status settle_model(struct reading *reading, struct error *error)
{
    struct model_options *model = &reading->config.model;

    TRY(settle_sizes(reading, error));
    TRY(settle_padding(reading, error));
    TRY(rotation_settle(reading, error));
    TRY(settle_layers(reading, error));
    TRY(settle_experts(reading, error));
    if (reading->score_scalar != 0.0) {
        model->score_scale = 1.0 / sqrt(reading->score_scalar);
    }
    if (reading->logit_divisor != 0.0) {
        model->logit_scale = 1.0 / reading->logit_divisor;
    }
    return STATUS_OK;
}

/* ---- the whole ---------------------------------------------------------- */

static enum status refuse_unknown(const char *name, const json_t *value, struct error *error)
{
    return config_refuse(error, name, value,
                         "we do not know this key, and ignoring it could be another model",
                         "remove it from config.json if you know that the model computes the same "
                         "without it");
}

static enum status check_needed(const struct reading *reading, struct error *error)
{
    for (size_t i = 0; family_key_at(i) != NULL; i++) {
        const struct key *key = family_key_at(i);

        if (key->use == USE_NEED && (key->families & reading->row->keys) != 0 &&
            *(const uint32_t *)(const void *)((const char *)reading + key->at) == 0) {
            return error_set(error, STATUS_BAD_FORMAT, "no '%s'", key->name);
        }
    }
    return STATUS_OK;
}

/* The keys of a model of text. */
static enum status read_text(struct reading *reading, json_t *root, struct error *error)
{
    const char *name;
    json_t *value;

    take_defaults(reading);
    json_object_foreach(root, name, value)
    {
        const struct key *key = family_key(reading->row->keys, name);

        if (key != NULL) {
            TRY(take_key(reading, key, value, error));
        } else if (!family_key_is_harmless(name)) {
            return refuse_unknown(name, value, error);
        }
    }
    TRY(check_needed(reading, error));
    return settle_model(reading, error);
}

/* The keys around the text part. */
static enum status read_around(const struct family_wrapper *wrapper, json_t *root,
                               struct error *error)
{
    const char *name;
    json_t *value;

    json_object_foreach(root, name, value)
    {
        if (strcmp(name, "architectures") == 0) {
            TRY(check_architecture(name, value, wrapper->architecture, NULL, error));
        } else if (strcmp(name, "tie_word_embeddings") == 0) {
            if (!json_is_boolean(value)) {
                return config_refuse(error, name, value, "it must be true or false", NULL);
            }
        } else if (strcmp(name, "quantization_config") == 0) {
            TRY(config_must(name, "null", value, error));
        } else if (strcmp(name, "model_type") != 0 && !family_key_is_beside(name) &&
                   !family_key_is_harmless(name)) {
            return refuse_unknown(name, value, error);
        }
    }
    return STATUS_OK;
}

/* A folder of more than text: its text part. */
static enum status read_part(struct reading *reading, const struct family_wrapper *wrapper,
                             json_t *root, struct error *error)
{
    json_t *text = json_object_get(root, "text_config");
    const json_t *type = json_object_get(text, "model_type");
    const json_t *tied = json_object_get(root, "tie_word_embeddings");

    TRY(read_around(wrapper, root, error));
    if (!json_is_object(text)) {
        return error_set(error, STATUS_BAD_FORMAT, "no 'text_config'");
    }
    if (type != NULL &&
        (!json_is_string(type) || strcmp(json_string_value(type), wrapper->text) != 0)) {
        return config_refuse(error, "text_config", type, "its model_type is another", NULL);
    }
    reading->row = family_find(wrapper->text);
    reading->root = text;
    if (read_text(reading, text, error) != STATUS_OK) {
        return error_wrap(error, "'text_config'");
    }
    reading->config.text_part = true;
    if (tied != NULL && json_object_get(text, "tie_word_embeddings") != NULL &&
        reading->config.model.tied_head != json_is_true(tied)) {
        return config_refuse(error, "tie_word_embeddings", tied, "'text_config' says another",
                             "remove the one that is not meant");
    }
    reading->config.model.tied_head =
        tied == NULL ? reading->config.model.tied_head : json_is_true(tied);
    return STATUS_OK;
}

static enum status read_root(struct reading *reading, json_t *root, struct error *error)
{
    const json_t *type = json_object_get(root, "model_type");
    const struct family_wrapper *wrapper =
        json_is_string(type) ? family_wrapper_find(json_string_value(type)) : NULL;

    reading->root = root;
    if (wrapper != NULL) {
        return read_part(reading, wrapper, root, error);
    }
    TRY(find_family(reading, error));
    return read_text(reading, root, error);
}

enum status base_config_parse(struct base_config *config, const void *bytes, size_t size,
                              const char *what, struct error *error)
{
    struct reading reading = {.row = NULL};
    enum status status;
    json_t *root;

    TRY(strict_json_parse(&root, error, what, bytes, size, BASE_CONFIG_SIZE_MAX, CONFIG_DEPTH_MAX));
    status = read_root(&reading, root, error);
    json_decref(root);
    *config = reading.config;
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
        return weights_only_adapters(folder, error);
    }
    (void)error_set(error, STATUS_NOT_FOUND, "%s: no such file", path);
    error_advise(error, "name a folder as Hugging Face publishes it: config.json and .safetensors");
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

uint32_t base_config_length(const struct base_config *config, uint32_t most)
{
    uint32_t length = config->positions < most ? config->positions : most;

    return config->window != 0 && config->window < length ? config->window : length;
}
