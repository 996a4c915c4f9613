/* shown_case.c - see shown_case.h. */
#include "tests/support/dispute/shown_case.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/dispute/evidence.h"
#include "proofs/hash/sha256.h"
#include "tests/support/proofs/merkle_multi.h"
#include "tests/support/test.h"

enum {
    LABEL_SIZE = 60,
    TAG_SIZE = 32,
};

void shown_case_init(struct shown_case *shown, enum op_kind kind, uint32_t inputs, uint32_t outputs)
{
    memset(shown, 0, sizeof(*shown));
    shown->op.kind = kind;
    shown->op.input_count = inputs;
    shown->op.output_count = outputs;
    for (uint32_t i = 0; i < inputs; i++) {
        shown->op.inputs[i] = i;
    }
    for (uint32_t i = 0; i < outputs; i++) {
        shown->op.outputs[i] = inputs + i;
    }
}

static uint32_t operand_count(const struct shown_case *shown)
{
    return shown->op.input_count + shown->op.output_count;
}

void shown_case_release(struct shown_case *shown)
{
    for (uint32_t i = 0; i < operand_count(shown); i++) {
        free(shown->operands[i].memory);
    }
    memset(shown, 0, sizeof(*shown));
}

void *shown_case_tensor(struct shown_case *shown, uint32_t number, enum dtype dtype, uint64_t count)
{
    struct shown_operand *operand = &shown->operands[number];

    operand->dtype = dtype;
    operand->count = count;
    operand->memory = calloc(count, dtype_size(dtype));
    assert(operand->memory != NULL);
    return operand->memory;
}

void shown_case_check(const struct shown_case *shown)
{
    struct tensor tensors[SHOWN_OPERANDS_MAX] = {0};
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < operand_count(shown); i++) {
        tensors[i].dtype = shown->operands[i].dtype;
        tensors[i].count = shown->operands[i].count;
    }
    if (op_check(&shown->op, tensors, operand_count(shown), &error) != STATUS_OK) {
        fail_msg("%s: %s", op_kind_name(shown->op.kind), error.text);
    }
}

/* ---- the rule ------------------------------------------------------------ */

/* What a rule reads: a flag for each leaf of each operand. */
struct readings {
    const struct shown_case *shown;
    const struct shown_target *target;
    uint8_t *leaves[SHOWN_OPERANDS_MAX];
};

static struct operand memory_of(const struct shown_operand *operand)
{
    return (struct operand){
        .memory = operand->memory, .dtype = operand->dtype, .count = operand->count};
}

static struct rule_call call_of(const struct shown_case *shown)
{
    struct rule_call call = {.op = &shown->op};

    for (uint32_t i = 0; i < shown->op.input_count; i++) {
        call.inputs[i] = memory_of(&shown->operands[i]);
    }
    for (uint32_t i = 0; i < shown->op.output_count; i++) {
        call.outputs[i] = memory_of(&shown->operands[shown->op.input_count + i]);
    }
    return call;
}

uint32_t shown_case_rule(const struct shown_case *shown, uint32_t output, uint64_t element)
{
    struct rule_call call = call_of(shown);

    return rule_element(&call, output, element);
}

static struct rule_axis axis_of(const struct op *op, const struct shown_target *target)
{
    struct rule_axis axis;

    rule_axis_of(&axis, op, target->output, target->element);
    if (target->length != 0) {
        rule_axis_narrow(&axis, target->from, target->length);
    }
    return axis;
}

struct rule_axis shown_case_axis(const struct shown_case *shown, const struct shown_target *target)
{
    return axis_of(&shown->op, target);
}

/* The exponent in the reply. */
static int32_t replied_exponent(const struct rule_call *call, const struct shown_target *target)
{
    uint8_t reply[PARTIAL_SUMS_REPLY_MAX];
    struct rule_axis axis = axis_of(call->op, target);

    (void)partial_sums_write(reply, call, target->output, target->element, &axis);
    return (int32_t)endian_load_be32(reply) + target->beside;
}

struct rule_part shown_case_part(const struct shown_case *shown, const struct shown_target *target)
{
    struct rule_call call = call_of(shown);
    struct rule_axis axis = axis_of(&shown->op, target);
    struct rule_part part;

    rule_element_part(&part, &call, target->output, target->element, &axis, target->part,
                      replied_exponent(&call, target));
    return part;
}

void shown_case_compute(struct shown_case *shown)
{
    for (uint32_t i = 0; i < shown->op.output_count; i++) {
        struct shown_operand *operand = &shown->operands[shown->op.input_count + i];
        size_t size = dtype_size(operand->dtype);

        for (uint64_t index = 0; index < operand->count; index++) {
            uint32_t bits = shown_case_rule(shown, i, index);

            memcpy((char *)operand->memory + index * size, &bits, size);
        }
    }
}

static uint32_t fetch(void *context, uint32_t tensor, uint64_t index)
{
    struct readings *readings = context;
    const struct shown_operand *operand = &readings->shown->operands[tensor];
    struct operand memory = memory_of(operand);

    assert(index < operand->count);
    readings->leaves[tensor][index * dtype_size(operand->dtype) / MERKLE_LEAF_SIZE] = 1;
    return operand_get(&memory, index);
}

static uint64_t leaf_count(const struct shown_operand *operand)
{
    return (operand->count * dtype_size(operand->dtype) + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
}

/* Evaluates the rule only to see what it reads. */
static void read_rule(struct readings *readings)
{
    const struct shown_case *shown = readings->shown;
    struct rule_call call = call_of(shown);
    uint32_t accused = shown->op.input_count + readings->target->output;
    size_t size = dtype_size(shown->operands[accused].dtype);

    for (uint32_t i = 0; i < operand_count(shown); i++) {
        struct operand *operand =
            i < shown->op.input_count ? &call.inputs[i] : &call.outputs[i - shown->op.input_count];

        readings->leaves[i] = calloc(leaf_count(&shown->operands[i]), 1);
        assert(readings->leaves[i] != NULL);
        operand->memory = NULL;
        operand->fetch = fetch;
        operand->context = readings;
        operand->tensor = i;
    }
    if (readings->target->is_part) {
        struct rule_axis axis = axis_of(&shown->op, readings->target);
        struct rule_part part;

        rule_element_part(&part, &call, readings->target->output, readings->target->element, &axis,
                          readings->target->part, 0);
    } else {
        (void)rule_element(&call, readings->target->output, readings->target->element);
    }
    readings->leaves[accused][readings->target->element * size / MERKLE_LEAF_SIZE] = 1;
}

/* ---- evidence ------------------------------------------------------------ */

static void add_random(struct buffer *bytes, uint64_t *seed, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t digest[DIGEST_SIZE];

        test_random_fill(seed, digest, sizeof(digest));
        buffer_add(bytes, digest, sizeof(digest));
    }
}

/* Bytes, dims, type, rank and an empty name. */
static void add_label(struct buffer *bytes, const struct shown_operand *operand)
{
    buffer_add_u64(bytes, operand->count * dtype_size(operand->dtype));
    buffer_add_u64(bytes, operand->count);
    for (int i = 1; i < 6; i++) {
        buffer_add_u64(bytes, 0);
    }
    buffer_add_u8(bytes, (uint8_t)operand->dtype);
    buffer_add_u8(bytes, 1);
    buffer_add_u16(bytes, 0);
}

void shown_case_root(struct digest *root, const struct shown_case *shown, uint32_t number)
{
    const struct shown_operand *operand = &shown->operands[number];
    char tag[TAG_SIZE] = {0};
    struct merkle_leaves leaves;
    struct buffer header;

    strcpy(tag, operand->role == ROLE_DATA ? "lockstep.data.v1" : "lockstep.tensor.v1");
    merkle_leaves_init_bytes(&leaves, operand->memory, operand->count * dtype_size(operand->dtype));
    merkle_root(root, &leaves);
    buffer_init(&header, TAG_SIZE + DIGEST_SIZE + LABEL_SIZE);
    buffer_add(&header, tag, TAG_SIZE);
    buffer_add(&header, root, sizeof(*root));
    add_label(&header, operand);
    sha256(root, header.data, header.size);
    buffer_release(&header);
}

static void add_operand(struct buffer *bytes, const struct shown_operand *operand)
{
    struct buffer label;
    struct digest hash;

    buffer_init(&label, LABEL_SIZE);
    add_label(&label, operand);
    sha256(&hash, label.data, label.size);
    buffer_add_u8(bytes, (uint8_t)operand->dtype);
    buffer_add_u8(bytes, (uint8_t)operand->role);
    buffer_add_u32(bytes, 0);
    buffer_add_u64(bytes, operand->count);
    buffer_add(bytes, &hash, sizeof(hash));
    buffer_release(&label);
}

static void add_descriptor(struct buffer *bytes, const struct shown_case *shown)
{
    const struct op *op = &shown->op;

    buffer_add_u16(bytes, (uint16_t)(5 + 8 * op->attribute_count + 46 * operand_count(shown)));
    buffer_add_u16(bytes, (uint16_t)op->kind);
    buffer_add_u8(bytes, (uint8_t)op->attribute_count);
    buffer_add_u8(bytes, (uint8_t)op->input_count);
    buffer_add_u8(bytes, (uint8_t)op->output_count);
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        buffer_add_u64(bytes, (uint64_t)op->attributes[i]);
    }
    for (uint32_t i = 0; i < operand_count(shown); i++) {
        add_operand(bytes, &shown->operands[i]);
    }
}

/* The proof of the leaves of one operand, or none. */
struct leaf_proof {
    struct merkle_leaves leaves;
    struct merkle_multi multi;
    struct digest root;
};

static void prove(struct leaf_proof *proof, const struct shown_operand *operand,
                  const uint8_t *read, bool proofs)
{
    uint64_t count = leaf_count(operand);

    memset(proof, 0, sizeof(*proof));
    proof->multi.indexes = calloc(count, sizeof(*proof->multi.indexes));
    assert(proof->multi.indexes != NULL);
    for (uint64_t leaf = 0; leaf < count; leaf++) {
        if (read[leaf]) {
            proof->multi.indexes[proof->multi.index_count++] = leaf;
        }
    }
    if (!proofs) {
        return;
    }
    merkle_leaves_init_bytes(&proof->leaves, operand->memory,
                             operand->count * dtype_size(operand->dtype));
    merkle_root(&proof->root, &proof->leaves);
    proof->multi.sibling_capacity = (uint32_t)MERKLE_MULTI_SIBLINGS(proof->multi.index_count);
    proof->multi.siblings = calloc(proof->multi.sibling_capacity, sizeof(*proof->multi.siblings));
    assert(proof->multi.siblings != NULL);
    enum status status = merkle_multi_build(&proof->multi, &proof->leaves);

    assert(status == STATUS_OK);
}

static void add_shown(struct buffer *bytes, const struct shown_operand *operand,
                      const uint8_t *read, bool proofs, uint32_t path_size, uint64_t *seed)
{
    uint64_t size = operand->count * dtype_size(operand->dtype);
    struct leaf_proof proof;

    prove(&proof, operand, read, proofs);
    buffer_add_u8(bytes, LABEL_SIZE);
    add_label(bytes, operand);
    buffer_add(bytes, &proof.root, sizeof(proof.root));
    if (operand->role == ROLE_DATA || operand->role == ROLE_CONSTANT) {
        buffer_add_u32(bytes, 1);
    }
    buffer_add_u8(bytes, (uint8_t)path_size);
    add_random(bytes, seed, path_size);
    buffer_add_u16(bytes, (uint16_t)proof.multi.index_count);
    for (uint32_t i = 0; i < proof.multi.index_count; i++) {
        buffer_add_u64(bytes, proof.multi.indexes[i]);
    }
    buffer_add_u16(bytes, (uint16_t)proof.multi.sibling_count);
    buffer_add(bytes, proof.multi.siblings, proof.multi.sibling_count * sizeof(struct digest));
    for (uint32_t i = 0; i < proof.multi.index_count; i++) {
        uint64_t at = proof.multi.indexes[i] * MERKLE_LEAF_SIZE;
        uint8_t leaf[MERKLE_LEAF_SIZE] = {0};

        memcpy(leaf, (const char *)operand->memory + at,
               size - at < MERKLE_LEAF_SIZE ? size - at : MERKLE_LEAF_SIZE);
        buffer_add(bytes, leaf, sizeof(leaf));
    }
    free(proof.multi.indexes);
    free(proof.multi.siblings);
}

/* The part, and the range that it is of. */
static void add_range(struct buffer *bytes, const struct shown_target *target)
{
    const struct partial_sums_range range = {
        .is_part = target->length != 0, .from = target->from, .length = target->length};
    uint8_t written[PARTIAL_SUMS_RANGE_SIZE];
    size_t size = partial_sums_range_write(written, &range);

    buffer_add_u32(bytes, target->part);
    buffer_add_u8(bytes, (uint8_t)size);
    buffer_add(bytes, written, size);
}

/* What an honest accused tells. */
static void add_reply(struct buffer *bytes, const struct shown_case *shown,
                      const struct shown_target *target)
{
    struct rule_call call = call_of(shown);
    struct rule_axis axis = axis_of(&shown->op, target);
    uint8_t reply[PARTIAL_SUMS_REPLY_MAX];
    size_t size = partial_sums_write(reply, &call, target->output, target->element, &axis);

    endian_store_be32(reply, (uint32_t)replied_exponent(&call, target));
    buffer_add_u16(bytes, (uint16_t)size);
    buffer_add(bytes, reply, size);
}

void shown_case_write(struct buffer *bytes, const struct shown_case *shown,
                      const struct shown_target *target, bool proofs, uint32_t path_size)
{
    struct readings readings = {.shown = shown, .target = target};
    uint64_t seed = path_size;
    uint16_t used = 0;

    read_rule(&readings);
    for (uint32_t i = 0; i < operand_count(shown); i++) {
        assert(readings.leaves[i] != NULL);
        if (memchr(readings.leaves[i], 1, leaf_count(&shown->operands[i])) != NULL) {
            used |= (uint16_t)(1u << i);
        }
    }
    buffer_add_u8(bytes, target->is_part ? EVIDENCE_PART : EVIDENCE_ELEMENT);
    buffer_add_u32(bytes, 0);
    buffer_add_u32(bytes, 1);
    buffer_add_u32(bytes, 1);
    buffer_add_u8(bytes, (uint8_t)path_size);
    add_random(bytes, &seed, path_size);
    add_descriptor(bytes, shown);
    add_random(bytes, &seed, 1); /* the tree root of the trace */
    buffer_add_u8(bytes, (uint8_t)target->output);
    buffer_add_u64(bytes, target->element);
    if (target->is_part) {
        add_range(bytes, target);
        add_reply(bytes, shown, target);
    }
    buffer_add_u16(bytes, used);
    for (uint32_t i = 0; i < operand_count(shown); i++) {
        if ((used >> i & 1) != 0) {
            add_shown(bytes, &shown->operands[i], readings.leaves[i], proofs, path_size, &seed);
        }
        free(readings.leaves[i]);
    }
}
