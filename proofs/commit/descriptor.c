/*
 * descriptor.c - see descriptor.h.
 *
 * Operation: 0 kind (2), 2 attributes a (1), 3 inputs i (1), 4 outputs o (1), 5 attributes (8 a),
 * then of each input and each output: type (1), role (1), place (4), elements (8), label (32).
 * State: 0 0xffff (2), 2 state (4), 6 states (4), 10 next (4), 14 label (32),
 * 46 kind of its first value (1), 47 bits of the value (4).
 */
#include "proofs/commit/descriptor.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/reader.h"
#include "proofs/commit/commit.h"
#include "proofs/hash/sha256.h"

#define OPERAND_SIZE 46
_Static_assert(5 + 8 * OP_ATTRIBUTES_MAX + OPERAND_SIZE * DESCRIPTOR_OPERANDS_MAX <=
                   DESCRIPTOR_SIZE_MAX,
               "a descriptor fits");
_Static_assert(DESCRIPTOR_LABEL_AT + DESCRIPTOR_LABEL_MIN == COMMIT_TENSOR_HEADER_MIN,
               "a label is the rest of a header");
_Static_assert(OP_KIND_COUNT < DESCRIPTOR_STATE, "no operation is taken for a state");

/* ---- writing ------------------------------------------------------------ */

enum status descriptor_places_find(struct descriptor_places *places, const struct tape *tape,
                                   struct error *error)
{
    uint32_t data = 0;
    uint32_t constants = 0;
    uint32_t inputs = 0;

    *places = (struct descriptor_places){.tape = tape};
    places->of = malloc(((size_t)tape->tensor_count + 1) * sizeof(*places->of));
    if (places->of == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the places of %u tensors",
                         tape->tensor_count);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        switch (tape->tensors[id].role) {
        case ROLE_DATA:
            places->of[id] = data++;
            break;
        case ROLE_CONSTANT:
            places->of[id] = constants++;
            break;
        case ROLE_INPUT: /* no job has inputs */
            places->of[id] = inputs++;
            break;
        case ROLE_STATE:
            places->of[id] = places->trace_items++;
            break;
        case ROLE_TEMPORARY:
        case ROLE_OUTPUT:
        case ROLE_COUNT:
            places->of[id] = TENSOR_NONE; /* until its operation is found */
            break;
        }
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            places->of[tape->ops[at].outputs[i]] = places->trace_items++;
        }
    }
    return STATUS_OK;
}

void descriptor_places_release(struct descriptor_places *places)
{
    free(places->of);
    places->of = NULL;
}

uint32_t descriptor_count(const struct tape *tape)
{
    return tape->op_count + tape->state_count;
}

size_t descriptor_label(uint8_t label[DESCRIPTOR_LABEL_MAX], const struct tensor *tensor)
{
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    enum commit_array kind = tensor->role == ROLE_DATA ? COMMIT_DATA : COMMIT_TENSOR;
    struct digest none = {{0}};
    size_t size = commit_tensor_header(header, kind, tensor, &none) - DESCRIPTOR_LABEL_AT;

    memcpy(label, header + DESCRIPTOR_LABEL_AT, size);
    return size;
}

void descriptor_label_hash(struct digest *hash, const struct tensor *tensor)
{
    uint8_t label[DESCRIPTOR_LABEL_MAX];

    sha256(hash, label, descriptor_label(label, tensor));
}

static uint8_t *put_operand(uint8_t *at, const struct descriptor_places *places, uint32_t id)
{
    const struct tensor *tensor = &places->tape->tensors[id];
    struct digest label;

    at[0] = (uint8_t)tensor->dtype;
    at[1] = (uint8_t)tensor->role;
    endian_store_be32(at + 2, places->of[id]);
    endian_store_be64(at + 6, tensor->count);
    descriptor_label_hash(&label, tensor);
    memcpy(at + 14, label.bytes, DIGEST_SIZE);
    return at + OPERAND_SIZE;
}

static size_t write_op(uint8_t *bytes, const struct descriptor_places *places, const struct op *op)
{
    uint8_t *at = bytes + 5;

    endian_store_be16(bytes, (uint16_t)op->kind);
    bytes[2] = (uint8_t)op->attribute_count;
    bytes[3] = (uint8_t)op->input_count;
    bytes[4] = (uint8_t)op->output_count;
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        endian_store_be64(at, (uint64_t)op->attributes[i]);
        at += 8;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        at = put_operand(at, places, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        at = put_operand(at, places, op->outputs[i]);
    }
    return (size_t)(at - bytes);
}

static size_t write_state(uint8_t *bytes, const struct descriptor_places *places, uint32_t state)
{
    const struct tape *tape = places->tape;
    struct digest label;

    endian_store_be16(bytes, DESCRIPTOR_STATE);
    endian_store_be32(bytes + 2, state);
    endian_store_be32(bytes + 6, tape->state_count);
    endian_store_be32(bytes + 10, places->of[tape->states[state].after]);
    descriptor_label_hash(&label, &tape->tensors[tape->states[state].before]);
    memcpy(bytes + 14, label.bytes, DIGEST_SIZE);
    bytes[46] = (uint8_t)tape->states[state].init.kind;
    endian_store_be32(bytes + 47, tape->states[state].init.value_bits);
    return DESCRIPTOR_STATE_SIZE;
}

size_t descriptor_write(uint8_t bytes[DESCRIPTOR_SIZE_MAX], const struct descriptor_places *places,
                        uint32_t item)
{
    const struct tape *tape = places->tape;

    assert(item < descriptor_count(tape));
    return item < tape->op_count ? write_op(bytes, places, &tape->ops[item])
                                 : write_state(bytes, places, item - tape->op_count);
}

enum status descriptor_program_root(struct digest *root, const struct tape *tape,
                                    struct error *error)
{
    struct descriptor_places places;
    struct commit_roots roots;
    enum status status;

    TRY(descriptor_places_find(&places, tape, error));
    commit_roots_init(&roots, COMMIT_PROGRAM, places.trace_items);
    for (uint32_t item = 0; item < descriptor_count(tape); item++) {
        uint8_t bytes[DESCRIPTOR_SIZE_MAX];
        size_t size = descriptor_write(bytes, &places, item);

        status = commit_roots_add_bytes(&roots, bytes, size);
        assert(status == STATUS_OK); /* a checked tape is far shorter than the longest list */
    }
    commit_roots_end(&roots, root);
    descriptor_places_release(&places);
    return STATUS_OK;
}

/* ---- reading ------------------------------------------------------------ */

static enum status read_state(struct descriptor *descriptor, struct reader *reader,
                              struct error *error)
{
    descriptor->is_state = true;
    descriptor->state = reader_u32(reader);
    descriptor->state_count = reader_u32(reader);
    descriptor->next = reader_u32(reader);
    reader_copy(reader, descriptor->label.bytes, DIGEST_SIZE);
    descriptor->init.kind = (enum init_kind)reader_u8(reader);
    descriptor->init.value_bits = reader_u32(reader);
    TRY(reader_end(reader, error, "the descriptor of a state"));
    if (descriptor->state >= descriptor->state_count || !init_is_sound(&descriptor->init)) {
        return error_set(error, STATUS_BAD_FORMAT, "the descriptor of state %u of %u",
                         descriptor->state, descriptor->state_count);
    }
    return STATUS_OK;
}

static enum status read_operand(struct descriptor_operand *operand, struct tensor *tensor,
                                struct reader *reader, uint32_t number, bool made,
                                struct error *error)
{
    operand->dtype = (enum dtype)reader_u8(reader);
    operand->role = (enum role)reader_u8(reader);
    operand->place = reader_u32(reader);
    operand->count = reader_u64(reader);
    reader_copy(reader, operand->label.bytes, DIGEST_SIZE);
    if ((unsigned)operand->dtype >= DTYPE_COUNT || (unsigned)operand->role >= ROLE_COUNT ||
        operand->count == 0 || operand->count > TENSOR_COUNT_MAX) {
        return error_set(
            error, STATUS_BAD_FORMAT, "operand %u has type %u, role %u and %llu elements", number,
            (unsigned)operand->dtype, (unsigned)operand->role, (unsigned long long)operand->count);
    }
    if (made && !role_is_made(operand->role)) {
        return error_set(error, STATUS_BAD_FORMAT, "an operation makes operand %u, a %s", number,
                         role_name(operand->role));
    }
    *tensor = (struct tensor){.dtype = operand->dtype,
                              .role = operand->role,
                              .rank = 1,
                              .dims = {operand->count},
                              .count = operand->count};
    (void)snprintf(tensor->name, sizeof(tensor->name), "operand %u", number);
    return STATUS_OK;
}

static enum status read_op(struct descriptor *descriptor, struct reader *reader,
                           struct error *error)
{
    struct op *op = &descriptor->op;
    struct tensor tensors[DESCRIPTOR_OPERANDS_MAX];

    op->attribute_count = reader_u8(reader);
    op->input_count = reader_u8(reader);
    op->output_count = reader_u8(reader);
    if ((unsigned)op->kind >= OP_KIND_COUNT || op->attribute_count > OP_ATTRIBUTES_MAX ||
        op->input_count > OP_INPUTS_MAX || op->output_count > OP_OUTPUTS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a descriptor of kind %u with %u attributes, %u inputs, %u outputs",
                         (unsigned)op->kind, op->attribute_count, op->input_count,
                         op->output_count);
    }
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        op->attributes[i] = (int64_t)reader_u64(reader);
    }
    descriptor->operand_count = op->input_count + op->output_count;
    for (uint32_t i = 0; i < descriptor->operand_count; i++) {
        TRY(read_operand(&descriptor->operands[i], &tensors[i], reader, i, i >= op->input_count,
                         error));
        *(i < op->input_count ? &op->inputs[i] : &op->outputs[i - op->input_count]) = i;
    }
    TRY(reader_end(reader, error, "the descriptor of an operation"));
    return op_check(op, tensors, descriptor->operand_count, error);
}

enum status descriptor_read(struct descriptor *descriptor, const uint8_t *bytes, size_t size,
                            struct error *error)
{
    struct reader reader;
    uint16_t kind;

    memset(descriptor, 0, sizeof(*descriptor));
    reader_init(&reader, bytes, size);
    kind = reader_u16(&reader);
    if (kind == DESCRIPTOR_STATE) {
        return read_state(descriptor, &reader, error);
    }
    descriptor->op.kind = (enum op_kind)kind;
    return read_op(descriptor, &reader, error);
}
