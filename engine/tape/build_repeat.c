/* build_repeat.c - writes the repeat of a tape; see builder.h. */
#include <stdio.h>
#include <string.h>

#include "engine/tape/builder_core.h"

static bool has_repeat(const struct builder *builder)
{
    return builder->tape.repeat.times != 0;
}

static void add_carry(struct builder *builder, uint32_t start, uint32_t after, bool joined)
{
    struct repeat *repeat = &builder->tape.repeat;

    if (builder_failed(builder) ||
        !builder_grow(builder, &repeat->carries, sizeof(*repeat->carries), repeat->carry_count,
                      builder->carry_room)) {
        return;
    }
    builder->carry_room = builder_next_room(repeat->carry_count, builder->carry_room);
    memcpy(builder->tape.tensors[after].name, builder->tape.tensors[start].name,
           sizeof(builder->tape.tensors[after].name));
    repeat->carries[repeat->carry_count++] = (struct carry){start, after, joined};
}

/* The body must not share what was made outside of it after it, nor the reverse. */
static void forget_quantized(struct builder *builder)
{
    for (uint32_t id = 0; id < builder->tape.tensor_count; id++) {
        builder->notes[id].last_quantize = OP_NONE;
    }
}

void build_repeat(struct builder *builder, uint32_t times, uint32_t group)
{
    static const uint64_t one = 1;
    struct repeat *repeat = &builder->tape.repeat;
    struct output_shape shape = shape_vector(DTYPE_U32, 1);
    struct op op;

    if (builder_failed(builder) || times == 1) {
        return;
    }
    if (has_repeat(builder)) {
        builder_fail(builder, STATUS_BAD_FORMAT, "a tape has one repeat");
        return;
    }
    (void)build_step(builder);
    builder->micro = build_tensor(builder, "micro", DTYPE_U32, ROLE_STATE, 1, &one);
    build_init(builder, builder->micro, (struct init){.kind = INIT_ZEROS});
    *repeat = (struct repeat){.times = times, .group = group, .first = builder->tape.op_count};
    op = op_begin(OP_STEP_NEXT, 1, &builder->micro);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    build_after(builder, builder->micro, op.outputs[0]);
    add_carry(builder, builder->micro, op.outputs[0], false);
}

void build_repeat_end(struct builder *builder)
{
    struct repeat *repeat = &builder->tape.repeat;

    if (!builder_failed(builder) && has_repeat(builder)) {
        repeat->op_count = builder->tape.op_count - repeat->first;
        forget_quantized(builder);
    }
}

uint32_t build_counter(struct builder *builder)
{
    return has_repeat(builder) ? builder->micro : build_step(builder);
}

void build_carry(struct builder *builder, uint32_t start, uint32_t after)
{
    if (!builder_failed(builder) && !has_repeat(builder)) {
        builder_fail(builder, STATUS_BAD_FORMAT, "an accumulator without a repeat");
    }
    add_carry(builder, start, after, false);
}

static uint32_t moved_op(uint32_t op, uint32_t from)
{
    return op != OP_NONE && op >= from ? op + 1 : op;
}

/* Moves the last operation before the body. */
static void move_before_body(struct builder *builder)
{
    struct tape *tape = &builder->tape;
    uint32_t first = tape->repeat.first;
    struct op op = tape->ops[tape->op_count - 1];

    memmove(tape->ops + first + 1, tape->ops + first,
            (tape->op_count - 1 - first) * sizeof(*tape->ops));
    tape->ops[first] = op;
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        builder->notes[id].producer = moved_op(builder->notes[id].producer, first);
    }
    builder->notes[op.outputs[0]].producer = first;
    tape->repeat.first++;
}

/* A sum begins as -0, to which adding x gives x, -0 too. */
uint32_t build_accumulated(struct builder *builder, const char *name, uint32_t term)
{
    const struct tensor shape = *builder_tensor(builder, term);
    uint32_t start;
    uint32_t after;

    if (builder_failed(builder) || !has_repeat(builder)) {
        return term;
    }
    start = build_fill(builder, -0.0f, shape.rank, shape.dims);
    if (builder_failed(builder)) {
        return 0;
    }
    (void)snprintf(builder->tape.tensors[start].name, sizeof(builder->tape.tensors[start].name),
                   "%s", name);
    /* The reverse pass is over, or sees to it that no quantize operation is asked for again. */
    move_before_body(builder);
    forget_quantized(builder);
    after = build_add(builder, start, term, 1);
    add_carry(builder, start, after, true);
    return after;
}
