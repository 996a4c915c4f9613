/*
 * moving_rows.c - the kernels of integers, and of several elements of each row: taken, sent, put in
 * order. Each gives the bits of its rule, with one source for all instruction sets; a row is one
 * thread's. cpu.h has their one call.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/parallel.h"
#include "engine/ops/integers.h"
#include "engine/ops/real.h"
#include "engine/ops/view.h"

static size_t number_at(const struct kernel_call *call, uint32_t position)
{
    return (size_t)call->op->attributes[position];
}

static const struct tensor *output_tensor(const struct kernel_call *call, uint32_t output)
{
    return &call->tensors[call->op->outputs[output]];
}

/* ---- integers ----------------------------------------------------------------- */

/* Along the last axis the places rise by its strides. */
static void span_integer(const struct kernel_call *call, size_t begin, size_t end)
{
    const int64_t *attributes = call->op->attributes;
    const int64_t *dims = &attributes[BINARY_DIMS];
    const enum integer_function function = (enum integer_function)attributes[INTEGER_FUNCTION];
    const size_t length = (size_t)dims[VIEW_AXES - 1];
    const size_t a_step = length > 1 ? (size_t)attributes[BINARY_A_STRIDES + VIEW_AXES - 1] : 0;
    const size_t b_step = length > 1 ? (size_t)attributes[BINARY_B_STRIDES + VIEW_AXES - 1] : 0;
    uint32_t *out = call->outputs[0];

    for (size_t i = begin; i < end;) {
        const size_t left = length - i % length;
        const size_t run = left < end - i ? left : end - i;
        const uint32_t *a =
            (const uint32_t *)call->inputs[0] + view_place(dims, &attributes[BINARY_A_STRIDES], i);
        const uint32_t *b =
            (const uint32_t *)call->inputs[1] + view_place(dims, &attributes[BINARY_B_STRIDES], i);

        for (size_t k = 0; k < run; k++) {
            out[i + k] = element_integers(function, a[k * a_step], b[k * b_step]);
        }
        i += run;
    }
}

static void run_integer(const struct kernel_call *call)
{
    if (call->outputs[0] != NULL) {
        parallel_spans(call, output_tensor(call, 0)->count, span_integer);
    }
}

/* ---- several elements of each row ----------------------------------------------- */

static void span_take(const struct kernel_call *call, size_t begin, size_t end)
{
    const size_t columns = number_at(call, COLUMNS);
    const size_t width = number_at(call, TAKE_WIDTH);
    const bool words = output_tensor(call, 0)->dtype == DTYPE_U32;
    const uint32_t *index = call->inputs[1];

    for (size_t r = begin; r < end; r++) {
        const uint32_t *x = (const uint32_t *)call->inputs[0] + r * columns;
        uint32_t *out = (uint32_t *)call->outputs[0] + r * width;

        for (size_t w = 0; w < width; w++) {
            const uint32_t column = index[r * width + w];

            out[w] = column < columns ? x[column] : words ? UINT32_MAX : FLOAT_NAN_BITS;
        }
    }
}

static void run_take(const struct kernel_call *call)
{
    if (call->outputs[0] != NULL) {
        parallel_rows(call, number_at(call, ROWS), number_at(call, TAKE_WIDTH), span_take);
    }
}

static void span_scatter(const struct kernel_call *call, size_t begin, size_t end)
{
    const bool adds = call->op->attributes[SCATTER_FUNCTION] == SCATTER_ADD;
    const size_t columns = number_at(call, COLUMNS);
    const size_t width = number_at(call, SCATTER_WIDTH);
    const uint32_t *index = call->inputs[0];
    const uint32_t *x = call->inputs[1];

    for (size_t r = begin; r < end; r++) {
        uint32_t *out = (uint32_t *)call->outputs[0] + r * columns;

        memcpy(out, (const uint32_t *)call->inputs[2] + r * columns, columns * sizeof(*out));
        for (size_t at = r * width; at < (r + 1) * width; at++) {
            if (index[at] < columns) {
                uint32_t *place = &out[index[at]];

                *place =
                    adds ? real_to_bits(real_from_bits(*place) + real_from_bits(x[at])) : x[at];
            }
        }
    }
}

static void run_scatter(const struct kernel_call *call)
{
    if (call->outputs[0] != NULL) {
        parallel_rows(call, number_at(call, ROWS), number_at(call, COLUMNS), span_scatter);
    }
}

/* ---- sorting -------------------------------------------------------------------- */

/* A key above, the column below: no two are equal. */
static int compare_places(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a;
    const uint64_t other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

static void span_sort(const struct kernel_call *call, size_t begin, size_t end)
{
    const size_t columns = number_at(call, COLUMNS);
    const bool descending = call->op->attributes[SORT_DESCENDING] != 0;
    uint64_t places[SORT_COLUMNS_MAX];

    for (size_t r = begin; r < end; r++) {
        const uint32_t *x = (const uint32_t *)call->inputs[0] + r * columns;

        for (size_t c = 0; c < columns; c++) {
            places[c] = (uint64_t)sort_key(x[c], descending) << 32 | c;
        }
        qsort(places, columns, sizeof(*places), compare_places);
        for (size_t c = 0; c < columns; c++) {
            const uint32_t column = (uint32_t)places[c];

            if (call->outputs[0] != NULL) {
                ((uint32_t *)call->outputs[0])[r * columns + column] = (uint32_t)c;
            }
            if (call->outputs[1] != NULL) {
                ((uint32_t *)call->outputs[1])[r * columns + c] = column;
            }
            if (call->outputs[2] != NULL) {
                ((uint32_t *)call->outputs[2])[r * columns + c] =
                    real_to_bits(real_from_bits(x[column]));
            }
        }
    }
}

static void run_sort(const struct kernel_call *call)
{
    parallel_rows(call, number_at(call, ROWS), number_at(call, COLUMNS) * 16, span_sort);
}

void moving_rows_kernels(struct kernel_table *table)
{
    table->kernels[OP_INTEGER].run = run_integer;
    table->kernels[OP_TAKE].run = run_take;
    table->kernels[OP_SCATTER].run = run_scatter;
    table->kernels[OP_SORT].run = run_sort;
}
