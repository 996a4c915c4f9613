/*
 * slice.c - see slice.h.
 *
 * Each family of kinds says once what a part is: the attributes that change, and a view of each
 * tensor. A view is `outer` repetitions of `length` units of `inner` elements, of which the part
 * takes the units [first, last). A tensor without the axis is taken whole.
 */
#include "engine/plan/slice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/contraction.h"

struct cut {
    struct slice *part;
    struct slice_view *views;
    const struct slice *whole;
    uint64_t first;
    uint64_t last;
};

void slice_whole(struct slice *slice, const struct tape *tape, uint32_t at)
{
    const struct op *op = &tape->ops[at];

    memset(slice, 0, sizeof(*slice));
    slice->op = *op;
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const bool made = i >= op->input_count;
        const uint32_t id = made ? op->outputs[i - op->input_count] : op->inputs[i];
        struct tensor *tensor = &slice->tensors[i];

        *tensor = tape->tensors[id];
        tensor->role = made ? ROLE_OUTPUT : tensor->role == ROLE_DATA ? ROLE_DATA : ROLE_INPUT;
        (void)snprintf(tensor->name, sizeof(tensor->name), "s.%u", i);
        if (made) {
            slice->op.outputs[i - op->input_count] = i;
        } else {
            slice->op.inputs[i] = i;
        }
    }
}

uint64_t slice_size(const struct slice *slice)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < slice->op.input_count + slice->op.output_count; i++) {
        size += tensor_size(&slice->tensors[i]);
    }
    return size;
}

/* ---- views ----------------------------------------------------------------- */

static void set_count(struct tensor *tensor, uint64_t count)
{
    tensor->count = count;
    tensor->rank = 1;
    memset(tensor->dims, 0, sizeof(tensor->dims));
    tensor->dims[0] = count;
}

/* Takes the units of the cut from every `length` units of `inner` elements. */
static void view_units(struct cut *cut, uint32_t tensor, uint64_t length, uint64_t inner)
{
    struct slice_view *view = &cut->views[tensor];

    *view = (struct slice_view){.first = cut->first * inner,
                                .run = (cut->last - cut->first) * inner,
                                .stride = length * inner,
                                .count = cut->whole->tensors[tensor].count / (length * inner)};
    set_count(&cut->part->tensors[tensor], view->run * view->count);
}

/* Takes the elements [first, end). */
static void view_run(struct cut *cut, uint32_t tensor, uint64_t first, uint64_t end)
{
    cut->views[tensor] = (struct slice_view){first, end - first, end - first, 1};
    set_count(&cut->part->tensors[tensor], end - first);
}

static uint32_t output_place(const struct op *op, uint32_t output)
{
    return op->input_count + output;
}

static uint64_t output_count(const struct slice *slice, uint32_t output)
{
    return slice->tensors[output_place(&slice->op, output)].count;
}

static uint64_t ceiling_of(uint64_t count, uint64_t unit)
{
    return (count + unit - 1) / unit;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- elements ---------------------------------------------------------------- */

/* Every tensor as large as the output is cut like it; the scalars stay whole. */
static void take_elements(struct cut *cut)
{
    const struct op *op = &cut->whole->op;
    const uint64_t count = output_count(cut->whole, 0);
    const bool update = op->kind == OP_SGD || op->kind == OP_ADAMW;
    const uint32_t along = op->kind == OP_SGD ? 3 : op->kind == OP_ADAMW ? 4 : op->input_count;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        if (!update || i < along || i >= op->input_count) {
            assert(cut->whole->tensors[i].count == count);
            view_units(cut, i, count, 1);
        }
    }
}

/*
 * EXPAND reads its input at (i / div) % mod. A unit is a whole period if the output has several;
 * else the elements that read the same element; else one element.
 */
struct expansion {
    uint64_t div;
    uint64_t mod;
    uint64_t unit;
    uint64_t units;
};

static struct expansion expansion_of(const struct slice *whole)
{
    const uint64_t count = output_count(whole, 0);
    struct expansion at = {.div = (uint64_t)whole->op.attributes[EXPAND_DIV],
                           .mod = (uint64_t)whole->op.attributes[EXPAND_MOD]};

    if (at.mod < ceiling_of(count, at.div)) {
        at.unit = at.div * at.mod;
    } else {
        at.unit = at.div < count ? at.div : 1;
    }
    at.units = ceiling_of(count, at.unit);
    return at;
}

static void take_expansion(struct cut *cut)
{
    const struct expansion at = expansion_of(cut->whole);
    const uint64_t first = cut->first * at.unit;
    const uint64_t end = least_of(cut->last * at.unit, output_count(cut->whole, 0));

    view_run(cut, 1, first, end);
    if (at.mod < ceiling_of(output_count(cut->whole, 0), at.div)) {
        return; /* whole periods read the whole input */
    }
    view_run(cut, 0, first / at.div, ceiling_of(end, at.div));
    cut->part->op.attributes[EXPAND_MOD] = (int64_t)(ceiling_of(end, at.div) - first / at.div);
}

/* ---- rows -------------------------------------------------------------------- */

/* The rows that read one element of a softmax's reach; 0: it has none. */
static uint64_t reach_sharers(const struct slice *slice)
{
    const struct op *op = &slice->op;
    const uint32_t slot = softmax_reach_input(op->kind);

    if ((op->kind != OP_SOFTMAX && op->kind != OP_SOFTMAX_GRAD) || op->input_count <= slot) {
        return 0;
    }
    return (uint64_t)op->attributes[ROWS] / slice->tensors[slot].count;
}

#define OP_PLAN(cut, launch, ...)                                 NULL
#define OP_PLAN_ROWS(tensors, launch, ...)                        (tensors)
#define ROW_TENSORS(NAME, text, spec, rules, gradient, plan, ...) [OP_##NAME] = plan,

/* Of kinds with rows what each tensor has per row: 'a' all columns, 'p' parts of a fold, 'r' one
 * number, 'w' a WIDTH, 'h' a reach, which need not be there; 'c': no rows. */
static const char *const row_tensors[OP_KIND_COUNT] = {OP_LIST(ROW_TENSORS)};
#undef OP_PLAN
#undef OP_PLAN_ROWS

/* Rows per unit. A causal softmax is cut at whole periods, since row r sees r % causal columns;
 * with a reach, at whole turns of it. */
static uint64_t row_unit(const struct slice *slice)
{
    const struct op *op = &slice->op;
    const bool masked = op->kind == OP_SOFTMAX || op->kind == OP_SOFTMAX_GRAD;
    const uint64_t causal = masked ? (uint64_t)op->attributes[SOFTMAX_CAUSAL] : 0;
    const uint64_t sharers = reach_sharers(slice);

    return causal == 0 ? 1 : sharers == 0 ? causal : causal * sharers;
}

/* With a reach there is another axis, of the periods that read the same one: where there is one. */
static uint64_t periods_of_reach(const struct slice *slice)
{
    const uint64_t sharers = reach_sharers(slice);
    const uint64_t causal = (uint64_t)slice->op.attributes[SOFTMAX_CAUSAL];

    return sharers * causal == (uint64_t)slice->op.attributes[ROWS] ? sharers : 1;
}

/* The gradient of a cross-entropy knows the maximum and the sum of a row, so that its columns are
 * cut too, where there are rows. */
static bool has_entropy_columns(const struct op *op)
{
    return op->kind == OP_CROSS_ENTROPY_GRAD && op->attributes[ROWS] > 1;
}

static void take_entropy_columns(struct cut *cut)
{
    const struct op *op = &cut->whole->op;
    const uint64_t columns = (uint64_t)op->attributes[COLUMNS];
    const uint64_t taken = cut->last - cut->first;

    view_units(cut, 0, columns, 1);
    view_units(cut, output_place(op, 0), columns, 1);
    cut->part->op.attribute_count = CROSS_ENTROPY_PART;
    cut->part->op.attributes[COLUMNS] = (int64_t)taken;
    cut->part->op.attributes[CROSS_ENTROPY_FIRST] += (int64_t)cut->first;
    cut->part->op.attributes[CROSS_ENTROPY_REST] += (int64_t)(columns - taken);
}

static void take_rows(struct cut *cut, uint32_t axis)
{
    const struct op *op = &cut->whole->op;
    const char *tensors = row_tensors[op->kind];
    const uint64_t unit =
        axis == 0 ? row_unit(cut->whole) : (uint64_t)op->attributes[SOFTMAX_CAUSAL];
    const uint64_t sharers = reach_sharers(cut->whole);
    const uint64_t rows = (uint64_t)op->attributes[ROWS];
    const uint64_t columns = (uint64_t)op->attributes[COLUMNS];
    const uint64_t first = cut->first * unit;
    const uint64_t end = least_of(cut->last * unit, rows);

    for (uint32_t i = 0; *tensors != '\0'; tensors++) {
        const uint64_t width = *tensors == 'a'   ? columns
                               : *tensors == 'p' ? fold_chunks(columns)
                               : *tensors == 'w' ? (uint64_t)op->attributes[TAKE_WIDTH]
                                                 : 1;

        if (*tensors == 'h' && sharers == 0) {
            continue;
        }
        if (*tensors == 'h' && axis == 0) {
            view_run(cut, i, first / sharers, end / sharers);
        } else if (*tensors != 'h' && *tensors != 'c') {
            view_run(cut, i, first * width, end * width);
        }
        i++;
    }
    cut->part->op.attributes[ROWS] = (int64_t)(end - first);
}

/* ---- moving -------------------------------------------------------------------- */

/* Axis 0: columns of the table; axis 1: rows of the output. */
static void take_gather(struct cut *cut, uint32_t axis)
{
    const uint64_t width = (uint64_t)cut->whole->op.attributes[GATHER_WIDTH];

    if (axis == 0) {
        view_units(cut, 0, width, 1);
        view_units(cut, 2, width, 1);
        cut->part->op.attributes[GATHER_WIDTH] = (int64_t)(cut->last - cut->first);
    } else {
        view_run(cut, 1, cut->first, cut->last);
        view_run(cut, 2, cut->first * width, cut->last * width);
    }
}

/* SPLIT, CONCAT and pictures: every tensor has the same number of units. */
static void take_all(struct cut *cut, uint32_t attribute)
{
    const struct op *op = &cut->whole->op;
    const uint64_t length = (uint64_t)op->attributes[attribute];

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        view_units(cut, i, length, cut->whole->tensors[i].count / length);
    }
    cut->part->op.attributes[attribute] = (int64_t)(cut->last - cut->first);
}

/* Axis 0: sequences; axis 1: places in them, with their rows of the table. */
static void take_rotary(struct cut *cut, uint32_t axis)
{
    const int64_t *attributes = cut->whole->op.attributes;
    const uint64_t length = (uint64_t)attributes[ROTARY_LENGTH];
    const uint64_t width = (uint64_t)(attributes[ROTARY_HEADS] * attributes[ROTARY_WIDTH]);
    const uint64_t outer = output_count(cut->whole, 0) / (length * width);

    if (axis == 0) {
        view_units(cut, 0, outer, length * width);
        view_units(cut, 2, outer, length * width);
    } else {
        view_units(cut, 0, length, width);
        view_units(cut, 1, length, (uint64_t)attributes[ROTARY_WIDTH]);
        view_units(cut, 2, length, width);
        cut->part->op.attributes[ROTARY_LENGTH] = (int64_t)(cut->last - cut->first);
    }
}

/* ---- contraction ------------------------------------------------------------------ */

/* Cuts one axis of a tensor that has `axes` axes with strides, and adapts the strides. */
static void take_view(struct cut *cut, uint32_t tensor, uint32_t axes, uint32_t dims_at,
                      uint32_t strides_at, uint32_t axis)
{
    const int64_t *attributes = cut->whole->op.attributes;
    int64_t *taken = cut->part->op.attributes;
    const int64_t length = attributes[dims_at + axis];
    const int64_t stride = attributes[strides_at + axis];

    view_units(cut, tensor, (uint64_t)length, (uint64_t)stride);
    for (uint32_t other = 0; other < axes; other++) {
        if (attributes[dims_at + other] > 1 && attributes[strides_at + other] > stride) {
            taken[strides_at + other] =
                attributes[strides_at + other] / length * (int64_t)(cut->last - cut->first);
        }
    }
    taken[dims_at + axis] = (int64_t)(cut->last - cut->first);
}

/* Cuts axes[at] of a tensor whose rows are the axes axes[0], .. axes[3]. */
static void take_lines(struct cut *cut, uint32_t tensor, uint64_t rows, const int64_t *dims,
                       const uint32_t axes[4], uint32_t at)
{
    uint64_t inner = cut->whole->tensors[tensor].count / rows;

    for (uint32_t i = at + 1; i < 4; i++) {
        inner *= (uint64_t)dims[axes[i]];
    }
    view_units(cut, tensor, (uint64_t)dims[axes[at]], inner);
}

static void take_quantize(struct cut *cut, uint32_t axis)
{
    static const uint32_t axes[4] = {0, 1, 2, 3};
    const struct op *op = &cut->whole->op;

    const uint64_t k = (uint64_t)contraction_shape_of(op).k;
    const uint64_t *dims = (const uint64_t *)&op->attributes[QUANTIZE_DIMS];

    take_view(cut, 0, 6, QUANTIZE_DIMS, QUANTIZE_STRIDES, axis);
    if (quantize_is_shifted(op) && axis < 2) {
        view_units(cut, 1, dims[axis], axis == 0 ? dims[1] * k : k);
    }
    for (uint32_t i = 0; i < 3; i++) {
        take_lines(cut, output_place(op, i), (uint64_t)quantize_rows(op),
                   &op->attributes[QUANTIZE_DIMS], axes, axis);
    }
}

static void take_contract(struct cut *cut, uint32_t axis)
{
    static const uint32_t axes[2][4] = {{0, 1, 2, 3}, {0, 1, 4, 5}};
    const int64_t *dims = &cut->whole->op.attributes[CONTRACT_DIMS];

    take_view(cut, 4, 6, CONTRACT_DIMS, CONTRACT_STRIDES, axis);
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t *own = axes[side];
        const uint64_t rows = (uint64_t)(dims[own[0]] * dims[own[1]] * dims[own[2]] * dims[own[3]]);

        for (uint32_t at = 0; at < 4; at++) {
            if (own[at] == axis) {
                take_lines(cut, 2 * side, rows, dims, own, at);
                take_lines(cut, 2 * side + 1, rows, dims, own, at);
            }
        }
    }
}

static void take_ones(struct cut *cut)
{
    const uint64_t rows = (uint64_t)cut->whole->op.attributes[ONES_ROWS];

    for (uint32_t i = 0; i < 3; i++) {
        view_units(cut, i, rows, cut->whole->tensors[i].count / rows);
    }
    cut->part->op.attributes[ONES_ROWS] = (int64_t)(cut->last - cut->first);
}

static void take_onehot(struct cut *cut)
{
    const uint64_t width = (uint64_t)cut->whole->op.attributes[ONEHOT_WIDTH];

    for (uint32_t i = 1; i < 3; i++) {
        view_units(cut, i, width, cut->whole->tensors[i].count / width);
    }
    view_units(cut, 3, width, 1);
    cut->part->op.attributes[ONEHOT_WIDTH] = (int64_t)(cut->last - cut->first);
}

/* Axis 0: rows, whose experts stay whole; axis 1: rows of every expert. */
static void take_chosen(struct cut *cut, uint32_t axis)
{
    static const uint32_t along[2][4] = {{0, 1, 2, 5}, {3, 4, 5}};
    const int64_t *attributes = cut->whole->op.attributes;
    const uint32_t attribute = axis == 0 ? CHOSEN_ROWS : CHOSEN_WIDTH;
    const uint64_t length = (uint64_t)attributes[attribute];
    const uint64_t turns = axis == 0 ? 1 : (uint64_t)attributes[CHOSEN_EXPERTS];

    for (uint32_t i = 0; i < 4 - axis; i++) {
        const uint32_t tensor = along[axis][i];
        const uint64_t count = cut->whole->tensors[tensor].count;

        view_units(cut, tensor, length, axis == 1 && tensor == 5 ? 1 : count / (length * turns));
    }
    cut->part->op.attributes[attribute] = (int64_t)(cut->last - cut->first);
}

/* Axis 0: rows of every expert's sum; axis 1: its columns. */
static void take_chosen_rows(struct cut *cut, uint32_t axis)
{
    const uint32_t attribute = axis == 0 ? CHOSEN_SUM_M : CHOSEN_SUM_N;
    const uint64_t length = (uint64_t)cut->whole->op.attributes[attribute];
    const uint64_t inner = axis == 0 ? (uint64_t)cut->whole->op.attributes[CHOSEN_SUM_N] : 1;

    for (uint32_t i = 1 + 2 * axis; i < 3 + 2 * axis; i++) {
        view_units(cut, i, length, cut->whole->tensors[i].count / length);
    }
    view_units(cut, 5, length, inner);
    cut->part->op.attributes[attribute] = (int64_t)(cut->last - cut->first);
}

/* ---- general -------------------------------------------------------------------------- */

static uint32_t general_dims(const struct op *op)
{
    return op->kind == OP_SELECT ? SELECT_DIMS : BINARY_DIMS;
}

/* An operand that repeats along the axis stays whole. */
static void take_general(struct cut *cut, uint32_t axis)
{
    const struct op *op = &cut->whole->op;
    const uint32_t dims_at = general_dims(op);
    const uint64_t length = (uint64_t)op->attributes[dims_at + axis];
    uint64_t inner = 1;

    for (uint32_t i = axis + 1; i < VIEW_AXES; i++) {
        inner *= (uint64_t)op->attributes[dims_at + i];
    }
    view_units(cut, output_place(op, 0), length, inner);
    cut->part->op.attributes[dims_at + axis] = (int64_t)(cut->last - cut->first);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t strides_at = dims_at + VIEW_AXES * (i + 1);

        if (length > 1 && op->attributes[strides_at + axis] > 0) {
            take_view(cut, i, VIEW_AXES, dims_at, strides_at, axis);
        }
    }
}

/* The operand stays whole: the part begins at another offset of it. */
static void take_move(struct cut *cut, uint32_t axis)
{
    const int64_t *attributes = cut->whole->op.attributes;
    uint64_t inner = 1;

    for (uint32_t i = axis + 1; i < MOVE_AXES; i++) {
        inner *= (uint64_t)attributes[MOVE_DIMS + i];
    }
    view_units(cut, 1, (uint64_t)attributes[MOVE_DIMS + axis], inner);
    cut->part->op.attributes[MOVE_DIMS + axis] = (int64_t)(cut->last - cut->first);
    cut->part->op.attributes[MOVE_OFFSET] += (int64_t)cut->first * attributes[MOVE_STRIDES + axis];
}

/* ---- all kinds ---------------------------------------------------------------------- */

/* Kinds that are cut in the same way. */
enum family {
    FAMILY_NONE,
    FAMILY_ELEMENTS,
    FAMILY_EXPAND,
    FAMILY_ROWS,
    FAMILY_GATHER,
    FAMILY_PARTS,
    FAMILY_PICTURES,
    FAMILY_ROTARY,
    FAMILY_QUANTIZE,
    FAMILY_CONTRACT,
    FAMILY_ONES,
    FAMILY_ONEHOT,
    FAMILY_CHOSEN,
    FAMILY_CHOSEN_ROWS,
    FAMILY_GENERAL,
    FAMILY_MOVE,
};

#define OP_PLAN(cut, launch, ...)                         FAMILY_##cut
#define OP_PLAN_ROWS(tensors, launch, ...)                FAMILY_ROWS
#define CUT(NAME, text, spec, rules, gradient, plan, ...) [OP_##NAME] = plan,

static enum family family_of(enum op_kind kind)
{
    static const enum family families[OP_KIND_COUNT] = {OP_LIST(CUT)};

    return families[kind];
}

/* Lengths that attributes from the first one on say. Returns how many. */
static uint32_t list_dims(uint64_t lengths[SLICE_AXES_MAX], const struct op *op, uint32_t first,
                          uint32_t count)
{
    for (uint32_t axis = 0; axis < count; axis++) {
        lengths[axis] = (uint64_t)op->attributes[first + axis];
    }
    return count;
}

/* Rows, and what some kinds have besides. Returns how many axes. */
static uint32_t list_rows(uint64_t lengths[SLICE_AXES_MAX], const struct slice *whole)
{
    const struct op *op = &whole->op;

    lengths[0] = ceiling_of((uint64_t)op->attributes[ROWS], row_unit(whole));
    if (reach_sharers(whole) != 0) {
        lengths[1] = periods_of_reach(whole);
        return 2;
    }
    if (has_entropy_columns(op)) {
        lengths[1] = (uint64_t)op->attributes[COLUMNS];
        return 2;
    }
    return 1;
}

uint32_t slice_axes(uint64_t lengths[SLICE_AXES_MAX], const struct slice *whole)
{
    const struct op *op = &whole->op;
    const int64_t *attributes = op->attributes;
    uint32_t count = 1;

    switch (family_of(op->kind)) {
    case FAMILY_NONE:
        return 0;
    case FAMILY_ELEMENTS:
        lengths[0] = output_count(whole, 0);
        break;
    case FAMILY_EXPAND:
        lengths[0] = expansion_of(whole).units;
        break;
    case FAMILY_ROWS:
        return list_rows(lengths, whole);
    case FAMILY_GATHER:
        lengths[0] = (uint64_t)attributes[GATHER_WIDTH];
        lengths[1] = whole->tensors[1].count;
        count = 2;
        break;
    case FAMILY_PARTS:
        lengths[0] = (uint64_t)attributes[SPLIT_ROWS];
        break;
    case FAMILY_PICTURES:
        lengths[0] = (uint64_t)attributes[IMAGE_BATCH];
        break;
    case FAMILY_ROTARY:
        lengths[1] = (uint64_t)attributes[ROTARY_LENGTH];
        lengths[0] = output_count(whole, 0) /
                     (lengths[1] * (uint64_t)(attributes[ROTARY_HEADS] * attributes[ROTARY_WIDTH]));
        count = 2;
        break;
    case FAMILY_QUANTIZE:
    case FAMILY_CONTRACT:
        /* A causal contraction is cut along its batch only: the mask depends on row and column. */
        return list_dims(lengths, op, 0,
                         op->kind == OP_QUANTIZE           ? 4
                         : attributes[CONTRACT_CAUSAL] > 0 ? 2
                                                           : 6);
    case FAMILY_ONES:
        lengths[0] = (uint64_t)attributes[ONES_ROWS];
        break;
    case FAMILY_ONEHOT:
        lengths[0] = (uint64_t)attributes[ONEHOT_WIDTH];
        break;
    case FAMILY_CHOSEN:
        lengths[0] = (uint64_t)attributes[CHOSEN_ROWS];
        lengths[1] = (uint64_t)attributes[CHOSEN_WIDTH];
        count = 2;
        break;
    case FAMILY_CHOSEN_ROWS:
        lengths[0] = (uint64_t)attributes[CHOSEN_SUM_M];
        lengths[1] = (uint64_t)attributes[CHOSEN_SUM_N];
        count = 2;
        break;
    case FAMILY_GENERAL:
        return list_dims(lengths, op, general_dims(op), VIEW_AXES);
    case FAMILY_MOVE:
        return list_dims(lengths, op, MOVE_DIMS, MOVE_AXES);
    }
    return count;
}

static void take_axis(struct cut *cut, uint32_t axis)
{
    switch (family_of(cut->whole->op.kind)) {
    case FAMILY_NONE:
        assert(!"an axis of an operation that has none");
        break;
    case FAMILY_ELEMENTS:
        take_elements(cut);
        break;
    case FAMILY_EXPAND:
        take_expansion(cut);
        break;
    case FAMILY_ROWS:
        if (axis == 1 && has_entropy_columns(&cut->whole->op)) {
            take_entropy_columns(cut);
        } else {
            take_rows(cut, axis);
        }
        break;
    case FAMILY_GATHER:
        take_gather(cut, axis);
        break;
    case FAMILY_PARTS:
        take_all(cut, SPLIT_ROWS);
        break;
    case FAMILY_PICTURES:
        take_all(cut, IMAGE_BATCH);
        break;
    case FAMILY_ROTARY:
        take_rotary(cut, axis);
        break;
    case FAMILY_QUANTIZE:
        take_quantize(cut, axis);
        break;
    case FAMILY_CONTRACT:
        take_contract(cut, axis);
        break;
    case FAMILY_ONES:
        take_ones(cut);
        break;
    case FAMILY_ONEHOT:
        take_onehot(cut);
        break;
    case FAMILY_CHOSEN:
        take_chosen(cut, axis);
        break;
    case FAMILY_CHOSEN_ROWS:
        take_chosen_rows(cut, axis);
        break;
    case FAMILY_GENERAL:
        take_general(cut, axis);
        break;
    case FAMILY_MOVE:
        take_move(cut, axis);
        break;
    }
}

void slice_take(struct slice *part, struct slice_view views[SLICE_TENSORS_MAX],
                const struct slice *whole, uint32_t axis, uint64_t first, uint64_t last)
{
    struct cut cut = {part, views, whole, first, last};

    assert(first < last);
    *part = *whole;
    for (uint32_t i = 0; i < whole->op.input_count + whole->op.output_count; i++) {
        const uint64_t count = whole->tensors[i].count;

        views[i] = (struct slice_view){0, count, count, 1};
    }
    take_axis(&cut, axis);
}

/* ---- choosing ------------------------------------------------------------------------- */

static uint64_t size_of_units(const struct slice *whole, uint32_t axis, uint64_t units)
{
    struct slice_view views[SLICE_TENSORS_MAX];
    struct slice part;

    slice_take(&part, views, whole, axis, 0, units);
    return slice_size(&part);
}

bool slice_choose(uint32_t *axis, uint64_t *units, const struct slice *whole, uint64_t size)
{
    uint64_t lengths[SLICE_AXES_MAX];
    const uint32_t count = slice_axes(lengths, whole);
    uint64_t best = UINT64_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const uint64_t half =
            lengths[i] < 2 ? UINT64_MAX : size_of_units(whole, i, ceiling_of(lengths[i], 2));

        if (half < best) {
            best = half;
            *axis = i;
        }
    }
    if (best == UINT64_MAX) {
        return false;
    }
    *units = ceiling_of(lengths[*axis], 2);
    /* Halve as long as this axis makes the parts small; the parts can be cut along another. */
    while (best > size && *units > 1) {
        const uint64_t next = size_of_units(whole, *axis, ceiling_of(*units, 2));

        if (next > best / 4 * 3) {
            break;
        }
        best = next;
        *units = ceiling_of(*units, 2);
    }
    return true;
}

/* ---- copies ----------------------------------------------------------------------------- */

void slice_gather(void *part, const void *whole, const struct slice_view *view,
                  uint64_t element_size)
{
    const uint64_t run = view->run * element_size;

    for (uint64_t i = 0; i < view->count; i++) {
        memcpy((uint8_t *)part + i * run,
               (const uint8_t *)whole + (view->first + i * view->stride) * element_size, run);
    }
}

void slice_scatter(void *whole, const void *part, const struct slice_view *view,
                   uint64_t element_size)
{
    const uint64_t run = view->run * element_size;

    for (uint64_t i = 0; i < view->count; i++) {
        memcpy((uint8_t *)whole + (view->first + i * view->stride) * element_size,
               (const uint8_t *)part + i * run, run);
    }
}
