/*
 * descriptor.c - see descriptor.h.
 *
 * Operation: 0 kind (2), 2 attributes a (1), 3 inputs i (1), 4 outputs o (1), 5 attributes (8 a),
 * then of each input and each output: type (1), role (1), place (4), elements (8), label (32).
 * Of a repeat (0x4000 is added to the kind) behind that: base (4), times (4), group (4), block (4),
 * sums (4), inner (4), and of each operand: way (1), other (4).
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
#include "engine/ops/view.h"
#include "proofs/commit/commit.h"
#include "proofs/hash/sha256.h"

#define OPERAND_SIZE 46
#define LAYOUT_SIZE  24
#define WAY_SIZE     5
_Static_assert(5 + 8 * OP_ATTRIBUTES_MAX + LAYOUT_SIZE +
                       (OPERAND_SIZE + WAY_SIZE) * DESCRIPTOR_OPERANDS_MAX <=
                   DESCRIPTOR_SIZE_MAX,
               "a descriptor fits");
_Static_assert(DESCRIPTOR_LABEL_AT + DESCRIPTOR_LABEL_MIN == COMMIT_TENSOR_HEADER_MIN,
               "a label is the rest of a header");
_Static_assert(OP_KIND_COUNT < DESCRIPTOR_REPEATED, "no operation is taken for a state");

/* ---- writing ------------------------------------------------------------ */

static enum status find_repeat(struct descriptor_places *places, struct error *error)
{
    const struct tape *brief = places->tape->brief;
    const struct repeat *repeat = &brief->repeat;
    uint32_t joined = 0;

    places->trace_items = places->layout.list;
    places->carry_of = malloc(((size_t)places->tape->tensor_count + 1) * sizeof(*places->carry_of));
    places->joined = calloc((size_t)repeat->carry_count + 1, sizeof(*places->joined));
    if (places->carry_of == NULL || places->joined == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the places of a repeat");
    }
    for (uint32_t id = 0; id < places->tape->tensor_count; id++) {
        places->carry_of[id] = TENSOR_NONE;
    }
    for (uint32_t i = 0; i < repeat->carry_count; i++) {
        places->carry_of[repeat->carries[i].start] = i;
        if (repeat->carries[i].joined) {
            places->joined[joined++] = i;
        }
    }
    return STATUS_OK;
}

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
    repeat_layout_of(&places->layout, tape);
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const uint32_t last = tape_turns(tape, at) - 1; /* what is read behind a loop */

        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            uint32_t id = tape->ops[at].outputs[i];

            places->of[id] = tape->items == NULL
                                 ? places->trace_items++
                                 : repeat_turn_item(&places->layout, tape->items[id], last);
        }
    }
    if (tape->brief == NULL) {
        return STATUS_OK;
    }

    enum status status = find_repeat(places, error);

    if (status != STATUS_OK) {
        descriptor_places_release(places);
    }
    return status;
}

void descriptor_places_release(struct descriptor_places *places)
{
    free(places->of);
    free(places->carry_of);
    free(places->joined);
    places->of = places->carry_of = places->joined = NULL;
}

/* Operations and joins. */
static uint32_t count_ops(const struct tape *tape)
{
    return tape->brief == NULL ? tape->op_count : tape->brief->op_count + tape->join_count;
}

uint32_t descriptor_count(const struct tape *tape)
{
    return count_ops(tape) + tape->state_count;
}

uint32_t descriptor_of_op(uint32_t *instance, const struct tape *tape, struct op_turn maker)
{
    *instance = tape->brief == NULL ? 0 : tape->origins[maker.op].instance + maker.turn;
    return tape->brief == NULL ? maker.op : tape->origins[maker.op].item;
}

bool descriptor_find_op(struct op_turn *maker, const struct tape *tape, uint32_t item,
                        uint32_t instance)
{
    for (uint32_t op = 0; op < tape->op_count; op++) {
        uint32_t own = tape->brief == NULL ? op : tape->origins[op].item;

        if (own == item && descriptor_runs_in(maker, tape, op, instance)) {
            return true;
        }
    }
    return false;
}

bool descriptor_runs_in(struct op_turn *maker, const struct tape *tape, uint32_t op,
                        uint32_t instance)
{
    uint32_t first;

    (void)descriptor_of_op(&first, tape, (struct op_turn){op, 0});
    *maker = (struct op_turn){op, instance - first};
    return instance >= first && instance - first < tape_turns(tape, op);
}

uint32_t descriptor_of_state(const struct tape *tape, uint32_t state)
{
    return count_ops(tape) + state;
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

/* docs/FORMATS.md, operand: behind its dtype and its role, of a byte each. */
enum { OPERAND_PLACE = 2, OPERAND_COUNT = 6, OPERAND_LABEL = 14 };

static uint8_t *put_operand(uint8_t *at, const struct descriptor_places *places, uint32_t id,
                            uint32_t place)
{
    const struct tensor *tensor = &places->tape->tensors[id];
    struct digest label;

    at[0] = (uint8_t)tensor->dtype;
    at[1] = (uint8_t)tensor->role;
    endian_store_be32(at + OPERAND_PLACE, place);
    endian_store_be64(at + OPERAND_COUNT, tensor->count);
    descriptor_label_hash(&label, tensor);
    memcpy(at + OPERAND_LABEL, label.bytes, DIGEST_SIZE);
    return at + OPERAND_SIZE;
}

static uint8_t *put_op(uint8_t *bytes, const struct op *op, uint32_t flags)
{
    uint8_t *at = bytes + 5;

    endian_store_be16(bytes, (uint16_t)(op->kind | flags));
    bytes[2] = (uint8_t)op->attribute_count;
    bytes[3] = (uint8_t)op->input_count;
    bytes[4] = (uint8_t)op->output_count;
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        endian_store_be64(at, (uint64_t)op->attributes[i]);
        at += 8;
    }
    return at;
}

static uint32_t operand_id(const struct op *op, uint32_t number)
{
    return number < op->input_count ? op->inputs[number] : op->outputs[number - op->input_count];
}

static size_t write_op(uint8_t *bytes, const struct descriptor_places *places, const struct op *op)
{
    uint8_t *at = put_op(bytes, op, 0);

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        uint32_t id = operand_id(op, i);

        at = put_operand(at, places, id, places->of[id]);
    }
    return (size_t)(at - bytes);
}

/* ---- operations of a repeat ---- */

struct way {
    enum descriptor_way way;
    uint32_t place;
    uint32_t other;
};

/* The tensors of micro-batch 0 have the ids of the short tape. */
static struct way way_of(const struct descriptor_places *places, uint32_t id)
{
    const struct repeat_layout *layout = &places->layout;
    enum role role = places->tape->tensors[id].role;
    uint32_t place = places->of[id];

    if (places->carry_of[id] != TENSOR_NONE) {
        const struct carry *carry = &places->tape->brief->repeat.carries[places->carry_of[id]];

        return (struct way){carry->joined ? DESCRIPTOR_SUMMED : DESCRIPTOR_CARRIED, place,
                            places->of[carry->after] - layout->base};
    }
    if (role_is_made(role) && place >= layout->list) {
        return (struct way){DESCRIPTOR_INNER, place - layout->list, 0};
    }
    if (role_is_made(role) && place >= layout->base && place < layout->base + layout->block) {
        return (struct way){DESCRIPTOR_OWN, place - layout->base, 0};
    }
    return (struct way){DESCRIPTOR_FIXED, place, 0};
}

static size_t put_repeated(uint8_t *bytes, const struct descriptor_places *places,
                           const struct op *op, const struct way *ways)
{
    const struct repeat_layout *layout = &places->layout;
    const uint32_t numbers[LAYOUT_SIZE / 4] = {layout->base,  layout->times, layout->group,
                                               layout->block, layout->sums,  layout->inner};
    uint32_t count = op->input_count + op->output_count;
    uint8_t *at = put_op(bytes, op, DESCRIPTOR_REPEATED);

    for (uint32_t i = 0; i < count; i++) {
        at = put_operand(at, places, operand_id(op, i), ways[i].place);
    }
    for (uint32_t i = 0; i < LAYOUT_SIZE / 4; i++, at += 4) {
        endian_store_be32(at, numbers[i]);
    }
    for (uint32_t i = 0; i < count; i++, at += WAY_SIZE) {
        at[0] = (uint8_t)ways[i].way;
        endian_store_be32(at + 1, ways[i].other);
    }
    return (size_t)(at - bytes);
}

static size_t write_body_op(uint8_t *bytes, const struct descriptor_places *places,
                            const struct op *op)
{
    struct way ways[DESCRIPTOR_OPERANDS_MAX];

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        ways[i] = way_of(places, operand_id(op, i));
    }
    return put_repeated(bytes, places, op, ways);
}

/* The addition of two groups or pairs, of joined carry number `number`. */
static size_t write_join(uint8_t *bytes, const struct descriptor_places *places, uint32_t number)
{
    uint32_t after = places->tape->brief->repeat.carries[places->joined[number]].after;
    uint32_t last = places->of[after] - places->layout.base;
    const uint64_t count = places->tape->tensors[after].count;
    struct op op;
    const struct way ways[3] = {{DESCRIPTOR_LEFT, number, last},
                                {DESCRIPTOR_RIGHT, number, last},
                                {DESCRIPTOR_JOIN, number, 0}};

    binary_set(&op, BINARY_ADD, count, 1, count);
    op.inputs[0] = op.inputs[1] = op.outputs[0] = after;
    op.input_count = 2;
    op.output_count = 1;
    return put_repeated(bytes, places, &op, ways);
}

static size_t write_brief(uint8_t *bytes, const struct descriptor_places *places, uint32_t item)
{
    const struct tape *tape = places->tape;
    const struct repeat *repeat = &tape->brief->repeat;

    if (item >= tape->brief->op_count) {
        return write_join(bytes, places, item - tape->brief->op_count);
    }
    if (item >= repeat->first && item - repeat->first < repeat->op_count) {
        return write_body_op(bytes, places, &tape->brief->ops[item]);
    }
    /* What follows the repeat stands at the end of the unrolled tape. */
    return write_op(
        bytes, places,
        &tape->ops[item < repeat->first ? item : tape->op_count - tape->brief->op_count + item]);
}

/* docs/FORMATS.md, descriptor of a state: behind DESCRIPTOR_STATE, of two bytes. */
enum {
    STATE_NUMBER = 2,
    STATE_COUNT = 6,
    STATE_AFTER = 10,
    STATE_LABEL = 14,
    STATE_INIT = STATE_LABEL + DIGEST_SIZE,
    STATE_INIT_BITS
};

static size_t write_state(uint8_t *bytes, const struct descriptor_places *places, uint32_t state)
{
    const struct tape *tape = places->tape;
    struct digest label;

    endian_store_be16(bytes, DESCRIPTOR_STATE);
    endian_store_be32(bytes + STATE_NUMBER, state);
    endian_store_be32(bytes + STATE_COUNT, tape->state_count);
    endian_store_be32(bytes + STATE_AFTER, places->of[tape->states[state].after]);
    descriptor_label_hash(&label, &tape->tensors[tape->states[state].before]);
    memcpy(bytes + STATE_LABEL, label.bytes, DIGEST_SIZE);
    bytes[STATE_INIT] = (uint8_t)tape->states[state].init.kind;
    endian_store_be32(bytes + STATE_INIT_BITS, tape->states[state].init.value_bits);
    return DESCRIPTOR_STATE_SIZE;
}

bool descriptor_is_repeated(const uint8_t *bytes)
{
    return (endian_load_be16(bytes) & 0xc000) == DESCRIPTOR_REPEATED;
}

size_t descriptor_write(uint8_t bytes[DESCRIPTOR_SIZE_MAX], const struct descriptor_places *places,
                        uint32_t item)
{
    const struct tape *tape = places->tape;

    assert(item < descriptor_count(tape));
    if (item >= count_ops(tape)) {
        return write_state(bytes, places, item - count_ops(tape));
    }
    return tape->brief != NULL ? write_brief(bytes, places, item)
                               : write_op(bytes, places, &tape->ops[item]);
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

static enum status read_repeat(struct descriptor *descriptor, struct reader *reader,
                               struct error *error)
{
    struct repeat_layout *layout = &descriptor->layout;
    uint32_t groups;

    layout->base = reader_u32(reader);
    layout->times = reader_u32(reader);
    layout->group = reader_u32(reader);
    layout->block = reader_u32(reader);
    layout->sums = reader_u32(reader);
    layout->inner = reader_u32(reader);
    groups = layout->group == 0 ? 0 : layout->times / layout->group;
    if (groups == 0 || layout->times % layout->group != 0 || (groups & (groups - 1)) != 0 ||
        layout->times > REPEAT_TIMES_MAX || layout->block > REPEAT_TENSORS_MAX ||
        layout->sums > REPEAT_TENSORS_MAX || layout->inner > REPEAT_TENSORS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a descriptor of %u micro-batches of %u items in groups of %u",
                         layout->times, layout->block, layout->group);
    }
    for (uint32_t i = 0; i < descriptor->operand_count; i++) {
        struct descriptor_operand *operand = &descriptor->operands[i];

        operand->way = (enum descriptor_way)reader_u8(reader);
        operand->other = reader_u32(reader);
        if ((unsigned)operand->way >= DESCRIPTOR_WAYS) {
            return error_set(error, STATUS_BAD_FORMAT, "operand %u has way %u", i,
                             (unsigned)operand->way);
        }
    }
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
    if (descriptor->is_repeated) {
        TRY(read_repeat(descriptor, reader, error));
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
    descriptor->batch = TENSOR_NONE;
    reader_init(&reader, bytes, size);
    kind = reader_u16(&reader);
    if (kind == DESCRIPTOR_STATE) {
        return read_state(descriptor, &reader, error);
    }
    descriptor->is_repeated = (kind & DESCRIPTOR_REPEATED) != 0;
    descriptor->op.kind = (enum op_kind)(kind & ~DESCRIPTOR_REPEATED);
    return read_op(descriptor, &reader, error);
}

/* ---- instances ---------------------------------------------------------- */

static uint64_t child_place(const struct repeat_layout *layout,
                            const struct descriptor_operand *operand, uint32_t node)
{
    uint32_t groups = layout->times / layout->group;

    return node < groups ? repeat_join_place(layout, node) + operand->place
                         : repeat_block_place(layout, (node - groups + 1) * layout->group - 1) +
                               operand->other;
}

static uint64_t place_at(const struct repeat_layout *layout,
                         const struct descriptor_operand *operand, uint32_t instance)
{
    switch (operand->way) {
    case DESCRIPTOR_INNER:
        return layout->list + (uint64_t)instance * layout->inner + operand->place;
    case DESCRIPTOR_OWN:
        return repeat_block_place(layout, instance) + operand->place;
    case DESCRIPTOR_CARRIED:
        return instance == 0 ? operand->place
                             : repeat_block_place(layout, instance - 1) + operand->other;
    case DESCRIPTOR_SUMMED:
        return instance % layout->group == 0
                   ? operand->place
                   : repeat_block_place(layout, instance - 1) + operand->other;
    case DESCRIPTOR_JOIN:
        return repeat_join_place(layout, instance) + operand->place;
    case DESCRIPTOR_LEFT:
    case DESCRIPTOR_RIGHT:
        return child_place(layout, operand, 2 * instance + (operand->way == DESCRIPTOR_RIGHT));
    case DESCRIPTOR_FIXED:
    case DESCRIPTOR_WAYS:
        break;
    }
    return operand->place;
}

bool descriptor_at(struct descriptor *descriptor, uint32_t instance, uint32_t trace_items)
{
    struct repeat_layout *layout = &descriptor->layout;
    bool joins = descriptor->operand_count > 0 &&
                 descriptor->operands[descriptor->operand_count - 1].way >= DESCRIPTOR_JOIN;
    uint32_t first = joins ? 1 : 0;
    uint32_t end = joins ? layout->times / layout->group : layout->times;

    if (instance < first || instance >= end) {
        return false;
    }
    layout->list = trace_items;
    descriptor->batch = joins || layout->inner == 0 ? TENSOR_NONE : instance;
    for (uint32_t i = 0; i < descriptor->operand_count; i++) {
        struct descriptor_operand *operand = &descriptor->operands[i];
        bool of_node = operand->way >= DESCRIPTOR_JOIN;
        uint64_t place;

        if ((operand->way != DESCRIPTOR_FIXED && of_node != joins) ||
            (operand->way == DESCRIPTOR_INNER && operand->place >= layout->inner)) {
            return false;
        }
        place = place_at(layout, operand, instance);
        if (place > UINT32_MAX) {
            return false;
        }
        operand->place = (uint32_t)place;
    }
    return true;
}

void descriptor_of_turn(struct descriptor *descriptor, const struct descriptor_places *places,
                        struct op_turn maker)
{
    uint8_t bytes[DESCRIPTOR_SIZE_MAX];
    uint32_t instance;
    uint32_t item = descriptor_of_op(&instance, places->tape, maker);
    size_t size = descriptor_write(bytes, places, item);
    struct error error;
    bool found;

    error_init(&error);
    found = descriptor_read(descriptor, bytes, size, &error) == STATUS_OK &&
            (!descriptor->is_repeated || descriptor_at(descriptor, instance, places->trace_items));
    assert(found); /* we wrote it */
    (void)found;
}
