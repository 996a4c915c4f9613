/* decode.c - see decode.h. */
#include "engine/decode/decode.h"

#include <assert.h>
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/decode/attend.h"
#include "engine/ops/float_control.h"
#include "engine/ops/real.h"

/* Tokens of a prompt that are taken at a time: each weight is read once for so many. */
#define TOKENS_TOGETHER 16
#define LARGE_PAGE      ((size_t)2 << 20)

struct decode {
    struct token_team team;
    struct token_tape one;
    struct token_tape many; /* of TOKENS_TOGETHER */
    struct token_weight *weights;
    uint8_t *weight_bytes;
    float *kept_bytes;
    struct kept_layer *layers;
    struct attend attend;
    uint64_t memory;
};

/* ---- weights -------------------------------------------------------------- */

/* Rows become columns, a square of places at a time. */
static void turn_matrix(void *to, const void *from, const struct tensor *matrix)
{
    enum { SIDE = 32 };
    const size_t rows = (size_t)matrix->dims[0];
    const size_t columns = (size_t)matrix->dims[1];
    const size_t size = dtype_size(matrix->dtype);

    for (size_t r = 0; r < rows; r += SIDE) {
        for (size_t c = 0; c < columns; c += SIDE) {
            for (size_t i = r; i < rows && i < r + SIDE; i++) {
                for (size_t j = c; j < columns && j < c + SIDE; j++) {
                    memcpy((uint8_t *)to + (j * rows + i) * size,
                           (const uint8_t *)from + (i * columns + j) * size, size);
                }
            }
        }
    }
}

static bool is_turned(const struct token_tape *tape, uint32_t weight)
{
    for (uint32_t at = 0; at < tape->model.tape->op_count; at++) {
        if (tape->products[at].x != TENSOR_NONE && tape->products[at].weight == weight) {
            return tape->products[at].turned;
        }
    }
    return false;
}

static size_t place_of(uint64_t size)
{
    return (size_t)((size + 63) / 64 * 64);
}

/* Room for all weights, and where each lies in it. */
static enum status place_weights(struct decode *decode, struct error *error)
{
    const struct model *model = &decode->one.model;
    size_t size = LARGE_PAGE;

    decode->weights = calloc((size_t)model->frozen_count + 1, sizeof(*decode->weights));
    if (decode->weights == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a model");
    }
    for (uint32_t i = 0; i < model->frozen_count; i++) {
        const struct tensor *tensor = &model->tape->tensors[model->frozen[i]];

        decode->weights[i].tensor = tensor;
        decode->weights[i].turned = is_turned(&decode->one, model->frozen[i]);
        size += place_of(tensor_size(tensor));
    }
    size = (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    decode->weight_bytes = aligned_alloc(LARGE_PAGE, size);
    if (decode->weight_bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "the weights need %.1f MiB of memory",
                         (double)size / 1048576.0);
    }
    (void)madvise(decode->weight_bytes, size, MADV_HUGEPAGE); /* only makes it faster */
    decode->memory += size;
    size = 0;
    for (uint32_t i = 0; i < model->frozen_count; i++) {
        decode->weights[i].bytes = decode->weight_bytes + size;
        size += place_of(tensor_size(decode->weights[i].tensor));
    }
    return STATUS_OK;
}

static enum status read_weight(const struct token_weight *weight,
                               const struct decode_options *options, struct error *error)
{
    void *bytes;
    enum status status;

    if (!weight->turned) {
        return options->read(options->read_context, weight->bytes, weight->tensor, error);
    }
    bytes = malloc((size_t)tensor_size(weight->tensor) + 1);
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", weight->tensor->name);
    }
    status = options->read(options->read_context, bytes, weight->tensor, error);
    if (status == STATUS_OK) {
        turn_matrix(weight->bytes, bytes, weight->tensor);
    }
    free(bytes);
    return status;
}

/* ---- what is kept --------------------------------------------------------- */

static size_t kept_count(const struct decode *decode, const struct model_attention *attention)
{
    const struct tensor *key = &decode->one.model.tape->tensors[attention->key];

    return (size_t)key->dims[2] * decode->attend.context;
}

static enum status allocate_kept(struct decode *decode, struct error *error)
{
    const struct model *model = &decode->one.model;
    const size_t scores = (size_t)decode->team.thread_count * decode->attend.context;
    size_t count = 0;

    for (uint32_t i = 0; i < model->attention_count; i++) {
        count += 2 * kept_count(decode, &model->attentions[i]);
    }
    decode->layers = calloc((size_t)model->attention_count + 1, sizeof(*decode->layers));
    decode->kept_bytes = malloc((count + 1) * sizeof(float));
    decode->attend.scores = malloc((scores + 1) * sizeof(float));
    if (decode->layers == NULL || decode->kept_bytes == NULL || decode->attend.scores == NULL) {
        return error_set(error, STATUS_NO_MEMORY,
                         "the keys and values of %u tokens need %.1f MiB of memory",
                         decode->attend.context, (double)count * sizeof(float) / 1048576.0);
    }
    decode->memory += count * sizeof(float);
    count = 0;
    for (uint32_t i = 0; i < model->attention_count; i++) {
        const size_t size = kept_count(decode, &model->attentions[i]);

        decode->layers[i] =
            (struct kept_layer){decode->kept_bytes + count, decode->kept_bytes + count + size};
        count += 2 * size;
    }
    return STATUS_OK;
}

/* ---- opening -------------------------------------------------------------- */

static enum status open_all(struct decode *decode, const struct decode_options *options,
                            struct error *error)
{
    struct model_options model = *options->model;
    const uint32_t many = options->context < TOKENS_TOGETHER ? options->context : TOKENS_TOGETHER;

    model.decoding = options->context;
    model.precision = PRECISION_DEFAULT;
    TRY(token_tape_open(&decode->one, &model, 1, &decode->team, error));
    TRY(token_tape_open(&decode->many, &model, many, &decode->team, error));
    TRY(allocate_kept(decode, error));
    TRY(place_weights(decode, error));
    for (uint32_t i = 0; i < decode->one.model.frozen_count; i++) {
        TRY(read_weight(&decode->weights[i], options, error));
    }
    token_tape_bind(&decode->one, decode->weights);
    token_tape_bind(&decode->many, decode->weights);
    return STATUS_OK;
}

enum status decode_open(struct decode **decode, const struct decode_options *options,
                        struct error *error)
{
    struct decode *made = calloc(1, sizeof(*made));
    uint64_t control = float_control_take();
    int threads = options->thread_count <= 0 ? omp_get_max_threads() : options->thread_count;
    enum status status;

    *decode = NULL;
    if (made == NULL) {
        float_control_give_back(control);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a model");
    }
    TRY_OUT(isa_check(options->isa, error));
    threads = threads > DECODE_THREADS_MAX ? DECODE_THREADS_MAX : threads;
    made->team.kernels = token_kernels_of(options->isa);
    made->team.thread_count = threads;
    cpu_kernels(&made->team.table, options->isa);
    made->attend.team = &made->team;
    made->attend.context = options->context;
    TRY_OUT(open_all(made, options, error));
out:
    float_control_give_back(control);
    if (status != STATUS_OK) {
        decode_close(made);
    } else {
        *decode = made;
    }
    return status;
}

void decode_close(struct decode *decode)
{
    if (decode == NULL) {
        return;
    }
    token_tape_close(&decode->one);
    token_tape_close(&decode->many);
    free(decode->weights);
    free(decode->weight_bytes);
    free(decode->kept_bytes);
    free(decode->layers);
    free(decode->attend.scores);
    free(decode);
}

/* ---- tokens --------------------------------------------------------------- */

static void answer_attention(void *context, struct token_tape *tape, uint32_t index)
{
    struct decode *decode = context;
    const struct model_attention *attention = &tape->model.attentions[index];

    attend_keep(&decode->attend, &decode->layers[index], tape, attention);
    attend_all(&decode->attend, &decode->layers[index], tape, attention);
}

/* Takes as many tokens as the tape has; with logits of the last one, or what is kept alone. */
static void take_rows(struct decode *decode, struct token_tape *tape, const uint32_t *tokens,
                      bool logits)
{
    const struct model *model = &tape->model;
    const uint32_t rows = (uint32_t)model->tape->tensors[model->input].count;
    const uint32_t last = model->attention_count - 1;
    uint32_t *places = tape->memory[model->places];

    memcpy(tape->memory[model->input], tokens, rows * sizeof(*tokens));
    for (uint32_t i = 0; i < rows; i++) {
        places[i] = decode->attend.before + i;
    }
    if (logits) {
        token_tape_run(tape, model->tape->op_count, answer_attention, decode);
    } else {
        token_tape_run(tape, tape->body_end, answer_attention, decode);
        attend_keep(&decode->attend, &decode->layers[last], tape, &model->attentions[last]);
    }
    decode->attend.before += rows;
}

static enum status check_tokens(const struct decode *decode, const uint32_t *tokens, size_t count,
                                struct error *error)
{
    const uint32_t vocabulary = decode_vocabulary(decode);

    if (count > decode->attend.context - decode->attend.before) {
        return error_set(error, STATUS_REFUSED, "a sequence of %zu tokens; at most %u",
                         decode->attend.before + count, decode->attend.context);
    }
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] >= vocabulary) {
            return error_set(error, STATUS_REFUSED,
                             "the token %u is none of the model's, which has %u", tokens[i],
                             vocabulary);
        }
    }
    return STATUS_OK;
}

static enum status check_logits(const struct decode *decode, struct error *error)
{
    const float *logits = decode_logits(decode);

    for (uint32_t i = 0; i < decode_vocabulary(decode); i++) {
        if ((real_to_bits(logits[i]) & 0x7f800000u) == 0x7f800000u) {
            return error_set(error, STATUS_REFUSED,
                             "the model gives no number for the token %u: its weights are damaged, "
                             "or too large",
                             i);
        }
    }
    return STATUS_OK;
}

enum status decode_take(struct decode *decode, const uint32_t *tokens, size_t count,
                        struct error *error)
{
    const uint32_t before = decode->attend.before;
    const uint32_t many =
        (uint32_t)decode->many.model.tape->tensors[decode->many.model.input].count;
    uint64_t control;
    enum status status;

    assert(count > 0);
    TRY(check_tokens(decode, tokens, count, error));
    control = float_control_take();
    while (count > 1) {
        struct token_tape *tape = count > many ? &decode->many : &decode->one;
        const size_t taken = count > many ? many : 1;

        take_rows(decode, tape, tokens, false);
        tokens += taken;
        count -= taken;
    }
    take_rows(decode, &decode->one, tokens, true);
    float_control_give_back(control);
    status = check_logits(decode, error);
    if (status != STATUS_OK) {
        decode->attend.before = before;
    }
    return status;
}

uint32_t decode_count(const struct decode *decode)
{
    return decode->attend.before;
}

uint32_t decode_context(const struct decode *decode)
{
    return decode->attend.context;
}

void decode_forget(struct decode *decode, uint32_t count)
{
    assert(count <= decode->attend.before);
    decode->attend.before = count;
}

const float *decode_logits(const struct decode *decode)
{
    return decode->one.memory[decode->one.model.output];
}

uint32_t decode_vocabulary(const struct decode *decode)
{
    const struct model *model = &decode->one.model;

    return (uint32_t)model->tape->tensors[model->output].count;
}

uint64_t decode_memory(const struct decode *decode)
{
    return decode->memory;
}
