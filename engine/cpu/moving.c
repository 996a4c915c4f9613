/*
 * moving.c - kernels of the operations that draw, choose and move elements.
 *
 * Memory limits them, not arithmetic, so one plain C version serves every instruction set. Inner
 * loops run over contiguous elements and are marked for the compiler to vectorize. Threads share
 * the rows of the output: one thread computes an element, in the order of its rule.
 */
#include <assert.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/parallel.h"
#include "engine/ops/batch_rows.h"
#include "engine/ops/element.h"
#include "engine/ops/extreme.h"
#include "engine/ops/philox.h"
#include "engine/ops/real.h"

#ifdef __clang__
/* Without optimization, and under sanitizers, clang warns that it did not vectorize "omp simd". */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* With fewer elements a second thread costs more than it gains. */
#define PARALLEL_ELEMENTS_MIN 16384

static uint64_t attribute_at(const struct kernel_call *call, uint32_t at)
{
    return (uint64_t)call->op->attributes[at];
}

static const struct tensor *input_tensor(const struct kernel_call *call, uint32_t input)
{
    return &call->tensors[call->op->inputs[input]];
}

static uint64_t seed_at(const struct kernel_call *call, uint32_t low)
{
    return (uint64_t)(uint32_t)attribute_at(call, low + 1) << 32 |
           (uint32_t)attribute_at(call, low);
}

static int threads_for(const struct kernel_call *call, uint64_t rows, uint64_t width)
{
    return rows * width < PARALLEL_ELEMENTS_MIN ? 1 : call->thread_count;
}

static void run_step_next(const struct kernel_call *call)
{
    const uint32_t *step = call->inputs[0];
    uint32_t *next = call->outputs[0];

    if (next != NULL) {
        *next = *step + 1;
    }
}

static void run_schedule(const struct kernel_call *call)
{
    const uint32_t *table = call->inputs[0];
    const uint32_t *step = call->inputs[1];
    uint32_t *out = call->outputs[0];
    uint64_t columns = attribute_at(call, SCHEDULE_COLUMNS);
    uint64_t rows = input_tensor(call, 0)->count / columns;
    uint64_t row = *step < rows ? *step : rows - 1;

    if (out != NULL) {
        *out = table[row * columns + attribute_at(call, SCHEDULE_COLUMN)];
    }
}

/* ---- batches ---- */

/* Widens count elements of an integer tensor, beginning with element first. */
static void copy_integers(uint32_t *out, const void *data, enum dtype dtype, uint64_t first,
                          uint64_t count)
{
    if (dtype == DTYPE_U8) {
        const uint8_t *from = (const uint8_t *)data + first;

#pragma omp simd
        for (uint64_t i = 0; i < count; i++) {
            out[i] = from[i];
        }
    } else if (dtype == DTYPE_U16) {
        const uint16_t *from = (const uint16_t *)data + first;

#pragma omp simd
        for (uint64_t i = 0; i < count; i++) {
            out[i] = from[i];
        }
    } else {
        assert(dtype == DTYPE_U32);
        memcpy(out, (const uint32_t *)data + first, count * sizeof(*out));
    }
}

static uint64_t batch_draw(const struct kernel_call *call, uint64_t row, uint32_t step,
                           uint64_t count)
{
    struct philox_block block = philox_draw(row, (uint32_t)attribute_at(call, BATCH_STREAM), step,
                                            seed_at(call, BATCH_SEED_LOW));

    return philox_below(&block, count);
}

static void widen_halves(uint32_t *out, const uint16_t *in, uint64_t count, enum dtype dtype)
{
    for (uint64_t i = 0; i < count; i++) {
        out[i] = element_cast(dtype, DTYPE_F32, in[i]);
    }
}

/* As copy_integers(); floats become binary32. */
static void copy_numbers(uint32_t *out, const void *data, enum dtype dtype, uint64_t first,
                         uint64_t count)
{
    if (dtype_is_half(dtype)) {
        widen_halves(out, (const uint16_t *)data + first, count, dtype);
    } else {
        copy_integers(out, data, dtype == DTYPE_F32 ? DTYPE_U32 : dtype, first, count);
    }
}

static void run_batch_rows(const struct kernel_call *call)
{
    const struct tensor *data = input_tensor(call, 0);
    const uint32_t counter = *(const uint32_t *)call->inputs[1];
    const uint64_t batch = attribute_at(call, BATCH_COUNT);
    const uint64_t length = attribute_at(call, BATCH_LENGTH);
    const uint64_t ahead = attribute_at(call, BATCH_ROWS_AHEAD);
    uint32_t *out = call->outputs[0];

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, batch, length))
    for (uint64_t b = 0; b < batch; b++) {
        const uint64_t row = batch_row(call->op->attributes, data->count, counter, b);
        const uint64_t there = row == BATCH_ROW_NONE ? 0 : length - ahead;

        if (there > 0) {
            copy_numbers(out + b * length, call->inputs[0], data->dtype, row * length + ahead,
                         there);
        }
        for (uint64_t t = there; t < length; t++) {
            out[b * length + t] = (uint32_t)attribute_at(call, BATCH_ROWS_PAST);
        }
    }
}

static void run_batch_tokens(const struct kernel_call *call)
{
    const struct tensor *data = input_tensor(call, 0);
    uint32_t step = *(const uint32_t *)call->inputs[1];
    uint64_t batch = attribute_at(call, BATCH_COUNT);
    uint64_t length = attribute_at(call, BATCH_LENGTH);
    uint32_t *tokens = call->outputs[0];
    uint32_t *targets = call->outputs[1];

#pragma omp parallel for num_threads(threads_for(call, batch, length))
    for (uint64_t b = 0; b < batch; b++) {
        uint64_t start = batch_draw(call, b, step, data->count - length);

        if (tokens != NULL) {
            copy_integers(tokens + b * length, call->inputs[0], data->dtype, start, length);
        }
        if (targets != NULL) {
            copy_integers(targets + b * length, call->inputs[0], data->dtype, start + 1, length);
        }
    }
}

static void scale_sample(float *out, const void *samples, enum dtype dtype, uint64_t first,
                         uint64_t count, float scale)
{
    if (dtype == DTYPE_U8) {
        const uint8_t *from = (const uint8_t *)samples + first;

#pragma omp simd
        for (uint64_t i = 0; i < count; i++) {
            out[i] = real_stored((float)from[i] * scale);
        }
    } else {
        assert(dtype == DTYPE_F32);
        const float *from = (const float *)samples + first;

#pragma omp simd
        for (uint64_t i = 0; i < count; i++) {
            out[i] = real_stored(from[i] * scale);
        }
    }
}

static void run_batch_samples(const struct kernel_call *call)
{
    const struct tensor *samples = input_tensor(call, 0);
    uint32_t step = *(const uint32_t *)call->inputs[2];
    uint64_t batch = attribute_at(call, BATCH_COUNT);
    uint64_t width = attribute_at(call, BATCH_LENGTH);
    float scale = real_from_bits((uint32_t)attribute_at(call, BATCH_SCALE_BITS));
    float *x = call->outputs[0];
    uint32_t *y = call->outputs[1];

#pragma omp parallel for num_threads(threads_for(call, batch, width))
    for (uint64_t b = 0; b < batch; b++) {
        uint64_t sample = batch_draw(call, b, step, samples->count / width);

        if (x != NULL) {
            scale_sample(x + b * width, call->inputs[0], samples->dtype, sample * width, width,
                         scale);
        }
        if (y != NULL) {
            copy_integers(y + b, call->inputs[1], input_tensor(call, 1)->dtype, sample, 1);
        }
    }
}

/* ---- dropout, random words ---- */

/* Blocks drawn together, to fill vector registers. */
#define DRAWN_BLOCKS 16
#define DRAWN_WORDS  (4 * DRAWN_BLOCKS)

/* The words of DRAWN_BLOCKS blocks from element `first` on; words[4*i+w] is word w of block i. */
static void draw_blocks(uint32_t words[DRAWN_WORDS], uint64_t first, uint32_t stream, uint32_t step,
                        uint64_t seed)
{
    uint32_t c[4][DRAWN_BLOCKS];
    uint32_t key0 = (uint32_t)seed;
    uint32_t key1 = (uint32_t)(seed >> 32);

    for (int i = 0; i < DRAWN_BLOCKS; i++) {
        c[0][i] = (uint32_t)(first + (uint64_t)i);
        c[1][i] = (uint32_t)((first + (uint64_t)i) >> 32);
        c[2][i] = stream;
        c[3][i] = step;
    }
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
#pragma omp simd
        for (int i = 0; i < DRAWN_BLOCKS; i++) {
            uint64_t product0 = (uint64_t)PHILOX_MULTIPLIER_0 * c[0][i];
            uint64_t product2 = (uint64_t)PHILOX_MULTIPLIER_2 * c[2][i];

            c[0][i] = (uint32_t)(product2 >> 32) ^ c[1][i] ^ key0;
            c[1][i] = (uint32_t)product2;
            c[2][i] = (uint32_t)(product0 >> 32) ^ c[3][i] ^ key1;
            c[3][i] = (uint32_t)product0;
        }
        key0 += PHILOX_KEY_STEP_0;
        key1 += PHILOX_KEY_STEP_1;
    }
    for (int i = 0; i < DRAWN_BLOCKS; i++) {
        for (int w = 0; w < 4; w++) {
            words[4 * i + w] = c[w][i];
        }
    }
}

static void run_dropout(const struct kernel_call *call)
{
    const float *x = call->inputs[0];
    uint32_t step = *(const uint32_t *)call->inputs[1];
    float *out = call->outputs[0];
    uint64_t count = input_tensor(call, 0)->count;
    uint64_t groups = (count + DRAWN_WORDS - 1) / DRAWN_WORDS;
    uint64_t threshold = attribute_at(call, DROPOUT_THRESHOLD);
    float scale = real_from_bits((uint32_t)attribute_at(call, DROPOUT_SCALE_BITS));
    uint32_t stream = (uint32_t)attribute_at(call, DROPOUT_STREAM);
    uint64_t seed = seed_at(call, DROPOUT_SEED_LOW);

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, count, 1))
    for (uint64_t group = 0; group < groups; group++) {
        uint64_t first = group * DRAWN_WORDS;
        uint64_t left = count - first;
        uint64_t here = left < DRAWN_WORDS ? left : DRAWN_WORDS;
        uint32_t words[DRAWN_WORDS];

        draw_blocks(words, first / 4, stream, step, seed);
#pragma omp simd
        for (uint64_t i = 0; i < here; i++) {
            float kept = real_stored(x[first + i] * scale);

            out[first + i] = words[i] < threshold ? 0.0f : kept;
        }
    }
}

static void run_uniform(const struct kernel_call *call)
{
    const uint32_t step = *(const uint32_t *)call->inputs[0];
    const uint64_t count = call->tensors[call->op->outputs[0]].count;
    const uint64_t groups = (count + DRAWN_WORDS - 1) / DRAWN_WORDS;
    const uint32_t stream = (uint32_t)attribute_at(call, UNIFORM_STREAM);
    const uint64_t seed = seed_at(call, UNIFORM_SEED_LOW);
    uint32_t *out = call->outputs[0];

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, count, 1))
    for (uint64_t group = 0; group < groups; group++) {
        const uint64_t first = group * DRAWN_WORDS;
        const uint64_t left = count - first;
        uint32_t words[DRAWN_WORDS];

        draw_blocks(words, first / 4, stream, step, seed);
        memcpy(out + first, words, (left < DRAWN_WORDS ? left : DRAWN_WORDS) * sizeof(*out));
    }
}

/* ---- whole rows ---- */

static void fill_nan(uint32_t *out, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        out[i] = FLOAT_NAN_BITS;
    }
}

static void run_gather(const struct kernel_call *call)
{
    const enum dtype dtype = input_tensor(call, 0)->dtype;
    const char *table = call->inputs[0];
    const uint32_t *index = call->inputs[1];
    uint32_t *out = call->outputs[0];
    uint64_t rows = input_tensor(call, 1)->count;
    uint64_t width = attribute_at(call, GATHER_WIDTH);
    uint64_t vocabulary = attribute_at(call, GATHER_VOCABULARY);

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, rows, width))
    for (uint64_t row = 0; row < rows; row++) {
        const char *from = table + index[row] * width * dtype_size(dtype);

        if (index[row] >= vocabulary) {
            fill_nan(out + row * width, width);
        } else if (dtype_is_half(dtype)) {
            widen_halves(out + row * width, (const uint16_t *)(const void *)from, width, dtype);
        } else {
            memcpy(out + row * width, from, width * sizeof(*out));
        }
    }
}

/* The parts of SPLIT and CONCAT lie side by side in `rows` rows; sizes in bytes. */
struct side_by_side {
    uint32_t count;
    uint64_t rows;
    size_t row_size;
    size_t sizes[OP_OUTPUTS_MAX];
    size_t offsets[OP_OUTPUTS_MAX];
};

_Static_assert(OP_INPUTS_MAX == OP_OUTPUTS_MAX, "struct side_by_side serves SPLIT and CONCAT");

static struct side_by_side parts_of(const struct kernel_call *call, uint32_t count)
{
    struct side_by_side parts = {.count = count, .rows = attribute_at(call, SPLIT_ROWS)};

    for (uint32_t i = 0; i < count; i++) {
        parts.sizes[i] =
            attribute_at(call, SPLIT_WIDTHS + i) * dtype_size(input_tensor(call, 0)->dtype);
        parts.offsets[i] = parts.row_size;
        parts.row_size += parts.sizes[i];
    }
    return parts;
}

/* Where a part lies in the whole already, there is nothing to do. */
static void copy_part(uint8_t *to, const uint8_t *from, size_t size)
{
    if (to != from) {
        memcpy(to, from, size);
    }
}

static void run_split(const struct kernel_call *call)
{
    struct side_by_side parts = parts_of(call, call->op->output_count);
    const uint8_t *whole = call->inputs[0];

#pragma omp parallel for num_threads(threads_for(call, parts.rows, parts.row_size))
    for (uint64_t row = 0; row < parts.rows; row++) {
        for (uint32_t i = 0; i < parts.count; i++) {
            uint8_t *part = call->outputs[i];

            if (part != NULL) {
                copy_part(part + row * parts.sizes[i],
                          whole + row * parts.row_size + parts.offsets[i], parts.sizes[i]);
            }
        }
    }
}

static void run_concat(const struct kernel_call *call)
{
    struct side_by_side parts = parts_of(call, call->op->input_count);
    uint8_t *whole = call->outputs[0];

    if (whole == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, parts.rows, parts.row_size))
    for (uint64_t row = 0; row < parts.rows; row++) {
        for (uint32_t i = 0; i < parts.count; i++) {
            const uint8_t *part = call->inputs[i];

            copy_part(whole + row * parts.row_size + parts.offsets[i], part + row * parts.sizes[i],
                      parts.sizes[i]);
        }
    }
}

/* ---- moves and places ----------------------------------------------------- */

/* Elements along the innermost axis that has more than one. */
struct move_run {
    int64_t place;  /* in the addressed tensor */
    int64_t stride; /* of the next element there */
    uint64_t count;
};

/* The run that begins at element i of the dense side, and ends before `end`. */
static struct move_run move_run_at(const struct op *op, uint64_t i, uint64_t end)
{
    const int64_t *attributes = op->attributes;
    struct move_run run = {attributes[MOVE_OFFSET], 0, 0};
    uint64_t rest = i;

    for (uint32_t axis = MOVE_AXES; axis > 0; axis--) {
        uint64_t length = (uint64_t)attributes[MOVE_DIMS + axis - 1];
        int64_t stride = attributes[MOVE_STRIDES + axis - 1];

        if (run.count == 0 && (length > 1 || axis == 1)) {
            run.count = length - rest % length;
            run.stride = stride;
        }
        run.place += (int64_t)(rest % length) * stride;
        rest /= length;
    }
    run.count = run.count < end - i ? run.count : end - i;
    return run;
}

static void span_move(const struct kernel_call *call, size_t begin, size_t end)
{
    const uint32_t *x = call->inputs[0];
    uint32_t *y = call->outputs[0];

    for (size_t i = begin; i < end;) {
        struct move_run run = move_run_at(call->op, i, end);
        const uint32_t *from = x + run.place;

        if (run.stride == 1) {
            memcpy(y + i, from, run.count * sizeof(*y));
        } else {
            for (uint64_t k = 0; k < run.count; k++) {
                y[i + k] = from[(int64_t)k * run.stride];
            }
        }
        i += run.count;
    }
}

/* Elements of 4 bytes; of 2 in slices of a chain, which puts exponents together. */
static size_t size_of_place(const struct kernel_call *call)
{
    return dtype_size(call->tensors[call->op->outputs[0]].dtype);
}

static void copy_element(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size == sizeof(uint32_t)) {
        memcpy(to, from, sizeof(uint32_t));
    } else {
        memcpy(to, from, sizeof(uint16_t));
    }
}

static void span_base(const struct kernel_call *call, size_t begin, size_t end)
{
    const size_t size = size_of_place(call);
    const uint8_t *base = call->inputs[1];
    uint8_t *y = call->outputs[0];

    if (input_tensor(call, 1)->count != 1) {
        copy_part(y + begin * size, base + begin * size, (end - begin) * size);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        copy_element(y + i * size, base, size);
    }
}

static void span_place(const struct kernel_call *call, size_t begin, size_t end)
{
    const size_t size = size_of_place(call);
    const uint8_t *x = call->inputs[0];
    uint8_t *y = call->outputs[0];

    for (size_t i = begin; i < end;) {
        struct move_run run = move_run_at(call->op, i, end);

        if (run.stride == 1) {
            memcpy(y + run.place * (int64_t)size, x + i * size, run.count * size);
        }
        for (uint64_t k = 0; run.stride != 1 && k < run.count; k++) {
            copy_element(y + (run.place + (int64_t)k * run.stride) * (int64_t)size,
                         x + (i + k) * size, size);
        }
        i += run.count;
    }
}

static uint32_t element_of(const void *memory, size_t size, bool is_signed, size_t i)
{
    if (is_signed) {
        return (uint32_t)(int32_t)((const int16_t *)memory)[i];
    }
    return size == 4   ? ((const uint32_t *)memory)[i]
           : size == 2 ? ((const uint16_t *)memory)[i]
                       : ((const uint8_t *)memory)[i];
}

static void span_cast(const struct kernel_call *call, size_t begin, size_t end)
{
    const enum dtype from = input_tensor(call, 0)->dtype;
    const enum dtype to = call->tensors[call->op->outputs[0]].dtype;
    const size_t size = dtype_size(from);
    const bool is_wide = dtype_size(to) == 4;

    for (size_t i = begin; i < end; i++) {
        uint32_t bits =
            element_cast(from, to, element_of(call->inputs[0], size, from == DTYPE_I16, i));

        if (is_wide) {
            ((uint32_t *)call->outputs[0])[i] = bits;
        } else {
            ((uint16_t *)call->outputs[0])[i] = (uint16_t)bits;
        }
    }
}

static void run_cast(const struct kernel_call *call)
{
    if (call->outputs[0] != NULL) {
        parallel_spans(call, call->tensors[call->op->outputs[0]].count, span_cast);
    }
}

static void run_move(const struct kernel_call *call)
{
    if (call->outputs[0] != NULL) {
        parallel_spans(call, call->tensors[call->op->outputs[0]].count, span_move);
    }
}

static void run_place(const struct kernel_call *call)
{
    if (call->outputs[0] != NULL) {
        parallel_spans(call, call->tensors[call->op->outputs[0]].count, span_base);
        parallel_spans(call, input_tensor(call, 0)->count, span_place);
    }
}

/* ---- rows ---- */

/* The extreme of [from, end), from >= 0: its column. */
static size_t extreme_between(const float *x, size_t from, size_t end, int64_t function)
{
    size_t holder = from;

    for (size_t c = from + 1; c < end; c++) {
        if (extreme_takes(function, x[holder], x[c])) {
            holder = c;
        }
    }
    return holder;
}

static void put_real(float *to, size_t at, float value)
{
    if (to != NULL) {
        to[at] = real_stored(value);
    }
}

static void put_index(uint32_t *to, size_t at, size_t value)
{
    if (to != NULL) {
        to[at] = (uint32_t)value;
    }
}

static void span_reduce(const struct kernel_call *call, size_t begin, size_t end)
{
    const int64_t function = call->op->attributes[REDUCE_FUNCTION];
    const size_t columns = attribute_at(call, COLUMNS);
    const size_t chunks = fold_chunks(columns);

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)call->inputs[0] + r * columns;
        size_t holder = 0;

        for (size_t k = 0; k < chunks; k++) {
            const size_t from = k * FOLD_CHUNK;
            const size_t to = columns - from < FOLD_CHUNK ? columns : from + FOLD_CHUNK;
            const size_t own = extreme_between(x, from, to, function);

            put_real(call->outputs[0], r * chunks + k, x[own]);
            put_index(call->outputs[1], r * chunks + k, own);
            holder = k == 0 || extreme_takes(function, x[holder], x[own]) ? own : holder;
        }
        put_real(call->outputs[2], r, x[holder]);
        put_index(call->outputs[3], r, holder);
    }
}

static void span_gather_elements(const struct kernel_call *call, size_t begin, size_t end)
{
    const size_t columns = attribute_at(call, COLUMNS);
    const float *x = call->inputs[0];
    const uint32_t *index = call->inputs[1];

    for (size_t r = begin; r < end; r++) {
        put_real(call->outputs[0], r,
                 index[r] < columns ? x[r * columns + index[r]] : real_from_bits(FLOAT_NAN_BITS));
    }
}

static void span_gather_elements_grad(const struct kernel_call *call, size_t begin, size_t end)
{
    const size_t columns = attribute_at(call, COLUMNS);
    const uint32_t *index = call->inputs[0];
    const float *dy = call->inputs[1];
    float *dx = call->outputs[0];

    if (dx == NULL) {
        return;
    }
    memset(dx + begin * columns, 0, (end - begin) * columns * sizeof(*dx));
    for (size_t r = begin; r < end; r++) {
        if (index[r] < columns) {
            dx[r * columns + index[r]] = real_stored(dy[r]);
        }
    }
}

static void run_reduce(const struct kernel_call *call)
{
    parallel_rows(call, attribute_at(call, ROWS), attribute_at(call, COLUMNS), span_reduce);
}

static void run_gather_elements(const struct kernel_call *call)
{
    parallel_rows(call, attribute_at(call, ROWS), 1, span_gather_elements);
}

static void run_gather_elements_grad(const struct kernel_call *call)
{
    parallel_rows(call, attribute_at(call, ROWS), attribute_at(call, COLUMNS),
                  span_gather_elements_grad);
}

void moving_kernels(struct kernel_table *table)
{
    table->kernels[OP_STEP_NEXT].run = run_step_next;
    table->kernels[OP_SCHEDULE].run = run_schedule;
    table->kernels[OP_BATCH_TOKENS].run = run_batch_tokens;
    table->kernels[OP_BATCH_SAMPLES].run = run_batch_samples;
    table->kernels[OP_BATCH_ROWS].run = run_batch_rows;
    table->kernels[OP_DROPOUT].run = run_dropout;
    table->kernels[OP_UNIFORM].run = run_uniform;
    table->kernels[OP_GATHER].run = run_gather;
    table->kernels[OP_SPLIT].run = run_split;
    table->kernels[OP_CONCAT].run = run_concat;
    table->kernels[OP_MOVE].run = run_move;
    table->kernels[OP_PLACE].run = run_place;
    table->kernels[OP_REDUCE].run = run_reduce;
    table->kernels[OP_GATHER_ELEMENTS].run = run_gather_elements;
    table->kernels[OP_GATHER_ELEMENTS_GRAD].run = run_gather_elements_grad;
    table->kernels[OP_CAST].run = run_cast;
    moving_image_kernels(table);
}
