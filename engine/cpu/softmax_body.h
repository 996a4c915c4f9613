/*
 * softmax_body.h - the kernels of softmax and cross-entropy. Part of rows_body.h.
 *
 * A row takes three passes: its maximum, the exponentials with their sum, the result. Outputs that
 * nobody reads are not written; for cross-entropy that can be all outputs as long as a row.
 */
#ifndef ENGINE_CPU_SOFTMAX_BODY_H
#define ENGINE_CPU_SOFTMAX_BODY_H

#include "engine/cpu/row_fold.h"

/* ---- row maximum ------------------------------------------------------------- */

/* x * scale; cross-entropy has no scale. */
SIMD_INLINE simd_real scaled(struct row_pass row, size_t i, size_t lanes, bool has_scale)
{
    simd_real x = simd_get(row.x + i, lanes);

    return has_scale ? simd_mul(x, row.scale) : x;
}

/* The maximum of a chunk: NaN if it has one, never -0. */
SIMD_INLINE float max_chunk(struct row_pass row, size_t from, size_t to, bool has_scale)
{
    simd_real most[SIMD_GROUP];
    simd_mask nan = simd_no_lane();
    size_t i = from;

    SIMD_UNROLL
    for (size_t j = 0; j < SIMD_GROUP; j++) {
        most[j] = simd_set(-INFINITY);
    }
    for (; i + FOLD_LANES <= to; i += FOLD_LANES) {
        SIMD_UNROLL
        for (size_t j = 0; j < SIMD_GROUP; j++) {
            simd_real v = scaled(row, i + j * SIMD_WIDTH, SIMD_WIDTH, has_scale);
            most[j] = simd_max(v, most[j]); /* a NaN leaves most[j] */
            nan = simd_either(nan, simd_is_nan(v));
        }
    }
    for (; i < to; i += SIMD_WIDTH) {
        size_t lanes = to - i < SIMD_WIDTH ? to - i : SIMD_WIDTH;
        simd_real v = scaled(row, i, lanes, has_scale);
        v = simd_select(simd_first(lanes), v, simd_set(-INFINITY));
        most[0] = simd_max(v, most[0]);
        nan = simd_either(nan, simd_is_nan(v));
    }
    return simd_any(nan) ? real_from_bits(FLOAT_NAN_BITS) : simd_max_lane(most) + 0.0f;
}

/* The maximum of the elements begin .. end-1; parts, of all chunks, may be NULL. */
SIMD_INLINE float max_span(struct row_pass row, size_t begin, size_t end, float *parts,
                           bool has_scale)
{
    size_t first = begin / FOLD_CHUNK;
    size_t chunks = (size_t)fold_chunks(end);
    float most = -INFINITY;

    for (size_t c = first; c < chunks; c++) {
        size_t from = c == first ? begin : c * FOLD_CHUNK;
        size_t to = end - c * FOLD_CHUNK < FOLD_CHUNK ? end : (c + 1) * FOLD_CHUNK;
        float part = max_chunk(row, from, to, has_scale);
        if (parts != NULL) {
            parts[c] = part;
        }
        /* A NaN stays: nothing is greater. */
        most = part != part || part > most ? part : most;
    }
    return most;
}

/* ---- softmax ------------------------------------------------------------------- */

/* The columns that row r sees. */
static struct softmax_span seen_of(const struct kernel_call *call, size_t r)
{
    const struct op *op = call->op;
    const uint32_t slot = softmax_reach_input(op->kind);
    uint32_t reach = UINT32_MAX;

    if (op->input_count > slot) {
        const uint32_t *values = call->inputs[slot];

        reach =
            values[softmax_reach_index(op->attributes, call->tensors[op->inputs[slot]].count, r)];
    }
    return softmax_span_of(op->attributes, r, reach);
}

static void fill_range(float *to, float value, size_t from, size_t end)
{
    for (size_t i = from; to != NULL && i < end; i++) {
        to[i] = value;
    }
}

static void fill_outside(float *to, float value, size_t from, size_t end, size_t count)
{
    fill_range(to, value, 0, from);
    fill_range(to, value, end, count);
}

/* mean = the row's maximum. y keeps the exponential for the last pass, z is the output. */
SIMD_INLINE simd_real step_exp(struct row_pass row, simd_real sum, size_t i, size_t lanes)
{
    simd_real e = simd_exp(simd_sub(scaled(row, i, lanes, true), row.mean));

    if (row.y != NULL) {
        simd_put(row.y + i, e, lanes);
    }
    if (row.z != NULL) {
        simd_put(row.z + i, simd_stored(e), lanes);
    }
    return simd_add(sum, e);
}

/* rstd = 1 / sum */
SIMD_INLINE void step_normalize(struct row_pass row, size_t i, size_t lanes)
{
    simd_put(row.y + i, simd_stored(simd_mul(simd_get(row.y + i, lanes), row.rstd)), lanes);
}

static void span_softmax(const struct kernel_call *call, size_t begin, size_t end)
{
    size_t columns = columns_of(call);
    size_t chunks = (size_t)fold_chunks(columns);

    for (size_t r = begin; r < end; r++) {
        const struct softmax_span seen = seen_of(call, r);
        const size_t first = seen.from / FOLD_CHUNK;
        const size_t last = (size_t)fold_chunks(seen.end);
        float *max_parts = output_row(call, 0, r, chunks);
        float *sum_parts = output_row(call, 3, r, chunks);
        struct row_pass row = {
            .x = input_row(call, 0, r, columns),
            .y = output_row(call, 5, r, columns),
            .z = output_row(call, 2, r, columns),
            .scale = simd_set(constant_of(call, SOFTMAX_SCALE_BITS)),
        };
        float most = max_span(row, seen.from, seen.end, max_parts, true);

        row.mean = simd_set(most);
        float sum = fold_span(row, seen.from, seen.end, sum_parts, step_exp);

        put_scalar(call, 1, r, most);
        put_scalar(call, 4, r, sum);
        if (row.y != NULL) {
            row.rstd = simd_set(1.0f / sum);
            map_span(row, seen.from, seen.end, step_normalize);
        }
        fill_outside(row.y, 0.0f, seen.from, seen.end, columns);
        fill_outside(row.z, 0.0f, seen.from, seen.end, columns);
        fill_outside(max_parts, -INFINITY, first, last, chunks);
        fill_outside(sum_parts, 0.0f, first, last, chunks);
    }
}

/* ---- softmax, backward ----------------------------------------------------------- */

/* x = p, dy = dp */
SIMD_INLINE simd_real step_dot(struct row_pass row, simd_real sum, size_t i, size_t lanes)
{
    return simd_fma(simd_get(row.x + i, lanes), simd_get(row.dy + i, lanes), sum);
}

/* mean = the dot product */
SIMD_INLINE void step_softmax_grad(struct row_pass row, size_t i, size_t lanes)
{
    simd_real centred = simd_sub(simd_get(row.dy + i, lanes), row.mean);
    simd_real dx = simd_mul(simd_mul(simd_get(row.x + i, lanes), centred), row.scale);

    simd_put(row.y + i, simd_stored(dx), lanes);
}

static void span_softmax_grad(const struct kernel_call *call, size_t begin, size_t end)
{
    size_t columns = columns_of(call);
    size_t chunks = (size_t)fold_chunks(columns);

    for (size_t r = begin; r < end; r++) {
        const struct softmax_span seen = seen_of(call, r);
        float *parts = output_row(call, 0, r, chunks);
        struct row_pass row = {
            .x = input_row(call, 0, r, columns),
            .dy = input_row(call, 1, r, columns),
            .y = output_row(call, 2, r, columns),
            .scale = simd_set(constant_of(call, SOFTMAX_SCALE_BITS)),
        };
        float dot = fold_span(row, seen.from, seen.end, parts, step_dot);

        put_scalar(call, 1, r, dot);
        fill_outside(parts, 0.0f, seen.from / FOLD_CHUNK, (size_t)fold_chunks(seen.end), chunks);
        if (row.y != NULL) {
            row.mean = simd_set(dot);
            map_span(row, seen.from, seen.end, step_softmax_grad);
            fill_outside(row.y, 0.0f, seen.from, seen.end, columns);
        }
    }
}

/* ---- cross-entropy ----------------------------------------------------------------- */

/* mean = the row's maximum */
SIMD_INLINE simd_real step_exp_unscaled(struct row_pass row, simd_real sum, size_t i, size_t lanes)
{
    simd_real e = simd_exp(simd_sub(simd_get(row.x + i, lanes), row.mean));

    if (row.z != NULL) {
        simd_put(row.z + i, simd_stored(e), lanes);
    }
    return simd_add(sum, e);
}

/* The loss of a row whose target is no column, and its gradient's elements. */
static float without_target(uint32_t target)
{
    return target == TARGET_IGNORED ? 0.0f : real_from_bits(FLOAT_NAN_BITS);
}

static void span_cross_entropy(const struct kernel_call *call, size_t begin, size_t end)
{
    size_t columns = columns_of(call);
    size_t chunks = (size_t)fold_chunks(columns);
    const uint32_t *targets = call->inputs[1];

    for (size_t r = begin; r < end; r++) {
        struct row_pass row = {
            .x = input_row(call, 0, r, columns),
            .z = output_row(call, 2, r, columns),
        };
        float most = max_span(row, 0, columns, output_row(call, 0, r, chunks), false);

        row.mean = simd_set(most);
        float sum = fold_row(row, columns, output_row(call, 3, r, chunks), step_exp_unscaled);
        float loss = without_target(targets[r]);

        if (targets[r] < columns) {
            loss = real_stored(scalar_log(sum) - (row.x[targets[r]] - most));
        }
        put_scalar(call, 1, r, most);
        put_scalar(call, 4, r, sum);
        put_scalar(call, 5, r, loss);
    }
}

/* ---- cross-entropy, backward ---------------------------------------------------------- */

/* mean = the row's maximum, rstd = 1 / sum, slope = dloss */
SIMD_INLINE void step_cross_entropy_grad(struct row_pass row, size_t i, size_t lanes)
{
    simd_real e = simd_exp(simd_sub(simd_get(row.x + i, lanes), row.mean));
    simd_real p = simd_mul(e, row.rstd);

    simd_put(row.y + i, simd_stored(simd_mul(p, row.slope)), lanes);
}

static void span_cross_entropy_grad(const struct kernel_call *call, size_t begin, size_t end)
{
    const size_t columns = columns_of(call);
    const size_t first = (size_t)call->op->attributes[CROSS_ENTROPY_FIRST];
    const size_t length = columns + (size_t)call->op->attributes[CROSS_ENTROPY_REST];
    const uint32_t *targets = call->inputs[1];

    if (call->outputs[0] == NULL) {
        return;
    }
    for (size_t r = begin; r < end; r++) {
        uint32_t target = targets[r];
        float most = *input_row(call, 2, r, 1);
        float inverse = 1.0f / *input_row(call, 3, r, 1);
        float dloss = *input_row(call, 4, r, 1);
        struct row_pass row = {
            .x = input_row(call, 0, r, columns),
            .y = output_row(call, 0, r, columns),
            .mean = simd_set(most),
            .rstd = simd_set(inverse),
            .slope = simd_set(dloss),
        };

        if (target >= length) {
            fill_range(row.y, without_target(target), 0, columns);
            continue;
        }
        /* dx may be x itself: the target's own x is read before the pass. */
        const bool here = target >= first && target - first < columns;
        const size_t at = here ? target - first : 0;
        float wanted = row.x[at];

        map_row(row, columns, step_cross_entropy_grad);
        if (here) {
            row.y[at] = real_stored((scalar_exp(wanted - most) * inverse - 1.0f) * dloss);
        }
    }
}

#endif /* ENGINE_CPU_SOFTMAX_BODY_H */
