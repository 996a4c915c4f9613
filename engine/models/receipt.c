/*
 * receipt.c - the step that decides a receipt: was each token of an answer chosen by the rule?
 *
 * The rule is that of engine/decode/sampler.h; here it is a tape. A position of the answer has the
 * conditions that its token is the first index of the largest height, that this height is above
 * -infinity (so a NaN is false, and a row in which nothing may be chosen), and two for each
 * threshold: what reaches it is enough, and what is above it is not. The state "held" is the number
 * of conditions that hold, and the loss the number of those that do not.
 *
 * Heights of tokens that may be chosen are at least the smallest number: a draw of the whole
 * probability would make -infinity of one, which stands for those that may not.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/decoder_core.h"
#include "engine/tape/builder_core.h"

#define ROW_MULTIPLE 16

/* Positions of the answer whose logits are made together. */
struct receipt_slice {
    struct builder *builder;
    const struct receipt_row *row;
    uint32_t number;
    uint64_t first; /* token of the answer */
    uint64_t count;
    uint64_t vocabulary;
    uint32_t held; /* conditions that hold, in all slices so far */
};

uint32_t receipt_row_length(const struct receipt_row *row)
{
    return (row->count + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE;
}

static bool draws_by_p(const struct receipt_row *row)
{
    return row->temperature != 0.0f && row->top_p < 1.0f;
}

static bool draws_by_k(const struct receipt_row *row)
{
    return row->temperature != 0.0f && row->top_k != 0;
}

uint32_t receipt_row_conditions(const struct receipt_row *row)
{
    return (row->count - row->prompt) *
           (2u + (draws_by_p(row) ? 2u : 0u) + (draws_by_k(row) ? 2u : 0u));
}

uint32_t *receipt_row_tokens(const struct receipt_row *row)
{
    uint32_t *tokens = calloc(receipt_row_length(row), sizeof(*tokens));

    if (tokens != NULL) {
        memcpy(tokens, row->tokens, row->count * sizeof(*tokens));
    }
    return tokens;
}

enum status check_receipt(const struct model_options *options, struct error *error)
{
    const struct receipt_row *row = options->receipt;

    if (row == NULL) {
        return STATUS_OK;
    }
    if (options->graph != NULL || (options->kind != MODEL_GPT2 && options->kind != MODEL_LLAMA) ||
        !options->evaluation || options->packed || options->lora.rank != 0 ||
        options->lora.find == NULL || options->batch != 1) {
        return error_set(error, STATUS_USAGE,
                         "a receipt is of a language model whose weights lie in files");
    }
    if (row->prompt == 0 || row->count <= row->prompt || row->count > RECEIPT_TOKENS_MAX ||
        options->length != receipt_row_length(row)) {
        return error_set(error, STATUS_USAGE,
                         "a row of %u tokens whose first %u are the prompt: there must be one "
                         "token of each, and at most %u",
                         row->count, row->prompt, RECEIPT_TOKENS_MAX);
    }
    for (uint32_t i = 0; i < row->count; i++) {
        if (row->tokens[i] >= options->vocabulary) {
            return error_set(error, STATUS_REFUSED,
                             "token %u of the row is %u, and the model has %u", i, row->tokens[i],
                             options->vocabulary);
        }
    }
    /* Counts of tokens, and tokens, are compared as binary32. */
    if (row->top_k > options->vocabulary || options->vocabulary > RECEIPT_VOCABULARY_MAX) {
        return error_set(error, STATUS_REFUSED,
                         "%u tokens to choose among, and the model has %u, of at most %u",
                         row->top_k, options->vocabulary, RECEIPT_VOCABULARY_MAX);
    }
    if (!(row->temperature == 0.0f || (row->temperature >= 0.001f && row->temperature <= 100.0f)) ||
        !(row->top_p > 0.0f)) {
        return error_set(error, STATUS_USAGE,
                         "a temperature of %g and a top-p of %g; they must be 0 or from 0.001 to "
                         "100, and above 0",
                         (double)row->temperature, (double)row->top_p);
    }
    return STATUS_OK;
}

static uint32_t fill_one(struct builder *builder, float value)
{
    static const uint64_t one = 1;

    return build_fill(builder, value, 1, &one);
}

/* ---- conditions ----------------------------------------------------------- */

/* Counts conditions that are 1 where they hold, else +0. */
static void count_held(struct receipt_slice *slice, uint32_t conditions)
{
    const uint64_t count = builder_tensor(slice->builder, conditions)->count;
    uint32_t sum = build_row_sum(slice->builder, conditions, count);

    slice->held = slice->held == TENSOR_NONE ? sum : build_add(slice->builder, slice->held, sum, 1);
}

/* What the slice has of a constant (1, tokens) that begins with the answer's token `behind`. */
static uint32_t part_of(const struct receipt_slice *slice, uint32_t constant, uint64_t behind)
{
    const uint64_t starts[2] = {0, behind + slice->first};
    const uint64_t counts[2] = {1, slice->count};
    static const int64_t steps[2] = {1, 1};

    return build_slice(slice->builder, constant, starts, counts, steps);
}

/* The first index of the largest height is the token, and there is one. */
static void hold_choice(struct receipt_slice *slice, uint32_t heights, uint32_t tokens)
{
    struct builder *builder = slice->builder;
    uint32_t index;
    uint32_t most = build_extreme(builder, REDUCE_MAX, heights, &index);
    uint32_t claimed = part_of(slice, tokens, slice->row->prompt);

    count_held(slice, build_binary(builder, BINARY_EQUAL, build_cast(builder, index, DTYPE_F32),
                                   build_cast(builder, claimed, DTYPE_F32)));
    count_held(slice, build_binary(builder, BINARY_LESS, fill_one(builder, -INFINITY), most));
}

/* A threshold of each position, as (1, positions, 1). */
static uint32_t thresholds_of(const struct receipt_slice *slice, uint32_t constant)
{
    const uint64_t dims[3] = {1, slice->count, 1};

    return build_reshape(slice->builder, part_of(slice, constant, 0), 3, dims);
}

/* The fold of p, or of ones, over the tokens that are marked: one number a position. */
static uint32_t sum_marked(const struct receipt_slice *slice, uint32_t marks, uint32_t p)
{
    struct builder *builder = slice->builder;
    uint32_t terms =
        p == TENSOR_NONE ? marks : build_select(builder, marks, p, fill_one(builder, 0.0f));

    return build_row_sum(builder, terms, slice->vocabulary);
}

/*
 * What reaches a threshold is enough, and what is above it is not. what: p for a share of the
 * probability, TENSOR_NONE for a number of tokens. Returns where p reaches it.
 */
static uint32_t hold_threshold(struct receipt_slice *slice, uint32_t p, uint32_t constant,
                               uint32_t what, float enough)
{
    struct builder *builder = slice->builder;
    uint32_t tau = thresholds_of(slice, constant);
    uint32_t reaching = build_binary(builder, BINARY_LESS_EQUAL, tau, p);
    uint32_t above = build_binary(builder, BINARY_LESS, tau, p);
    uint32_t least = fill_one(builder, enough);

    count_held(slice,
               build_binary(builder, BINARY_LESS_EQUAL, least, sum_marked(slice, reaching, what)));
    count_held(slice, build_binary(builder, BINARY_LESS, sum_marked(slice, above, what), least));
    return reaching;
}

/* ---- heights -------------------------------------------------------------- */

/* The log of an exponential draw for each position and token. */
static uint32_t draw_noise(const struct receipt_slice *slice)
{
    struct builder *builder = slice->builder;
    const uint64_t seed = slice->row->seed;
    struct output_shape shape = {DTYPE_U32, 3, {1, slice->count, slice->vocabulary}};
    uint32_t step = build_step(builder);
    struct op op = op_begin(OP_UNIFORM, 1, &step);

    op_attribute(&op, slice->number);
    op_attribute(&op, seed & UINT32_MAX);
    op_attribute(&op, seed >> 32);
    op.output_count = 1;
    build_op(builder, &op, &shape);

    uint32_t scaled = build_scale(builder, build_cast(builder, op.outputs[0], DTYPE_F32), 0x1p-32f);
    uint32_t v = build_binary(builder, BINARY_ADD, scaled, fill_one(builder, 0x1p-33f));
    uint32_t square = build_scale(builder, build_binary(builder, BINARY_MUL, v, v), 0.5f);
    uint32_t small = build_binary(builder, BINARY_ADD, v, square);
    uint32_t rest = build_binary(builder, BINARY_SUB, fill_one(builder, 1.0f), v);
    uint32_t large = build_map(builder, MAP_NEG, build_map(builder, MAP_LOG, rest));
    uint32_t is_small = build_binary(builder, BINARY_LESS, v, fill_one(builder, 0x1p-12f));

    return build_map(builder, MAP_LOG, build_select(builder, is_small, small, large));
}

/* Where both are set; TENSOR_NONE stands for everywhere. */
static uint32_t both_marks(struct builder *builder, uint32_t a, uint32_t b)
{
    if (a == TENSOR_NONE || b == TENSOR_NONE) {
        return a == TENSOR_NONE ? b : a;
    }
    return build_binary(builder, BINARY_MUL, a, b);
}

static uint32_t draw_heights(struct receipt_slice *slice, uint32_t logits,
                             const uint32_t constants[2])
{
    struct builder *builder = slice->builder;
    const struct receipt_row *row = slice->row;
    uint32_t z = build_scale(builder, logits, 1.0f / row->temperature);
    uint32_t may = TENSOR_NONE;

    if (draws_by_p(row) || draws_by_k(row)) {
        uint32_t p = build_softmax(builder, z, 1.0f, 0, TENSOR_NONE);

        if (draws_by_p(row)) {
            may = hold_threshold(slice, p, constants[0], p, row->top_p);
        }
        if (draws_by_k(row)) {
            may =
                both_marks(builder, may,
                           hold_threshold(slice, p, constants[1], TENSOR_NONE, (float)row->top_k));
        }
    }
    uint32_t heights = build_binary(builder, BINARY_SUB, z, draw_noise(slice));

    heights = build_binary(builder, BINARY_MAX, heights, fill_one(builder, -FLT_MAX));
    return may == TENSOR_NONE ? heights
                              : build_select(builder, may, heights, fill_one(builder, -INFINITY));
}

/* ---- the step ------------------------------------------------------------- */

/* The thresholds of a rule that is on, as a constant. */
static uint32_t write_thresholds(const struct decoder *decoder, const char *name, bool on,
                                 const float *thresholds)
{
    const struct receipt_row *row = decoder->options->receipt;
    const uint32_t count = row->count - row->prompt;
    float *copy;

    if (!on) {
        return TENSOR_NONE;
    }
    copy = calloc(count, sizeof(*copy));
    if (copy != NULL) {
        memcpy(copy, thresholds, count * sizeof(*copy));
    }
    return write_constant(decoder->writer, name, DTYPE_F32, 1, count, copy);
}

/* The logits of what follows each position of the slice. */
static uint32_t slice_logits(const struct decoder *decoder, const struct receipt_slice *slice,
                             uint32_t x, const struct decoder_head *head)
{
    const uint64_t starts[3] = {0, slice->row->prompt - 1 + slice->first, 0};
    const uint64_t counts[3] = {1, slice->count, decoder->options->width};
    static const int64_t steps[3] = {1, 1, 1};

    return decoder_logits(decoder, build_slice(decoder->builder, x, starts, counts, steps), head);
}

static void write_held(struct receipt_slice *slice)
{
    static const uint64_t one = 1;
    struct builder *builder = slice->builder;
    uint32_t state = build_tensor(builder, "held", DTYPE_I32, ROLE_STATE, 1, &one);
    uint32_t all = fill_one(builder, (float)receipt_row_conditions(slice->row));
    uint32_t missing = build_binary(builder, BINARY_SUB, all, slice->held);

    build_init(builder, state, (struct init){.kind = INIT_ZEROS});
    build_after(builder, state, build_cast(builder, slice->held, DTYPE_I32));
    build_output(builder, "loss", missing);
    build_loss(builder, missing);
}

void decoder_write_receipt(const struct decoder *decoder, uint32_t x,
                           const struct decoder_head *head)
{
    struct model *model = decoder->writer->model;
    const struct receipt_row *row = decoder->options->receipt;
    const uint32_t answer = row->count - row->prompt;
    struct receipt_slice slice = {.builder = decoder->builder,
                                  .row = row,
                                  .vocabulary = decoder->options->vocabulary,
                                  .held = TENSOR_NONE};

    model->slices = calloc((answer + RECEIPT_SLICE - 1) / RECEIPT_SLICE, sizeof(*model->slices));
    if (model->slices == NULL) {
        builder_fail(decoder->builder, STATUS_NO_MEMORY, "no memory for a model");
        return;
    }
    (void)build_step(decoder->builder); /* a state of every receipt: so its true root is known */
    const uint32_t constants[2] = {
        write_thresholds(decoder, "thresholds_p", draws_by_p(row), row->thresholds_p),
        write_thresholds(decoder, "thresholds_k", draws_by_k(row), row->thresholds_k)};

    for (; slice.first < answer && !builder_failed(decoder->builder); slice.first += slice.count) {
        slice.count = answer - slice.first < RECEIPT_SLICE ? answer - slice.first : RECEIPT_SLICE;
        uint32_t logits = slice_logits(decoder, &slice, x, head);

        model->slices[model->slice_count++] = logits;
        hold_choice(&slice,
                    row->temperature == 0.0f ? logits : draw_heights(&slice, logits, constants),
                    decoder->writer->tokens);
        slice.number++;
    }
    if (!builder_failed(decoder->builder)) {
        write_held(&slice);
    }
}
