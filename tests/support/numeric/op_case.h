/*
 * op_case.h - one operation with its tensors in memory, for tests of rules and kernels.
 *
 * A case owns what it allocates; op_case_release() frees it. op_case_nasty() picks numbers that are
 * easy to get wrong: zeros of both signs, subnormals, infinities, NaNs and the like.
 */
#ifndef TESTS_SUPPORT_NUMERIC_OP_CASE_H
#define TESTS_SUPPORT_NUMERIC_OP_CASE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/kernel.h"
#include "engine/ops/philox.h"
#include "engine/rules/rules.h"

struct op_case {
    struct op op;
    struct tensor tensors[OP_INPUTS_MAX + OP_OUTPUTS_MAX];
    void *memory[OP_INPUTS_MAX + OP_OUTPUTS_MAX];
    uint32_t tensor_count;
};

static inline void op_case_init(struct op_case *c, enum op_kind kind)
{
    memset(c, 0, sizeof(*c));
    c->op.kind = kind;
}

static inline void op_case_release(struct op_case *c)
{
    for (uint32_t i = 0; i < c->tensor_count; i++) {
        free(c->memory[i]);
    }
}

static inline void op_case_attributes(struct op_case *c, const int64_t *values, uint32_t count)
{
    assert(count <= OP_ATTRIBUTES_MAX);
    memcpy(c->op.attributes, values, count * sizeof(*values));
    c->op.attribute_count = count;
}

/* Aligned as in a machine, and not a byte too long, so a sanitizer sees every access outside. */
static inline uint32_t op_case_tensor(struct op_case *c, enum dtype dtype, uint64_t count)
{
    uint32_t id = c->tensor_count++;
    size_t size = count * dtype_size(dtype);
    int failed = posix_memalign(&c->memory[id], 64, size);

    assert(failed == 0);
    assert(count > 0);
    c->tensors[id].dtype = dtype;
    c->tensors[id].rank = 1;
    c->tensors[id].dims[0] = count;
    c->tensors[id].count = count;
    memset(c->memory[id], 0, size);
    return id;
}

/* values may be NULL: zeros. Returns the memory. */
static inline void *op_case_input(struct op_case *c, enum dtype dtype, uint64_t count,
                                  const void *values)
{
    uint32_t id = op_case_tensor(c, dtype, count);

    if (values != NULL) {
        memcpy(c->memory[id], values, count * dtype_size(dtype));
    }
    c->op.inputs[c->op.input_count++] = id;
    return c->memory[id];
}

static inline void *op_case_output(struct op_case *c, enum dtype dtype, uint64_t count)
{
    uint32_t id = op_case_tensor(c, dtype, count);

    c->op.outputs[c->op.output_count++] = id;
    return c->memory[id];
}

static inline struct operand op_case_operand(const struct op_case *c, uint32_t id)
{
    return (struct operand){.memory = c->memory[id],
                            .dtype = c->tensors[id].dtype,
                            .count = c->tensors[id].count,
                            .tensor = id};
}

static inline struct rule_call op_case_rule_call(const struct op_case *c)
{
    struct rule_call call = {.op = &c->op};

    for (uint32_t i = 0; i < c->op.input_count; i++) {
        call.inputs[i] = op_case_operand(c, c->op.inputs[i]);
    }
    for (uint32_t i = 0; i < c->op.output_count; i++) {
        call.outputs[i] = op_case_operand(c, c->op.outputs[i]);
    }
    return call;
}

static inline struct kernel_call op_case_kernel_call(const struct op_case *c, int thread_count)
{
    struct kernel_call call = {.op = &c->op, .tensors = c->tensors, .thread_count = thread_count};

    for (uint32_t i = 0; i < c->op.input_count; i++) {
        call.inputs[i] = c->memory[c->op.inputs[i]];
    }
    for (uint32_t i = 0; i < c->op.output_count; i++) {
        call.outputs[i] = c->memory[c->op.outputs[i]];
    }
    return call;
}

/* The bits of a float that is easy to get wrong, and sometimes of an ordinary one. */
static inline uint32_t op_case_nasty(uint64_t element, uint32_t stream)
{
    static const uint32_t special[] = {
        0x00000000, 0x80000000, /* zeros */
        0x00000001, 0x80000001, /* the smallest subnormals */
        0x007fffff, 0x807fffff, /* the largest subnormals */
        0x00800000, 0x80800000, /* the smallest normals */
        0x7f7fffff, 0xff7fffff, /* the largest finite numbers */
        0x7f800000, 0xff800000, /* infinities */
        0x7fc00000, 0xffc12345, /* NaNs, one of them not the stored one */
        0x3f800000, 0xbf800000, /* ones */
    };
    struct philox_block block = philox_draw(element, stream, 0, 99);

    if (block.words[0] % 4 == 0) {
        return special[block.words[1] % (sizeof(special) / sizeof(special[0]))];
    }
    if (block.words[0] % 4 == 1) {
        return block.words[1]; /* any bits at all */
    }
    /* Finite, magnitude 2^-4 .. 2^4, few mantissa bits: ties between elements are common. */
    return (block.words[1] & 0x80700000) | ((123 + block.words[2] % 8) << 23);
}

static inline uint32_t *op_case_nasty_input(struct op_case *c, uint64_t count, uint32_t stream)
{
    uint32_t *bits = op_case_input(c, DTYPE_F32, count, NULL);

    for (uint64_t i = 0; i < count; i++) {
        bits[i] = op_case_nasty(i, stream);
    }
    return bits;
}

#endif /* TESTS_SUPPORT_NUMERIC_OP_CASE_H */
