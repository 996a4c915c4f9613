/*
 * tiles.c - a tensor that is quantized along its rows and along its columns, and of whose columns
 * sums are wanted: one operation makes all of it from one read (tiles_body.h), where the first of
 * them stood. GELU and SiLU, if nobody else wants what they make, are made there too; the gradient
 * of a cross-entropy is made again of the logits, if only its columns are wanted, and a norm's
 * result of its input. Both gradients of a norm are made of one read.
 *
 * Saves: the second reading of activations and gradients, 4 of 14 bytes a number; limbs where only
 * sums are wanted; what GELU and norms would write. Of a GPT-2 step 124 launches and 7.2 GB.
 * Refused: 22 bits; blocks that are no piece; what others read too unless the two quantizations are
 * near, and parameters where memory is short: limbs for the backward pass lie beside the numbers.
 */
#include "engine/cuda/fusions/group.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/launch/launch_quantize.h"
#include "engine/cuda/launch/launch_rows.h"
#include "engine/ops/view.h"

/* What becomes one; NEVER: there is none. */
struct tiles_match {
    uint32_t across;
    uint32_t along;
    uint32_t sums;
    uint32_t entropy; /* whose gradient is quantized, and wanted by nobody else */
    uint32_t norm;    /* whose result is quantized, and wanted by nobody else but its unit */
    uint32_t twin; /* sums the columns of what the norm was given whose gain's gradient this is */
    uint32_t twin_sums;
    bool alone;    /* nobody but these two quantizations reads the numbers */
    int64_t width; /* of the matrices */
};

/* ---- the views ---------------------------------------------------------------------- */

/* Has every piece an exponent of its own? */
static bool is_pieces(const struct fusion *fusion, uint32_t at)
{
    const struct op *op = &fusion->ops[at];

    if (op->kind != OP_QUANTIZE || op->input_count != 1 || op->output_count != TILES_ALONG ||
        !fusion_may_take(fusion, at) || (at > 0 && fusion->ends[at - 1] > at)) {
        return false; /* a unit's last operation is its own */
    }
    const struct contraction_shape shape = contraction_shape_of(op);

    return shape.piece == CONTRACTION_PIECE && shape.block_span == 1 && shape.bits != 22;
}

/* Takes so many of the innermost rows off a view, whose neighbours are `stride` apart. */
static bool take_rows(struct plain_view *view, int64_t count, int64_t stride)
{
    const int last = view->rows - 1;

    if (last < 0 || view->strides[last] != stride || view->dims[last] % count != 0) {
        return false;
    }
    view->dims[last] /= count;
    view->strides[last] *= count;
    view->rows -= view->dims[last] == 1;
    return true;
}

/* Are they the columns and the rows of the same matrices? */
static bool are_both(const struct op *across, const struct op *along)
{
    struct plain_view columns = quantizer_view(across);
    struct plain_view rows = quantizer_view(along);
    const int k = columns.rows;
    const int row = rows.rows;

    if (columns.count != k + 1 || rows.count != row + 1 || rows.strides[row] != 1 ||
        across->attributes[QUANTIZE_BITS] != along->attributes[QUANTIZE_BITS] ||
        across->attributes[QUANTIZE_BLOCK] != along->attributes[QUANTIZE_BLOCK] ||
        !take_rows(&columns, rows.dims[row], 1) ||
        !take_rows(&rows, columns.dims[k], columns.strides[k]) || columns.rows != rows.rows) {
        return false;
    }
    for (int axis = 0; axis < rows.rows; axis++) {
        if (columns.dims[axis] != rows.dims[axis] || columns.strides[axis] != rows.strides[axis]) {
            return false;
        }
    }
    return true;
}

/* ---- what becomes one --------------------------------------------------------------- */

/* Operations from one quantization to the other; further apart, numbers should not wait as well. */
#define NEAR 24

static bool reads_tensor(const struct op *op, uint32_t x)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] == x) {
            return true;
        }
    }
    return false;
}

/* A quantization that nobody reads any more: another one has the same view (repeated.c). */
static bool is_left_over(const struct readers *readers, const struct op *op)
{
    bool unread = op->kind == OP_QUANTIZE;

    for (uint32_t i = 0; unread && i < op->output_count; i++) {
        unread = readers->count[op->outputs[i]] == 0 && !readers->kept[op->outputs[i]];
    }
    return unread;
}

/* Operations that read a tensor, but for quantizations that are left over. */
static uint32_t readers_left(const struct fusion *fusion, const struct readers *readers, uint32_t x)
{
    uint32_t count = readers->count[x];

    for (uint32_t at = readers->first[x]; at != NEVER && at <= readers->last[x]; at++) {
        count -= reads_tensor(&fusion->ops[at], x) && is_left_over(readers, &fusion->ops[at]);
    }
    return count;
}

/* Finds the quantization of the rows of what operation `at` quantizes by columns. */
static void find_along(struct tiles_match *found, const struct fusion *fusion,
                       const struct tape *tape, const struct readers *readers, uint32_t at)
{
    const uint32_t x = fusion->ops[at].inputs[0];
    const bool given = !role_is_made(tape->tensors[x].role);
    uint32_t along = NEVER;

    if (tape_varies(tape, at, x) || (given ? !fusion->facts.roomy : readers->kept[x])) {
        return;
    }
    for (uint32_t by = readers->first[x]; by != NEVER && by <= readers->last[x]; by++) {
        const struct op *op = &fusion->ops[by];

        if (by != at && reads_tensor(op, x) && is_pieces(fusion, by) &&
            !is_left_over(readers, op) && are_both(&fusion->ops[at], op)) {
            along = by;
        }
    }
    found->alone = !given && readers_left(fusion, readers, x) == 2;
    if (along != NEVER &&
        (given || found->alone || (along < at ? at - along : along - at) <= NEAR)) {
        found->along = along;
        found->width = contraction_shape_of(&fusion->ops[along]).k;
    }
}

static uint32_t sums_of(const struct fusion *fusion, const struct readers *readers,
                        const struct op *quantize)
{
    const uint32_t q = quantize->outputs[2];

    for (uint32_t at = readers->first[q]; at != NEVER && at <= readers->last[q]; at++) {
        const struct op *op = &fusion->ops[at];

        if (op->kind == OP_CONTRACT_ONES && op->input_count == 2 && op->inputs[0] == q &&
            op->inputs[1] == quantize->outputs[1] && fusion_may_take(fusion, at) &&
            (!fusion->facts.in_legs || !readers->is_output[op->outputs[0]])) {
            return at;
        }
    }
    return NEVER;
}

/* Does it quantize the columns of one matrix that fills a tensor of its own? */
static bool is_matrix(const struct fusion *fusion, const struct op *quantize)
{
    const struct plain_view view = quantizer_view(quantize);
    const uint32_t x = quantize->inputs[0];

    return fusion->holders[x] == x && view.count == 2 && view.rows == 1 && view.strides[0] == 1 &&
           view.strides[1] == view.dims[0];
}

/* Is the matrix read so often, and nobody wants it later? */
static bool is_read(const struct readers *readers, uint32_t x, uint32_t count)
{
    return !readers->kept[x] && readers->count[x] == count;
}

/* The cross-entropy whose gradient is read by these columns alone: it need not be written. */
static uint32_t entropy_of(const struct fusion *fusion, const struct readers *readers,
                           const struct op *quantize)
{
    const uint32_t x = quantize->inputs[0];
    const uint32_t at = readers->maker[x];
    const struct op *op = at == NEVER ? NULL : &fusion->ops[at];

    return op != NULL && op->kind == OP_CROSS_ENTROPY_GRAD && op->output_count == ENTROPY_OUTPUTS &&
                   op->outputs[ENTROPY_DX] == x && is_read(readers, x, 1) &&
                   fusion->holders[op->inputs[0]] == op->inputs[0] && is_matrix(fusion, quantize) &&
                   quantizer_view(quantize).dims[0] == op->attributes[COLUMNS]
               ? at
               : NEVER;
}

/* ---- norms -------------------------------------------------------------------------- */

/*
 * The norm whose result is read by these columns, and at most by the unit that quantizes its rows:
 * it need not be written. The columns are made again of the norm's input, which its gradient reads
 * too.
 */
static uint32_t norm_of(const struct fusion *fusion, const struct readers *readers, uint32_t across)
{
    const struct op *quantize = &fusion->ops[across];
    const uint32_t x = quantize->inputs[0];
    const uint32_t at = readers->maker[x];
    const struct op *op = at == NEVER ? NULL : &fusion->ops[at];
    const bool held = op != NULL && fusion->patterns[at] == &pattern_held;

    return op != NULL && (op->kind == OP_LAYER_NORM || op->kind == OP_RMS_NORM) &&
                   fusion->group_of[at] == 0 && op->outputs[launch_rows_result(op)] == x &&
                   !readers->kept[x] && fusion_is_stretch(fusion, at, across) &&
                   fusion->holders[op->inputs[0]] == op->inputs[0] && is_matrix(fusion, quantize) &&
                   quantizer_view(quantize).dims[0] == op->attributes[COLUMNS] &&
                   readers_left(fusion, readers, x) == (held ? 2 : 1)
               ? at
               : NEVER;
}

/* Nobody else wants the limbs of a quantization whose rows are summed. */
static bool is_for_sums(const struct readers *readers, const struct op *quantize)
{
    return is_read(readers, quantize->outputs[2], 1) && is_read(readers, quantize->outputs[1], 1) &&
           is_read(readers, quantize->outputs[0], 0);
}

/*
 * Where sums of the columns of a norm's products are wanted, the gradient of its gain, those of
 * what it was given backward are, too, the gradient of its bias. Both are made of one read, and
 * nobody writes the products.
 */
static void find_twin(struct tiles_match *found, const struct fusion *fusion,
                      const struct readers *readers)
{
    const struct op *quantize = &fusion->ops[found->across];
    const uint32_t at = readers->maker[quantize->inputs[0]];
    const struct op *op = at == NEVER ? NULL : &fusion->ops[at];

    if (op == NULL || op->kind != OP_LAYER_NORM_GRAD || op->outputs[5] != quantize->inputs[0] ||
        found->sums == NEVER || !is_read(readers, quantize->inputs[0], 1) ||
        !is_matrix(fusion, quantize) || !is_for_sums(readers, quantize) ||
        fusion->holders[op->inputs[1]] != op->inputs[1]) {
        return;
    }
    for (uint32_t by = readers->first[op->inputs[0]]; by <= readers->last[op->inputs[0]]; by++) {
        struct op like = fusion->ops[by];

        if (fusion->patterns[by] == NULL && is_pieces(fusion, by) &&
            fusion_is_stretch(fusion, found->across, by) && like.inputs[0] == op->inputs[0] &&
            is_matrix(fusion, &like) && is_for_sums(readers, &like)) {
            like.inputs[0] = quantize->inputs[0];
            found->twin_sums = quantizer_same(&like, quantize)
                                   ? sums_of(fusion, readers, &fusion->ops[by])
                                   : NEVER;
            found->twin = found->twin_sums != NEVER ? by : found->twin;
        }
    }
}

static bool tiles_at(struct tiles_match *found, const struct fusion *fusion,
                     const struct tape *tape, const struct readers *readers, uint32_t at)
{
    const struct op *op = &fusion->ops[at];
    const struct plain_view view = quantizer_view(op);

    *found = (struct tiles_match){.across = at,
                                  .along = NEVER,
                                  .sums = NEVER,
                                  .entropy = NEVER,
                                  .norm = NEVER,
                                  .twin = NEVER,
                                  .twin_sums = NEVER};
    if (view.rows == 0 || view.strides[view.rows - 1] != 1 || readers->count[op->outputs[2]] == 0) {
        return false;
    }
    found->width = view.dims[view.rows - 1];
    found->sums = sums_of(fusion, readers, op);
    found->entropy = entropy_of(fusion, readers, op);
    found->norm = norm_of(fusion, readers, at);
    find_along(found, fusion, tape, readers, at);
    find_twin(found, fusion, readers);
    return found->sums != NEVER || found->along != NEVER || found->entropy != NEVER ||
           found->norm != NEVER;
}

/* Does a step execute all of them as often as each other? */
static bool are_alike(const struct tiles_match *found, const struct fusion *fusion)
{
    const uint32_t others[3] = {found->along, found->sums, found->entropy};
    bool alike = true;

    for (int i = 0; i < 3; i++) {
        if (others[i] != NEVER) {
            const uint32_t first = others[i] < found->across ? others[i] : found->across;

            alike = alike && fusion_is_stretch(fusion, first, others[i] + found->across - first);
        }
    }
    return alike;
}

/* ---- GELU and SiLU ------------------------------------------------------------------ */

static enum tiles_code code_of(const struct op *op)
{
    return op->kind != OP_MAP || op->input_count != 1 ? TILES_PLAIN
           : op->attributes[MAP_FUNCTION] == MAP_GELU ? TILES_GELU
           : op->attributes[MAP_FUNCTION] == MAP_SILU ? TILES_SILU
                                                      : TILES_PLAIN;
}

/* A product's epilogue no longer makes the tensor, which one of its steps made of another one. */
static bool leave_step(struct fusion *fusion, uint32_t at, uint32_t x, uint32_t u)
{
    struct fused_group *group = &fusion->groups[fusion->group_of[at] - 1];
    struct op *maker = &fusion->ops[at];
    uint32_t kept = 0;
    bool made = false;

    for (uint32_t i = 0; i < maker->output_count; i++) {
        made = made || maker->outputs[i] == u;
    }
    for (uint32_t i = 0; made && i < maker->output_count; i++) {
        if (maker->outputs[i] != x) {
            maker->outputs[kept++] = maker->outputs[i];
        }
    }
    maker->output_count = made ? kept : maker->output_count;
    kept = 0;
    for (uint32_t i = 0; made && i < group->count; i++) {
        if (group->ops[i].outputs[0] != x) {
            group->ops[kept] = group->ops[i];
            group->ats[kept++] = group->ats[i];
        }
    }
    if (made) {
        group->ats[kept - 1] = at; /* where it executes */
        group->count = kept;
    }
    return made;
}

/* Does a step of a group read a tensor? */
static bool group_reads(const struct fused_group *group, uint32_t x)
{
    for (uint32_t i = 0; i < group->count; i++) {
        if (reads_tensor(&group->ops[i], x)) {
            return true;
        }
    }
    return false;
}

/* The operation takes what a function was given, if only it wants what the function made. */
static void take_function(struct op *op, struct fusion *fusion, const struct tape *tape,
                          struct readers *readers, uint32_t first)
{
    const uint32_t x = op->inputs[0];
    const uint32_t at = readers->maker[x];
    const struct fused_group *group = at == NEVER ? NULL : fusion_group(fusion, at);
    const struct op *function = at == NEVER ? NULL : &fusion->ops[at];

    for (uint32_t i = 0; group != NULL && i < group->count; i++) {
        function = group->ops[i].outputs[0] == x ? &group->ops[i] : function;
    }
    if (function == NULL || code_of(function) == TILES_PLAIN || fusion->holders[x] != x ||
        !fusion_is_stretch(fusion, at, first) || (group != NULL && group_reads(group, x)) ||
        fusion->holders[function->inputs[0]] != function->inputs[0] ||
        tape->tensors[function->inputs[0]].dtype != DTYPE_F32) {
        return;
    }
    const enum tiles_code code = code_of(function);
    const uint32_t u = function->inputs[0];

    if (group != NULL && !leave_step(fusion, at, x, u)) {
        return;
    }
    op->inputs[0] = u;
    op->attributes[TILES_FUNCTION] = code;
    readers->count[u]++; /* it must be made, though its other readers may go */
}

/* ---- all of them -------------------------------------------------------------------- */

/* Logits, and what cross-entropy's gradient takes and made of their rows. */
static void take_logits(struct op *maker, const struct op *entropy)
{
    for (uint32_t i = 0; i < 3; i++) {
        maker->inputs[i] = entropy->inputs[i];
    }
    maker->inputs[3] = entropy->outputs[ENTROPY_MAX];
    maker->inputs[4] = entropy->outputs[ENTROPY_SUM];
    maker->input_count = 5;
    maker->attributes[TILES_FUNCTION] = TILES_ENTROPY;
}

/* A norm's input, and what it takes and made; its unit, if there is one, writes no result. */
static void take_norm(struct op *maker, struct fusion *fusion, uint32_t at)
{
    const struct op *norm = &fusion->ops[at];
    const bool layer = norm->kind == OP_LAYER_NORM;

    maker->input_count = 0;
    for (uint32_t i = 0; i < norm->input_count; i++) {
        maker->inputs[maker->input_count++] = norm->inputs[i];
    }
    if (layer) {
        maker->inputs[maker->input_count++] = norm->outputs[1];
    }
    maker->inputs[maker->input_count++] = norm->outputs[layer ? 3 : 1];
    maker->attributes[TILES_FUNCTION] = layer ? TILES_LAYER_NORM : TILES_RMS_NORM;
    if (fusion->patterns[at] == &pattern_held) {
        fusion->patterns[at] = &pattern_unwritten;
    }
}

static void make_nothing(struct op *op)
{
    op->input_count = 0;
    op->output_count = 0;
}

static void take_outputs(struct op *maker, struct op *op)
{
    for (uint32_t i = 0; i < op->output_count; i++) {
        maker->outputs[maker->output_count++] = op->outputs[i];
    }
    make_nothing(op);
}

/*
 * The operation that makes the columns of the norm's result again, of the same numbers, where dy is
 * there already: it makes the slopes too. Or NEVER.
 */
static uint32_t columns_of(const struct fusion *fusion, const struct readers *readers,
                           const struct op *slopes, uint32_t at)
{
    const struct op *quantize = &fusion->ops[at];
    const uint32_t maker = readers->maker[slopes->inputs[0]];

    for (uint32_t by = maker == NEVER ? at : maker + 1; by < at; by++) {
        struct op op = fusion->ops[by];

        if (fusion->patterns[by] == &pattern_tiles && fusion_is_stretch(fusion, by, at) &&
            op.attributes[TILES_FUNCTION] == TILES_LAYER_NORM && op.output_count == TILES_ALONG &&
            op.inputs[0] == slopes->inputs[1] && op.inputs[3] == slopes->inputs[3] &&
            op.inputs[4] == slopes->inputs[4]) {
            op.input_count = 1;
            op.inputs[0] = quantize->inputs[0];
            return quantizer_same(&op, quantize) ? by : NEVER;
        }
    }
    return NEVER;
}

/* The gradients of a norm's bias and gain, made where the gain's was quantized or before. */
static void make_slopes(struct fusion *fusion, const struct readers *readers,
                        const struct tiles_match *found)
{
    const struct op *slopes = &fusion->ops[readers->maker[fusion->ops[found->across].inputs[0]]];
    const uint32_t columns = columns_of(fusion, readers, slopes, found->across);
    const uint32_t at = columns != NEVER ? columns : found->across;
    struct op maker = fusion->ops[at];

    if (columns == NEVER) {
        maker.inputs[0] = slopes->inputs[1];
        maker.inputs[1] = slopes->inputs[3];
        maker.inputs[2] = slopes->inputs[4];
        maker.input_count = 3;
        maker.attribute_count = TILES_ATTRIBUTES;
        maker.attributes[TILES_WIDTH] = found->width;
        maker.attributes[TILES_FUNCTION] = TILES_SLOPES;
    }
    maker.inputs[maker.input_count++] = slopes->inputs[0];
    make_nothing(&fusion->ops[found->across]);
    make_nothing(&fusion->ops[found->twin]);
    take_outputs(&maker, &fusion->ops[found->twin_sums]);
    take_outputs(&maker, &fusion->ops[found->sums]);
    fusion->ops[at] = maker;
    fusion->patterns[at] = &pattern_tiles;
}

/* The first of the operations makes what all of them made; the others make nothing any more. */
static void make_one(struct fusion *fusion, const struct tape *tape, struct readers *readers,
                     const struct tiles_match *found)
{
    const uint32_t first = found->along < found->across ? found->along : found->across;
    struct op maker = fusion->ops[found->across];

    maker.attribute_count = TILES_ATTRIBUTES;
    maker.attributes[TILES_WIDTH] = found->width;
    maker.attributes[TILES_FUNCTION] = TILES_PLAIN;
    make_nothing(&fusion->ops[found->across]);
    if (found->along != NEVER) {
        if (found->alone) {
            take_function(&maker, fusion, tape, readers, first);
        }
        take_outputs(&maker, &fusion->ops[found->along]);
    }
    if (found->entropy != NEVER) {
        take_logits(&maker, &fusion->ops[found->entropy]);
    }
    if (found->norm != NEVER) {
        take_norm(&maker, fusion, found->norm);
    }
    if (found->sums != NEVER) {
        take_outputs(&maker, &fusion->ops[found->sums]);
    }
    fusion->ops[first] = maker;
    fusion->patterns[first] = &pattern_tiles;
}

static bool find_tiles(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        struct tiles_match found;

        if (is_pieces(fusion, at) && fusion->patterns[at] == NULL &&
            tiles_at(&found, fusion, tape, readers, at) && are_alike(&found, fusion)) {
            if (found.twin != NEVER) {
                make_slopes(fusion, readers, &found);
            } else {
                make_one(fusion, tape, readers, &found);
            }
        }
    }
    return true;
}

/* ---- the launch --------------------------------------------------------------------- */

static enum device_result launch_made(const struct launcher *launcher, const struct fusion *fusion,
                                      uint32_t at)
{
    return launch_tiles(launcher, &fusion->ops[at]);
}

/* ---- the self-test ------------------------------------------------------------------ */

#define NORM_ROWS  150
#define NORM_WIDTH 132

/* Pieces differ so much, both ways, that exponents are raised; some are zeros. */
static float fill_pieces(uint64_t row, uint64_t k)
{
    const uint64_t piece = (row / CONTRACTION_PIECE + k / CONTRACTION_PIECE) % 3;
    const int32_t number = (int32_t)((row * 7919 + k * 104729) % 4001) - 2000;

    return piece == 2 ? 0.0f : (float)number * (piece == 0 ? 0x1p-12f : 0x1p-36f);
}

/* A view, and its product with two rows of numbers. */
static const struct op *add_view(struct selftest_tape *tape, uint32_t x, const int64_t sizes[3],
                                 int bits, bool along)
{
    const int64_t by_two[3] = {sizes[0], sizes[1], 2};
    const uint32_t two = selftest_give(tape, DTYPE_F32, (uint64_t)(sizes[0] * 2 * sizes[2]));
    const struct op *b = selftest_quantize(tape, two, sizes[0], 2, sizes[2], bits, 128, true);
    const struct op *a = selftest_quantize(tape, x, sizes[0], sizes[1], sizes[2], bits, 128, along);

    (void)selftest_contract(tape, a, b, by_two, sizes[2], false);
    return a;
}

/* A norm's operation over ragged rows, of which the first input is of pieces. */
static const struct op *add_norm(struct selftest_tape *tape, const struct row_kind *kind)
{
    const struct op *op = selftest_rows(tape, kind, NORM_ROWS, NORM_WIDTH, 0);

    tape->row[op->inputs[0]] = NORM_WIDTH;
    tape->fills[op->inputs[0]] = fill_pieces;
    return op;
}

/* Sums of the columns of a matrix of a norm. */
static void add_sums(struct selftest_tape *tape, uint32_t x)
{
    const struct op *q = selftest_quantize(tape, x, 1, NORM_WIDTH, NORM_ROWS, 14, 128, false);

    (void)selftest_ones(tape, q, NORM_WIDTH, NORM_ROWS);
}

/* The columns of what norms make, and both gradients of one. */
static void add_norms(struct selftest_tape *tape)
{
    static const struct row_kind layer = {OP_LAYER_NORM, 0x3727c5ac, {1, 2, 2}, {3, 3, 3, 3, 1}};
    static const struct row_kind rms = {OP_RMS_NORM, 0x3727c5ac, {1, 2}, {3, 3, 1}};
    static const struct row_kind gradient = {
        OP_LAYER_NORM_GRAD, 0, {1, 1, 2, 3, 3}, {3, 3, 3, 3, 1, 1}};
    static const int64_t columns[3] = {1, NORM_WIDTH, NORM_ROWS};
    const struct op *op = add_norm(tape, &layer);

    (void)add_view(tape, selftest_hide(tape, op->outputs[4]), columns, 14, false);
    op = add_norm(tape, &rms);
    (void)add_view(tape, selftest_hide(tape, op->outputs[2]), columns, 16, false);
    op = add_norm(tape, &gradient);
    add_sums(tape, selftest_hide(tape, op->outputs[5]));
    add_sums(tape, op->inputs[0]);
}

/* Rows and columns of ragged matrices, and of what GELU makes of them; and of norms. */
static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    if (part == 3) {
        add_norms(tape);
        return;
    }
    static const struct {
        int64_t sizes[3]; /* batches, rows, columns */
        int bits;
    } shapes[] = {{{1, 150, 140}, 14}, {{2, 140, 37}, 16}, {{2, 20, 260}, 15}};
    const int64_t *sizes = shapes[part].sizes;
    const int64_t columns[3] = {sizes[0], sizes[2], sizes[1]};

    for (int turn = 0; turn < 2; turn++) {
        const uint32_t given =
            selftest_give_filled(tape, sizes[0] * sizes[1], sizes[2], fill_pieces);
        struct op *map = selftest_op(tape, OP_MAP);
        const struct op *q;
        uint32_t x;

        map->attributes[MAP_FUNCTION] = turn == 0 ? MAP_GELU : MAP_NEG;
        map->attribute_count = MAP_ATTRIBUTES;
        selftest_input(map, given);
        x = selftest_output(tape, map, DTYPE_F32, (uint64_t)(sizes[0] * sizes[1] * sizes[2]));
        (void)selftest_hide(tape, x);
        (void)add_view(tape, x, sizes, shapes[part].bits, true);
        q = add_view(tape, x, columns, shapes[part].bits, false);
        if (turn != (int)part % 2) {
            (void)selftest_ones(tape, q, sizes[0] * sizes[2], sizes[1]);
        }
    }
}

const struct fusion_pattern pattern_tiles = {.name = "tiles",
                                             .variant = VARIANT_TILES,
                                             .match = find_tiles,
                                             .launch = launch_made,
                                             .selftest = add_selftest,
                                             .selftests = 4};
