/*
 * rules_rows.c - the rules of operations along rows: sums, norms, softmax, cross-entropy.
 *
 * A fold has one output per chunk ("part") and one per row, so no rule takes more than about
 * FOLD_CHUNK steps.
 */
#include "engine/ops/fold.h"
#include "engine/ops/scalar.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

#include <math.h>

#define MINUS_INFINITY_BITS UINT32_C(0xff800000)

/* ---- rows, chunks and folds ---------------------------------------------- */

static RULE uint64_t columns_of(const struct rule_call *call)
{
    return (uint64_t)call->op->attributes[COLUMNS];
}

/* The elements [first, end) of the inputs that one part folds. */
struct span {
    uint64_t row;
    uint64_t first;
    uint64_t end; /* = first where no column of the chunk is visible */
};

/* The part of a chunk in the columns begin .. end-1 of the row. */
static RULE struct span span_of_chunk(const struct rule_call *call, uint64_t row, uint64_t chunk,
                                      uint64_t begin, uint64_t end)
{
    uint64_t start = row * columns_of(call);
    uint64_t from = chunk * FOLD_CHUNK > begin ? chunk * FOLD_CHUNK : begin;
    uint64_t to = (chunk + 1) * FOLD_CHUNK < end ? (chunk + 1) * FOLD_CHUNK : end;

    from = from < to ? from : to;
    return (struct span){.row = row, .first = start + from, .end = start + to};
}

/* The chunk of element `index` of a part output, where every column is visible. */
static RULE struct span span_of_part(const struct rule_call *call, uint64_t index)
{
    uint64_t chunks = fold_chunks(columns_of(call));

    return span_of_chunk(call, index / chunks, index % chunks, 0, columns_of(call));
}

/* The fold of the parts first .. end-1 of the row. */
static RULE float fold_parts(const struct rule_call *call, uint32_t part_output, uint64_t row,
                             uint64_t first, uint64_t end)
{
    uint64_t stride = fold_chunks(columns_of(call));
    struct fold fold;

    fold_init(&fold);
    for (uint64_t c = first; c < end; c++) {
        fold_add(&fold, rule_output(call, part_output, row * stride + c));
    }
    return fold_total(&fold);
}

/* The mean of the row. Its length is at most 2^20, so it is exact in binary32. */
static RULE float mean_of_parts(const struct rule_call *call, uint32_t part_output, uint64_t row)
{
    uint64_t columns = columns_of(call);

    return fold_parts(call, part_output, row, 0, fold_chunks(columns)) / (float)columns;
}

/* ---- row sum ------------------------------------------------------------- */

RULE uint32_t rule_row_sum_part(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    struct fold fold;

    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        fold_add(&fold, rule_input(call, 0, i));
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_row_sum(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(fold_parts(call, 0, index, 0, fold_chunks(columns_of(call))));
}

/* ---- layer norm: inputs x, gain, bias ------------------------------------ */

enum { NORM_SUM_PART, NORM_MEAN, NORM_SQUARE_PART, NORM_RSTD };

static RULE float rstd_of_parts(const struct rule_call *call, uint32_t part_output, uint64_t row)
{
    float variance = mean_of_parts(call, part_output, row);

    return 1.0f / sqrtf(variance + rule_constant(call, NORM_EPSILON_BITS));
}

RULE uint32_t rule_layer_norm_sum_part(const struct rule_call *call, uint64_t index)
{
    return rule_row_sum_part(call, index);
}

RULE uint32_t rule_layer_norm_mean(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(mean_of_parts(call, NORM_SUM_PART, index));
}

RULE uint32_t rule_layer_norm_square_part(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    float mean = rule_output(call, NORM_MEAN, span.row);
    struct fold fold;

    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        float d = rule_input(call, 0, i) - mean;
        fold_multiply_add(&fold, d, d);
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_layer_norm_rstd(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rstd_of_parts(call, NORM_SQUARE_PART, index));
}

RULE uint32_t rule_layer_norm(const struct rule_call *call, uint64_t index)
{
    uint64_t row = index / columns_of(call);
    uint64_t column = index % columns_of(call);
    float d = rule_input(call, 0, index) - rule_output(call, NORM_MEAN, row);
    float xhat = d * rule_output(call, NORM_RSTD, row);

    return real_to_bits(fmaf(xhat, rule_input(call, 1, column), rule_input(call, 2, column)));
}

/* ---- layer norm, backward: inputs dy, x, gain, mean, rstd ---------------- */

enum { GRAD_PART_G, GRAD_PART_GX, GRAD_MEAN_G, GRAD_MEAN_GX };

/* These read only what they need: evidence must prove every element that a rule reads. */
static RULE float scaled_gradient(const struct rule_call *call, uint64_t index)
{
    return rule_input(call, 0, index) * rule_input(call, 2, index % columns_of(call));
}

static RULE float layer_norm_xhat(const struct rule_call *call, uint64_t index)
{
    uint64_t row = index / columns_of(call);
    float d = rule_input(call, 1, index) - rule_input(call, 3, row);

    return d * rule_input(call, 4, row);
}

RULE uint32_t rule_layer_norm_grad_part_g(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    struct fold fold;

    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        fold_add(&fold, scaled_gradient(call, i));
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_layer_norm_grad_part_gx(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    struct fold fold;

    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        fold_multiply_add(&fold, scaled_gradient(call, i), layer_norm_xhat(call, i));
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_layer_norm_grad_mean_g(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(mean_of_parts(call, GRAD_PART_G, index));
}

RULE uint32_t rule_layer_norm_grad_mean_gx(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(mean_of_parts(call, GRAD_PART_GX, index));
}

RULE uint32_t rule_layer_norm_grad(const struct rule_call *call, uint64_t index)
{
    uint64_t row = index / columns_of(call);
    float centred = scaled_gradient(call, index) - rule_output(call, GRAD_MEAN_G, row);
    float mean_gx = rule_output(call, GRAD_MEAN_GX, row);
    float inner = fmaf(-layer_norm_xhat(call, index), mean_gx, centred);

    return real_to_bits(rule_input(call, 4, row) * inner);
}

RULE uint32_t rule_layer_norm_grad_product(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rule_input(call, 0, index) * layer_norm_xhat(call, index));
}

/* ---- RMS norm: inputs x, gain -------------------------------------------- */

enum { RMS_SQUARE_PART, RMS_RSTD };

RULE uint32_t rule_rms_norm_square_part(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    struct fold fold;

    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        float x = rule_input(call, 0, i);
        fold_multiply_add(&fold, x, x);
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_rms_norm_rstd(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rstd_of_parts(call, RMS_SQUARE_PART, index));
}

RULE uint32_t rule_rms_norm(const struct rule_call *call, uint64_t index)
{
    uint64_t row = index / columns_of(call);
    uint64_t column = index % columns_of(call);
    float xhat = rule_input(call, 0, index) * rule_output(call, RMS_RSTD, row);

    return real_to_bits(xhat * rule_input(call, 1, column));
}

/* ---- RMS norm, backward: inputs dy, x, gain, rstd ------------------------ */

enum { RMS_GRAD_PART_GX, RMS_GRAD_MEAN_GX };

static RULE float rms_norm_xhat(const struct rule_call *call, uint64_t index)
{
    return rule_input(call, 1, index) * rule_input(call, 3, index / columns_of(call));
}

RULE uint32_t rule_rms_norm_grad_part_gx(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    struct fold fold;

    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        fold_multiply_add(&fold, scaled_gradient(call, i), rms_norm_xhat(call, i));
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_rms_norm_grad_mean_gx(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(mean_of_parts(call, RMS_GRAD_PART_GX, index));
}

RULE uint32_t rule_rms_norm_grad(const struct rule_call *call, uint64_t index)
{
    uint64_t row = index / columns_of(call);
    float mean_gx = rule_output(call, RMS_GRAD_MEAN_GX, row);
    float inner = fmaf(-rms_norm_xhat(call, index), mean_gx, scaled_gradient(call, index));

    return real_to_bits(rule_input(call, 3, row) * inner);
}

RULE uint32_t rule_rms_norm_grad_product(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rule_input(call, 0, index) * rms_norm_xhat(call, index));
}

/* ---- row maximum ---------------------------------------------------------- */

static RULE uint32_t maximum_of_parts(const struct rule_call *call, uint32_t part_output,
                                      uint64_t row)
{
    uint64_t chunks = fold_chunks(columns_of(call));
    float maximum = rule_output(call, part_output, row * chunks);

    for (uint64_t c = 1; c < chunks; c++) {
        maximum = fold_maximum(maximum, rule_output(call, part_output, row * chunks + c));
    }
    return fold_maximum_bits(maximum);
}

/* ---- softmax: input x ----------------------------------------------------- */

enum { SOFTMAX_MAX_PART, SOFTMAX_MAX, SOFTMAX_EXPS, SOFTMAX_SUM_PART, SOFTMAX_SUM };

/* The columns that a row sees. */
static RULE struct softmax_span softmax_seen(const struct rule_call *call, uint64_t row)
{
    const struct op *op = call->op;
    const struct operand *reach = &call->inputs[softmax_reach_input(op->kind)];

    if (op->input_count <= softmax_reach_input(op->kind)) {
        return softmax_span_of(op->attributes, row, UINT32_MAX);
    }
    return softmax_span_of(
        op->attributes, row,
        operand_get(reach, softmax_reach_index(op->attributes, reach->count, row)));
}

static RULE bool softmax_sees(const struct rule_call *call, uint64_t index)
{
    uint64_t column = index % columns_of(call);
    struct softmax_span seen = softmax_seen(call, index / columns_of(call));

    return seen.from <= column && column < seen.end;
}

static RULE struct span softmax_span(const struct rule_call *call, uint64_t index)
{
    uint64_t chunks = fold_chunks(columns_of(call));
    uint64_t row = index / chunks;
    struct softmax_span seen = softmax_seen(call, row);

    return span_of_chunk(call, row, index % chunks, seen.from, seen.end);
}

/* The fold of those parts of a row that have a column it sees. */
static RULE uint32_t softmax_fold_parts(const struct rule_call *call, uint32_t part_output,
                                        uint64_t row)
{
    struct softmax_span seen = softmax_seen(call, row);

    return real_to_bits(
        fold_parts(call, part_output, row, seen.from / FOLD_CHUNK, fold_chunks(seen.end)));
}

RULE uint32_t rule_softmax_max_part(const struct rule_call *call, uint64_t index)
{
    struct span span = softmax_span(call, index);
    float scale = rule_constant(call, SOFTMAX_SCALE_BITS);
    float maximum = -INFINITY;

    for (uint64_t i = span.first; i < span.end; i++) {
        maximum = fold_maximum(maximum, rule_input(call, 0, i) * scale);
    }
    return fold_maximum_bits(maximum);
}

RULE uint32_t rule_softmax_max(const struct rule_call *call, uint64_t index)
{
    return maximum_of_parts(call, SOFTMAX_MAX_PART, index);
}

RULE uint32_t rule_softmax_exps(const struct rule_call *call, uint64_t index)
{
    if (!softmax_sees(call, index)) {
        return 0;
    }
    float v = rule_input(call, 0, index) * rule_constant(call, SOFTMAX_SCALE_BITS);
    float maximum = rule_output(call, SOFTMAX_MAX, index / columns_of(call));

    return real_to_bits(scalar_exp(v - maximum));
}

RULE uint32_t rule_softmax_sum_part(const struct rule_call *call, uint64_t index)
{
    struct span span = softmax_span(call, index);
    struct fold fold;

    if (span.first == span.end) {
        return 0;
    }
    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        fold_add(&fold, rule_output(call, SOFTMAX_EXPS, i));
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_softmax_sum(const struct rule_call *call, uint64_t index)
{
    return softmax_fold_parts(call, SOFTMAX_SUM_PART, index);
}

RULE uint32_t rule_softmax(const struct rule_call *call, uint64_t index)
{
    if (!softmax_sees(call, index)) {
        return 0;
    }
    float inverse = 1.0f / rule_output(call, SOFTMAX_SUM, index / columns_of(call));

    return real_to_bits(rule_output(call, SOFTMAX_EXPS, index) * inverse);
}

/* ---- softmax, backward: inputs p, dp -------------------------------------- */

enum { SOFTMAX_GRAD_DOT_PART, SOFTMAX_GRAD_DOT };

RULE uint32_t rule_softmax_grad_dot_part(const struct rule_call *call, uint64_t index)
{
    struct span span = softmax_span(call, index);
    struct fold fold;

    if (span.first == span.end) {
        return 0;
    }
    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        fold_multiply_add(&fold, rule_input(call, 0, i), rule_input(call, 1, i));
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_softmax_grad_dot(const struct rule_call *call, uint64_t index)
{
    return softmax_fold_parts(call, SOFTMAX_GRAD_DOT_PART, index);
}

RULE uint32_t rule_softmax_grad(const struct rule_call *call, uint64_t index)
{
    if (!softmax_sees(call, index)) {
        return 0;
    }
    float dot = rule_output(call, SOFTMAX_GRAD_DOT, index / columns_of(call));
    float centred = rule_input(call, 1, index) - dot;

    return real_to_bits((rule_input(call, 0, index) * centred) *
                        rule_constant(call, SOFTMAX_SCALE_BITS));
}

/* ---- cross-entropy: inputs x, target -------------------------------------- */

enum {
    CROSS_ENTROPY_MAX_PART,
    CROSS_ENTROPY_MAX,
    CROSS_ENTROPY_EXPS,
    CROSS_ENTROPY_SUM_PART,
    CROSS_ENTROPY_SUM
};

RULE uint32_t rule_cross_entropy_max_part(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    float maximum = -INFINITY;

    for (uint64_t i = span.first; i < span.end; i++) {
        maximum = fold_maximum(maximum, rule_input(call, 0, i));
    }
    return fold_maximum_bits(maximum);
}

RULE uint32_t rule_cross_entropy_max(const struct rule_call *call, uint64_t index)
{
    return maximum_of_parts(call, CROSS_ENTROPY_MAX_PART, index);
}

RULE uint32_t rule_cross_entropy_exps(const struct rule_call *call, uint64_t index)
{
    float maximum = rule_output(call, CROSS_ENTROPY_MAX, index / columns_of(call));

    return real_to_bits(scalar_exp(rule_input(call, 0, index) - maximum));
}

RULE uint32_t rule_cross_entropy_sum_part(const struct rule_call *call, uint64_t index)
{
    struct span span = span_of_part(call, index);
    struct fold fold;

    fold_init(&fold);
    for (uint64_t i = span.first; i < span.end; i++) {
        fold_add(&fold, rule_output(call, CROSS_ENTROPY_EXPS, i));
    }
    return real_to_bits(fold_total(&fold));
}

RULE uint32_t rule_cross_entropy_sum(const struct rule_call *call, uint64_t index)
{
    uint64_t chunks = fold_chunks(columns_of(call));

    return real_to_bits(fold_parts(call, CROSS_ENTROPY_SUM_PART, index, 0, chunks));
}

RULE uint32_t rule_cross_entropy(const struct rule_call *call, uint64_t index)
{
    uint64_t columns = columns_of(call);
    uint32_t target = operand_get(&call->inputs[1], index);

    if (target >= columns) {
        return target == TARGET_IGNORED ? 0 : FLOAT_NAN_BITS;
    }
    float maximum = rule_output(call, CROSS_ENTROPY_MAX, index);
    float wanted = rule_input(call, 0, index * columns + target) - maximum;

    return real_to_bits(scalar_log(rule_output(call, CROSS_ENTROPY_SUM, index)) - wanted);
}

/* ---- cross-entropy, backward: inputs x, target, max, sum, dloss ------------ */

RULE uint32_t rule_cross_entropy_grad(const struct rule_call *call, uint64_t index)
{
    const int64_t *attributes = call->op->attributes;
    uint64_t columns = columns_of(call);
    uint64_t row = index / columns;
    uint32_t target = operand_get(&call->inputs[1], row);

    if (target >= columns + (uint64_t)attributes[CROSS_ENTROPY_REST]) {
        return target == TARGET_IGNORED ? 0 : FLOAT_NAN_BITS;
    }
    float e = scalar_exp(rule_input(call, 0, index) - rule_input(call, 2, row));
    float p = e * (1.0f / rule_input(call, 3, row));

    p = (uint64_t)attributes[CROSS_ENTROPY_FIRST] + index % columns == target ? p - 1.0f : p;
    return real_to_bits(p * rule_input(call, 4, row));
}
