/*
 * entropy.c - cross-entropy, its gradient and the gradient's quantization along rows become one
 * operation, the last of them: a block holds a row of logits in shared memory (entropy_body.h).
 * What a tape does with the losses in between moves behind: the gradient does not wait for it.
 *
 * Saves: two passes over the logits for the loss, one for the gradient, one or two for its limbs.
 */
#include <string.h>

#include "engine/cuda/fusions/group.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/launch/launch_quantize.h"

enum { LOSS, GRADIENT, QUANTIZED, PARTS };

/* The outputs of cross-entropy, as in op.h. */
enum { OUT_MAX_PART, OUT_MAX, OUT_EXPS, OUT_SUM_PART, OUT_SUM, OUT_LOSS };

#define SPAN_MAX 64 /* operations from the first to the last */

#define THREADS_OF_PROCESSOR 1536 /* at once, of all devices from 7.5 on but one */

static uint32_t shared_of(uint32_t shared_max)
{
    return shared_max == 0 ? SHARED_USUAL : shared_max;
}

/* Do rows of so many columns fit? */
static bool row_fits(uint32_t shared_max, uint64_t columns)
{
    return fold_chunks(columns) <= ENTROPY_CHUNKS_MAX &&
           ENTROPY_SHARED(columns) + ENTROPY_SHARED_STATIC <= shared_of(shared_max);
}

static bool reads_output(const struct op *op, const struct op *maker)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        for (uint32_t j = 0; j < maker->output_count; j++) {
            if (op->inputs[i] == maker->outputs[j]) {
                return true;
            }
        }
    }
    return false;
}

static bool is_gradient_of(const struct op *op, const struct op *loss)
{
    return op->kind == OP_CROSS_ENTROPY_GRAD && op->inputs[0] == loss->inputs[0] &&
           op->inputs[1] == loss->inputs[1] && op->inputs[2] == loss->outputs[OUT_MAX] &&
           op->inputs[3] == loss->outputs[OUT_SUM] &&
           op->attributes[ROWS] == loss->attributes[ROWS] &&
           op->attributes[COLUMNS] == loss->attributes[COLUMNS];
}

/* The three operations, the first of which stands at ats[LOSS], and nothing between is taken. */
static bool find_parts(uint32_t ats[PARTS], const struct fusion *fusion,
                       const struct readers *readers)
{
    const struct op *loss = &fusion->ops[ats[LOSS]];
    const uint32_t end =
        fusion->op_count - ats[LOSS] < SPAN_MAX ? fusion->op_count : ats[LOSS] + SPAN_MAX;
    bool gradient = false;

    for (uint32_t at = ats[LOSS] + 1;
         at < end && fusion_may_take(fusion, at) && fusion_is_stretch(fusion, ats[LOSS], at);
         at++) {
        const struct op *op = &fusion->ops[at];

        if (gradient && at == ats[QUANTIZED]) {
            return true;
        }
        if (!gradient && is_gradient_of(op, loss)) {
            gradient = true;
            ats[GRADIENT] = at;
            ats[QUANTIZED] = quantizer_of_result(fusion, readers, op, 0);
        }
    }
    return false;
}

static bool is_part(const uint32_t ats[PARTS], uint32_t at)
{
    return at == ats[LOSS] || at == ats[GRADIENT] || at == ats[QUANTIZED];
}

/*
 * Between legs, outputs are read and inputs arrive. So an operation that moves later may make no
 * output, and one that moves up into its place may read no input.
 */
static bool may_move(const struct fusion *fusion, const struct tape *tape, uint32_t first,
                     const bool *late, uint32_t count)
{
    bool closes_up = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct op *op = &fusion->ops[first + i];

        for (uint32_t j = 0; late[i] && j < op->output_count; j++) {
            if (tape->tensors[op->outputs[j]].role == ROLE_OUTPUT) {
                return false;
            }
        }
        for (uint32_t j = 0; closes_up && !late[i] && j < op->input_count; j++) {
            if (tape->tensors[op->inputs[j]].role == ROLE_INPUT) {
                return false;
            }
        }
        closes_up = closes_up || late[i];
    }
    return true;
}

/*
 * Moves the operations that depend on the parts' outputs behind the last part; all keep their order
 * otherwise. False, and nothing moves, where a part depends on one of them.
 */
static bool move_readers_behind(struct fusion *fusion, const struct tape *tape,
                                struct readers *readers, uint32_t ats[PARTS])
{
    struct op ops[SPAN_MAX];
    bool late[SPAN_MAX] = {false};
    const uint32_t first = ats[LOSS];
    const uint32_t count = ats[QUANTIZED] - first + 1;
    uint32_t place = first;
    uint32_t part = LOSS;

    for (uint32_t i = 1; i < count; i++) {
        const struct op *op = &fusion->ops[first + i];

        for (uint32_t j = 0; j < i; j++) {
            late[i] =
                late[i] || ((late[j] || (is_part(ats, first + j) && !is_part(ats, first + i))) &&
                            reads_output(op, &fusion->ops[first + j]));
        }
        if (late[i] && is_part(ats, first + i)) {
            return false;
        }
    }
    if (fusion->facts.in_legs && !may_move(fusion, tape, first, late, count)) {
        return false;
    }
    memcpy(ops, &fusion->ops[first], count * sizeof(*ops));
    for (uint32_t i = 0; i < count; i++) {
        readers_forget(readers, fusion, &ops[i], first + i);
    }
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < count; i++) {
            if (late[i] == (turn == 1)) {
                if (turn == 0 && part < PARTS && ats[part] == first + i) {
                    ats[part++] = place;
                }
                fusion->ops[place++] = ops[i];
            }
        }
    }
    for (uint32_t at = first; at < place; at++) {
        readers_see(readers, fusion, at);
    }
    return true;
}

/* The gradient with the outputs of all three: enum entropy_output. */
static struct op maker_of(const struct fusion *fusion, const uint32_t ats[PARTS])
{
    const struct op *loss = &fusion->ops[ats[LOSS]];
    const struct op *quantize = &fusion->ops[ats[QUANTIZED]];
    struct op maker = fusion->ops[ats[GRADIENT]];

    maker.inputs[2] = maker.inputs[4];
    maker.input_count = 3;
    maker.attribute_count = ENTROPY_ATTRIBUTES;
    maker.attributes[ENTROPY_BITS] = quantize->attributes[QUANTIZE_BITS];
    maker.attributes[ENTROPY_BLOCK] = quantize->attributes[QUANTIZE_BLOCK];
    maker.output_count = ENTROPY_OUTPUTS;
    maker.outputs[ENTROPY_PEAKS] = quantize->outputs[0];
    maker.outputs[ENTROPY_EXPONENTS] = quantize->outputs[1];
    maker.outputs[ENTROPY_Q] = quantize->outputs[2];
    maker.outputs[ENTROPY_LOSS] = loss->outputs[OUT_LOSS];
    maker.outputs[ENTROPY_MAX] = loss->outputs[OUT_MAX];
    maker.outputs[ENTROPY_SUM] = loss->outputs[OUT_SUM];
    return maker;
}

static bool find_entropy(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        const struct op *op = &fusion->ops[at];
        uint32_t ats[PARTS] = {at};
        struct op maker;

        if (op->kind != OP_CROSS_ENTROPY || !fusion_may_take(fusion, at) ||
            !row_fits(fusion->facts.shared_max, (uint64_t)op->attributes[COLUMNS]) ||
            !find_parts(ats, fusion, readers) || !move_readers_behind(fusion, tape, readers, ats)) {
            continue;
        }
        maker = maker_of(fusion, ats);
        if (!group_can_form(fusion, readers, ats, PARTS, maker.outputs, maker.output_count)) {
            continue;
        }
        if (!group_add(fusion, ats, PARTS, &maker, &pattern_entropy)) {
            return false;
        }
        readers_regroup(readers, fusion);
    }
    return true;
}

/* ---- the launch ---------------------------------------------------------------------- */

/* As few warps as take the chunks in the least number of turns. */
static uint32_t warps_of(uint32_t chunks)
{
    const uint32_t turns = (chunks + ENTROPY_WARPS_MAX - 1) / ENTROPY_WARPS_MAX;

    return (chunks + turns - 1) / turns;
}

/* Blocks that are on the device at once: each goes from row to row. */
static uint32_t blocks_of(const struct launcher *launcher, uint64_t rows, uint32_t threads,
                          uint64_t shared)
{
    uint64_t beside = shared_of(launcher->shared_max) / (shared + ENTROPY_SHARED_STATIC);
    uint64_t blocks;

    beside = beside > THREADS_OF_PROCESSOR / threads ? THREADS_OF_PROCESSOR / threads : beside;
    beside = beside == 0 ? 1 : beside;
    blocks = launcher->processors == 0 ? launcher->block_count : launcher->processors * beside;
    return (uint32_t)(rows < blocks ? rows : blocks);
}

/* Those of the quantization, with x as its input. */
static struct quantize_args quantize_args_of(const struct launcher *launcher, const struct op *op,
                                             const struct op *quantize)
{
    struct op from_x = *quantize;
    struct quantize_args args;

    from_x.inputs[0] = op->inputs[0];
    args = launch_quantize_args(launcher, &from_x);
    args.peaks = output_memory(launcher, op, ENTROPY_PEAKS);
    args.exponents = output_memory(launcher, op, ENTROPY_EXPONENTS);
    return args;
}

static enum device_result launch_entropy(const struct launcher *launcher,
                                         const struct fusion *fusion, uint32_t at)
{
    const struct fused_group *group = fusion_group(fusion, at);
    const struct op *op = &fusion->ops[at];
    struct entropy_args args = {.quantize = quantize_args_of(launcher, op, &group->ops[QUANTIZED]),
                                .targets = input_memory(launcher, op, 1),
                                .dloss = input_memory(launcher, op, 2),
                                .dx = output_memory(launcher, op, ENTROPY_DX),
                                .loss = output_memory(launcher, op, ENTROPY_LOSS),
                                .maximum = output_memory(launcher, op, ENTROPY_MAX),
                                .sum = output_memory(launcher, op, ENTROPY_SUM)};
    const uint64_t shared = ENTROPY_SHARED(args.quantize.k);
    const uint32_t threads = CUDA_WARP * warps_of((uint32_t)fold_chunks(args.quantize.k));
    const struct device_launch launch = {
        .kernel = KERNEL_ENTROPY,
        .grid = {blocks_of(launcher, args.quantize.rows, threads, shared), 1, 1},
        .block = threads,
        .shared_size = (uint32_t)shared,
        .arguments_size = sizeof(args),
        .arguments = &args};

    assert(launcher->packed && row_fits(launcher->shared_max, args.quantize.k));
    return launcher->calls->launch(launcher->device, &launch);
}

/* ---- the self-test ------------------------------------------------------------------- */

/* Losses that somebody sums, and their gradient, along rows of one chunk and of some more. */
static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    const int64_t rows = 7;
    const int64_t columns = part == 0 ? 29 : 2309;
    const uint64_t all = (uint64_t)(rows * columns);
    const uint64_t chunks = (uint64_t)rows * fold_chunks((uint64_t)columns);
    const uint32_t x = selftest_give(tape, DTYPE_F32, all);
    const uint32_t target = selftest_give(tape, DTYPE_U32, (uint64_t)rows);
    const uint32_t dloss = selftest_give(tape, DTYPE_F32, (uint64_t)rows);
    const uint64_t counts[6] = {chunks, (uint64_t)rows, all,
                                chunks, (uint64_t)rows, (uint64_t)rows};
    struct op *loss = selftest_op(tape, OP_CROSS_ENTROPY);
    struct op *gradient;
    const struct op *q;

    loss->attributes[ROWS] = rows;
    loss->attributes[COLUMNS] = columns;
    selftest_input(loss, x);
    selftest_input(loss, target);
    for (int i = 0; i < 6; i++) {
        const uint32_t id = selftest_output(tape, loss, DTYPE_F32, counts[i]);

        /* Intermediate results. */
        (void)(i == 0 || i == 2 || i == 3 ? selftest_hide(tape, id) : id);
    }
    gradient = selftest_op(tape, OP_CROSS_ENTROPY_GRAD);
    gradient->attributes[ROWS] = rows;
    gradient->attributes[COLUMNS] = columns;
    selftest_input(gradient, x);
    selftest_input(gradient, target);
    selftest_input(gradient, loss->outputs[1]);
    selftest_input(gradient, loss->outputs[4]);
    selftest_input(gradient, dloss);
    (void)selftest_output(tape, gradient, DTYPE_F32, all);
    q = selftest_quantize(tape, gradient->outputs[0], 1, rows, columns, part == 0 ? 22 : 14,
                          part == 0 ? 0 : 128, true);
    (void)selftest_ones(tape, q, rows, columns);
    tape->tensors[q->outputs[1]].role = ROLE_OUTPUT;
}

const struct fusion_pattern pattern_entropy = {.name = "entropy",
                                               .variant = VARIANT_ENTROPY,
                                               .match = find_entropy,
                                               .launch = launch_entropy,
                                               .selftest = add_selftest,
                                               .selftests = 2};
