/*
 * evidence_write.c - evidence for a claimant: which elements a rule reads, and their proofs.
 *
 * What a rule needs is not worked out a second time here: the rule is run once on the accused's
 * elements, and what it asked for is what is shown. docs/FORMATS.md, section 9, has the bytes.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rule.h"
#include "proofs/commit.h"
#include "proofs/descriptor.h"
#include "proofs/element.h"
#include "proofs/evidence.h"

#define COUNT_MAX UINT16_MAX /* of leaves and of siblings of one operand */

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

/* Calls take for each sibling of the path of item index of count; returns how many. */
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

static enum status put_list_path(struct writer *writer, enum evidence_list list, uint64_t index,
                                 uint64_t count)
{
    struct merkle_place places[MERKLE_DEPTH_MAX];
    uint32_t found = path_places(places, index, count);

    buffer_add_u8(writer->bytes, (uint8_t)found);
    for (uint32_t i = 0; i < found; i++) {
        struct digest node;
        enum status status = writer->source->list_node(
            writer->source->context, &node, list, places[i].level, places[i].index, writer->error);

        if (status != STATUS_OK) {
            return status;
        }
        put_digest(writer, &node);
    }
    return STATUS_OK;
}

static enum status put_list_root(struct writer *writer, enum evidence_list list, uint64_t count)
{
    struct digest root;
    enum status status = writer->source->list_node(writer->source->context, &root, list,
                                                   merkle_height(count), 0, writer->error);

    if (status == STATUS_OK) {
        put_digest(writer, &root);
    }
    return status;
}

static enum status put_tensor_node(struct writer *writer, enum evidence_list list, uint32_t item,
                                   uint32_t level, uint64_t index)
{
    struct digest node;
    enum status status = writer->source->tensor_node(writer->source->context, &node, list, item,
                                                     level, index, writer->error);

    if (status == STATUS_OK) {
        put_digest(writer, &node);
    }
    return status;
}

static enum status put_item(struct writer *writer, enum evidence_list list, uint32_t item)
{
    struct digest root;
    enum status status =
        writer->source->item(writer->source->context, &root, list, item, writer->error);

    if (status == STATUS_OK) {
        put_digest(writer, &root);
    }
    return status;
}

static void put_label(struct writer *writer, const struct tensor *tensor)
{
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t size = descriptor_label(label, tensor);

    buffer_add_u8(writer->bytes, (uint8_t)size);
    buffer_add(writer->bytes, label, size);
}

static uint64_t leaves_of(const struct tensor *tensor)
{
    return (commit_tensor_size(tensor) + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
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

static enum status put_program_item(struct writer *writer, enum evidence_kind kind, uint32_t item)
{
    uint8_t descriptor[DESCRIPTOR_SIZE_MAX];
    size_t size = descriptor_write(descriptor, &writer->places, item);
    struct merkle_path path;
    enum status status = program_path(&path, writer, item);

    if (status != STATUS_OK) {
        return status;
    }
    buffer_add_u8(writer->bytes, (uint8_t)kind);
    buffer_add_u32(writer->bytes, item);
    buffer_add_u32(writer->bytes, descriptor_count(writer->tape));
    buffer_add_u32(writer->bytes, writer->places.trace_items);
    buffer_add_u8(writer->bytes, (uint8_t)path.sibling_count);
    buffer_add(writer->bytes, path.siblings, (size_t)path.sibling_count * DIGEST_SIZE);
    buffer_add_u16(writer->bytes, (uint16_t)size);
    buffer_add(writer->bytes, descriptor, size);
    return STATUS_OK;
}

/* ---- what a rule reads -------------------------------------------------- */

struct gathered_leaf {
    uint64_t index;
    uint32_t round; /* in which it was last asked for */
    uint8_t *bytes;
};

/* The leaves of one operand that were asked for, by rising index. */
struct gathered {
    struct gathered_leaf *leaves;
    uint32_t count;
    uint32_t capacity;
    uint32_t last; /* most elements are in the leaf of the one before */
    enum evidence_list list;
    uint32_t item;
    const struct tensor *tensor;
};

/* Leaves stay when a rule is run again; `round` tells which it needs now. */
struct gather {
    const struct evidence_source *source;
    const struct op *op;
    struct gathered operands[DESCRIPTOR_OPERANDS_MAX];
    uint32_t operand_count;
    uint32_t round;
    struct rule_call call;
    enum status status;
    struct error *error;
};

static uint32_t gathered_place(const struct gathered *gathered, uint64_t leaf)
{
    uint32_t low = 0;
    uint32_t high = gathered->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (gathered->leaves[middle].index < leaf) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static enum status gathered_insert(struct gather *gather, struct gathered *gathered, uint32_t at,
                                   uint64_t leaf)
{
    uint8_t *bytes;
    enum status status;

    if (gathered->count == gathered->capacity) {
        uint32_t capacity = gathered->capacity * 2 + 8;
        void *grown = realloc(gathered->leaves, capacity * sizeof(*gathered->leaves));

        if (grown == NULL) {
            return error_set(gather->error, STATUS_NO_MEMORY, "no memory for leaves");
        }
        gathered->leaves = grown;
        gathered->capacity = capacity;
    }
    bytes = malloc(MERKLE_LEAF_SIZE);
    if (bytes == NULL) {
        return error_set(gather->error, STATUS_NO_MEMORY, "no memory for a leaf");
    }
    status = gather->source->leaf(gather->source->context, bytes, gathered->list, gathered->item,
                                  leaf, gather->error);
    if (status != STATUS_OK) {
        free(bytes);
        return status;
    }
    memmove(&gathered->leaves[at + 1], &gathered->leaves[at],
            (gathered->count - at) * sizeof(*gathered->leaves));
    gathered->leaves[at] = (struct gathered_leaf){.index = leaf, .bytes = bytes};
    gathered->count++;
    return STATUS_OK;
}

static uint32_t fetch(void *context, uint32_t number, uint64_t index)
{
    struct gather *gather = context;
    struct gathered *gathered = &gather->operands[number];
    uint64_t at;
    uint64_t leaf;

    assert(number < gather->operand_count && gathered->tensor != NULL);
    at = index * dtype_size(gathered->tensor->dtype);
    leaf = at / MERKLE_LEAF_SIZE;
    if (gather->status != STATUS_OK) {
        return 0; /* what the rule makes of it is not looked at */
    }
    assert(index < gathered->tensor->count);
    if (gathered->last >= gathered->count || gathered->leaves[gathered->last].index != leaf) {
        gathered->last = gathered_place(gathered, leaf);
        if (gathered->last == gathered->count || gathered->leaves[gathered->last].index != leaf) {
            gather->status = gathered_insert(gather, gathered, gathered->last, leaf);
            if (gather->status != STATUS_OK) {
                return 0;
            }
        }
    }
    gathered->leaves[gathered->last].round = gather->round;
    return element_bits(gathered->leaves[gathered->last].bytes + at % MERKLE_LEAF_SIZE,
                        gathered->tensor->dtype);
}

static void gather_init(struct gather *gather, const struct writer *writer, uint32_t op_index)
{
    const struct op *op = &writer->tape->ops[op_index];

    *gather = (struct gather){.source = writer->source,
                              .op = op,
                              .operand_count = op->input_count + op->output_count,
                              .call = {.op = op},
                              .error = writer->error};
    for (uint32_t i = 0; i < gather->operand_count; i++) {
        bool input = i < op->input_count;
        uint32_t slot = input ? i : i - op->input_count;
        uint32_t id = input ? op->inputs[slot] : op->outputs[slot];
        const struct tensor *tensor = &writer->tape->tensors[id];
        struct gathered *gathered = &gather->operands[i];

        gathered->tensor = tensor;
        gathered->item = writer->places.of[id];
        gathered->list = tensor->role == ROLE_DATA       ? EVIDENCE_DATA
                         : tensor->role == ROLE_CONSTANT ? EVIDENCE_CONSTANTS
                                                         : EVIDENCE_TRACE;
        *(input ? &gather->call.inputs[slot] : &gather->call.outputs[slot]) =
            (struct operand){.dtype = tensor->dtype,
                             .count = tensor->count,
                             .fetch = fetch,
                             .context = gather,
                             .tensor = i};
    }
}

static void gather_release(struct gather *gather)
{
    for (uint32_t i = 0; i < gather->operand_count; i++) {
        for (uint32_t leaf = 0; leaf < gather->operands[i].count; leaf++) {
            free(gather->operands[i].leaves[leaf].bytes);
        }
        free(gather->operands[i].leaves);
    }
}

/* Runs the rule, or a part of it; *wrong says whether the accused's element differs from the
 * whole, of which this must be all that there is. */
static enum status gather_run(struct gather *gather, bool *wrong,
                              const struct evidence_target *target, const struct rule_axis *axis,
                              uint64_t from, uint64_t to)
{
    const struct operand *accused = &gather->call.outputs[target->output];
    uint32_t wanted;
    uint32_t found;

    gather->round++;
    if (axis->fold != RULE_WHOLE) {
        struct rule_part part;

        rule_element_part(&part, &gather->call, target->output, target->element, from, to);
        wanted = rule_part_finish(&part);
    } else {
        wanted = rule_element(&gather->call, target->output, target->element);
    }
    found = fetch(gather, gather->op->input_count + target->output, target->element);
    *wrong = element_cut(wanted, accused->dtype) != found;
    return gather->status;
}

/* Indexes of the leaves of an operand that this round needs. */
static uint32_t gathered_indexes(uint64_t *indexes, const struct gather *gather,
                                 const struct gathered *gathered)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < gathered->count; i++) {
        if (gathered->leaves[i].round == gather->round) {
            indexes[count++] = gathered->leaves[i].index;
        }
    }
    return count;
}

/* The proof of the leaves that this round needs: indexes and where their siblings are. */
struct plan {
    uint64_t *indexes;
    uint32_t count; /* 0: the operand is not used */
    struct merkle_place *places;
    uint32_t place_count;
};

static enum status plan_make(struct plan *plan, const struct gather *gather,
                             const struct gathered *gathered)
{
    struct merkle_multi multi = {.leaf_count = leaves_of(gathered->tensor)};
    size_t capacity;

    *plan = (struct plan){0};
    plan->indexes = malloc(((size_t)gathered->count + 1) * sizeof(*plan->indexes));
    if (plan->indexes == NULL) {
        return error_set(gather->error, STATUS_NO_MEMORY, "no memory for a proof");
    }
    plan->count = gathered_indexes(plan->indexes, gather, gathered);
    if (plan->count == 0) {
        return STATUS_OK;
    }
    if (plan->count > COUNT_MAX) {
        return error_set(gather->error, STATUS_OVER_LIMIT, "a proof of %u leaves", plan->count);
    }
    capacity = MERKLE_MULTI_SIBLINGS(plan->count);
    capacity = capacity > COUNT_MAX ? COUNT_MAX : capacity;
    plan->places = malloc(capacity * sizeof(*plan->places));
    if (plan->places == NULL) {
        return error_set(gather->error, STATUS_NO_MEMORY, "no memory for a proof");
    }
    multi.indexes = plan->indexes;
    multi.index_count = plan->count;
    enum status status =
        merkle_multi_places(plan->places, &plan->place_count, (uint32_t)capacity, &multi);

    return status == STATUS_OK
               ? STATUS_OK
               : error_set(gather->error, status, "a proof of %u leaves has too many siblings",
                           plan->count);
}

static void plan_release(struct plan *plan)
{
    free(plan->indexes);
    free(plan->places);
}

static uint32_t list_count(const struct tape *tape, const struct descriptor_places *places,
                           enum evidence_list list)
{
    enum role role = list == EVIDENCE_DATA ? ROLE_DATA : ROLE_CONSTANT;
    uint32_t count = 0;

    if (list == EVIDENCE_TRACE) {
        return places->trace_items;
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        count += tape->tensors[id].role == role;
    }
    return count;
}

/* Bytes of an operand with this proof. */
static size_t operand_size(const struct writer *writer, const struct gathered *gathered,
                           const struct plan *plan)
{
    uint32_t count = list_count(writer->tape, &writer->places, gathered->list);
    struct merkle_place places[MERKLE_DEPTH_MAX];
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t size = 1 + descriptor_label(label, gathered->tensor) + DIGEST_SIZE;

    size += gathered->list == EVIDENCE_TRACE ? 0 : 4;
    size += 1 + (size_t)path_places(places, gathered->item, count) * DIGEST_SIZE;
    return size + 4 + (size_t)plan->count * (8 + MERKLE_LEAF_SIZE) +
           (size_t)plan->place_count * DIGEST_SIZE;
}

static enum status put_operand(struct writer *writer, const struct gather *gather,
                               const struct gathered *gathered, const struct plan *plan)
{
    uint32_t count = list_count(writer->tape, &writer->places, gathered->list);
    uint64_t leaf_count = leaves_of(gathered->tensor);
    enum status status;

    put_label(writer, gathered->tensor);
    status = put_tensor_node(writer, gathered->list, gathered->item, merkle_height(leaf_count), 0);
    if (gathered->list != EVIDENCE_TRACE) {
        buffer_add_u32(writer->bytes, count);
    }
    if (status == STATUS_OK) {
        status = put_list_path(writer, gathered->list, gathered->item, count);
    }
    buffer_add_u16(writer->bytes, (uint16_t)plan->count);
    for (uint32_t i = 0; i < plan->count; i++) {
        buffer_add_u64(writer->bytes, plan->indexes[i]);
    }
    buffer_add_u16(writer->bytes, (uint16_t)plan->place_count);
    for (uint32_t i = 0; i < plan->place_count && status == STATUS_OK; i++) {
        status = put_tensor_node(writer, gathered->list, gathered->item, plan->places[i].level,
                                 plan->places[i].index);
    }
    for (uint32_t i = 0; i < gathered->count; i++) {
        if (gathered->leaves[i].round == gather->round) {
            buffer_add(writer->bytes, gathered->leaves[i].bytes, MERKLE_LEAF_SIZE);
        }
    }
    return status;
}

/* ---- an element --------------------------------------------------------- */

static void plans_release(struct plan plans[DESCRIPTOR_OPERANDS_MAX])
{
    for (uint32_t i = 0; i < DESCRIPTOR_OPERANDS_MAX; i++) {
        plan_release(&plans[i]);
    }
}

/* The proofs that this round needs and the bytes of the operands; plans are released always. */
static enum status plans_make(struct plan plans[DESCRIPTOR_OPERANDS_MAX], size_t *size,
                              const struct writer *writer, const struct gather *gather)
{
    *size = 0;
    memset(plans, 0, DESCRIPTOR_OPERANDS_MAX * sizeof(*plans));
    for (uint32_t i = 0; i < gather->operand_count; i++) {
        enum status status = plan_make(&plans[i], gather, &gather->operands[i]);

        if (status != STATUS_OK) {
            return status;
        }
        if (plans[i].count > 0) {
            *size += operand_size(writer, &gather->operands[i], &plans[i]);
        }
    }
    return STATUS_OK;
}

/* Where a shorter part of the axis should end, given how large the longer one came out. */
static uint64_t shorter(uint64_t from, uint64_t to, uint64_t grain, size_t size, size_t size_max)
{
    uint64_t grains = (to - from + grain - 1) / grain;
    uint64_t fewer = (uint64_t)((double)grains * 0.97 * (double)size_max / (double)size);

    fewer = fewer >= grains ? grains - 1 : fewer;
    return from + (fewer == 0 && grains > 1 ? 1 : fewer) * grain;
}

static enum status put_element(struct writer *writer, const struct gather *gather,
                               const struct plan plans[DESCRIPTOR_OPERANDS_MAX],
                               const struct evidence_target *target, uint64_t from, uint64_t to)
{
    uint32_t used = 0;
    enum status status = put_list_root(writer, EVIDENCE_TRACE, writer->places.trace_items);

    for (uint32_t i = 0; i < gather->operand_count; i++) {
        used |= (uint32_t)(plans[i].count > 0) << i;
    }
    buffer_add_u8(writer->bytes, (uint8_t)target->output);
    buffer_add_u64(writer->bytes, target->element);
    buffer_add_u32(writer->bytes, (uint32_t)from);
    buffer_add_u32(writer->bytes, (uint32_t)to);
    buffer_add_u16(writer->bytes, (uint16_t)used);
    for (uint32_t i = 0; i < gather->operand_count && status == STATUS_OK; i++) {
        if (plans[i].count > 0) {
            status = put_operand(writer, gather, &gather->operands[i], &plans[i]);
        }
    }
    return status;
}

/* Everything but the operands. */
#define TARGET_SIZE (DIGEST_SIZE + 1 + 8 + 4 + 4 + 2)

static enum status write_element(struct writer *writer, struct gather *gather, uint64_t *to,
                                 bool *last, const struct evidence_target *target, uint64_t from,
                                 size_t size_max)
{
    struct rule_axis axis;
    size_t head;
    enum status status = put_program_item(writer, EVIDENCE_ELEMENT, target->op);

    rule_axis_of(&axis, gather->op, target->output, target->element);
    if (axis.length > UINT32_MAX) {
        return error_set(writer->error, STATUS_OVER_LIMIT, "a sum of %llu elements",
                         (unsigned long long)axis.length);
    }
    head = writer->bytes->size + TARGET_SIZE;
    *to = axis.length;
    while (status == STATUS_OK) {
        struct plan plans[DESCRIPTOR_OPERANDS_MAX] = {{0}};
        size_t size = 0;
        bool wrong;

        *last = *to == axis.length;
        status = gather_run(gather, &wrong, target, &axis, from, *to);
        if (status == STATUS_OK) {
            status = plans_make(plans, &size, writer, gather);
        }
        size = status == STATUS_OK ? size + head : SIZE_MAX / 2;
        bool fits = size <= size_max;
        bool smallest = *to - from <= axis.grain;

        if (status == STATUS_OK && fits) {
            status = put_element(writer, gather, plans, target, from, *to);
        } else if ((status == STATUS_OK || status == STATUS_OVER_LIMIT) && smallest) {
            status = error_set(writer->error, STATUS_OVER_LIMIT,
                               "the evidence does not fit in %zu bytes", size_max);
        } else if (status == STATUS_OK || status == STATUS_OVER_LIMIT) {
            *to = size < SIZE_MAX / 2 ? shorter(from, *to, axis.grain, size, size_max)
                                      : from + ((*to - from) / axis.grain + 1) / 2 * axis.grain;
            status = STATUS_OK;
        }
        plans_release(plans);
        if (fits) {
            break;
        }
    }
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

enum status evidence_write_element(struct buffer *bytes, uint64_t *to, bool *last,
                                   const struct tape *tape, const struct evidence_source *source,
                                   const struct evidence_target *target, uint64_t from,
                                   size_t size_max, struct error *error)
{
    struct writer writer;
    struct gather gather;
    enum status status = writer_init(&writer, bytes, tape, source, error);

    if (status != STATUS_OK) {
        return status;
    }
    gather_init(&gather, &writer, target->op);
    status = write_element(&writer, &gather, to, last, target, from, size_max);
    gather_release(&gather);
    return writer_end(&writer, status);
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
static enum status choose(struct evidence_target *target, const struct writer *writer,
                          struct gather *gather, uint64_t first, uint64_t end,
                          struct choice *behind, bool any)
{
    struct rule_axis axis;
    struct evidence_target candidate = *target;
    struct choice least = {SIZE_MAX, 0};
    enum status status = STATUS_OK;

    for (candidate.element = first; candidate.element < end && status == STATUS_OK;
         candidate.element++) {
        struct plan plans[DESCRIPTOR_OPERANDS_MAX] = {{0}};
        struct choice found = {0, candidate.element};
        bool wrong;

        rule_axis_of(&axis, gather->op, candidate.output, candidate.element);
        status = gather_run(gather, &wrong, &candidate, &axis, 0, axis.length);
        if (status != STATUS_OK || !wrong) {
            continue;
        }
        status = plans_make(plans, &found.size, writer, gather);
        if (status == STATUS_OVER_LIMIT) {
            found.size = SIZE_MAX - 1; /* in parts, it may still be the only one */
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
    struct writer writer;
    struct gather gather;
    enum status status = writer_init(&writer, NULL, tape, source, error);

    if (status != STATUS_OK) {
        return status;
    }
    assert(first < tensor->count);
    gather_init(&gather, &writer, target->op);
    for (uint32_t i = 0; i <= passed_over && status == STATUS_OK; i++) {
        status = choose(target, &writer, &gather, first, end, &chosen, i == 0);
    }
    gather_release(&gather);
    descriptor_places_release(&writer.places);
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
    enum status status = put_program_item(writer, kind, writer->tape->op_count + state);

    if (status == STATUS_OK) {
        status = put_list_root(writer, EVIDENCE_TRACE, items);
    }
    if (status == STATUS_OK) {
        status = put_item(writer, EVIDENCE_TRACE, item);
    }
    if (status == STATUS_OK) {
        status = put_list_path(writer, EVIDENCE_TRACE, item, items);
    }
    if (status == STATUS_OK) {
        status = put_item(writer, list, state);
    }
    if (status == STATUS_OK) {
        status = put_list_root(writer, list, states);
    }
    if (status == STATUS_OK) {
        status = put_list_path(writer, list, state, states);
    }
    return status;
}

enum status evidence_write_state(struct buffer *bytes, const struct tape *tape,
                                 const struct evidence_source *source, enum evidence_kind kind,
                                 uint32_t state, struct error *error)
{
    struct writer writer;
    enum status status = writer_init(&writer, bytes, tape, source, error);

    assert(kind == EVIDENCE_FIRST_STATE || kind == EVIDENCE_NEXT_STATE);
    assert(state < tape->state_count);
    if (status == STATUS_OK) {
        status = writer_end(&writer, write_state(&writer, kind, state));
    }
    return status;
}

static enum status write_not_finite(struct writer *writer, uint32_t state, uint64_t element)
{
    const struct evidence_source *source = writer->source;
    const struct tensor *tensor = &writer->tape->tensors[writer->tape->states[state].before];
    uint64_t index = element / (MERKLE_LEAF_SIZE / 4);
    uint64_t count = leaves_of(tensor);
    struct merkle_place places[MERKLE_DEPTH_MAX];
    uint32_t found = path_places(places, index, count);
    uint8_t leaf[MERKLE_LEAF_SIZE];
    enum status status =
        put_program_item(writer, EVIDENCE_NOT_FINITE, writer->tape->op_count + state);

    put_label(writer, tensor);
    if (status == STATUS_OK) {
        status = put_tensor_node(writer, EVIDENCE_AFTER, state, merkle_height(count), 0);
    }
    if (status == STATUS_OK) {
        status = put_list_root(writer, EVIDENCE_AFTER, writer->tape->state_count);
    }
    if (status == STATUS_OK) {
        status = put_list_path(writer, EVIDENCE_AFTER, state, writer->tape->state_count);
    }
    buffer_add_u64(writer->bytes, index);
    buffer_add_u8(writer->bytes, (uint8_t)found);
    for (uint32_t i = 0; i < found && status == STATUS_OK; i++) {
        status = put_tensor_node(writer, EVIDENCE_AFTER, state, places[i].level, places[i].index);
    }
    if (status == STATUS_OK) {
        status = source->leaf(source->context, leaf, EVIDENCE_AFTER, state, index, writer->error);
    }
    if (status == STATUS_OK) {
        buffer_add(writer->bytes, leaf, MERKLE_LEAF_SIZE);
        buffer_add_u64(writer->bytes, element);
    }
    return status;
}

enum status evidence_write_not_finite(struct buffer *bytes, const struct tape *tape,
                                      const struct evidence_source *source, uint32_t state,
                                      uint64_t element, struct error *error)
{
    struct writer writer;
    enum status status = writer_init(&writer, bytes, tape, source, error);

    assert(state < tape->state_count);
    assert(element < tape->tensors[tape->states[state].before].count);
    if (status == STATUS_OK) {
        status = writer_end(&writer, write_not_finite(&writer, state, element));
    }
    return status;
}
