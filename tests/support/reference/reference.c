/* reference.c - the tables of the double-precision interpreter, and its plain operations. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/element.h"
#include "tests/support/reference/reference_core.h"

void *reference_room(size_t count, size_t size)
{
    void *room = calloc(count + 1, size);

    if (room == NULL) {
        fprintf(stderr, "reference: no memory for %zu elements\n", count);
        abort();
    }
    return room;
}

double reference_constant(const struct reference_op *run, int position)
{
    uint32_t bits = (uint32_t)run->attributes[position];
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* ---- randomness: Philox4x32-10, written out a second time --------------- */

static void draw(uint32_t *words, uint64_t element, uint32_t stream, uint32_t step, uint32_t low,
                 uint32_t high)
{
    uint32_t a = (uint32_t)element;
    uint32_t b = (uint32_t)(element >> 32);
    uint32_t c = stream;
    uint32_t d = step;

    for (int round = 0; round < 10; round++) {
        uint64_t p = UINT64_C(0xd2511f53) * a;
        uint64_t q = UINT64_C(0xcd9e8d57) * c;

        a = (uint32_t)(q >> 32) ^ b ^ low;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ high;
        d = (uint32_t)p;
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
    words[0] = a;
    words[1] = b;
    words[2] = c;
    words[3] = d;
}

/* floor(64 random bits * count / 2^64) */
static uint64_t draw_below(const struct reference_op *run, uint64_t row, uint32_t step,
                           uint64_t count)
{
    const int64_t *a = run->attributes;
    uint32_t words[4];

    draw(words, row, (uint32_t)a[BATCH_STREAM], step, (uint32_t)a[BATCH_SEED_LOW],
         (uint32_t)a[BATCH_SEED_HIGH]);
    return (uint64_t)((unsigned __int128)((uint64_t)words[1] << 32 | words[0]) * count >> 64);
}

static double stored_value(const void *bytes, enum dtype dtype, uint64_t index)
{
    switch (dtype) {
    case DTYPE_F32:
        return ((const float *)bytes)[index];
    case DTYPE_U8:
        return ((const uint8_t *)bytes)[index];
    case DTYPE_U16:
        return ((const uint16_t *)bytes)[index];
    case DTYPE_U32:
        return ((const uint32_t *)bytes)[index];
    case DTYPE_I16:
        return ((const int16_t *)bytes)[index];
    case DTYPE_I32:
        return ((const int32_t *)bytes)[index];
    case DTYPE_F16:
        return (double)element_from_f16(((const uint16_t *)bytes)[index]);
    case DTYPE_BF16:
        return (double)real_from_bits((uint32_t)((const uint16_t *)bytes)[index] << 16);
    case DTYPE_COUNT:
        break;
    }
    abort();
}

/* Element of input slot, whether it is data or a value. */
static double element(const struct reference_op *run, uint32_t slot, uint64_t index)
{
    uint32_t id = run->op->inputs[slot];

    if (run->in[slot] != NULL) {
        return run->in[slot][index];
    }
    return stored_value(run->reference->data[id], run->reference->tape->tensors[id].dtype, index);
}

/* ---- where a step begins ------------------------------------------------ */

static void step_next(const struct reference_op *run)
{
    run->out[0][0] = run->in[0][0] + 1.0;
}

static void schedule(const struct reference_op *run)
{
    int64_t columns = run->attributes[SCHEDULE_COLUMNS];
    int64_t last = run->in_count[0] / columns - 1;
    int64_t step = (int64_t)run->in[1][0];
    int64_t row = step < last ? step : last;

    run->out[0][0] = run->in[0][row * columns + run->attributes[SCHEDULE_COLUMN]];
}

static void fill(const struct reference_op *run)
{
    const struct tensor *out = &run->reference->tape->tensors[run->op->outputs[0]];
    double value = out->dtype == DTYPE_U32 ? (double)run->attributes[FILL_VALUE_BITS]
                                           : reference_constant(run, FILL_VALUE_BITS);

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] = value;
    }
}

static void batch_tokens(const struct reference_op *run)
{
    int64_t batch = run->attributes[BATCH_COUNT];
    int64_t length = run->attributes[BATCH_LENGTH];

    for (int64_t b = 0; b < batch; b++) {
        uint64_t start = draw_below(run, (uint64_t)b, (uint32_t)run->in[1][0],
                                    (uint64_t)(run->in_count[0] - length));

        for (int64_t t = 0; t < length; t++) {
            run->out[0][b * length + t] = element(run, 0, start + (uint64_t)t);
            run->out[1][b * length + t] = element(run, 0, start + (uint64_t)t + 1);
        }
    }
}

static void batch_samples(const struct reference_op *run)
{
    int64_t batch = run->attributes[BATCH_COUNT];
    int64_t width = run->attributes[BATCH_LENGTH];
    double scale = reference_constant(run, BATCH_SCALE_BITS);

    for (int64_t b = 0; b < batch; b++) {
        uint64_t sample = draw_below(run, (uint64_t)b, (uint32_t)run->in[2][0],
                                     (uint64_t)(run->in_count[0] / width));

        for (int64_t i = 0; i < width; i++) {
            run->out[0][b * width + i] =
                element(run, 0, sample * (uint64_t)width + (uint64_t)i) * scale;
        }
        run->out[1][b] = element(run, 1, sample);
    }
}

/* The unit at a position: eight Feistel rounds, written out a second time. */
static uint64_t shuffled_unit(const struct reference_op *run, uint64_t position, uint64_t units)
{
    const int64_t *a = run->attributes;
    uint64_t place = position % units;
    uint64_t side = 1;

    while (side * side < units) {
        side++;
    }
    uint64_t other = units / side + (units % side != 0);

    for (int walk = 0; walk < 64; walk++) {
        uint64_t left = place % side;
        uint64_t right = place / side;

        for (uint32_t round = 0; round < 8; round++) {
            uint64_t over = round % 2 == 0 ? side : other;
            uint64_t old = right;
            uint32_t words[4];

            draw(words, (uint64_t)round << 32 | right, (uint32_t)a[BATCH_STREAM],
                 (uint32_t)(position / units), (uint32_t)a[BATCH_SEED_LOW],
                 (uint32_t)a[BATCH_SEED_HIGH]);
            right = (left +
                     (uint64_t)((unsigned __int128)((uint64_t)words[1] << 32 | words[0]) * over >>
                                64)) %
                    over;
            left = old;
        }
        place = right * side + left;
        if (place < units) {
            return place;
        }
    }
    return position % units;
}

static void batch_rows(const struct reference_op *run)
{
    const int64_t *a = run->attributes;
    const enum dtype dtype = run->reference->tape->tensors[run->op->outputs[0]].dtype;
    const double past =
        dtype == DTYPE_U32 ? (double)a[BATCH_ROWS_PAST] : reference_constant(run, BATCH_ROWS_PAST);
    const uint64_t length = (uint64_t)a[BATCH_LENGTH];
    const uint64_t together = (uint64_t)a[BATCH_ROWS_UNIT];
    const uint64_t units = (uint64_t)run->in_count[0] / length / together;

    for (uint64_t b = 0; b < (uint64_t)a[BATCH_COUNT]; b++) {
        uint64_t unit =
            (uint64_t)run->in[1][0] * ((uint64_t)a[BATCH_COUNT] / together) + b / together;
        bool there = a[BATCH_ROWS_ORDER] == 1 || unit < units;

        unit = a[BATCH_ROWS_ORDER] == 1 ? shuffled_unit(run, unit, units) : unit;
        for (uint64_t t = 0; t < length; t++) {
            uint64_t from = t + (uint64_t)a[BATCH_ROWS_AHEAD];
            uint64_t row = unit * together + b % together;

            run->out[0][b * length + t] =
                there && from < length ? element(run, 0, row * length + from) : past;
        }
    }
}

static void random_words(const struct reference_op *run)
{
    const int64_t *a = run->attributes;

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        uint32_t words[4];

        draw(words, (uint64_t)i / 4, (uint32_t)a[UNIFORM_STREAM], (uint32_t)run->in[0][0],
             (uint32_t)a[UNIFORM_SEED_LOW], (uint32_t)a[UNIFORM_SEED_HIGH]);
        run->out[0][i] = words[i % 4];
    }
}

static void dropout(const struct reference_op *run)
{
    const int64_t *a = run->attributes;
    double scale = reference_constant(run, DROPOUT_SCALE_BITS);

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        uint32_t words[4];

        draw(words, (uint64_t)i / 4, (uint32_t)a[DROPOUT_STREAM], (uint32_t)run->in[1][0],
             (uint32_t)a[DROPOUT_SEED_LOW], (uint32_t)a[DROPOUT_SEED_HIGH]);
        run->out[0][i] = words[i % 4] >= a[DROPOUT_THRESHOLD] ? run->in[0][i] * scale : 0.0;
    }
}

/* ---- moving data -------------------------------------------------------- */

static void gather(const struct reference_op *run)
{
    int64_t width = run->attributes[GATHER_WIDTH];

    for (int64_t r = 0; r < run->in_count[1]; r++) {
        double word = run->in[1][r];

        for (int64_t c = 0; c < width; c++) {
            run->out[0][r * width + c] = word < (double)run->attributes[GATHER_VOCABULARY]
                                             ? run->in[0][(int64_t)word * width + c]
                                             : NAN;
        }
    }
}

static void split(const struct reference_op *run)
{
    const double *at = run->in[0];

    for (int64_t r = 0; r < run->attributes[SPLIT_ROWS]; r++) {
        for (uint32_t i = 0; i < run->op->output_count; i++) {
            int64_t width = run->attributes[SPLIT_WIDTHS + i];

            memcpy(run->out[i] + r * width, at, (size_t)width * sizeof(*at));
            at += width;
        }
    }
}

static void concat(const struct reference_op *run)
{
    double *at = run->out[0];

    for (int64_t r = 0; r < run->attributes[SPLIT_ROWS]; r++) {
        for (uint32_t i = 0; i < run->op->input_count; i++) {
            int64_t width = run->attributes[SPLIT_WIDTHS + i];

            memcpy(at, run->in[i] + r * width, (size_t)width * sizeof(*at));
            at += width;
        }
    }
}

static void expand(const struct reference_op *run)
{
    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] = run->in[0][i / run->attributes[EXPAND_DIV] % run->attributes[EXPAND_MOD]];
    }
}

/* ---- element by element ------------------------------------------------- */

static void rotary(const struct reference_op *run)
{
    int64_t width = run->attributes[ROTARY_WIDTH];
    int64_t across = width * run->attributes[ROTARY_HEADS];
    double sign = run->attributes[ROTARY_INVERSE] != 0 ? -1.0 : 1.0;
    bool halves = run->attributes[ROTARY_HALVES] != 0;

    for (int64_t head = 0; head < run->out_count[0]; head += width) {
        const double *turn = &run->in[1][head / across % run->attributes[ROTARY_LENGTH] * width];

        for (int64_t j = 0; j < width / 2; j++) {
            int64_t first = head + (halves ? j : 2 * j);
            int64_t second = halves ? first + width / 2 : first + 1;
            double x = run->in[0][first];
            double y = run->in[0][second];

            run->out[0][first] = x * turn[2 * j] - y * sign * turn[2 * j + 1];
            run->out[0][second] = x * sign * turn[2 * j + 1] + y * turn[2 * j];
        }
    }
}

/* ---- the update --------------------------------------------------------- */

static void clip_factor(const struct reference_op *run)
{
    double norm = sqrt(run->in[0][0]);
    double limit = reference_constant(run, CLIP_LIMIT_BITS);

    run->out[0][0] = norm > limit ? limit / norm : isnan(norm) ? norm : 1.0;
}

static void sgd(const struct reference_op *run)
{
    double momentum = reference_constant(run, SGD_MOMENTUM_BITS);
    double decay = reference_constant(run, SGD_DECAY_BITS);

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        double p = run->in[0][i];
        double v = momentum * run->in[2][i] + decay * p + run->in[1][i] * run->in[4][0];

        run->out[0][i] = p - run->in[3][0] * v;
        run->out[1][i] = v;
    }
}

static void adamw(const struct reference_op *run)
{
    double beta1 = reference_constant(run, ADAMW_BETA1_BITS);
    double less1 = reference_constant(run, ADAMW_ONE_LESS_BETA1_BITS);
    double beta2 = reference_constant(run, ADAMW_BETA2_BITS);
    double less2 = reference_constant(run, ADAMW_ONE_LESS_BETA2_BITS);
    double epsilon = reference_constant(run, ADAMW_EPSILON_BITS);
    double decay = reference_constant(run, ADAMW_DECAY_BITS);
    double rate = run->in[4][0];

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        double p = run->in[0][i];
        double g = run->in[1][i] * run->in[7][0];
        double m = beta1 * run->in[2][i] + less1 * g;
        double v = beta2 * run->in[3][i] + less2 * g * g;
        double update = m * run->in[5][0] / (sqrt(v * run->in[6][0]) + epsilon);

        run->out[0][i] = p - rate * (update + decay * p);
        run->out[1][i] = m;
        run->out[2][i] = v;
    }
}

/* ---- the machine -------------------------------------------------------- */

static reference_function *const functions[OP_KIND_COUNT] = {
    [OP_STEP_NEXT] = step_next,
    [OP_SCHEDULE] = schedule,
    [OP_FILL] = fill,
    [OP_BATCH_TOKENS] = batch_tokens,
    [OP_BATCH_SAMPLES] = batch_samples,
    [OP_BATCH_ROWS] = batch_rows,
    [OP_DROPOUT] = dropout,
    [OP_UNIFORM] = random_words,
    [OP_GATHER] = gather,
    [OP_SPLIT] = split,
    [OP_CONCAT] = concat,
    [OP_EXPAND] = expand,
    [OP_IM2COL] = reference_im2col,
    [OP_COL2IM] = reference_col2im,
    [OP_ROTARY] = rotary,
    [OP_QUANTIZE] = reference_quantize,
    [OP_EQUILIBRATE] = reference_equilibrate,
    [OP_CONTRACT] = reference_contract,
    [OP_CONTRACT_ONES] = reference_contract_ones,
    [OP_CONTRACT_ONEHOT] = reference_contract_onehot,
    [OP_CONTRACT_CHOSEN] = reference_contract_chosen,
    [OP_CONTRACT_CHOSEN_ROWS] = reference_contract_chosen_rows,
    [OP_ROW_SUM] = reference_row_sum,
    [OP_LAYER_NORM] = reference_layer_norm,
    [OP_LAYER_NORM_GRAD] = reference_layer_norm_grad,
    [OP_RMS_NORM] = reference_rms_norm,
    [OP_RMS_NORM_GRAD] = reference_rms_norm_grad,
    [OP_SOFTMAX] = reference_softmax,
    [OP_SOFTMAX_GRAD] = reference_softmax_grad,
    [OP_CROSS_ENTROPY] = reference_cross_entropy,
    [OP_CROSS_ENTROPY_GRAD] = reference_cross_entropy_grad,
    [OP_MAX_POOL] = reference_max_pool,
    [OP_MAX_POOL_GRAD] = reference_max_pool_grad,
    [OP_MEAN_POOL] = reference_mean_pool,
    [OP_MEAN_POOL_GRAD] = reference_mean_pool_grad,
    [OP_CLIP_FACTOR] = clip_factor,
    [OP_SGD] = sgd,
    [OP_ADAMW] = adamw,
    [OP_MAP] = reference_map,
    [OP_BINARY] = reference_binary,
    [OP_SELECT] = reference_select,
    [OP_MOVE] = reference_move,
    [OP_PLACE] = reference_place,
    [OP_REDUCE] = reference_reduce,
    [OP_GATHER_ELEMENTS] = reference_gather_elements,
    [OP_GATHER_ELEMENTS_GRAD] = reference_gather_elements_grad,
    [OP_CAST] = reference_cast,
    [OP_INTEGER] = reference_integer,
    [OP_TAKE] = reference_take,
    [OP_SCATTER] = reference_scatter,
    [OP_SORT] = reference_sort,
};

struct reference *reference_new(const struct tape *tape, enum reference_mode mode)
{
    struct reference *reference = reference_room(1, sizeof(*reference));

    reference->tape = tape;
    reference->mode = mode;
    reference->values = reference_room(tape->tensor_count, sizeof(*reference->values));
    reference->data = reference_room(tape->tensor_count, sizeof(*reference->data));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role != ROLE_DATA) {
            reference->values[id] = reference_room(tape->tensors[id].count, sizeof(double));
        }
    }
    return reference;
}

void reference_free(struct reference *reference)
{
    if (reference == NULL) {
        return;
    }
    for (uint32_t id = 0; id < reference->tape->tensor_count; id++) {
        free(reference->values[id]);
    }
    free(reference->values);
    free(reference->data);
    free(reference);
}

double *reference_values(const struct reference *reference, uint32_t tensor)
{
    assert(tensor < reference->tape->tensor_count);
    return reference->values[tensor];
}

void reference_write(struct reference *reference, uint32_t tensor, const void *bytes)
{
    const struct tensor *shape = &reference->tape->tensors[tensor];

    for (uint64_t i = 0; i < shape->count; i++) {
        reference->values[tensor][i] = stored_value(bytes, shape->dtype, i);
    }
}

void reference_bind(struct reference *reference, uint32_t tensor, const void *bytes)
{
    assert(reference->tape->tensors[tensor].role == ROLE_DATA);
    reference->data[tensor] = bytes;
}

void reference_run(struct reference *reference, uint32_t op_count)
{
    const struct tape *tape = reference->tape;

    assert(op_count <= tape->op_count);
    for (uint32_t at = 0; at < op_count; at++) {
        const struct op *op = &tape->ops[at];
        struct reference_op run = {reference, op, op->attributes, {0}, {0}, {0}, {0}};

        for (uint32_t i = 0; i < op->input_count; i++) {
            run.in[i] = reference->values[op->inputs[i]];
            run.in_count[i] = (int64_t)tape->tensors[op->inputs[i]].count;
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            run.out[i] = reference->values[op->outputs[i]];
            run.out_count[i] = (int64_t)tape->tensors[op->outputs[i]].count;
        }
        functions[op->kind](&run);
    }
}

void reference_advance(struct reference *reference)
{
    for (uint32_t i = 0; i < reference->tape->state_count; i++) {
        const struct state_pair *pair = &reference->tape->states[i];

        if (pair->before != pair->after) {
            memcpy(reference->values[pair->before], reference->values[pair->after],
                   reference->tape->tensors[pair->before].count * sizeof(double));
        }
    }
}
