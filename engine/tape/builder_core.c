/* builder_core.c - the tables of a builder; see builder.h. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/spec/op_spec.h"
#include "engine/tape/builder_core.h"
#include "engine/tape/repeat.h"

/* A longer scope would leave no room for the operation's name. */
#define SCOPE_MAX 28

struct builder *builder_new(struct precision precision)
{
    struct builder *builder = calloc(1, sizeof(*builder));

    if (builder != NULL) {
        builder->precision = precision;
        builder->step = TENSOR_NONE;
        builder->micro = TENSOR_NONE;
        builder->tape.loss = TENSOR_NONE;
    }
    return builder;
}

void builder_free(struct builder *builder)
{
    if (builder != NULL) {
        free(builder->tape.tensors);
        free(builder->tape.ops);
        free(builder->tape.states);
        free(builder->tape.repeat.carries);
        free(builder->notes);
        free(builder->quantize_before);
        free(builder);
    }
}

bool builder_failed(const struct builder *builder)
{
    return builder->error.status != STATUS_OK;
}

void builder_fail(struct builder *builder, enum status status, const char *format, ...)
{
    if (!builder_failed(builder)) {
        char text[ERROR_TEXT_MAX];
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        (void)error_set(&builder->error, status, "%s", text);
    }
}

/* ---- tables ------------------------------------------------------------- */

bool builder_grow(struct builder *builder, void *table, size_t size, uint32_t count, uint32_t room)
{
    void **entries = table;
    void *larger;

    if (count < room) {
        return true;
    }
    larger = realloc(*entries, size * (room == 0 ? 64 : 2 * (size_t)room));
    if (larger == NULL) {
        builder_fail(builder, STATUS_NO_MEMORY, "no memory for a tape of %u entries", count);
        return false;
    }
    *entries = larger;
    return true;
}

uint32_t builder_next_room(uint32_t count, uint32_t room)
{
    if (count < room) {
        return room;
    }
    return room == 0 ? 64 : 2 * room;
}

static uint32_t add_tensor(struct builder *builder, const struct tensor *tensor)
{
    struct tape *tape = &builder->tape;

    if (tape->tensor_count >= TAPE_TENSORS_MAX) {
        builder_fail(builder, STATUS_OVER_LIMIT, "a tape has at most %u tensors", TAPE_TENSORS_MAX);
    }
    if (builder_failed(builder) ||
        !builder_grow(builder, &tape->tensors, sizeof(*tape->tensors), tape->tensor_count,
                      builder->tensor_room) ||
        !builder_grow(builder, &builder->notes, sizeof(*builder->notes), tape->tensor_count,
                      builder->tensor_room)) {
        return 0;
    }
    builder->tensor_room = builder_next_room(tape->tensor_count, builder->tensor_room);
    tape->tensors[tape->tensor_count] = *tensor;
    builder->notes[tape->tensor_count] =
        (struct tensor_note){.producer = OP_NONE, .last_quantize = OP_NONE};
    return tape->tensor_count++;
}

static bool fill_shape(struct builder *builder, struct tensor *tensor, uint32_t rank,
                       const uint64_t *dims)
{
    tensor->rank = rank;
    tensor->count = 1;
    if (rank > TENSOR_RANK_MAX) {
        builder_fail(builder, STATUS_BAD_FORMAT, "'%s': rank %u", tensor->name, rank);
        return false;
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (dims[axis] == 0 || dims[axis] > TENSOR_COUNT_MAX / tensor->count) {
            builder_fail(builder, STATUS_OVER_LIMIT, "'%s' is empty or over %llu elements",
                         tensor->name, (unsigned long long)TENSOR_COUNT_MAX);
            return false;
        }
        tensor->dims[axis] = dims[axis];
        tensor->count *= dims[axis];
    }
    return true;
}

uint32_t build_tensor(struct builder *builder, const char *name, enum dtype dtype, enum role role,
                      uint32_t rank, const uint64_t *dims)
{
    struct tensor tensor = {.dtype = dtype, .role = role};
    struct tape *tape = &builder->tape;
    int length;
    uint32_t id;

    if (builder_failed(builder)) {
        return 0;
    }
    length = snprintf(tensor.name, sizeof(tensor.name), "%s%s%s", builder->scope,
                      builder->scope[0] == '\0' ? "" : ".", name);
    if (length < 0 || (size_t)length >= sizeof(tensor.name)) {
        builder_fail(builder, STATUS_OVER_LIMIT, "the name '%s.%s' is too long", builder->scope,
                     name);
        return 0;
    }
    if (!fill_shape(builder, &tensor, rank, dims)) {
        return 0;
    }
    id = add_tensor(builder, &tensor);
    if (role == ROLE_STATE && !builder_failed(builder) &&
        builder_grow(builder, &tape->states, sizeof(*tape->states), tape->state_count,
                     builder->state_room)) {
        builder->state_room = builder_next_room(tape->state_count, builder->state_room);
        tape->states[tape->state_count++] = (struct state_pair){.before = id, .after = id};
    }
    return id;
}

uint32_t build_reshape(struct builder *builder, uint32_t made, uint32_t rank, const uint64_t *dims)
{
    if (!builder_failed(builder)) {
        struct tensor *tensor = &builder->tape.tensors[made];
        struct tensor shaped = *tensor;

        assert(role_is_made(tensor->role));
        if (fill_shape(builder, &shaped, rank, dims) && shaped.count == tensor->count) {
            *tensor = shaped;
        } else {
            builder_fail(builder, STATUS_BAD_FORMAT, "%llu elements take no shape of %llu",
                         (unsigned long long)tensor->count, (unsigned long long)shaped.count);
        }
    }
    return made;
}

/* NULL, and the builder fails, where the tensor is not a state. */
static struct state_pair *find_state(struct builder *builder, uint32_t state)
{
    for (uint32_t i = builder->tape.state_count; !builder_failed(builder) && i > 0; i--) {
        if (builder->tape.states[i - 1].before == state) {
            return &builder->tape.states[i - 1];
        }
    }
    builder_fail(builder, STATUS_BAD_FORMAT, "tensor %u is not a state", state);
    return NULL;
}

void build_after(struct builder *builder, uint32_t state, uint32_t after)
{
    struct state_pair *pair = find_state(builder, state);

    if (pair != NULL) {
        pair->after = after;
        memcpy(builder->tape.tensors[after].name, builder->tape.tensors[state].name,
               sizeof(builder->tape.tensors[after].name));
    }
}

uint32_t builder_after(const struct builder *builder, uint32_t state)
{
    uint32_t i = 0;

    while (i < builder->tape.state_count && builder->tape.states[i].before != state) {
        i++;
    }
    return i < builder->tape.state_count ? builder->tape.states[i].after : state;
}

void build_init(struct builder *builder, uint32_t state, struct init init)
{
    struct state_pair *pair = find_state(builder, state);

    if (pair != NULL) {
        pair->init = init;
    }
}

void build_output(struct builder *builder, const char *name, uint32_t tensor)
{
    if (!builder_failed(builder)) {
        struct tensor *made = &builder->tape.tensors[tensor];

        assert(role_is_made(made->role));
        made->role = ROLE_OUTPUT;
        (void)snprintf(made->name, sizeof(made->name), "%s", name);
    }
}

void build_loss(struct builder *builder, uint32_t loss)
{
    builder->tape.loss = loss;
}

void build_scope(struct builder *builder, const char *scope)
{
    assert(strlen(scope) <= SCOPE_MAX);
    (void)snprintf(builder->scope, sizeof(builder->scope), "%s", scope);
}

const struct tensor *builder_tensor(const struct builder *builder, uint32_t id)
{
    static const struct tensor none = {.name = "none", .rank = 1, .dims = {1}, .count = 1};

    return id < builder->tape.tensor_count ? &builder->tape.tensors[id] : &none;
}

/* ---- operations --------------------------------------------------------- */

struct op op_begin(enum op_kind kind, uint32_t input_count, const uint32_t *inputs)
{
    struct op op = {.kind = kind, .input_count = input_count};

    assert(input_count <= OP_INPUTS_MAX);
    if (input_count > 0) {
        memcpy(op.inputs, inputs, input_count * sizeof(*inputs));
    }
    return op;
}

void op_attribute(struct op *op, uint64_t value)
{
    assert(op->attribute_count < OP_ATTRIBUTES_MAX);
    op->attributes[op->attribute_count++] = (int64_t)value;
}

void op_attribute_float(struct op *op, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    op_attribute(op, bits);
}

/* "scope/kind.output", cut to fit: names of temporaries need not be unique. */
static void name_output(struct builder *builder, struct tensor *tensor, const struct op *op,
                        uint32_t index)
{
    char output[24];

    op_spec_name(output, sizeof(output), op_spec(op->kind)->outputs, index);
    (void)snprintf(tensor->name, sizeof(tensor->name), "%.*s%s%s.%s", SCOPE_MAX, builder->scope,
                   builder->scope[0] == '\0' ? "" : "/", op_name(op), output);
}

void build_op(struct builder *builder, struct op *op, const struct output_shape *shapes)
{
    struct tape *tape = &builder->tape;
    uint32_t first = tape->tensor_count;

    if (tape->op_count >= TAPE_OPS_MAX) {
        builder_fail(builder, STATUS_OVER_LIMIT, "a tape has at most %u operations", TAPE_OPS_MAX);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        struct tensor tensor = {.dtype = shapes[i].dtype, .role = ROLE_TEMPORARY};

        op->outputs[i] = 0;
        if (builder_failed(builder)) {
            continue;
        }
        name_output(builder, &tensor, op, i);
        if (fill_shape(builder, &tensor, shapes[i].rank, shapes[i].dims)) {
            op->outputs[i] = add_tensor(builder, &tensor);
        }
    }
    if (builder_failed(builder) ||
        !builder_grow(builder, &tape->ops, sizeof(*tape->ops), tape->op_count, builder->op_room) ||
        !builder_grow(builder, &builder->quantize_before, sizeof(*builder->quantize_before),
                      tape->op_count, builder->op_room)) {
        return;
    }
    builder->op_room = builder_next_room(tape->op_count, builder->op_room);
    if (op_check(op, tape->tensors, tape->tensor_count, &builder->error) != STATUS_OK) {
        (void)error_wrap(&builder->error, "%s: operation %u",
                         builder->scope[0] == '\0' ? "tape" : builder->scope, tape->op_count);
        return;
    }
    for (uint32_t id = first; id < tape->tensor_count; id++) {
        builder->notes[id].producer = tape->op_count;
    }
    builder->quantize_before[tape->op_count] = OP_NONE;
    tape->ops[tape->op_count++] = *op;
}

struct output_shape shape_like(const struct builder *builder, uint32_t id)
{
    const struct tensor *tensor = builder_tensor(builder, id);
    struct output_shape shape = {DTYPE_F32, tensor->rank, {0}};

    memcpy(shape.dims, tensor->dims, sizeof(shape.dims));
    return shape;
}

struct output_shape shape_vector(enum dtype dtype, uint64_t count)
{
    return (struct output_shape){dtype, 1, {count}};
}

struct output_shape shape_matrix(enum dtype dtype, uint64_t rows, uint64_t columns)
{
    return (struct output_shape){dtype, 2, {rows, columns}};
}

/* ---- the end ------------------------------------------------------------ */

enum status builder_finish(struct tape **result, struct builder *builder, struct error *error)
{
    struct tape *tape;

    if (!builder_failed(builder)) {
        builder->error.status = tape_check(&builder->tape, &builder->error);
    }
    if (builder_failed(builder)) {
        if (error != NULL) {
            *error = builder->error;
        }
        return builder->error.status;
    }
    tape = malloc(sizeof(*tape));
    if (tape == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a tape");
    }
    *tape = builder->tape;
    memset(&builder->tape, 0, sizeof(builder->tape));
    builder->tensor_room = builder->op_room = builder->state_room = builder->carry_room = 0;
    builder_fail(builder, STATUS_USAGE, "the builder has finished its tape");
    return repeat_unroll(result, tape, error);
}
