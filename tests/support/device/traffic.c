/* traffic.c - see traffic.h. */
#include "tests/support/device/traffic.h"

#include <assert.h>
#include <string.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine_cuda.h"

/* ---- one launch ------------------------------------------------------------------ */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Each element of an output reads one of each input, or all of a smaller one. */
static void count_rule(struct traffic *traffic, const struct rule_args *args)
{
    const struct operand *outputs = args->call.outputs;
    const uint64_t size = args->count * dtype_size(outputs[args->output].dtype);

    traffic->written += size;
    for (uint32_t i = 0; i < OP_INPUTS_MAX; i++) {
        const struct operand *input = &args->call.inputs[i];

        if (input->memory != NULL) {
            traffic->read += least_of(input->count * dtype_size(input->dtype), size);
        }
    }
}

static void count_elements(struct traffic *traffic, const struct elements_args *args)
{
    for (uint32_t i = 0; i < OP_INPUTS_MAX && args->inputs[i] != NULL; i++) {
        traffic->read += 4 * least_of(args->input_counts[i], args->count);
    }
    for (uint32_t i = 0; i < OP_OUTPUTS_MAX && args->outputs[i] != NULL; i++) {
        traffic->written += 4 * args->count;
    }
}

/* What the steps read beside so many numbers, and what they leave. */
static void count_epilogue(struct traffic *traffic, const struct epilogue *epilogue,
                           uint64_t numbers, uint64_t row)
{
    for (uint32_t i = 0; i < epilogue->count; i++) {
        const struct epilogue_step *step = &epilogue->steps[i];
        const bool whole = step->source == EPILOGUE_WHOLE || step->source == EPILOGUE_AHEAD;

        traffic->read += whole ? 4 * numbers : step->source == EPILOGUE_ROW ? 4 * row : 0;
        traffic->written += step->out != NULL ? 4 * numbers : 0;
    }
}

static void count_quads(struct traffic *traffic, const struct quads_args *args)
{
    traffic->read += 4 * args->count;
    count_epilogue(traffic, &args->epilogue, args->count, args->row);
}

/* Elements of all rows that take part. */
static uint64_t visible_elements(uint64_t rows, uint64_t columns, uint64_t causal)
{
    uint64_t sum = 0;

    if (causal == 0) {
        return rows * columns;
    }
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t seen = row % causal + 1;

        sum += seen < columns ? seen : columns;
    }
    return sum;
}

static void count_row_numbers(struct traffic *traffic, const struct rows_args *args)
{
    const uint64_t all = args->rows * args->columns;

    const uint32_t kind = args->kind;

    if (kind == OP_LAYER_NORM) {
        traffic->read += 4 * 2 * args->columns;
        traffic->written +=
            4 * ((args->outputs[1] != NULL) + (args->outputs[3] != NULL)) * args->rows +
            4 * all * (args->outputs[4] != NULL);
    } else if (kind == OP_RMS_NORM) {
        traffic->read += 4 * args->columns;
        traffic->written +=
            4 * (args->outputs[1] != NULL) * args->rows + 4 * all * (args->outputs[2] != NULL);
    } else if (kind == OP_LAYER_NORM_GRAD || kind == OP_RMS_NORM_GRAD) {
        const uint32_t main = kind == OP_LAYER_NORM_GRAD ? 4 : 2;

        traffic->read += 4 * (args->columns + main / 2 * args->rows);
        traffic->written +=
            4 * all * ((args->outputs[main] != NULL) + (args->outputs[main + 1] != NULL));
    } else if (kind == OP_SOFTMAX) {
        traffic->written += 4 * all * ((args->outputs[2] != NULL) + (args->outputs[5] != NULL));
    } else if (kind == OP_SOFTMAX_GRAD) {
        traffic->written += 4 * all;
    } else if (kind == OP_CROSS_ENTROPY) {
        traffic->read += 4 * args->rows;
        traffic->written += 4 * all * (args->outputs[2] != NULL) + 4 * 3 * args->rows;
    } else {
        traffic->written += 4 * args->rows;
    }
}

#define AGAIN_MAX 16384 /* bytes of a row that a cache has still */

/* So many looks at rows of so many bytes; bytes: of all rows. */
static void count_looks(struct traffic *traffic, uint64_t looks, uint64_t bytes, uint64_t row)
{
    if (row <= AGAIN_MAX) {
        traffic->read += bytes;
        traffic->again += (looks - 1) * bytes;
    } else {
        traffic->read += looks * bytes;
    }
}

/* Looks at each element of a row, by kind: rows_body.h. */
static void count_rows(struct traffic *traffic, const struct rows_args *args)
{
    const uint64_t seen = 4 * visible_elements(args->rows, args->columns, args->causal);
    const uint64_t row = 4 * args->columns;

    const uint32_t kind = args->kind;

    if (kind == OP_LAYER_NORM) {
        count_looks(traffic, 3, seen, row);
    } else if (kind == OP_RMS_NORM || kind == OP_CROSS_ENTROPY) {
        count_looks(traffic, 2, seen, row);
    } else if (kind == OP_LAYER_NORM_GRAD) {
        count_looks(traffic, 3, seen, row);
        count_looks(traffic, 2, seen, row);
    } else if (kind == OP_RMS_NORM_GRAD || kind == OP_SOFTMAX_GRAD) {
        count_looks(traffic, 2, seen, row);
        count_looks(traffic, 2, seen, row);
    } else if (kind == OP_SOFTMAX) {
        /* The exponentials are written where p will be. */
        count_looks(traffic, 3, seen, row);
        traffic->again += args->outputs[2] == NULL ? seen : 0;
    } else {
        count_looks(traffic, 1, seen, row);
    }
    count_row_numbers(traffic, args);
}

static uint64_t planes_of(const struct quantize_args *args)
{
    const struct packed packed = packed_of(args->bits, args->rows, args->k, args->blocks);

    return packed.size;
}

static void count_quantize(struct traffic *traffic, uint32_t kernel,
                           const struct quantize_args *args)
{
    const uint64_t x = 4 * args->rows * args->k;
    const uint64_t peaks = 2 * args->rows * args->pieces;
    const uint64_t exponents = 2 * args->rows * args->blocks;
    const uint64_t q =
        args->planes != NULL ? planes_of(args) : args->rows * args->k * (args->bits == 22 ? 4 : 2);

    switch (kernel) {
    case KERNEL_QUANTIZE_PEAKS:
        traffic->read += x;
        traffic->written += peaks;
        break;
    case KERNEL_QUANTIZE_EXPONENTS:
        traffic->read += peaks;
        traffic->written += exponents;
        break;
    case KERNEL_QUANTIZE_INTEGERS:
        traffic->read += x + exponents;
        traffic->written += q;
        break;
    case KERNEL_QUANTIZE_COLUMNS:
        traffic->read += x;
        traffic->written += exponents + q;
        break;
    default:
        count_looks(traffic, 2, x, 4 * args->k);
        traffic->written += peaks + exponents + q;
        break;
    }
}

/* Each number once, and what is known of rows and columns. Slopes look at a square again. */
static void count_tiles_read(struct traffic *traffic, const struct tiles_args *args)
{
    const uint64_t height = args->across.k;
    const uint64_t numbers = 4 * args->across.rows * height;
    const uint64_t rows =
        (args->targets != NULL ? 4 : 0) + (args->mean != NULL) + (args->rstd != NULL);

    traffic->read += numbers + 4 * rows * height;
    traffic->read += 4 * ((args->gain != NULL) + (args->bias != NULL)) * args->width;
    traffic->read += args->dy != NULL ? numbers : 0;
    traffic->again += args->dy != NULL && args->code != TILES_SLOPES ? numbers : 0;
}

/* And all that is made of it. Pieces whose exponents are raised are not known. */
static void count_tiles(struct traffic *traffic, uint32_t kernel, const struct tiles_args *args)
{
    const struct quantize_args *views[2] = {&args->across, &args->along};
    const bool raises = kernel == KERNEL_QUANTIZE_RAISE;
    const uint64_t columns = args->across.rows;
    const uint64_t slopes = args->dy != NULL ? 2 : 0;
    const uint64_t sums = (args->parts != NULL) + slopes;
    uint64_t *known = raises ? &traffic->read : &traffic->written;

    if (!raises) {
        count_tiles_read(traffic, args);
    }
    for (int i = 0; i < 2; i++) {
        const uint64_t pieces = views[i]->rows * views[i]->pieces;

        *known += 2 * pieces;
        traffic->written += raises && views[i]->exponents != NULL ? 2 * pieces : 0;
        traffic->written += !raises && views[i]->planes != NULL ? planes_of(views[i]) : 0;
    }
    *known += (4 * sums + 2 * slopes) * columns * args->across.pieces;
    traffic->written += raises ? 4 * sums * columns : 0;
}

/* Each number once, where the row was; and its limbs from there. */
static void count_held(struct traffic *traffic, const struct held_args *args)
{
    const struct quantize_args *quantize = &args->quantize;
    const uint64_t seen =
        4 * visible_elements(args->rows.rows, args->rows.columns, args->rows.causal);
    const bool two = args->rows.kind == OP_LAYER_NORM_GRAD || args->rows.kind == OP_RMS_NORM_GRAD ||
                     args->rows.kind == OP_SOFTMAX_GRAD;

    traffic->read += (two ? 2 * seen : seen) + (args->rows.addend != NULL ? seen : 0);
    count_row_numbers(traffic, &args->rows);
    if (quantize->planes != NULL) {
        traffic->written +=
            2 * quantize->rows * (quantize->pieces + quantize->blocks) + planes_of(quantize);
    }
}

/* Each number once; what is made of it goes on from shared memory. */
static void count_entropy(struct traffic *traffic, const struct entropy_args *args)
{
    const struct quantize_args *quantize = &args->quantize;
    const uint64_t numbers = (args->loss != NULL) + (args->maximum != NULL) + (args->sum != NULL);

    traffic->read += 4 * quantize->rows * (quantize->k + 2);
    traffic->written += 4 * quantize->rows * ((args->dx != NULL ? quantize->k : 0) + numbers) +
                        2 * quantize->rows * (quantize->peaks != NULL ? quantize->pieces : 0);
    if (quantize->planes != NULL) {
        traffic->written += 2 * quantize->rows * quantize->blocks + planes_of(quantize);
    }
}

/* Limbs, shifts and lowest exponents of an operand, once. */
static uint64_t operand_bytes(const struct packed_operand *operand, uint64_t rows, uint64_t blocks,
                              uint64_t planes)
{
    return planes * operand->plane_size + blocks * operand->shift_pitch + 4 * rows;
}

static void count_contract(struct traffic *traffic, const struct contract_args *args)
{
    const uint64_t results = args->batches * args->m * args->n;
    const uint64_t planes = packed_planes(args->bits);

    if (args->batch_first != 0) {
        return;
    }
    traffic->read += operand_bytes(&args->a, args->batches * args->m, args->blocks, planes) +
                     operand_bytes(&args->b, args->batches * args->n, args->blocks, planes);
    traffic->written += args->out != NULL ? 4 * results : 0;
    count_epilogue(traffic, &args->epilogue, results, args->n);
    if (args->splits > 1) {
        traffic->read += 8 * results * (args->splits + 1);
        traffic->written += 8 * results * args->splits;
    }
}

/* Both operands of a product of which no result is written. */
static uint64_t faced_bytes(const struct contract_args *args)
{
    return args->a.planes == NULL
               ? 0
               : operand_bytes(&args->a, args->batches * args->m, args->blocks, 2) +
                     operand_bytes(&args->b, args->batches * args->n, args->blocks, 2);
}

/* What a strip brings of the other operands is in the L2 cache: its batch has just been there. */
static void count_attention(struct traffic *traffic, const struct attention_args *args)
{
    const struct contract_args *product = &args->product.contract;
    const bool is_b = args->product.is_b != 0;
    const uint64_t others = product->batches * (is_b ? product->m : product->n);
    const uint64_t all = 4 * args->rows.rows * args->rows.columns;
    const void *const read[] = {args->maximum, args->sum, args->dot};
    const void *const numbers[] = {args->rows.outputs[1],
                                   args->rows.kind == OP_SOFTMAX ? args->rows.outputs[4] : NULL};
    const void *made = args->rows.outputs[args->rows.kind == OP_SOFTMAX ? 5 : 2];

    traffic->read += faced_bytes(&args->scores) + faced_bytes(&args->slopes);
    if (args->rows.inputs[0] != NULL) {
        traffic->read +=
            4 * visible_elements(args->rows.rows, args->rows.columns, args->rows.causal);
    }
    for (int i = 0; i < 3; i++) {
        traffic->read += read[i] != NULL ? 4 * args->rows.rows : 0;
    }
    for (int i = 0; i < 2; i++) {
        traffic->written += numbers[i] != NULL ? 4 * args->rows.rows : 0;
    }
    traffic->written += made != NULL ? all : 0;
    if (product->out != NULL) {
        traffic->read +=
            operand_bytes(is_b ? &product->a : &product->b, others, product->blocks, 2);
        traffic->written += 4 * product->batches * product->m * product->n;
    }
}

/* The columns, the limbs of the other operand, and the results. */
static void count_strip_columns(struct traffic *traffic, const struct strip_columns_args *args)
{
    const struct contract_args *contract = &args->product.contract;
    const bool is_b = args->product.is_b != 0;
    const uint64_t others = contract->batches * (is_b ? contract->m : contract->n);

    traffic->read += 4 * args->view.rows * args->view.k;
    traffic->read += operand_bytes(is_b ? &contract->a : &contract->b, others, contract->blocks, 2);
    traffic->written += 4 * contract->batches * contract->m * contract->n;
}

static void count_sums(struct traffic *traffic, uint32_t kernel, const struct sums_args *args)
{
    const uint64_t planes = packed_planes(args->bits);

    switch (kernel) {
    case KERNEL_ONEHOT_LINK:
        traffic->read += 4 * args->k;
        traffic->written += 4 * args->k;
        break;
    case KERNEL_ONEHOT_SUM:
        traffic->read += planes * args->q.plane_size + 4 * (args->vocabulary + args->k);
        /* Sums with the nothing of words that do not occur are what they were; but for -0. */
        traffic->read += args->addend != NULL ? 4 * args->vocabulary * args->rows : 0;
        traffic->written +=
            4 * args->rows *
            (args->addend == args->out ? least_of(args->k, args->vocabulary) : args->vocabulary);
        break;
    default:
        traffic->read += planes * args->q.plane_size;
        traffic->written += 4 * args->rows;
        break;
    }
}

static void count_dots(struct traffic *traffic, const struct dots_args *args)
{
    const uint64_t planes = packed_planes(args->bits);
    const bool twice = args->b.planes != NULL && args->b.planes != args->a.planes;

    traffic->read += (1 + twice) * planes * args->a.plane_size;
    traffic->written += 4 * args->rows;
}

/* As if every operand were read once. */
static void count_chosen(struct traffic *traffic, const struct chosen_args *args)
{
    const uint64_t planes = packed_planes(args->bits);
    const uint64_t results = args->rows * args->columns * (args->apart != 0 ? args->experts : 1);

    traffic->read += planes * (args->a.plane_size + args->b.plane_size) +
                     4 * (args->apart != 0 ? args->k : args->rows);
    traffic->written += 4 * results;
}

static void count_pack(struct traffic *traffic, const struct pack_args *args)
{
    traffic->read += args->rows * args->k * (args->bits == 22 ? 4 : 2);
    traffic->written += packed_of(args->bits, args->rows, args->k, args->blocks).size;
}

/* ---- a device that counts ------------------------------------------------------------ */

static void count_along(struct traffic *traffic, uint32_t kernel, const void *args)
{
    if (kernel == KERNEL_ROWS) {
        count_rows(traffic, args);
    } else if (kernel == KERNEL_HELD) {
        count_held(traffic, args);
    } else {
        count_entropy(traffic, args);
    }
}

static void count_limbs(struct traffic *traffic, uint32_t kernel, const void *args)
{
    if (kernel == KERNEL_PACK) {
        count_pack(traffic, args);
    } else if (kernel == KERNEL_QUANTIZE_TILES || kernel == KERNEL_QUANTIZE_RAISE) {
        count_tiles(traffic, kernel, args);
    } else {
        count_quantize(traffic, kernel, args);
    }
}

static void count_strips(struct traffic *traffic, uint32_t kernel, const void *args)
{
    if (kernel >= KERNEL_ATTENTION_NARROW && kernel <= KERNEL_ATTEND_LONG_HALVES_WIDE) {
        count_attention(traffic, args);
    } else {
        count_strip_columns(traffic, args);
    }
}

static void count_products(struct traffic *traffic, uint32_t kernel, const void *args)
{
    if ((kernel >= KERNEL_STRIP_COLUMNS_NARROW && kernel <= KERNEL_STRIP_HALVES_WIDE) ||
        (kernel >= KERNEL_ATTENTION_NARROW && kernel <= KERNEL_ATTEND_LONG_HALVES_WIDE)) {
        count_strips(traffic, kernel, args);
    } else {
        count_contract(traffic, args);
    }
}

static void count_plain_sums(struct traffic *traffic, uint32_t kernel, const void *args)
{
    if (kernel == KERNEL_DOTS) {
        count_dots(traffic, args);
    } else if (kernel == KERNEL_CHOSEN) {
        count_chosen(traffic, args);
    } else {
        count_sums(traffic, kernel, args);
    }
}

static void count_kernel(struct traffic *traffic, uint32_t kernel, const void *args)
{
    switch (kernel) {
    case KERNEL_RULE:
        count_rule(traffic, args);
        break;
    case KERNEL_ELEMENTS:
        count_elements(traffic, args);
        break;
    case KERNEL_QUADS:
        count_quads(traffic, args);
        break;
    case KERNEL_ROWS:
    case KERNEL_HELD:
    case KERNEL_ENTROPY:
        count_along(traffic, kernel, args);
        break;
    case KERNEL_QUANTIZE_PEAKS:
    case KERNEL_QUANTIZE_EXPONENTS:
    case KERNEL_QUANTIZE_INTEGERS:
    case KERNEL_QUANTIZE_ROWS:
    case KERNEL_QUANTIZE_COLUMNS:
    case KERNEL_QUANTIZE_TILES:
    case KERNEL_QUANTIZE_RAISE:
    case KERNEL_PACK:
        count_limbs(traffic, kernel, args);
        break;
    case KERNEL_ONES:
    case KERNEL_ONEHOT_LINK:
    case KERNEL_ONEHOT_SUM:
    case KERNEL_DOTS:
    case KERNEL_CHOSEN:
        count_plain_sums(traffic, kernel, args);
        break;
    case KERNEL_UPDATES: /* lists are the device's: add_lists() */
    case KERNEL_SQUARES:
    case KERNEL_TOTAL:
    case KERNEL_HASH_LEAVES:
    case KERNEL_HASH_NODES:
    case KERNEL_FINITE:
    case KERNEL_COUNT:
        break;
    default: /* products of integers */
        count_products(traffic, kernel, args);
        break;
    }
}

static enum device_result count_launch(struct device *device, const struct device_launch *launch)
{
    struct traffic *traffic = (struct traffic *)device;

    traffic->launches++;
    count_kernel(traffic, launch->kernel, launch->arguments);
    return DEVICE_OK;
}

static enum device_result count_fill(struct device *device, void *to, int byte, uint64_t size)
{
    struct traffic *traffic = (struct traffic *)device;

    (void)to;
    (void)byte;
    traffic->launches++;
    traffic->written += size;
    return DEVICE_OK;
}

/* ---- the least -------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct machine_cuda *cuda, const struct op *op, uint32_t id)
{
    const struct tape *tape = &cuda->tape;
    uint64_t size = cuda_tensor_bytes(tape, id);

    for (uint32_t i = 0; i < op->output_count; i++) {
        if (op->outputs[i] == id) {
            size = launch_output_size(op, i, tape->tensors, cuda->launcher.packed);
        }
    }
    return size;
}

/* Is it, or what it is a part of, an operation's input, a next state, the loss or an output? */
static bool is_needed(const struct machine_cuda *cuda, uint32_t id)
{
    const struct tape *tape = &cuda->tape;
    const uint32_t *holders = cuda->fusion.holders;
    bool needed = tape->tensors[id].role == ROLE_OUTPUT || tape->loss == id;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        needed = needed || tape->states[i].after == id;
    }
    for (uint32_t at = 0; at < tape->op_count && !needed; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
            const uint32_t input = tape->ops[at].inputs[i];

            needed = needed || input == id || (holders != NULL && holders[input] == holders[id]);
        }
    }
    return needed;
}

/* A causal softmax needs what it sees; a gather and its like as much as they give. */
static uint64_t least_input(const struct machine_cuda *cuda, const struct op *op, uint32_t slot)
{
    const struct tape *tape = &cuda->tape;
    const uint64_t size = cuda_tensor_bytes(tape, op->inputs[slot]);
    uint64_t made = 0;

    for (uint32_t i = 0; i < op->output_count; i++) {
        made += cuda_tensor_bytes(tape, op->outputs[i]);
    }
    if (op->kind == OP_SOFTMAX || op->kind == OP_SOFTMAX_GRAD) {
        return 4 * visible_elements((uint64_t)op->attributes[ROWS],
                                    (uint64_t)op->attributes[COLUMNS],
                                    (uint64_t)op->attributes[SOFTMAX_CAUSAL]);
    }
    if (op->kind == OP_GATHER || op->kind == OP_SCHEDULE || op->kind == OP_BATCH_TOKENS ||
        op->kind == OP_BATCH_SAMPLES || op->kind == OP_BATCH_ROWS) {
        return least_of(size, made);
    }
    return size;
}

/* q tensors lie packed: what an operation reads of them is what another wrote. */
static uint64_t packed_input(const struct machine_cuda *cuda, uint32_t id)
{
    const struct tape *tape = &cuda->tape;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            if (op->outputs[i] == id &&
                (op->kind == OP_QUANTIZE || op->kind == OP_CROSS_ENTROPY_GRAD)) {
                return bytes_of(cuda, op, id);
            }
        }
    }
    return 0;
}

static uint64_t least_bytes(const struct machine_cuda *cuda, uint32_t at)
{
    const struct op *op = &cuda->tape.ops[at];
    uint64_t least = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint64_t packed = packed_input(cuda, op->inputs[i]);
        bool twice = false;

        for (uint32_t j = 0; j < i; j++) {
            twice = twice || op->inputs[j] == op->inputs[i];
        }
        least += twice ? 0 : packed != 0 ? packed : least_input(cuda, op, i);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (is_needed(cuda, op->outputs[i])) {
            least += bytes_of(cuda, op, op->outputs[i]);
        }
    }
    return least;
}

/* What the lists of a launch hold. The squares look at their numbers twice. */
static void add_lists(struct traffic *traffic, const struct machine_cuda *cuda, uint32_t at,
                      uint32_t next)
{
    const struct fusion *fusion = &cuda->fusion;

    for (uint32_t i = 0; i < fusion->squares_count; i++) {
        if (fusion->squares[i].at == at) {
            count_looks(traffic, 2, 4 * fusion->squares[i].elements, 0);
            traffic->least += 4 * fusion->squares[i].elements;
        }
    }
    const bool updates = cuda->tape.ops[at].kind == OP_ADAMW || cuda->tape.ops[at].kind == OP_SGD;

    for (uint32_t op = at; updates && next > at + 1 && op < next; op++) {
        for (uint32_t i = 0; i < cuda->tape.ops[op].input_count; i++) {
            traffic->read += cuda_tensor_bytes(&cuda->tape, cuda->tape.ops[op].inputs[i]);
        }
        for (uint32_t i = 0; i < cuda->tape.ops[op].output_count; i++) {
            traffic->written += cuda_tensor_bytes(&cuda->tape, cuda->tape.ops[op].outputs[i]);
        }
    }
}

/* ---- a step ------------------------------------------------------------------------------ */

void traffic_count(struct traffic *counts, const struct machine *machine)
{
    static const struct device_calls counting = {.launch = count_launch, .fill = count_fill};
    const struct machine_cuda *cuda = (const struct machine_cuda *)machine;
    struct launcher launcher = cuda->launcher;

    uint32_t next;

    launcher.calls = &counting;
    for (uint32_t at = 0; at < machine->tape->op_count; at = next) {
        next = at + 1;
        if (!cuda->plan.runs[at]) {
            continue;
        }
        launcher.device = (struct device *)&counts[at];
        (void)fuse_launch(&next, cuda->fused ? &cuda->fusion : NULL, &launcher, at,
                          machine->tape->op_count);
        add_lists(&counts[at], cuda, at, next);
        for (uint32_t op = at; op < next; op++) {
            counts[at].least += least_bytes(cuda, op);
        }
    }
}

const struct op *traffic_op(const struct machine *machine, uint32_t at)
{
    return &((const struct machine_cuda *)machine)->tape.ops[at];
}
