/*
 * tape_text.c - the text form of a tape:
 *
 *     tape of 9 tensors, 3 operations, 1 state
 *     state %0 'w' f32[4,8] becomes %7
 *     %3 f32[2,4] = gather table=%0 'w' index=%2, vocabulary 4, width 8
 *     loss %8
 *
 * Tensors are %numbers; lasting ones have their names too. Attributes that hold the bits of a
 * constant appear as numbers, with enough digits to distinguish any two.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/real.h"
#include "engine/ops/spec/op_spec.h"
#include "engine/tape/tape.h"

#define NAME_MAX_SHOWN 64

struct tape_text {
    char *bytes;
    size_t size; /* without the ending NUL */
    size_t room;
    enum status status;
};

__attribute__((format(printf, 2, 3))) static void say(struct tape_text *text, const char *format,
                                                      ...)
{
    char piece[256]; /* the longest piece is a name and a few numbers */
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(piece, sizeof(piece), format, arguments);
    va_end(arguments);
    if (text->status != STATUS_OK || length < 0) {
        return;
    }
    if (text->size + (size_t)length > TAPE_TEXT_MAX) {
        text->status = STATUS_OVER_LIMIT;
        return;
    }
    if (text->size + (size_t)length + 1 > text->room) {
        size_t room = 2 * text->room + sizeof(piece);
        char *larger = realloc(text->bytes, room);

        if (larger == NULL) {
            text->status = STATUS_NO_MEMORY;
            return;
        }
        text->bytes = larger;
        text->room = room;
    }
    memcpy(text->bytes + text->size, piece, (size_t)length + 1);
    text->size += (size_t)length;
}

static void say_shape(struct tape_text *text, const struct tensor *tensor)
{
    say(text, " %s[", dtype_name(tensor->dtype));
    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
        say(text, "%s%" PRIu64, axis == 0 ? "" : ",", tensor->dims[axis]);
    }
    say(text, "]");
}

static void say_attribute(struct tape_text *text, const struct op *op, uint32_t position)
{
    char name[NAME_MAX_SHOWN];
    size_t length;

    op_spec_name(name, sizeof(name), op_spec(op->kind)->attributes, position);
    length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, "_bits") == 0) {
        name[length - 5] = '\0';
        say(text, ", %s %.9g", name, (double)real_from_bits((uint32_t)op->attributes[position]));
    } else {
        say(text, ", %s %" PRId64, name, op->attributes[position]);
    }
}

static void say_op(struct tape_text *text, const struct tape *tape, const struct op *op)
{
    char name[NAME_MAX_SHOWN];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct tensor *output = &tape->tensors[op->outputs[i]];

        say(text, "%s%%%u", i == 0 ? "" : ", ", op->outputs[i]);
        if (output->role == ROLE_OUTPUT) {
            say(text, " '%s'", output->name);
        }
        say_shape(text, output);
    }
    say(text, " = %s", op_name(op));
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct tensor *input = &tape->tensors[op->inputs[i]];

        op_spec_name(name, sizeof(name), op_spec(op->kind)->inputs, i);
        say(text, " %s=%%%u", name, op->inputs[i]);
        if (input->role != ROLE_TEMPORARY) {
            say(text, " '%s'", input->name);
        }
    }
    /* The name is the function's. */
    const bool coded = op->kind == OP_MAP || op->kind == OP_BINARY || op->kind == OP_INTEGER;

    for (uint32_t i = coded; i < op->attribute_count; i++) {
        say_attribute(text, op, i);
    }
    say(text, "\n");
}

static void say_first_value(struct tape_text *text, const struct init *init)
{
    static const char *const names[] = {"", "zeros", "ones", "value", "uniform", "normal"};

    if (init->kind == INIT_NONE) {
        return;
    }
    say(text, ", first %s", names[init->kind]);
    if (init->kind >= INIT_CONSTANT) {
        say(text, " %.9g", (double)real_from_bits(init->value_bits));
    }
}

static void say_lasting(struct tape_text *text, const struct tape *tape)
{
    uint32_t pair = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (role_is_made(tensor->role)) {
            continue;
        }
        say(text, "%s %%%u '%s'", role_name(tensor->role), id, tensor->name);
        say_shape(text, tensor);
        if (tensor->role == ROLE_STATE) {
            uint32_t after = tape->states[pair].after;

            if (after == id) {
                say(text, " never changes");
            } else {
                say(text, " becomes %%%u", after);
            }
            say_first_value(text, &tape->states[pair++].init);
        }
        say(text, "\n");
    }
}

static void say_repeat(struct tape_text *text, const struct tape *tape)
{
    const struct repeat *repeat = &tape->repeat;

    say(text, "repeat %u times in groups of %u:\n", repeat->times, repeat->group);
    for (uint32_t i = 0; i < repeat->carry_count; i++) {
        const struct carry *carry = &repeat->carries[i];

        say(text, "%s '%s': %%%u becomes %%%u\n", carry->joined ? "sum" : "carry",
            tape->tensors[carry->start].name, carry->start, carry->after);
    }
}

enum status tape_text(char **result, const struct tape *unrolled, struct error *error)
{
    const struct tape *tape = unrolled->brief != NULL ? unrolled->brief : unrolled;
    struct tape_text text = {NULL, 0, 0, STATUS_OK};

    say(&text, "tape of %u tensors, %u operations, %u states\n", tape->tensor_count, tape->op_count,
        tape->state_count);
    say_lasting(&text, tape);
    for (uint32_t at = 0; at < tape->op_count && text.status == STATUS_OK; at++) {
        if (tape->repeat.times != 0 && at == tape->repeat.first) {
            say_repeat(&text, tape);
        }
        say_op(&text, tape, &tape->ops[at]);
        if (tape->repeat.times != 0 && at + 1 == tape->repeat.first + tape->repeat.op_count) {
            say(&text, "end of the repeat\n");
        }
    }
    if (tape->loss != TENSOR_NONE) {
        say(&text, "loss %%%u\n", tape->loss);
    }
    if (text.status != STATUS_OK) {
        free(text.bytes);
        return error_set(error, text.status, "%s for the text of a tape of %u operations",
                         text.status == STATUS_NO_MEMORY ? "no memory" : "no room", tape->op_count);
    }
    *result = text.bytes;
    return STATUS_OK;
}
