/* op_spec.c - see op_spec.h and op.h. */
#include "engine/ops/spec/op_spec.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/spec/op_checker.h"

/* The names of a set of attributes: "MOMENTUM_BITS, DECAY_BITS". */
#define NAMES(SET, ...) static const char names_##SET[] = OP_TEXT(__VA_ARGS__);
OP_ATTRIBUTES(NAMES)
static const char names_NONE[] = "";

#define OP_SPEC(ins, in_names, outs, out_names, count, SET, checker)                               \
    .inputs = (in_names), .outputs = (out_names), .attributes = names_##SET,                       \
    .input_count_min = (ins), .output_count_min = (outs), .attribute_count_min = SET##_ATTRIBUTES, \
    .counts = COUNTS_##count, .check = op_check_##checker
#define SPEC(NAME, text, spec, ...) [OP_##NAME] = {.name = (text), spec},

static const struct op_spec specs[OP_KIND_COUNT] = {OP_LIST(SPEC)};

const struct op_spec *op_spec(enum op_kind kind)
{
    assert((unsigned)kind < OP_KIND_COUNT);
    return &specs[kind];
}

const char *op_kind_name(enum op_kind kind)
{
    return (unsigned)kind < OP_KIND_COUNT ? specs[kind].name : NULL;
}

#define CODE_NAME(NAME, text, ...) (text),

const char *op_name(const struct op *op)
{
    static const char *const maps[MAP_FUNCTION_COUNT] = {OP_MAP_CODES(CODE_NAME)};
    static const char *const binaries[BINARY_FUNCTION_COUNT] = {OP_BINARY_CODES(CODE_NAME)};
    static const char *const integers[INTEGER_FUNCTION_COUNT] = {OP_INTEGER_CODES(CODE_NAME)};

    if (op->kind == OP_MAP) {
        return maps[op->attributes[MAP_FUNCTION]];
    }
    if (op->kind == OP_BINARY) {
        return binaries[op->attributes[BINARY_FUNCTION]];
    }
    if (op->kind == OP_INTEGER) {
        return integers[op->attributes[INTEGER_FUNCTION]];
    }
    return op_kind_name(op->kind);
}

void op_spec_name(char *name, size_t size, const char *names, uint32_t index)
{
    const char *at = names;
    size_t length = strcspn(at, ", ");

    while (index > 0 && at[length] != '\0') {
        at += length + strspn(at + length, ", ");
        length = strcspn(at, ", ");
        index--;
    }
    if (index > 0) {
        (void)snprintf(name, size, "%.*s%u", (int)length, at, index);
    } else {
        (void)snprintf(name, size, "%.*s", (int)length, at);
    }
    for (size_t i = 0; i < size && name[i] != '\0'; i++) {
        name[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
    }
}
