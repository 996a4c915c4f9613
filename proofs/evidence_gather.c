/* evidence_gather.c - see evidence_gather.h. */
#include "proofs/evidence_gather.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/element.h"

#define COUNT_MAX UINT16_MAX /* of leaves and of siblings of one operand */

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

void gather_init(struct gather *gather, const struct tape *tape,
                 const struct evidence_source *source, const struct descriptor_places *places,
                 uint32_t op_index, struct error *error)
{
    const struct op *op = &tape->ops[op_index];

    *gather = (struct gather){.source = source,
                              .op = op,
                              .operand_count = op->input_count + op->output_count,
                              .call = {.op = op},
                              .error = error};
    for (uint32_t i = 0; i < gather->operand_count; i++) {
        bool input = i < op->input_count;
        uint32_t slot = input ? i : i - op->input_count;
        uint32_t id = input ? op->inputs[slot] : op->outputs[slot];
        const struct tensor *tensor = &tape->tensors[id];
        struct gathered *gathered = &gather->operands[i];

        gathered->tensor = tensor;
        gathered->item = places->of[id];
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

void gather_release(struct gather *gather)
{
    for (uint32_t i = 0; i < gather->operand_count; i++) {
        for (uint32_t leaf = 0; leaf < gather->operands[i].count; leaf++) {
            free(gather->operands[i].leaves[leaf].bytes);
        }
        free(gather->operands[i].leaves);
    }
}

uint32_t gather_found(struct gather *gather, const struct evidence_target *target)
{
    return fetch(gather, gather->op->input_count + target->output, target->element);
}

enum status gather_run(struct gather *gather, bool *wrong, const struct evidence_target *target)
{
    const struct operand *accused = &gather->call.outputs[target->output];
    uint32_t wanted;

    gather->round++;
    wanted = rule_element(&gather->call, target->output, target->element);
    *wrong = element_cut(wanted, accused->dtype) != gather_found(gather, target);
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

enum status gather_plan(struct gather_plan *plan, const struct gather *gather,
                        const struct gathered *gathered)
{
    struct merkle_multi multi = {.leaf_count = ask_tensor_count(gathered->tensor)};
    size_t capacity;

    *plan = (struct gather_plan){0};
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

void gather_plan_release(struct gather_plan *plan)
{
    free(plan->indexes);
    free(plan->places);
}
