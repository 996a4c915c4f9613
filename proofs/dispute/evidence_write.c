/*
 * evidence_write.c - writes evidence: the elements that a rule reads, and their proofs.
 *
 * witness.c finds those elements. docs/FORMATS.md, section 9, has the bytes.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rules/rule.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/element.h"
#include "proofs/commit/trace.h"
#include "proofs/dispute/witness.h"

/* ---- the accused's trees ------------------------------------------------ */

struct writer {
    struct buffer *bytes;
    const struct tape *tape;
    const struct evidence_source *source;
    struct descriptor_places places;
    struct error *error;
};

static void put_digest(struct writer *writer, const struct digest *digest)
{
    buffer_add(writer->bytes, digest->bytes, DIGEST_SIZE);
}

/* Where the siblings of the path of item index of count are; returns how many. */
static uint32_t path_places(struct merkle_place places[MERKLE_DEPTH_MAX], uint64_t index,
                            uint64_t count)
{
    uint32_t level = 0;
    uint32_t found = 0;

    for (uint64_t last = count - 1; last > 0; last >>= 1) {
        if ((index & 1) == 1 || index < last) {
            places[found++] = (struct merkle_place){level, index ^ 1};
        }
        index >>= 1;
        level++;
    }
    return found;
}

static enum status put_list_path(struct writer *writer, enum evidence_list list, uint32_t batch,
                                 uint64_t index, uint64_t count)
{
    struct merkle_place places[MERKLE_DEPTH_MAX];
    uint32_t found = path_places(places, index, count);

    buffer_add_u8(writer->bytes, (uint8_t)found);
    for (uint32_t i = 0; i < found; i++) {
        struct digest node;

        TRY(writer->source->list_node(writer->source->context, &node, list, batch, places[i].level,
                                      places[i].index, writer->error));
        put_digest(writer, &node);
    }
    return STATUS_OK;
}

static enum status put_list_root(struct writer *writer, enum evidence_list list, uint32_t batch,
                                 uint64_t count)
{
    struct digest root;

    TRY(writer->source->list_node(writer->source->context, &root, list, batch, merkle_height(count),
                                  0, writer->error));
    put_digest(writer, &root);
    return STATUS_OK;
}

static enum status put_tensor_node(struct writer *writer, enum evidence_list list, uint32_t item,
                                   uint32_t level, uint64_t index)
{
    struct digest node;

    TRY(writer->source->tensor_node(writer->source->context, &node, list, item, level, index,
                                    writer->error));
    put_digest(writer, &node);
    return STATUS_OK;
}

static enum status put_item(struct writer *writer, enum evidence_list list, uint32_t item)
{
    struct digest root;

    TRY(writer->source->item(writer->source->context, &root, list, item, writer->error));
    put_digest(writer, &root);
    return STATUS_OK;
}

static void put_label(struct writer *writer, const struct tensor *tensor)
{
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t size = descriptor_label(label, tensor);

    buffer_add_u8(writer->bytes, (uint8_t)size);
    buffer_add(writer->bytes, label, size);
}

/* ---- the program -------------------------------------------------------- */

static enum status program_path(struct merkle_path *path, struct writer *writer, uint32_t item)
{
    uint32_t count = descriptor_count(writer->tape);
    struct digest *hashes = malloc((size_t)count * sizeof(*hashes));
    struct merkle_leaves leaves;

    if (hashes == NULL) {
        return error_set(writer->error, STATUS_NO_MEMORY, "no memory for a program of %u", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t bytes[DESCRIPTOR_SIZE_MAX];

        merkle_leaf_hash(&hashes[i], bytes, descriptor_write(bytes, &writer->places, i));
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_path_build(path, &leaves, item);
    free(hashes);
    return STATUS_OK;
}

/* instance: of an operation of a repeat. */
static enum status put_program_item(struct writer *writer, enum evidence_kind kind, uint32_t item,
                                    uint32_t instance)
{
    uint8_t descriptor[DESCRIPTOR_SIZE_MAX];
    size_t size = descriptor_write(descriptor, &writer->places, item);
    struct merkle_path path;

    TRY(program_path(&path, writer, item));
    buffer_add_u8(writer->bytes, (uint8_t)kind);
    buffer_add_u32(writer->bytes, item);
    buffer_add_u32(writer->bytes, descriptor_count(writer->tape));
    buffer_add_u32(writer->bytes, writer->places.trace_items);
    buffer_add_u8(writer->bytes, (uint8_t)path.sibling_count);
    buffer_add(writer->bytes, path.siblings, (size_t)path.sibling_count * DIGEST_SIZE);
    buffer_add_u16(writer->bytes, (uint16_t)size);
    buffer_add(writer->bytes, descriptor, size);
    if (descriptor_is_repeated(descriptor)) {
        buffer_add_u32(writer->bytes, instance);
    }
    return STATUS_OK;
}

/* ---- operands ----------------------------------------------------------- */

/* The place of an operand in the list that it stands in. */
static enum evidence_list list_place(struct trace_place *place, const struct writer *writer,
                                     const struct witness_operand *operand)
{
    const struct descriptor_places *places = &writer->places;
    const struct tape *tape = writer->tape;

    if (operand->list == EVIDENCE_TRACE) {
        trace_place_of(place, &places->layout, operand->item, places->trace_items);
        return place->batch == TENSOR_NONE ? EVIDENCE_TRACE : EVIDENCE_BATCH;
    }
    *place = (struct trace_place){.batch = TENSOR_NONE, .index = operand->item};
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        place->count += tape->tensors[id].role == operand->tensor->role;
    }
    return operand->list;
}

/* Bytes of an operand with this proof. */
static size_t operand_size(const struct writer *writer, const struct witness_operand *operand,
                           const struct witness_plan *plan)
{
    struct merkle_place places[MERKLE_DEPTH_MAX];
    struct trace_place list;
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t size = 1 + descriptor_label(label, operand->tensor) + DIGEST_SIZE;

    (void)list_place(&list, writer, operand);
    size += operand->list == EVIDENCE_TRACE ? 0 : 4;
    size += 1 + (size_t)path_places(places, list.index, list.count) * DIGEST_SIZE;
    return size + 4 + (size_t)plan->count * (8 + MERKLE_LEAF_SIZE) +
           (size_t)plan->place_count * DIGEST_SIZE;
}

static enum status put_operand(struct writer *writer, const struct witness *witness,
                               const struct witness_operand *operand,
                               const struct witness_plan *plan)
{
    struct trace_place place;
    enum evidence_list list = list_place(&place, writer, operand);
    uint64_t leaf_count = trace_query_tensor_count(operand->tensor);

    put_label(writer, operand->tensor);
    TRY(put_tensor_node(writer, operand->list, operand->item, merkle_height(leaf_count), 0));
    if (operand->list != EVIDENCE_TRACE) {
        buffer_add_u32(writer->bytes, place.count);
    }
    TRY(put_list_path(writer, list, place.batch, place.index, place.count));
    buffer_add_u16(writer->bytes, (uint16_t)plan->count);
    for (uint32_t i = 0; i < plan->count; i++) {
        buffer_add_u64(writer->bytes, plan->indexes[i]);
    }
    buffer_add_u16(writer->bytes, (uint16_t)plan->place_count);
    for (uint32_t i = 0; i < plan->place_count; i++) {
        TRY(put_tensor_node(writer, operand->list, operand->item, plan->places[i].level,
                            plan->places[i].index));
    }
    for (uint32_t i = 0; i < operand->count; i++) {
        if (operand->leaves[i].round == witness->round) {
            buffer_add(writer->bytes, operand->leaves[i].bytes, MERKLE_LEAF_SIZE);
        }
    }
    return STATUS_OK;
}

/* ---- an element --------------------------------------------------------- */

void evidence_aim(struct evidence_target *target, const struct tape *tape, uint32_t item)
{
    struct op_turn maker;

    trace_output_at(&maker, &target->output, tape, item);
    target->op = maker.op;
    target->turn = maker.turn;
}

static void plans_release(struct witness_plan plans[DESCRIPTOR_OPERANDS_MAX])
{
    for (uint32_t i = 0; i < DESCRIPTOR_OPERANDS_MAX; i++) {
        witness_plan_release(&plans[i]);
    }
}

/* The proofs that this round needs and the bytes of the operands; plans are released always. */
static enum status plans_make(struct witness_plan plans[DESCRIPTOR_OPERANDS_MAX], size_t *size,
                              const struct writer *writer, const struct witness *witness)
{
    *size = 0;
    memset(plans, 0, DESCRIPTOR_OPERANDS_MAX * sizeof(*plans));
    for (uint32_t i = 0; i < witness->operand_count; i++) {
        TRY(witness_plan(&plans[i], witness, &witness->operands[i]));
        if (plans[i].count > 0) {
            *size += operand_size(writer, &witness->operands[i], &plans[i]);
        }
    }
    return STATUS_OK;
}

/* What stands before the operands of an element; of kind 5 with the part and the reply about it. */
struct heading {
    const struct evidence_target *target;
    const struct evidence_part *part; /* NULL: of kind 1 */
};

/* Does an operation stand in a micro-batch that has a list of its own? */
static bool is_of_batch(const struct writer *writer, uint32_t op)
{
    const struct tape *brief = writer->tape->brief;

    return writer->places.layout.inner > 0 &&
           writer->tape->origins[op].item >= brief->repeat.first &&
           writer->tape->origins[op].item - brief->repeat.first < brief->repeat.op_count;
}

static enum status put_heading(struct writer *writer, const struct heading *heading)
{
    uint32_t instance;
    uint32_t item = descriptor_of_op(&instance, writer->tape, evidence_maker(heading->target));
    const struct evidence_part *part = heading->part;
    uint8_t range[PARTIAL_SUMS_RANGE_SIZE];

    TRY(put_program_item(writer, part != NULL ? EVIDENCE_PART : EVIDENCE_ELEMENT, item, instance));
    TRY(put_list_root(writer, EVIDENCE_TRACE, TENSOR_NONE, writer->places.trace_items));
    if (is_of_batch(writer, heading->target->op)) {
        TRY(put_list_root(writer, EVIDENCE_BATCH, instance, writer->places.layout.inner));
    }
    buffer_add_u8(writer->bytes, (uint8_t)heading->target->output);
    buffer_add_u64(writer->bytes, heading->target->element);
    if (part != NULL) {
        size_t range_size = partial_sums_range_write(range, &part->range);

        buffer_add_u32(writer->bytes, part->number);
        buffer_add_u8(writer->bytes, (uint8_t)range_size);
        buffer_add(writer->bytes, range, range_size);
        buffer_add_u16(writer->bytes, (uint16_t)part->reply_size);
        buffer_add(writer->bytes, part->reply, part->reply_size);
    }
    return STATUS_OK;
}

static enum status put_operands(struct writer *writer, const struct witness *witness,
                                const struct witness_plan plans[DESCRIPTOR_OPERANDS_MAX])
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < witness->operand_count; i++) {
        used |= (uint32_t)(plans[i].count > 0) << i;
    }
    buffer_add_u16(writer->bytes, (uint16_t)used);
    for (uint32_t i = 0; i < witness->operand_count; i++) {
        if (plans[i].count > 0) {
            TRY(put_operand(writer, witness, &witness->operands[i], &plans[i]));
        }
    }
    return STATUS_OK;
}

/* Everything, with the leaves that were needed in this round. */
static enum status put_witness(struct writer *writer, const struct witness *witness,
                               const struct heading *heading, size_t size_max)
{
    struct witness_plan plans[DESCRIPTOR_OPERANDS_MAX];
    size_t before = writer->bytes->size;
    size_t size = 0;
    enum status status;

    TRY_OUT(plans_make(plans, &size, writer, witness));
    TRY_OUT(put_heading(writer, heading));
    status = writer->bytes->size - before + 2 + size > size_max
                 ? error_set(writer->error, STATUS_OVER_LIMIT,
                             "the evidence does not fit in %zu bytes", size_max)
                 : put_operands(writer, witness, plans);
out:
    plans_release(plans);
    return status;
}

static enum status writer_init(struct writer *writer, struct buffer *bytes, const struct tape *tape,
                               const struct evidence_source *source, struct error *error)
{
    *writer = (struct writer){.bytes = bytes, .tape = tape, .source = source, .error = error};
    return descriptor_places_find(&writer->places, tape, error);
}

static enum status writer_end(struct writer *writer, enum status status)
{
    descriptor_places_release(&writer->places);
    return status == STATUS_OK ? buffer_check(writer->bytes, writer->error, "evidence") : status;
}

/* A writer of evidence about one element, and its witness. */
struct writing {
    struct writer writer;
    struct witness witness;
};

static enum status writing_init(struct writing *writing, struct buffer *bytes,
                                const struct tape *tape, const struct evidence_source *source,
                                struct op_turn maker, struct error *error)
{
    memset(writing, 0, sizeof(*writing));
    TRY(writer_init(&writing->writer, bytes, tape, source, error));
    witness_init(&writing->witness, tape, source, &writing->writer.places, maker, error);
    return STATUS_OK;
}

static void writing_release(struct writing *writing)
{
    witness_release(&writing->witness);
    descriptor_places_release(&writing->writer.places);
}

static enum status writing_end(struct writing *writing, enum status status)
{
    witness_release(&writing->witness);
    return writer_end(&writing->writer, status);
}

enum status evidence_write_element(struct buffer *bytes, const struct tape *tape,
                                   const struct evidence_source *source,
                                   const struct evidence_target *target, size_t size_max,
                                   struct error *error)
{
    const struct heading heading = {.target = target};
    struct writing writing;
    enum status status;
    bool wrong;

    TRY_OUT(writing_init(&writing, bytes, tape, source, evidence_maker(target), error));
    TRY_OUT(witness_run(&writing.witness, &wrong, target));
    status = put_witness(&writing.writer, &writing.witness, &heading, size_max);
out:
    return writing_end(&writing, status);
}

enum status evidence_write_committed(struct buffer *bytes, const struct tape *tape,
                                     const struct evidence_source *source,
                                     const struct evidence_target *target,
                                     const struct evidence_part *part, struct error *error)
{
    const struct heading heading = {.target = target, .part = part};
    struct writing writing;
    enum status status;

    TRY_OUT(writing_init(&writing, bytes, tape, source, evidence_maker(target), error));
    writing.witness.round++;
    (void)witness_found(&writing.witness, target);
    TRY_OUT(writing.witness.status);
    status = put_witness(&writing.writer, &writing.witness, &heading, EVIDENCE_SIZE_MAX);
out:
    return writing_end(&writing, status);
}

/* ---- parts of an element ------------------------------------------------ */

static enum status no_such_range(struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "the axis of the element has no such part");
}

enum status evidence_parts(struct buffer *bytes, const struct tape *tape,
                           const struct evidence_source *source,
                           const struct evidence_target *target,
                           const struct partial_sums_range *range, struct error *error)
{
    uint8_t reply[PARTIAL_SUMS_REPLY_MAX];
    struct writing writing;
    struct rule_axis axis;
    enum status status;

    TRY_OUT(writing_init(&writing, bytes, tape, source, evidence_maker(target), error));
    rule_axis_of(&axis, writing.witness.op, target->output, target->element);
    if (!partial_sums_narrow(&axis, range)) {
        TRY_OUT(no_such_range(error));
    }
    buffer_add(
        bytes, reply,
        partial_sums_write(reply, &writing.witness.call, target->output, target->element, &axis));
    status = writing.witness.status;
out:
    return writing_end(&writing, status);
}

/* Runs the rule part by part until one is false. */
static enum status find_false_part(struct evidence_part *of, struct witness *witness,
                                   const struct evidence_target *target)
{
    struct partial_sums_target parts = {.bits = witness_found(witness, target), .range = of->range};
    struct partial_sums_reply read;
    struct rule_axis axis;
    bool within;

    rule_axis_of(&axis, witness->op, target->output, target->element);
    within = partial_sums_narrow(&axis, &of->range);
    parts.fold = axis.fold;
    parts.count = axis.parts;
    if (witness->status == STATUS_OK &&
        (!within ||
         partial_sums_check(&read, &parts, of->reply, of->reply_size) != VERDICT_VALID)) {
        return error_set(witness->error, STATUS_BAD_FORMAT,
                         "the reply does not come to the element");
    }
    for (of->number = 0; of->number < axis.parts && witness->status == STATUS_OK; of->number++) {
        struct rule_part part;

        rule_element_part(&part, &witness->call, target->output, target->element, &axis, of->number,
                          read.exponent);
        if (partial_sums_is_false(&part, &read, of->number, parts.bits)) {
            return witness->status;
        }
    }
    return witness->status == STATUS_OK
               ? error_set(witness->error, STATUS_NOT_FOUND, "all parts are as the accused replied")
               : witness->status;
}

enum status evidence_false_part(struct evidence_part *part, const struct tape *tape,
                                const struct evidence_source *source,
                                const struct evidence_target *target, struct error *error)
{
    struct writing writing;
    enum status status;

    TRY_OUT(writing_init(&writing, NULL, tape, source, evidence_maker(target), error));
    status = find_false_part(part, &writing.witness, target);
out:
    writing_release(&writing);
    return status;
}

enum status evidence_write_part(struct buffer *bytes, const struct tape *tape,
                                const struct evidence_source *source,
                                const struct evidence_target *target,
                                const struct evidence_part *part, size_t size_max,
                                struct error *error)
{
    const struct heading heading = {.target = target, .part = part};
    struct writing writing;
    struct rule_part ignored;
    struct rule_axis axis;
    enum status status;

    TRY_OUT(writing_init(&writing, bytes, tape, source, evidence_maker(target), error));
    writing.witness.round++;
    rule_axis_of(&axis, writing.witness.op, target->output, target->element);
    if (!partial_sums_narrow(&axis, &part->range)) {
        TRY_OUT(no_such_range(error));
    }
    rule_element_part(&ignored, &writing.witness.call, target->output, target->element, &axis,
                      part->number, 0);
    (void)witness_found(&writing.witness, target);
    TRY_OUT(writing.witness.status);
    status = put_witness(&writing.writer, &writing.witness, &heading, size_max);
out:
    return writing_end(&writing, status);
}

/* ---- the choice of an element ------------------------------------------- */

/* An element of a leaf and the size of its evidence: they are taken in the order of both. */
struct choice {
    size_t size;
    uint64_t element;
};

static bool comes_before(const struct choice *a, const struct choice *b)
{
    return a->size < b->size || (a->size == b->size && a->element < b->element);
}

/* The first choice behind `behind` (NULL: of all); *behind becomes it. */
static enum status choose_element(struct evidence_target *target, const struct writer *writer,
                                  struct witness *witness, uint64_t first, uint64_t end,
                                  struct choice *behind, bool any)
{
    struct evidence_target candidate = *target;
    struct choice least = {SIZE_MAX, 0};
    enum status status = STATUS_OK;

    for (candidate.element = first; candidate.element < end && status == STATUS_OK;
         candidate.element++) {
        struct witness_plan plans[DESCRIPTOR_OPERANDS_MAX] = {{0}};
        struct choice found = {0, candidate.element};
        bool wrong;

        status = witness_run(witness, &wrong, &candidate);
        if (status != STATUS_OK || !wrong) {
            continue;
        }
        status = plans_make(plans, &found.size, writer, witness);
        if (status == STATUS_OVER_LIMIT) {
            found.size = SIZE_MAX - 1; /* by its parts, it may still be convicted */
            status = STATUS_OK;
        }
        if (status == STATUS_OK && comes_before(&found, &least) &&
            (any || comes_before(behind, &found))) {
            least = found;
            *target = candidate;
        }
        plans_release(plans);
    }
    if (status == STATUS_OK && least.size == SIZE_MAX) {
        status = error_set(writer->error, STATUS_NOT_FOUND,
                           "every element of the leaf%s is what the rule makes of the others",
                           any ? "" : " that is left");
    }
    *behind = least;
    return status;
}

enum status evidence_choose(struct evidence_target *target, const struct tape *tape,
                            const struct evidence_source *source, uint64_t leaf,
                            struct error *error)
{
    return evidence_choose_other(target, tape, source, leaf, 0, error);
}

enum status evidence_choose_other(struct evidence_target *target, const struct tape *tape,
                                  const struct evidence_source *source, uint64_t leaf,
                                  uint32_t passed_over, struct error *error)
{
    const struct op *op = &tape->ops[target->op];
    const struct tensor *tensor = &tape->tensors[op->outputs[target->output]];
    uint64_t each = MERKLE_LEAF_SIZE / dtype_size(tensor->dtype);
    uint64_t first = leaf * each;
    uint64_t end = tensor->count - first < each ? tensor->count : first + each;
    struct choice chosen = {0};
    struct writing writing;
    enum status status = writing_init(&writing, NULL, tape, source, evidence_maker(target), error);

    assert(first < tensor->count);
    for (uint32_t i = 0; i <= passed_over && status == STATUS_OK; i++) {
        status =
            choose_element(target, &writing.writer, &writing.witness, first, end, &chosen, i == 0);
    }
    writing_release(&writing);
    return status;
}

/* ---- the ends of the trace ---------------------------------------------- */

static enum status write_state(struct writer *writer, enum evidence_kind kind, uint32_t state)
{
    bool first = kind == EVIDENCE_FIRST_STATE;
    enum evidence_list list = first ? EVIDENCE_BEFORE : EVIDENCE_AFTER;
    uint32_t states = writer->tape->state_count;
    uint32_t items = writer->places.trace_items;
    uint32_t item = first ? state : writer->places.of[writer->tape->states[state].after];

    TRY(put_program_item(writer, kind, descriptor_of_state(writer->tape, state), 0));
    TRY(put_list_root(writer, EVIDENCE_TRACE, TENSOR_NONE, items));
    TRY(put_item(writer, EVIDENCE_TRACE, item));
    TRY(put_list_path(writer, EVIDENCE_TRACE, TENSOR_NONE, item, items));
    TRY(put_item(writer, list, state));
    TRY(put_list_root(writer, list, TENSOR_NONE, states));
    return put_list_path(writer, list, TENSOR_NONE, state, states);
}

enum status evidence_write_state(struct buffer *bytes, const struct tape *tape,
                                 const struct evidence_source *source, enum evidence_kind kind,
                                 uint32_t state, struct error *error)
{
    struct writer writer;

    assert(kind == EVIDENCE_FIRST_STATE || kind == EVIDENCE_NEXT_STATE);
    assert(state < tape->state_count);
    TRY(writer_init(&writer, bytes, tape, source, error));
    return writer_end(&writer, write_state(&writer, kind, state));
}

static enum status write_not_finite(struct writer *writer, uint32_t state, uint64_t element)
{
    const struct evidence_source *source = writer->source;
    const struct tensor *tensor = &writer->tape->tensors[writer->tape->states[state].before];
    uint64_t index = element / (MERKLE_LEAF_SIZE / 4);
    uint64_t count = trace_query_tensor_count(tensor);
    struct merkle_place places[MERKLE_DEPTH_MAX];
    uint32_t found = path_places(places, index, count);
    uint8_t leaf[MERKLE_LEAF_SIZE];

    TRY(put_program_item(writer, EVIDENCE_NOT_FINITE, descriptor_of_state(writer->tape, state), 0));
    put_label(writer, tensor);
    TRY(put_tensor_node(writer, EVIDENCE_AFTER, state, merkle_height(count), 0));
    TRY(put_list_root(writer, EVIDENCE_AFTER, TENSOR_NONE, writer->tape->state_count));
    TRY(put_list_path(writer, EVIDENCE_AFTER, TENSOR_NONE, state, writer->tape->state_count));
    buffer_add_u64(writer->bytes, index);
    buffer_add_u8(writer->bytes, (uint8_t)found);
    for (uint32_t i = 0; i < found; i++) {
        TRY(put_tensor_node(writer, EVIDENCE_AFTER, state, places[i].level, places[i].index));
    }
    TRY(source->leaf(source->context, leaf, EVIDENCE_AFTER, state, index, writer->error));
    buffer_add(writer->bytes, leaf, MERKLE_LEAF_SIZE);
    buffer_add_u64(writer->bytes, element);
    return STATUS_OK;
}

enum status evidence_write_not_finite(struct buffer *bytes, const struct tape *tape,
                                      const struct evidence_source *source, uint32_t state,
                                      uint64_t element, struct error *error)
{
    struct writer writer;

    assert(state < tape->state_count);
    assert(element < tape->tensors[tape->states[state].before].count);
    TRY(writer_init(&writer, bytes, tape, source, error));
    return writer_end(&writer, write_not_finite(&writer, state, element));
}
