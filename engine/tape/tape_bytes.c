/*
 * tape_bytes.c - the canonical bytes of a tape.
 *
 * Tape, all integers big-endian:
 *
 *     SIZE  MEANING
 *     8     "LSTAPE" 0x00 0x02
 *     4x4   tensor count, operation count, state count, loss (0xffffffff: none)
 *           each tensor:
 *     1+n   length of the name, the name
 *     3     type, role, rank
 *     8r    the length of each axis
 *           each operation:
 *     2+3   kind; counts of attributes, inputs, outputs
 *     8a    attributes
 *     4i    input tensors
 *     4o    output tensors
 *           each state:
 *     4+4   before, after
 *     1+4   how its first value is drawn: kind, bits of the value
 *
 * Where micro-batches are repeated, then (repeat.h):
 *     4x5   times, group, first operation, operations, carries
 *           each carry:
 *     4+4+1 start, after, joined (0 or 1)
 *
 * No bytes follow.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tape/repeat.h"

#define MAGIC_SIZE 8
static const uint8_t magic[MAGIC_SIZE] = {'L', 'S', 'T', 'A', 'P', 'E', 0, 2};

#define STATE_SIZE  13
#define REPEAT_SIZE 20
#define CARRY_SIZE  9

/* ---- writing ------------------------------------------------------------ */

static uint8_t *put_number(uint8_t *at, uint64_t value, uint32_t size)
{
    for (uint32_t i = size; i > 0; i--) {
        *at++ = (uint8_t)(value >> (8 * (i - 1)));
    }
    return at;
}

static uint64_t op_size(const struct op *op)
{
    return 5 + 8 * (uint64_t)op->attribute_count + 4 * (uint64_t)op->input_count +
           4 * (uint64_t)op->output_count;
}

uint64_t tape_encoded_size(const struct tape *unrolled)
{
    const struct tape *tape = unrolled->brief != NULL ? unrolled->brief : unrolled;
    uint64_t size = MAGIC_SIZE + 16 + STATE_SIZE * (uint64_t)tape->state_count;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        size += 1 + strlen(tape->tensors[id].name) + 3 + 8 * (uint64_t)tape->tensors[id].rank;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        size += op_size(&tape->ops[at]);
    }
    if (tape->repeat.times != 0) {
        size += REPEAT_SIZE + CARRY_SIZE * (uint64_t)tape->repeat.carry_count;
    }
    return size;
}

static uint8_t *put_op_head(uint8_t *at, const struct op *op)
{
    at = put_number(at, (uint64_t)op->kind, 2);
    at = put_number(at, op->attribute_count, 1);
    at = put_number(at, op->input_count, 1);
    at = put_number(at, op->output_count, 1);
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        at = put_number(at, (uint64_t)op->attributes[i], 8);
    }
    return at;
}

static uint8_t *put_repeat(uint8_t *at, const struct repeat *repeat)
{
    at = put_number(at, repeat->times, 4);
    at = put_number(at, repeat->group, 4);
    at = put_number(at, repeat->first, 4);
    at = put_number(at, repeat->op_count, 4);
    at = put_number(at, repeat->carry_count, 4);
    for (uint32_t i = 0; i < repeat->carry_count; i++) {
        at = put_number(at, repeat->carries[i].start, 4);
        at = put_number(at, repeat->carries[i].after, 4);
        at = put_number(at, repeat->carries[i].joined, 1);
    }
    return at;
}

void tape_encode(uint8_t *bytes, const struct tape *unrolled)
{
    /* The brief form, one micro-batch and its repeat, is what a job binds; a reader unrolls it
     * again. */
    const struct tape *tape = unrolled->brief != NULL ? unrolled->brief : unrolled;
    uint8_t *at = bytes;

    memcpy(at, magic, MAGIC_SIZE);
    at += MAGIC_SIZE;
    at = put_number(at, tape->tensor_count, 4);
    at = put_number(at, tape->op_count, 4);
    at = put_number(at, tape->state_count, 4);
    at = put_number(at, tape->loss, 4);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        size_t length = strlen(tensor->name);

        at = put_number(at, length, 1);
        memcpy(at, tensor->name, length);
        at = put_number(at + length, (uint64_t)tensor->dtype, 1);
        at = put_number(at, (uint64_t)tensor->role, 1);
        at = put_number(at, tensor->rank, 1);
        for (uint32_t axis = 0; axis < tensor->rank; axis++) {
            at = put_number(at, tensor->dims[axis], 8);
        }
    }
    for (uint32_t index = 0; index < tape->op_count; index++) {
        const struct op *op = &tape->ops[index];

        at = put_op_head(at, op);
        for (uint32_t i = 0; i < op->input_count; i++) {
            at = put_number(at, op->inputs[i], 4);
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            at = put_number(at, op->outputs[i], 4);
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        at = put_number(at, tape->states[i].before, 4);
        at = put_number(at, tape->states[i].after, 4);
        at = put_number(at, (uint64_t)tape->states[i].init.kind, 1);
        at = put_number(at, tape->states[i].init.value_bits, 4);
    }
    if (tape->repeat.times != 0) {
        at = put_repeat(at, &tape->repeat);
    }
    assert((uint64_t)(at - bytes) == tape_encoded_size(tape));
}

/* ---- reading ------------------------------------------------------------ */

struct tape_reader {
    const uint8_t *bytes;
    uint64_t size;
    uint64_t at;
    bool truncated; /* a field lies past the end */
};

static uint64_t take_number(struct tape_reader *reader, uint32_t size)
{
    uint64_t value = 0;

    if (size > reader->size - reader->at) {
        reader->truncated = true;
        reader->at = reader->size;
        return 0;
    }
    for (uint32_t i = 0; i < size; i++) {
        value = value << 8 | reader->bytes[reader->at++];
    }
    return value;
}

static enum status truncated_tape(const struct tape_reader *reader, const char *what,
                                  uint32_t index, struct error *error)
{
    return error_set(error, STATUS_BAD_FORMAT, "the tape ends inside %s %u, at byte %llu", what,
                     index, (unsigned long long)reader->size);
}

static enum status read_tensor(struct tape_reader *reader, struct tensor *tensor, uint32_t id,
                               struct error *error)
{
    uint64_t start = reader->at;
    uint64_t length = take_number(reader, 1);

    if (length > TENSOR_NAME_MAX || length > reader->size - reader->at) {
        return error_set(error, STATUS_BAD_FORMAT, "tensor %u at byte %llu: a name of %llu bytes",
                         id, (unsigned long long)start, (unsigned long long)length);
    }
    memcpy(tensor->name, reader->bytes + reader->at, length);
    reader->at += length;
    if (strlen(tensor->name) != length) {
        return error_set(error, STATUS_BAD_FORMAT, "tensor %u at byte %llu: a name with a NUL", id,
                         (unsigned long long)start);
    }
    /* tape_check() judges the values. */
    tensor->dtype = (enum dtype)take_number(reader, 1);
    tensor->role = (enum role)take_number(reader, 1);
    tensor->rank = (uint32_t)take_number(reader, 1);
    if (tensor->rank > TENSOR_RANK_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "tensor %u at byte %llu: rank %u, at most %d",
                         id, (unsigned long long)start, tensor->rank, TENSOR_RANK_MAX);
    }
    tensor->count = 1;
    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
        tensor->dims[axis] = take_number(reader, 8);
        if (tensor->dims[axis] == 0 || tensor->dims[axis] > TENSOR_COUNT_MAX / tensor->count) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "tensor %u at byte %llu: an axis of length %llu", id,
                             (unsigned long long)start, (unsigned long long)tensor->dims[axis]);
        }
        tensor->count *= tensor->dims[axis];
    }
    return reader->truncated ? truncated_tape(reader, "tensor", id, error) : STATUS_OK;
}

static enum status read_op(struct tape_reader *reader, struct op *op, uint32_t index,
                           struct error *error)
{
    uint64_t start = reader->at;

    op->kind = (enum op_kind)take_number(reader, 2);
    op->attribute_count = (uint32_t)take_number(reader, 1);
    op->input_count = (uint32_t)take_number(reader, 1);
    op->output_count = (uint32_t)take_number(reader, 1);
    if ((unsigned)op->kind >= OP_KIND_COUNT || op->attribute_count > OP_ATTRIBUTES_MAX ||
        op->input_count > OP_INPUTS_MAX || op->output_count > OP_OUTPUTS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "operation %u at byte %llu: kind %u with %u attributes, %u inputs, %u "
                         "outputs is unknown",
                         index, (unsigned long long)start, (unsigned)op->kind, op->attribute_count,
                         op->input_count, op->output_count);
    }
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        op->attributes[i] = (int64_t)take_number(reader, 8);
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        op->inputs[i] = (uint32_t)take_number(reader, 4);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        op->outputs[i] = (uint32_t)take_number(reader, 4);
    }
    return reader->truncated ? truncated_tape(reader, "operation", index, error) : STATUS_OK;
}

static enum status read_repeat(struct tape_reader *reader, struct repeat *repeat,
                               struct error *error)
{
    uint64_t start = reader->at;
    uint32_t count;

    repeat->times = (uint32_t)take_number(reader, 4);
    repeat->group = (uint32_t)take_number(reader, 4);
    repeat->first = (uint32_t)take_number(reader, 4);
    repeat->op_count = (uint32_t)take_number(reader, 4);
    count = (uint32_t)take_number(reader, 4);
    /* Before memory is asked for: a count that the bytes cannot hold would reserve what a stranger
     * likes. */
    if (reader->truncated || repeat->times == 0 ||
        count > (reader->size - reader->at) / CARRY_SIZE) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the repeat at byte %llu: %u micro-batches and %u accumulators do not fit "
                         "in %llu bytes",
                         (unsigned long long)start, repeat->times, count,
                         (unsigned long long)(reader->size - start));
    }
    repeat->carries = calloc((size_t)count + 1, sizeof(*repeat->carries));
    if (repeat->carries == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u accumulators", count);
    }
    for (; repeat->carry_count < count; repeat->carry_count++) {
        struct carry *carry = &repeat->carries[repeat->carry_count];
        uint64_t joined;

        carry->start = (uint32_t)take_number(reader, 4);
        carry->after = (uint32_t)take_number(reader, 4);
        joined = take_number(reader, 1);
        carry->joined = joined == 1;
        /* One tape has one form in bytes: another true value of the flag would give a second
         * one. */
        if (joined > 1) {
            return error_set(error, STATUS_BAD_FORMAT, "accumulator %u before byte %llu: flag %u",
                             repeat->carry_count, (unsigned long long)reader->at, (unsigned)joined);
        }
    }
    return STATUS_OK;
}

static enum status read_tables(struct tape_reader *reader, struct tape *tape, struct error *error)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        TRY(read_tensor(reader, &tape->tensors[id], id, error));
    }
    for (uint32_t i = 0; i < tape->op_count; i++) {
        TRY(read_op(reader, &tape->ops[i], i, error));
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        tape->states[i].before = (uint32_t)take_number(reader, 4);
        tape->states[i].after = (uint32_t)take_number(reader, 4);
        tape->states[i].init.kind = (enum init_kind)take_number(reader, 1);
        tape->states[i].init.value_bits = (uint32_t)take_number(reader, 4);
    }
    if (reader->truncated) {
        return truncated_tape(reader, "the states, of which there are", tape->state_count, error);
    }
    if (reader->at != reader->size) {
        TRY(read_repeat(reader, &tape->repeat, error));
    }
    if (reader->at != reader->size) {
        return error_set(error, STATUS_BAD_FORMAT, "%llu bytes follow the end of the tape",
                         (unsigned long long)(reader->size - reader->at));
    }
    return tape_check(tape, error);
}

/* Refuses counts that the bytes cannot hold, so that memory stays in proportion to the bytes. */
static enum status read_head(struct tape_reader *reader, struct tape *tape, struct error *error)
{
    uint64_t least;

    if (reader->size > TAPE_BYTES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a tape of %llu bytes is over the limit of %llu",
                         (unsigned long long)reader->size, (unsigned long long)TAPE_BYTES_MAX);
    }
    if (reader->size >= MAGIC_SIZE && memcmp(reader->bytes, magic, MAGIC_SIZE - 1) == 0 &&
        reader->bytes[MAGIC_SIZE - 1] != magic[MAGIC_SIZE - 1]) {
        return error_set(error, STATUS_REFUSED,
                         "a tape of version %u; this program reads version %u",
                         reader->bytes[MAGIC_SIZE - 1], magic[MAGIC_SIZE - 1]);
    }
    if (reader->size < MAGIC_SIZE + 16 || memcmp(reader->bytes, magic, MAGIC_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "these bytes are not a tape");
    }
    reader->at = MAGIC_SIZE;
    tape->tensor_count = (uint32_t)take_number(reader, 4);
    tape->op_count = (uint32_t)take_number(reader, 4);
    tape->state_count = (uint32_t)take_number(reader, 4);
    tape->loss = (uint32_t)take_number(reader, 4);
    least = 5 * (uint64_t)tape->tensor_count + 5 * (uint64_t)tape->op_count +
            STATE_SIZE * (uint64_t)tape->state_count;
    if (tape->tensor_count > TAPE_TENSORS_MAX || tape->op_count > TAPE_OPS_MAX ||
        least > reader->size - reader->at) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%u tensors, %u operations and %u states do not fit in %llu bytes",
                         tape->tensor_count, tape->op_count, tape->state_count,
                         (unsigned long long)reader->size);
    }
    return STATUS_OK;
}

enum status tape_parse(struct tape **result, const uint8_t *bytes, uint64_t size,
                       struct error *error)
{
    struct tape_reader reader = {bytes, size, 0, false};
    struct tape *tape = calloc(1, sizeof(*tape));
    enum status status;

    if (tape == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a tape");
    }
    TRY_OUT(read_head(&reader, tape, error));
    tape->tensors = calloc((size_t)tape->tensor_count + 1, sizeof(*tape->tensors));
    tape->ops = calloc((size_t)tape->op_count + 1, sizeof(*tape->ops));
    tape->states = calloc((size_t)tape->state_count + 1, sizeof(*tape->states));
    if (tape->tensors == NULL || tape->ops == NULL || tape->states == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a tape of %u operations",
                           tape->op_count);
        goto out;
    }
    status = read_tables(&reader, tape, error);
out:
    if (status != STATUS_OK) {
        tape_free(tape);
        return status;
    }
    return repeat_unroll(result, tape, error);
}
