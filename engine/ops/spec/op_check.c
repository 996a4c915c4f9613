/*
 * op_check.c - checks an untrusted operation: op_check(), its helpers, and the checks of the kinds
 * that draw batches, move data, work element by element or update parameters. op_check_shapes.c has
 * the others.
 */
#include <stdarg.h>
#include <stdio.h>

#include "engine/ops/batch_rows.h"
#include "engine/ops/spec/op_checker.h"
#include "engine/ops/spec/op_spec.h"

/* A stream is one word of the Philox counter. */
#define STREAM_MAX UINT32_MAX

void check_fail(struct op_checker *checker, const char *format, ...)
{
    char text[256];
    va_list arguments;

    if (checker->status != STATUS_OK) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    checker->status = error_set(checker->error, STATUS_BAD_FORMAT, "%s: %s",
                                op_kind_name(checker->op->kind), text);
}

uint64_t check_attribute(struct op_checker *checker, uint32_t position, uint64_t low, uint64_t high)
{
    int64_t value = checker->op->attributes[position];

    if (value < 0 || (uint64_t)value < low || (uint64_t)value > high) {
        char name[64];

        op_spec_name(name, sizeof(name), op_spec(checker->op->kind)->attributes, position);
        check_fail(checker, "%s is %lld, must be from %llu to %llu", name, (long long)value,
                   (unsigned long long)low, (unsigned long long)high);
        return low;
    }
    return (uint64_t)value;
}

uint64_t check_product(struct op_checker *checker, uint64_t a, uint64_t b)
{
    if (b != 0 && a > TENSOR_COUNT_MAX / b) {
        check_fail(checker, "a size of %llu times %llu elements is over the limit of %llu",
                   (unsigned long long)a, (unsigned long long)b,
                   (unsigned long long)TENSOR_COUNT_MAX);
        return 0;
    }
    return a * b;
}

static void check_tensor(struct op_checker *checker, const char *names, uint32_t slot,
                         const struct tensor *tensor, uint32_t dtypes, uint64_t count)
{
    char name[64];

    op_spec_name(name, sizeof(name), names, slot);
    if ((DTYPES(tensor->dtype) & dtypes) == 0) {
        check_fail(checker, "%s '%s' must not be of type %s", name, tensor->name,
                   dtype_name(tensor->dtype));
    } else if (tensor->count != count) {
        check_fail(checker, "%s '%s' has %llu elements, must have %llu", name, tensor->name,
                   (unsigned long long)tensor->count, (unsigned long long)count);
    }
}

void check_input(struct op_checker *checker, uint32_t slot, uint32_t dtypes, uint64_t count)
{
    check_tensor(checker, op_spec(checker->op->kind)->inputs, slot,
                 &checker->tensors[checker->op->inputs[slot]], dtypes, count);
}

void check_output(struct op_checker *checker, uint32_t slot, uint32_t dtypes, uint64_t count)
{
    check_tensor(checker, op_spec(checker->op->kind)->outputs, slot,
                 &checker->tensors[checker->op->outputs[slot]], dtypes, count);
}

uint64_t check_any_input(struct op_checker *checker, uint32_t slot, uint32_t dtypes, uint64_t low)
{
    const struct tensor *tensor = &checker->tensors[checker->op->inputs[slot]];

    check_input(checker, slot, dtypes, tensor->count);
    if (tensor->count < low) {
        check_fail(checker, "'%s' has %llu elements, needs at least %llu", tensor->name,
                   (unsigned long long)tensor->count, (unsigned long long)low);
    }
    return tensor->count;
}

void check_float(struct op_checker *checker, uint32_t position)
{
    uint64_t bits = check_attribute(checker, position, 0, UINT32_MAX);

    if ((bits & 0x7fffffff) > 0x7f800000 && bits != FLOAT_NAN_BITS) {
        check_fail(checker, "a constant is a NaN other than the canonical one");
    }
}

uint64_t check_view(struct op_checker *checker, uint32_t axes, uint32_t dims_at,
                    uint32_t strides_at, bool repeats)
{
    uint64_t total = 1;
    bool placed[OP_ATTRIBUTES_MAX] = {false};
    uint64_t dims[OP_ATTRIBUTES_MAX];

    for (uint32_t axis = 0; axis < axes; axis++) {
        dims[axis] = check_attribute(checker, dims_at + axis, 1, TENSOR_COUNT_MAX);
        placed[axis] = check_attribute(checker, strides_at + axis, 0, TENSOR_COUNT_MAX) == 0
                           ? dims[axis] == 1 || repeats
                           : dims[axis] == 1;
        total = placed[axis] ? total : check_product(checker, total, dims[axis]);
    }
    for (uint64_t stride = 1; stride < total;) {
        uint32_t found = axes;

        for (uint32_t axis = 0; axis < axes; axis++) {
            if (!placed[axis] && checker->op->attributes[strides_at + axis] == (int64_t)stride) {
                found = axis;
            }
        }
        if (found == axes) {
            check_fail(checker, "the view is not a permutation: no axis has stride %llu",
                       (unsigned long long)stride);
            return total;
        }
        placed[found] = true;
        stride *= dims[found];
    }
    return total;
}

static uint64_t output_count(const struct op_checker *checker, uint32_t slot)
{
    return checker->tensors[checker->op->outputs[slot]].count;
}

static enum dtype input_dtype(const struct op_checker *checker, uint32_t slot)
{
    return checker->tensors[checker->op->inputs[slot]].dtype;
}

static enum dtype output_dtype(const struct op_checker *checker, uint32_t slot)
{
    return checker->tensors[checker->op->outputs[slot]].dtype;
}

static enum status check_ids(const struct op *op, uint32_t tensor_count, struct error *error)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] >= tensor_count) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: input %u names tensor %u of %u",
                             op_kind_name(op->kind), i, op->inputs[i], tensor_count);
        }
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (op->outputs[i] >= tensor_count) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: output %u names tensor %u of %u",
                             op_kind_name(op->kind), i, op->outputs[i], tensor_count);
        }
    }
    return STATUS_OK;
}

static bool count_fits(uint32_t count, uint32_t least, uint32_t most, bool more)
{
    return count == least || (more && least > 0 && count > least && count <= most);
}

enum status op_check(const struct op *op, const struct tensor *tensors, uint32_t tensor_count,
                     struct error *error)
{
    struct op_checker checker = {op, tensors, error, STATUS_OK};
    const struct op_spec *spec;

    if ((unsigned)op->kind >= OP_KIND_COUNT) {
        return error_set(error, STATUS_BAD_FORMAT, "unknown kind of operation %u",
                         (unsigned)op->kind);
    }
    spec = op_spec(op->kind);
    const bool more = spec->counts == COUNTS_MORE;
    const uint32_t inputs_max = more ? OP_INPUTS_MAX : spec->input_count_min + 1u;

    if (!count_fits(op->input_count, spec->input_count_min, inputs_max,
                    spec->counts != COUNTS_EXACT) ||
        !count_fits(op->output_count, spec->output_count_min, OP_OUTPUTS_MAX, more) ||
        !count_fits(op->attribute_count, spec->attribute_count_min, OP_ATTRIBUTES_MAX, more)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: %u inputs, %u outputs, %u attributes; must be %u, %u, %u%s",
                         spec->name, op->input_count, op->output_count, op->attribute_count,
                         spec->input_count_min, spec->output_count_min, spec->attribute_count_min,
                         more                              ? " or more"
                         : spec->counts == COUNTS_OPTIONAL ? ", or one input more"
                                                           : "");
    }
    TRY(check_ids(op, tensor_count, error));
    spec->check(&checker);
    return checker.status;
}

/* ---- step number, schedules, batches, randomness ------------------------ */

void op_check_step_next(struct op_checker *checker)
{
    check_input(checker, 0, DTYPES_U32, 1);
    check_output(checker, 0, DTYPES_U32, 1);
}

void op_check_schedule(struct op_checker *checker)
{
    uint64_t columns = check_attribute(checker, SCHEDULE_COLUMNS, 1, 64);

    (void)check_attribute(checker, SCHEDULE_COLUMN, 0, columns - 1);
    if (check_any_input(checker, 0, DTYPES_F32, columns) % columns != 0) {
        check_fail(checker, "the table is not a whole number of rows");
    }
    check_input(checker, 1, DTYPES_U32, 1);
    check_output(checker, 0, DTYPES_F32, 1);
}

void op_check_fill(struct op_checker *checker)
{
    if (output_dtype(checker, 0) == DTYPE_U32) {
        (void)check_attribute(checker, FILL_VALUE_BITS, 0, UINT32_MAX);
    } else {
        check_float(checker, FILL_VALUE_BITS);
    }
    check_output(checker, 0, DTYPES_F32 | DTYPES_U32, output_count(checker, 0));
}

static void check_seed(struct op_checker *checker, uint32_t stream, uint32_t low)
{
    (void)check_attribute(checker, stream, 0, STREAM_MAX);
    (void)check_attribute(checker, low, 0, UINT32_MAX);
    (void)check_attribute(checker, low + 1, 0, UINT32_MAX);
}

void op_check_batch_tokens(struct op_checker *checker)
{
    uint64_t batch = check_attribute(checker, BATCH_COUNT, 1, UINT32_MAX);
    uint64_t length = check_attribute(checker, BATCH_LENGTH, 1, UINT32_MAX);
    uint64_t count = check_product(checker, batch, length);

    check_seed(checker, BATCH_STREAM, BATCH_SEED_LOW);
    (void)check_any_input(checker, 0, DTYPES_TOKEN, length + 1);
    check_input(checker, 1, DTYPES_U32, 1);
    check_output(checker, 0, DTYPES_U32, count);
    check_output(checker, 1, DTYPES_U32, count);
}

void op_check_batch_samples(struct op_checker *checker)
{
    uint64_t batch = check_attribute(checker, BATCH_COUNT, 1, UINT32_MAX);
    uint64_t width = check_attribute(checker, BATCH_LENGTH, 1, UINT32_MAX);
    uint64_t labels = check_any_input(checker, 1, DTYPES_TOKEN, 1);

    check_seed(checker, BATCH_STREAM, BATCH_SEED_LOW);
    check_float(checker, BATCH_SCALE_BITS);
    check_input(checker, 0, DTYPES(DTYPE_U8) | DTYPES_F32, check_product(checker, labels, width));
    check_input(checker, 2, DTYPES_U32, 1);
    check_output(checker, 0, DTYPES_F32, check_product(checker, batch, width));
    check_output(checker, 1, DTYPES_U32, batch);
}

/* The data is whole units of rows. Integers are widened to u32, floats to f32. */
void op_check_batch_rows(struct op_checker *checker)
{
    uint64_t batch = check_attribute(checker, BATCH_COUNT, 1, UINT32_MAX);
    uint64_t length = check_attribute(checker, BATCH_LENGTH, 1, UINT32_MAX);
    uint64_t together = check_attribute(checker, BATCH_ROWS_UNIT, 1, batch);
    uint64_t unit = check_product(checker, together, length);
    uint64_t count = check_any_input(checker, 0, DTYPES_TOKEN | DTYPES_NUMBER, unit);
    bool floats = (DTYPES(input_dtype(checker, 0)) & DTYPES_NUMBER) != 0;

    (void)check_attribute(checker, BATCH_ROWS_AHEAD, 0, 1);
    (void)check_attribute(checker, BATCH_ROWS_PAST, 0, UINT32_MAX);
    (void)check_attribute(checker, BATCH_ROWS_ORDER, 0, 1);
    check_seed(checker, BATCH_STREAM, BATCH_SEED_LOW);
    if (floats) {
        check_float(checker, BATCH_ROWS_PAST);
    }
    if (batch % together != 0) {
        check_fail(checker, "a batch of %llu rows is not whole units of %llu",
                   (unsigned long long)batch, (unsigned long long)together);
    } else if (unit == 0 || count % unit != 0 || count / unit > BATCH_UNITS_MAX) {
        check_fail(checker,
                   "'%s' has %llu elements, must have at most 2^31 units of %llu rows of %llu",
                   checker->tensors[checker->op->inputs[0]].name, (unsigned long long)count,
                   (unsigned long long)together, (unsigned long long)length);
    }
    check_input(checker, 1, DTYPES_U32, 1);
    check_output(checker, 0, floats ? DTYPES_F32 : DTYPES_U32,
                 check_product(checker, batch, length));
}

void op_check_uniform(struct op_checker *checker)
{
    check_seed(checker, UNIFORM_STREAM, UNIFORM_SEED_LOW);
    check_input(checker, 0, DTYPES_U32, 1);
    check_output(checker, 0, DTYPES_U32, output_count(checker, 0));
}

void op_check_dropout(struct op_checker *checker)
{
    (void)check_attribute(checker, DROPOUT_THRESHOLD, 0, UINT32_MAX);
    check_float(checker, DROPOUT_SCALE_BITS);
    check_seed(checker, DROPOUT_STREAM, DROPOUT_SEED_LOW);
    check_input(checker, 0, DTYPES_F32, output_count(checker, 0));
    check_input(checker, 1, DTYPES_U32, 1);
    check_output(checker, 0, DTYPES_F32, output_count(checker, 0));
}

/* ---- moving data -------------------------------------------------------- */

void op_check_gather(struct op_checker *checker)
{
    uint64_t vocabulary = check_attribute(checker, GATHER_VOCABULARY, 1, UINT32_MAX);
    uint64_t width = check_attribute(checker, GATHER_WIDTH, 1, UINT32_MAX);
    uint64_t rows = check_any_input(checker, 1, DTYPES_U32, 1);

    check_input(checker, 0, DTYPES_NUMBER, check_product(checker, vocabulary, width));
    check_output(checker, 0, DTYPES_F32, check_product(checker, rows, width));
}

/* SPLIT and its inverse CONCAT: the parts lie side by side in each row. */
static void check_parts(struct op_checker *checker, uint32_t parts, bool split)
{
    uint64_t rows = check_attribute(checker, SPLIT_ROWS, 1, TENSOR_COUNT_MAX);
    uint64_t width = 0;

    if (checker->op->attribute_count != SPLIT_WIDTHS + parts) {
        check_fail(checker, "%u parts need %u widths", parts, parts);
        return;
    }
    for (uint32_t i = 0; i < parts; i++) {
        uint64_t part = check_attribute(checker, SPLIT_WIDTHS + i, 1, UINT32_MAX);
        uint64_t count = check_product(checker, rows, part);

        width += part;
        if (split) {
            check_output(checker, i, DTYPES_F32, count);
        } else {
            check_input(checker, i, DTYPES_F32, count);
        }
    }
    if (split) {
        check_input(checker, 0, DTYPES_F32, check_product(checker, rows, width));
    } else {
        check_output(checker, 0, DTYPES_F32, check_product(checker, rows, width));
    }
}

void op_check_split(struct op_checker *checker)
{
    if (checker->op->input_count != 1) {
        check_fail(checker, "takes one input");
        return;
    }
    check_parts(checker, checker->op->output_count, true);
}

void op_check_concat(struct op_checker *checker)
{
    if (checker->op->output_count != 1) {
        check_fail(checker, "has one output");
        return;
    }
    check_parts(checker, checker->op->input_count, false);
}

void op_check_expand(struct op_checker *checker)
{
    (void)check_attribute(checker, EXPAND_DIV, 1, TENSOR_COUNT_MAX);
    check_input(checker, 0, DTYPES_F32, check_attribute(checker, EXPAND_MOD, 1, TENSOR_COUNT_MAX));
    check_output(checker, 0, DTYPES_F32, output_count(checker, 0));
}

/* ---- rotary -------------------------------------------------------------- */

void op_check_rotary(struct op_checker *checker)
{
    uint64_t length = check_attribute(checker, ROTARY_LENGTH, 1, UINT32_MAX);
    uint64_t heads = check_attribute(checker, ROTARY_HEADS, 1, 65535);
    uint64_t width = check_attribute(checker, ROTARY_WIDTH, 2, 65534);
    uint64_t period = check_product(checker, length, heads * width);
    uint64_t count = output_count(checker, 0);

    (void)check_attribute(checker, ROTARY_INVERSE, 0, 1);
    (void)check_attribute(checker, ROTARY_HALVES, 0, 1);
    if (width % 2 != 0 || period == 0 || count % period != 0) {
        check_fail(checker, "%llu elements are not whole sequences of pairs",
                   (unsigned long long)count);
    }
    check_input(checker, 0, DTYPES_F32, count);
    check_input(checker, 1, DTYPES_F32, check_product(checker, length, width));
    check_output(checker, 0, DTYPES_F32, count);
}

/* ---- the update --------------------------------------------------------- */

void op_check_clip_factor(struct op_checker *checker)
{
    check_float(checker, CLIP_LIMIT_BITS);
    check_input(checker, 0, DTYPES_F32, 1);
    check_output(checker, 0, DTYPES_F32, 1);
}

/* The first `whole` inputs and all outputs have one size; the other inputs are scalars. */
static void check_update(struct op_checker *checker, uint32_t whole, uint32_t constants)
{
    uint64_t count = output_count(checker, 0);

    for (uint32_t i = 0; i < constants; i++) {
        check_float(checker, i);
    }
    for (uint32_t i = 0; i < checker->op->input_count; i++) {
        check_input(checker, i, DTYPES_F32, i < whole ? count : 1);
    }
    for (uint32_t i = 0; i < checker->op->output_count; i++) {
        check_output(checker, i, DTYPES_F32, count);
    }
}

void op_check_sgd(struct op_checker *checker)
{
    check_update(checker, 3, SGD_ATTRIBUTES);
}

void op_check_adamw(struct op_checker *checker)
{
    check_update(checker, 4, ADAMW_ATTRIBUTES);
}

/* ---- general ------------------------------------------------------------ */

void op_check_map(struct op_checker *checker)
{
    const uint64_t function = check_attribute(checker, MAP_FUNCTION, 0, MAP_FUNCTION_COUNT - 1);
    const uint64_t count = output_count(checker, 0);

    if (function == MAP_SCALE) {
        check_float(checker, MAP_CONSTANT_BITS);
    } else {
        (void)check_attribute(checker, MAP_CONSTANT_BITS, 0, 0);
    }
    check_input(checker, 0, DTYPES_F32, count);
    check_output(checker, 0, DTYPES_F32, count);
}

/* The product of the axes of a general view. */
static uint64_t check_dims(struct op_checker *checker, uint32_t dims_at, uint32_t axes)
{
    uint64_t total = 1;

    for (uint32_t axis = 0; axis < axes; axis++) {
        total = check_product(checker, total,
                              check_attribute(checker, dims_at + axis, 1, TENSOR_COUNT_MAX));
    }
    return total;
}

_Static_assert((int)INTEGER_D0 == (int)BINARY_D0 && (int)INTEGER_B3 == (int)BINARY_B3,
               "an INTEGER has a BINARY's views");

/* One of so many functions of two operands of a type. */
static void check_two(struct op_checker *checker, uint64_t functions, uint32_t dtypes)
{
    (void)check_attribute(checker, BINARY_FUNCTION, 0, functions - 1);
    check_input(checker, 0, dtypes,
                check_view(checker, VIEW_AXES, BINARY_DIMS, BINARY_A_STRIDES, true));
    check_input(checker, 1, dtypes,
                check_view(checker, VIEW_AXES, BINARY_DIMS, BINARY_B_STRIDES, true));
    check_output(checker, 0, dtypes, check_dims(checker, BINARY_DIMS, VIEW_AXES));
}

void op_check_binary(struct op_checker *checker)
{
    check_two(checker, BINARY_FUNCTION_COUNT, DTYPES_F32);
}

void op_check_integer(struct op_checker *checker)
{
    check_two(checker, INTEGER_FUNCTION_COUNT, DTYPES_U32);
}

void op_check_select(struct op_checker *checker)
{
    const uint32_t dtypes = output_dtype(checker, 0) == DTYPE_U32 ? DTYPES_U32 : DTYPES_F32;

    check_input(checker, 0, DTYPES_F32 | DTYPES_U32 | DTYPES(DTYPE_U8),
                check_view(checker, VIEW_AXES, SELECT_DIMS, SELECT_C_STRIDES, true));
    check_input(checker, 1, dtypes,
                check_view(checker, VIEW_AXES, SELECT_DIMS, SELECT_A_STRIDES, true));
    check_input(checker, 2, dtypes,
                check_view(checker, VIEW_AXES, SELECT_DIMS, SELECT_B_STRIDES, true));
    check_output(checker, 0, dtypes, check_dims(checker, SELECT_DIMS, VIEW_AXES));
}

/* A stride of either sign, as its size. */
static uint64_t check_signed_stride(struct op_checker *checker, uint32_t position)
{
    int64_t value = checker->op->attributes[position];
    int64_t most = (int64_t)TENSOR_COUNT_MAX;

    if (value < -most || value > most) {
        char name[64];

        op_spec_name(name, sizeof(name), op_spec(checker->op->kind)->attributes, position);
        check_fail(checker, "%s is %lld, must be from %lld to %lld", name, (long long)value,
                   (long long)-most, (long long)most);
        return 0;
    }
    return (uint64_t)(value < 0 ? -value : value);
}

/* The axes of a MOVE or PLACE over a tensor of count elements. */
static void check_move_axes(struct op_checker *checker, uint64_t count, bool repeats)
{
    uint64_t dims[MOVE_AXES];
    uint64_t sizes[MOVE_AXES]; /* of the strides */
    bool placed[MOVE_AXES];
    uint64_t span = 0;  /* of the axes placed so far */
    uint64_t first = 0; /* distance from the offset to the first element addressed, */
    uint64_t last = 0;  /* and to the last */
    uint64_t offset = check_attribute(checker, MOVE_OFFSET, 0, TENSOR_COUNT_MAX);

    for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
        dims[axis] = check_attribute(checker, MOVE_DIMS + axis, 1, TENSOR_COUNT_MAX);
        sizes[axis] = check_signed_stride(checker, MOVE_STRIDES + axis);
        placed[axis] = dims[axis] == 1 || (sizes[axis] == 0 && repeats);
    }
    for (uint32_t i = 0; i < MOVE_AXES && checker->status == STATUS_OK; i++) {
        uint32_t least = MOVE_AXES;

        for (uint32_t axis = 0; axis < MOVE_AXES; axis++) {
            if (!placed[axis] && (least == MOVE_AXES || sizes[axis] < sizes[least])) {
                least = axis;
            }
        }
        if (least == MOVE_AXES) {
            break;
        }
        if (sizes[least] <= span) {
            check_fail(checker, "s%u is %lld: elements would be addressed twice", least,
                       (long long)checker->op->attributes[MOVE_STRIDES + least]);
        }
        uint64_t length = check_product(checker, dims[least] - 1, sizes[least]);

        span += length;
        *(checker->op->attributes[MOVE_STRIDES + least] < 0 ? &first : &last) += length;
        placed[least] = true;
    }
    if (offset < first || offset >= count || last >= count - offset) {
        check_fail(checker, "offset %llu: elements %lld to %llu are addressed of %llu",
                   (unsigned long long)offset, (long long)offset - (long long)first,
                   (unsigned long long)offset + last, (unsigned long long)count);
    }
}

/* Words of 4 bytes: the output has the input's type. */
static uint32_t check_moved_type(struct op_checker *checker)
{
    enum dtype dtype = checker->tensors[checker->op->inputs[0]].dtype;

    (void)check_any_input(checker, 0, DTYPES_F32 | DTYPES_U32, 1);
    return DTYPES(dtype);
}

void op_check_move(struct op_checker *checker)
{
    uint32_t dtypes = check_moved_type(checker);

    check_move_axes(checker, checker->tensors[checker->op->inputs[0]].count, true);
    check_output(checker, 0, dtypes, check_dims(checker, MOVE_DIMS, MOVE_AXES));
}

void op_check_place(struct op_checker *checker)
{
    uint32_t dtypes = check_moved_type(checker);
    uint64_t count = output_count(checker, 0);

    check_move_axes(checker, count, false);
    check_input(checker, 0, dtypes, check_dims(checker, MOVE_DIMS, MOVE_AXES));
    check_input(checker, 1, dtypes,
                checker->tensors[checker->op->inputs[1]].count == 1 ? 1 : count);
    check_output(checker, 0, dtypes, count);
}

/* To f32 from any other type, or from f32. */
void op_check_cast(struct op_checker *checker)
{
    const uint32_t narrow =
        DTYPES(DTYPE_F16) | DTYPES(DTYPE_BF16) | DTYPES(DTYPE_U32) | DTYPES(DTYPE_I32);
    const uint32_t from = DTYPES(checker->tensors[checker->op->inputs[0]].dtype);
    const uint64_t count = output_count(checker, 0);

    check_input(checker, 0, from, count);
    check_output(checker, 0, from == DTYPES_F32 ? narrow : DTYPES_F32, count);
}
