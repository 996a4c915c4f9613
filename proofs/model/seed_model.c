/* seed_model.c - see seed_model.h. */
#include "proofs/model/seed_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/model.h"
#include "engine/ops/real.h"
#include "proofs/format/base_config.h"
#include "proofs/job/first_state.h"

/* What the tape says of its model. */
struct found {
    const struct tape *tape;
    bool gpt2;
    uint64_t layers;
    uint64_t heads;
    uint64_t length;
    uint64_t turned; /* of a head, which a rotation turns */
    double epsilon;
    double base; /* of the rotation */
};

static enum status not_known(struct error *error)
{
    (void)error_set(error, STATUS_REFUSED,
                    "the job's model is no GPT-2 and no Llama as other programs know them");
    error_advise(error, "of a model that began with a folder, name it: --base FOLDER");
    return STATUS_REFUSED;
}

/* ---- reading the tape ------------------------------------------------------ */

static const struct tensor *find_state(const struct tape *tape, const char *name)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];

        if (strcmp(tensor->name, name) == 0) {
            return tensor;
        }
    }
    return NULL;
}

/* The shortest decimal that is this binary32. */
static double shortest_number(int64_t bits)
{
    const float value = real_from_bits((uint32_t)bits);
    char text[32];

    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) {
            break;
        }
    }
    return strtod(text, NULL);
}

static void read_ops(struct found *found)
{
    for (uint32_t at = found->tape->op_count; at > 0; at--) {
        const struct op *op = &found->tape->ops[at - 1];

        if (op->kind == OP_SOFTMAX) {
            const struct tensor *p = &found->tape->tensors[op->outputs[5]];

            found->heads = p->rank == 4 ? p->dims[1] : 0;
            found->length = p->rank == 4 ? p->dims[2] : 0;
        } else if (op->kind == OP_LAYER_NORM || op->kind == OP_RMS_NORM) {
            found->epsilon = shortest_number(op->attributes[NORM_EPSILON_BITS]);
        } else if (op->kind == OP_ROTARY) {
            found->turned = (uint64_t)op->attributes[ROTARY_WIDTH];
        }
    }
}

/* Pair j of position 1 turns by base^(-2j/width): the base to six digits, which is checked. */
static double base_of(const struct job *job, uint64_t width)
{
    for (uint32_t id = 0; id < job->tape->tensor_count && width >= 4; id++) {
        const struct tensor *table = &job->tape->tensors[id];

        if (table->role == ROLE_CONSTANT && strcmp(table->name, "rotary") == 0 &&
            table->count >= 2 * width) {
            const float *numbers = job_constant(job, id);
            const double angle = atan2((double)numbers[width + 3], (double)numbers[width + 2]);
            char text[32];

            (void)snprintf(text, sizeof(text), "%.5g", pow(angle, -(double)width / 2.0));
            return angle > 0.0 ? strtod(text, NULL) : 0.0;
        }
    }
    return 10000.0; /* one pair turns by its position, with every base */
}

static uint64_t count_layers(const struct found *found)
{
    uint64_t layers = 0;
    char name[TENSOR_NAME_MAX + 1];

    for (;; layers++) {
        (void)snprintf(name, sizeof(name),
                       found->gpt2 ? "h.%llu.ln_1.weight"
                                   : "model.layers.%llu.input_layernorm.weight",
                       (unsigned long long)layers);
        if (find_state(found->tape, name) == NULL) {
            return layers;
        }
    }
}

static uint64_t dim_of(const struct found *found, const char *name, uint32_t axis)
{
    const struct tensor *tensor = find_state(found->tape, name);

    return tensor == NULL || axis >= tensor->rank ? 0 : tensor->dims[axis];
}

/* ---- the config ------------------------------------------------------------ */

static json_t *config_of_gpt2(const struct found *found)
{
    const json_int_t positions = (json_int_t)dim_of(found, "wpe.weight", 0);

    return json_pack("{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:b, s:s}",
                     "model_type", "gpt2", "architectures", "GPT2LMHeadModel", "vocab_size",
                     (json_int_t)dim_of(found, "wte.weight", 0), "n_embd",
                     (json_int_t)dim_of(found, "wte.weight", 1), "n_layer",
                     (json_int_t)found->layers, "n_head", (json_int_t)found->heads, "n_positions",
                     positions, "n_ctx", positions, "n_inner",
                     (json_int_t)dim_of(found, "h.0.mlp.c_fc.weight", 1), "activation_function",
                     "gelu_new", "layer_norm_epsilon", found->epsilon, "tie_word_embeddings",
                     find_state(found->tape, "lm_head.weight") == NULL, "torch_dtype", "float32");
}

static json_t *config_of_llama(const struct found *found)
{
    const uint64_t wide = dim_of(found, "model.layers.0.self_attn.q_proj.weight", 0);
    const uint64_t narrow = dim_of(found, "model.layers.0.self_attn.k_proj.weight", 0);
    const uint64_t head = found->heads == 0 ? 0 : wide / found->heads;

    return json_pack(
        "{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:s, s:b, s:b, s:b, s:s}",
        "model_type", "llama", "architectures", "LlamaForCausalLM", "vocab_size",
        (json_int_t)dim_of(found, "model.embed_tokens.weight", 0), "hidden_size",
        (json_int_t)dim_of(found, "model.embed_tokens.weight", 1), "intermediate_size",
        (json_int_t)dim_of(found, "model.layers.0.mlp.gate_proj.weight", 0), "num_hidden_layers",
        (json_int_t)found->layers, "num_attention_heads", (json_int_t)found->heads,
        "num_key_value_heads", (json_int_t)(head == 0 ? 0 : narrow / head), "head_dim",
        (json_int_t)head, "max_position_embeddings", (json_int_t)found->length, "rms_norm_eps",
        found->epsilon, "rope_theta", found->base, "hidden_act", "silu", "tie_word_embeddings",
        find_state(found->tape, "lm_head.weight") == NULL, "attention_bias", 0, "mlp_bias", 0,
        "torch_dtype", "float32");
}

/* ---- is it the job's model? -------------------------------------------------- */

static bool same_tensor(const struct tensor *a, const struct tensor *b)
{
    return a != NULL && b != NULL && a->rank == b->rank && a->count == b->count &&
           memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

static const void *constant_named(const struct job *job, const struct tensor *like)
{
    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        const struct tensor *tensor = &job->tape->tensors[id];

        if (tensor->role == ROLE_CONSTANT && strcmp(tensor->name, like->name) == 0 &&
            same_tensor(tensor, like)) {
            return job_constant(job, id);
        }
    }
    return NULL;
}

/* Parameters of the same names and shapes, and as many; the same angles. */
static bool same_model(const struct model *model, const struct job *job)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < job->tape->state_count; i++) {
        count += first_state_is_parameter(job->tape, i);
    }
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const struct tensor *tensor = &model->tape->tensors[model->parameters[i]];

        if (!same_tensor(tensor, find_state(job->tape, tensor->name))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        const struct tensor *tensor = &model->tape->tensors[model->constants[i].tensor];
        const void *bytes = constant_named(job, tensor);

        if (bytes == NULL || memcmp(bytes, model->constants[i].bytes, tensor_size(tensor)) != 0) {
            return false;
        }
    }
    return count == model->parameter_count;
}

static enum status check_config(const json_t *config, const struct found *found,
                                const struct job *job, struct error *error)
{
    char *text = json_dumps(config, 0);
    struct base_config read;
    struct model model = {0};
    enum status status;

    if (text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a config");
    }
    TRY_OUT(base_config_parse(&read, text, strlen(text), "the config of this job", error));
    read.model.inference = true;
    read.model.batch = 1;
    read.model.length = (uint32_t)found->length;
    TRY_OUT(model_build(&model, &read.model, error));
    status = same_model(&model, job) ? STATUS_OK : not_known(error);
    model_release(&model);
out:
    free(text);
    return status;
}

enum status seed_model_config(json_t **config, const struct job *job, struct error *error)
{
    struct found found = {.tape = job->tape};
    enum status status;

    *config = NULL;
    found.gpt2 = find_state(job->tape, "wte.weight") != NULL;
    found.layers = count_layers(&found);
    read_ops(&found);
    if (found.layers == 0 || found.heads == 0) {
        return not_known(error);
    }
    found.base = base_of(job, found.turned);
    *config = found.gpt2 ? config_of_gpt2(&found) : config_of_llama(&found);
    if (*config == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a config");
    }
    status = check_config(*config, &found, job, error);
    if (status != STATUS_OK) {
        json_decref(*config);
        *config = NULL;
    }
    return status;
}

/* ---- a tokenizer of bytes ----------------------------------------------------- */

/* Byte-level vocabularies write a byte that is no visible letter of Latin 1 as one from U+0100
 * on. */
static bool is_visible(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

static json_t *byte_letters(void)
{
    json_t *vocabulary = json_object();
    unsigned next = 256;

    for (int byte = 0; byte < 256; byte++) {
        const unsigned code = is_visible(byte) ? (unsigned)byte : next++;
        const char text[3] = {(char)(code < 128 ? code : 0xc0 | code >> 6),
                              (char)(code < 128 ? 0 : 0x80 | (code & 63)), '\0'};

        (void)json_object_set_new(vocabulary, text, json_integer(byte));
    }
    return vocabulary;
}

json_t *seed_model_tokenizer(void)
{
    return json_pack(
        "{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b}, "
        "s:{s:s, s:n, s:n, s:o, s:[]}}",
        "version", "1.0", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
        "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0,
        "post_processor", "decoder", "type", "ByteLevel", "add_prefix_space", 1, "trim_offsets", 1,
        "use_regex", 1, "model", "type", "BPE", "dropout", "unk_token", "vocab", byte_letters(),
        "merges");
}

json_t *seed_model_tokenizer_config(void)
{
    return json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                     "clean_up_tokenization_spaces", 0);
}
