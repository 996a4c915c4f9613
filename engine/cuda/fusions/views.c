/*
 * views.c - rows that are split or put together, where nobody has to do it: quantizations read a
 * part through their view of the whole, and a product writes a part by its strides into the whole.
 * Strides are rewritten and the part lies inside of the whole (plan.h). Kernels know nothing of it.
 *
 * Saves: every number of queries, keys, values and of their gradients copied. Refused: parts that
 * anybody else reads or writes, views that run over the end of a part's row, and parts that would
 * not begin at a multiple of 16 bytes. A SPLIT or CONCAT vanishes whole, or runs.
 */
#include <stdlib.h>

#include "engine/cuda/fusions/pattern.h"
#include "engine/ops/real.h"

#define QUADS 4 /* numbers in 16 bytes */

/* Strides for rows of `whole` numbers instead of `width`. False: the view has no such strides. */
static bool widen_rows(int64_t strides[6], const int64_t *dims, int64_t width, int64_t whole)
{
    int64_t column = 0; /* the last one that the view reads of a row */

    for (int axis = 0; axis < 6; axis++) {
        if (dims[axis] == 1) {
            continue;
        }
        if (strides[axis] % width == 0) {
            strides[axis] = strides[axis] / width * whole;
        } else if (strides[axis] < width) {
            column += (dims[axis] - 1) * strides[axis];
        } else {
            return false;
        }
    }
    return column < width;
}

/* Can all strides of an operation be widened? rewrite: does it. */
static bool widen_op(struct op *op, int64_t width, int64_t whole, bool rewrite)
{
    const bool product = op->kind == OP_CONTRACT;
    const int64_t *dims = &op->attributes[product ? CONTRACT_DIMS : QUANTIZE_DIMS];
    int64_t *own = &op->attributes[product ? CONTRACT_STRIDES : QUANTIZE_STRIDES];
    int64_t strides[6];

    for (int axis = 0; axis < 6; axis++) {
        strides[axis] = own[axis];
    }
    if (!widen_rows(strides, dims, width, whole)) {
        return false;
    }
    for (int axis = 0; rewrite && axis < 6; axis++) {
        own[axis] = strides[axis];
    }
    return true;
}

/* The parts of a SPLIT or a CONCAT, and their whole. */
struct split_parts {
    const uint32_t *ids;
    const int64_t *widths;
    uint32_t count;
    uint32_t whole;
    int64_t width; /* of the whole */
};

static struct split_parts parts_of(const struct op *op)
{
    const bool split = op->kind == OP_SPLIT;
    struct split_parts parts = {.ids = split ? op->outputs : op->inputs,
                                .widths = &op->attributes[SPLIT_WIDTHS],
                                .count = split ? op->output_count : op->input_count,
                                .whole = split ? op->inputs[0] : op->outputs[0]};

    for (uint32_t i = 0; i < parts.count; i++) {
        parts.width += parts.widths[i];
    }
    return parts;
}

/* Is every reader of a part of a SPLIT a quantization that can be widened? */
static bool readers_widen(struct fusion *fusion, const struct readers *readers,
                          const struct split_parts *parts, uint32_t part, bool rewrite)
{
    const uint32_t id = parts->ids[part];

    for (uint32_t at = readers->first[id]; at != NEVER && at <= readers->last[id]; at++) {
        struct op *op = &fusion->ops[at];
        bool reads = false;

        for (uint32_t i = 0; i < op->input_count; i++) {
            reads = reads || op->inputs[i] == id;
        }
        if (reads && (op->kind != OP_QUANTIZE || !fusion_may_take(fusion, at) ||
                      !widen_op(op, parts->widths[part], parts->width, rewrite))) {
            return false;
        }
    }
    return true;
}

/* Is the maker of a part of a CONCAT a product that can be widened, without other readers? */
static bool maker_widens(struct fusion *fusion, const struct readers *readers,
                         const struct split_parts *parts, uint32_t part, bool rewrite)
{
    const uint32_t id = parts->ids[part];
    const uint32_t at = readers->maker[id];

    for (uint32_t i = 0; i < part; i++) {
        if (parts->ids[i] == id) {
            return false;
        }
    }
    return at != NEVER && readers->count[id] == 1 && fusion->ops[at].kind == OP_CONTRACT &&
           fusion_may_take(fusion, at) &&
           widen_op(&fusion->ops[at], parts->widths[part], parts->width, rewrite);
}

/* May a tensor lie inside of another, or hold others? */
static bool is_loose(const struct fusion *fusion, const struct readers *readers, uint32_t id)
{
    return !readers->kept[id] && fusion->holders[id] == id;
}

static bool can_be_views(struct fusion *fusion, const struct readers *readers, const bool *holds,
                         const struct op *op, const struct split_parts *parts)
{
    int64_t before = 0;

    if (!is_loose(fusion, readers, parts->whole) || parts->width % QUADS != 0 ||
        (op->kind == OP_SPLIT ? readers->maker[parts->whole] == NEVER
                              : readers->first[parts->whole] == NEVER)) {
        return false;
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        const uint32_t id = parts->ids[i];

        if (before % QUADS != 0 || !is_loose(fusion, readers, id) || holds[id] ||
            id == parts->whole ||
            !(op->kind == OP_SPLIT ? readers_widen(fusion, readers, parts, i, false)
                                   : maker_widens(fusion, readers, parts, i, false))) {
            return false;
        }
        before += parts->widths[i];
    }
    return true;
}

static void make_views(struct fusion *fusion, const struct readers *readers, bool *holds,
                       struct op *op, const struct split_parts *parts)
{
    int64_t before = 0;

    for (uint32_t i = 0; i < parts->count; i++) {
        (void)(op->kind == OP_SPLIT ? readers_widen(fusion, readers, parts, i, true)
                                    : maker_widens(fusion, readers, parts, i, true));
        fusion->holders[parts->ids[i]] = parts->whole;
        fusion->offsets[parts->ids[i]] = (uint64_t)before * sizeof(float);
        before += parts->widths[i];
    }
    holds[parts->whole] = true;
    op->input_count = 0;
    op->output_count = 0;
}

static bool find_views(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    bool *holds = calloc((size_t)tape->tensor_count + 1, sizeof(*holds));

    if (holds == NULL) {
        return false;
    }
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        struct op *op = &fusion->ops[at];

        if ((op->kind == OP_SPLIT || op->kind == OP_CONCAT) && op->output_count > 0 &&
            fusion_may_take(fusion, at)) {
            const struct split_parts parts = parts_of(op);

            if (can_be_views(fusion, readers, holds, op, &parts)) {
                make_views(fusion, readers, holds, op, &parts);
            }
        }
    }
    free(holds);
    return true;
}

/* ---- the self-test ------------------------------------------------------------------- */

#define ROWS_OF_WHOLE 44

/* Sums along a part's rows and across them. */
static void add_looks(struct selftest_tape *tape, uint32_t id, int64_t width)
{
    const struct op *along = selftest_quantize(tape, id, 1, ROWS_OF_WHOLE, width, 14, 128, true);
    const struct op *across = selftest_quantize(tape, id, 1, width, ROWS_OF_WHOLE, 16, 0, false);

    (void)selftest_ones(tape, along, ROWS_OF_WHOLE, width);
    (void)selftest_ones(tape, across, width, ROWS_OF_WHOLE);
}

/* Of a tensor that is made: a given one lies with the states. */
static void build_split_rows(struct selftest_tape *tape)
{
    static const int64_t widths[3] = {20, 144, 16};
    const uint32_t x = selftest_give(tape, DTYPE_F32, ROWS_OF_WHOLE * 180);
    struct op *op = selftest_op(tape, OP_MAP);
    uint32_t whole;

    op->attributes[MAP_FUNCTION] = MAP_SCALE;
    op->attributes[MAP_CONSTANT_BITS] = real_to_bits(0.75f);
    op->attribute_count = MAP_ATTRIBUTES;
    selftest_input(op, x);
    whole = selftest_hide(tape, selftest_output(tape, op, DTYPE_F32, ROWS_OF_WHOLE * 180));
    op = selftest_op(tape, OP_SPLIT);
    op->attributes[SPLIT_ROWS] = ROWS_OF_WHOLE;
    op->attribute_count = SPLIT_WIDTHS + 3;
    selftest_input(op, whole);
    for (int i = 0; i < 3; i++) {
        op->attributes[SPLIT_WIDTHS + i] = widths[i];
        (void)selftest_hide(
            tape, selftest_output(tape, op, DTYPE_F32, (uint64_t)(ROWS_OF_WHOLE * widths[i])));
    }
    for (int i = 0; i < 3; i++) {
        add_looks(tape, op->outputs[i], widths[i]);
    }
}

/* Two products side by side. */
static void build_concatenated(struct selftest_tape *tape)
{
    static const int64_t widths[2] = {72, 36};
    const int64_t k = 50;
    const uint32_t x = selftest_give(tape, DTYPE_F32, (uint64_t)(ROWS_OF_WHOLE * k));
    const struct op *a = selftest_quantize(tape, x, 1, ROWS_OF_WHOLE, k, 14, 128, true);
    uint32_t parts[2];
    struct op *op;

    for (int i = 0; i < 2; i++) {
        const int64_t sizes[3] = {1, ROWS_OF_WHOLE, widths[i]};
        const uint32_t y = selftest_give(tape, DTYPE_F32, (uint64_t)(widths[i] * k));
        const struct op *b = selftest_quantize(tape, y, 1, widths[i], k, 14, 128, true);

        parts[i] = selftest_hide(tape, selftest_contract(tape, a, b, sizes, k, false)->outputs[0]);
    }
    op = selftest_op(tape, OP_CONCAT);
    op->attributes[SPLIT_ROWS] = ROWS_OF_WHOLE;
    op->attribute_count = SPLIT_WIDTHS + 2;
    for (int i = 0; i < 2; i++) {
        op->attributes[SPLIT_WIDTHS + i] = widths[i];
        selftest_input(op, parts[i]);
    }
    add_looks(tape, selftest_hide(tape, selftest_output(tape, op, DTYPE_F32, ROWS_OF_WHOLE * 108)),
              108);
}

static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    if (part == 0) {
        build_split_rows(tape);
    } else {
        build_concatenated(tape);
    }
}

const struct fusion_pattern pattern_views = {.name = "views",
                                             .variant = VARIANT_VIEWS,
                                             .match = find_views,
                                             .selftest = add_selftest,
                                             .selftests = 2};
