/*
 * row_fold.h - the parts of a row kernel: canonical folds over a row, and passes without a fold.
 *
 * For the *_body.h files only. Folds keep the canonical order: the lanes of a fold are SIMD_GROUP
 * vectors, and a tail adds only the lanes that it has.
 *
 * Every step loads a vector from all inputs before it stores to any output at the same place. An
 * output that may share memory with an input (op_in_place()) is stored in the last pass that reads
 * the input.
 */
#ifndef ENGINE_CPU_ROW_FOLD_H
#define ENGINE_CPU_ROW_FOLD_H

#include "engine/cpu/cpu.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/simd_math.h"
#include "engine/ops/real.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* op_check() keeps COLUMNS within one fold of parts. */
#define PARTS_MAX FOLD_CHUNK

/* ---- folds along a row ------------------------------------------------------ */

/* What a pass over a row reads and writes. Passed by value, to stay in registers. */
struct row_pass {
    const float *x;
    const float *dy; /* or the second factor of a dot product */
    const float *gain;
    const float *bias;
    float *y;
    float *z; /* a second output */
    simd_real mean;
    simd_real rstd; /* or another factor of the row */
    simd_real scale;
    simd_real slope;
};

/* The accumulator after elements [i, i + lanes) of the row; other lanes may hold anything. */
typedef simd_real fold_step(struct row_pass row, simd_real sum, size_t i, size_t lanes);

/* Folds one chunk: elements [from, to), from one to FOLD_CHUNK of them. */
SIMD_INLINE float fold_chunk(struct row_pass row, size_t from, size_t to, fold_step *step)
{
    simd_real sums[SIMD_GROUP];
    size_t i = from;

    SIMD_UNROLL
    for (size_t j = 0; j < SIMD_GROUP; j++) {
        sums[j] = simd_set(-0.0f);
    }
    for (; i + FOLD_LANES <= to; i += FOLD_LANES) {
        SIMD_UNROLL
        for (size_t j = 0; j < SIMD_GROUP; j++) {
            sums[j] = step(row, sums[j], i + j * SIMD_WIDTH, SIMD_WIDTH);
        }
    }
    SIMD_UNROLL
    for (size_t j = 0; j < SIMD_GROUP; j++) {
        size_t at = i + j * SIMD_WIDTH;
        if (at + SIMD_WIDTH <= to) {
            sums[j] = step(row, sums[j], at, SIMD_WIDTH);
        } else if (at < to) {
            sums[j] = simd_select(simd_first(to - at), step(row, sums[j], at, to - at), sums[j]);
        }
    }
    return real_stored(simd_fold(sums));
}

SIMD_INLINE simd_real step_sum(struct row_pass row, simd_real sum, size_t i, size_t lanes)
{
    return simd_add(sum, simd_get(row.x + i, lanes));
}

/* Folds a row's parts, and copies them to `parts` unless that is NULL. */
SIMD_INLINE float total_of_parts(const float *own, float *parts, size_t chunks)
{
    if (parts != NULL) {
        memcpy(parts, own, chunks * sizeof(*parts));
    }
    return chunks == 1 ? own[0] : fold_chunk((struct row_pass){.x = own}, 0, chunks, step_sum);
}

/* Folds the elements begin .. end-1 chunk by chunk; parts, of their chunks, may be NULL. */
SIMD_INLINE float fold_span(struct row_pass row, size_t begin, size_t end, float *parts,
                            fold_step *step)
{
    float own[PARTS_MAX];
    size_t first = begin / FOLD_CHUNK;
    size_t chunks = (size_t)fold_chunks(end);

    for (size_t c = first; c < chunks; c++) {
        size_t from = c == first ? begin : c * FOLD_CHUNK;
        size_t to = end - c * FOLD_CHUNK < FOLD_CHUNK ? end : (c + 1) * FOLD_CHUNK;
        own[c - first] = fold_chunk(row, from, to, step);
    }
    return total_of_parts(own, parts == NULL ? NULL : parts + first, chunks - first);
}

SIMD_INLINE float fold_row(struct row_pass row, size_t columns, float *parts, fold_step *step)
{
    return fold_span(row, 0, columns, parts, step);
}

/* ---- two folds in one pass -------------------------------------------------- */

struct sums {
    simd_real first;
    simd_real second;
};

struct totals {
    float first;
    float second;
};

/* Moves both accumulators over elements [i, i + lanes). */
typedef void fold_pair_step(struct sums *sums, struct row_pass row, size_t i, size_t lanes);

SIMD_INLINE struct totals fold_chunk_pair(struct row_pass row, size_t from, size_t to,
                                          fold_pair_step *step)
{
    struct sums sums[SIMD_GROUP];
    simd_real first[SIMD_GROUP];
    simd_real second[SIMD_GROUP];
    size_t i = from;

    SIMD_UNROLL
    for (size_t j = 0; j < SIMD_GROUP; j++) {
        sums[j] = (struct sums){simd_set(-0.0f), simd_set(-0.0f)};
    }
    for (; i + FOLD_LANES <= to; i += FOLD_LANES) {
        SIMD_UNROLL
        for (size_t j = 0; j < SIMD_GROUP; j++) {
            step(&sums[j], row, i + j * SIMD_WIDTH, SIMD_WIDTH);
        }
    }
    SIMD_UNROLL
    for (size_t j = 0; j < SIMD_GROUP; j++) {
        size_t at = i + j * SIMD_WIDTH;
        if (at < to) {
            size_t lanes = to - at < SIMD_WIDTH ? to - at : SIMD_WIDTH;
            struct sums next = sums[j];
            step(&next, row, at, lanes);
            sums[j].first = simd_select(simd_first(lanes), next.first, sums[j].first);
            sums[j].second = simd_select(simd_first(lanes), next.second, sums[j].second);
        }
        first[j] = sums[j].first;
        second[j] = sums[j].second;
    }
    return (struct totals){real_stored(simd_fold(first)), real_stored(simd_fold(second))};
}

/* As fold_row(), for both. */
SIMD_INLINE struct totals fold_row_pair(struct row_pass row, size_t columns, float *first_parts,
                                        float *second_parts, fold_pair_step *step)
{
    float first[PARTS_MAX];
    float second[PARTS_MAX];
    size_t chunks = (size_t)fold_chunks(columns);

    for (size_t c = 0; c < chunks; c++) {
        size_t from = c * FOLD_CHUNK;
        size_t to = columns - from < FOLD_CHUNK ? columns : from + FOLD_CHUNK;
        struct totals part = fold_chunk_pair(row, from, to, step);
        first[c] = part.first;
        second[c] = part.second;
    }
    return (struct totals){total_of_parts(first, first_parts, chunks),
                           total_of_parts(second, second_parts, chunks)};
}

/* ---- rows of a call ----------------------------------------------------------- */

/* The row's part of an output that has `width` elements per row; NULL stays NULL. */
static float *output_row(const struct kernel_call *call, uint32_t output, size_t row, size_t width)
{
    float *base = call->outputs[output];

    return base == NULL ? NULL : base + row * width;
}

static const float *input_row(const struct kernel_call *call, uint32_t input, size_t row,
                              size_t width)
{
    return (const float *)call->inputs[input] + row * width;
}

static void put_scalar(const struct kernel_call *call, uint32_t output, size_t row, float value)
{
    if (call->outputs[output] != NULL) {
        ((float *)call->outputs[output])[row] = value;
    }
}

static size_t columns_of(const struct kernel_call *call)
{
    return (size_t)call->op->attributes[COLUMNS];
}

static float constant_of(const struct kernel_call *call, uint32_t attribute)
{
    return real_from_bits((uint32_t)call->op->attributes[attribute]);
}

static void run_rows(const struct kernel_call *call, span_function *span)
{
    parallel_rows(call, (size_t)call->op->attributes[ROWS], columns_of(call), span);
}

/* A pass without a fold. */
typedef void row_step(struct row_pass row, size_t i, size_t lanes);

SIMD_INLINE void map_span(struct row_pass row, size_t begin, size_t end, row_step *step)
{
    size_t i = begin;

    for (; i + SIMD_WIDTH <= end; i += SIMD_WIDTH) {
        step(row, i, SIMD_WIDTH);
    }
    if (i < end) {
        step(row, i, end - i);
    }
}

SIMD_INLINE void map_row(struct row_pass row, size_t columns, row_step *step)
{
    map_span(row, 0, columns, step);
}

#endif /* ENGINE_CPU_ROW_FOLD_H */
