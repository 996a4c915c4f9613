/* witness.c - see witness.h. */
#include "proofs/dispute/witness.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/element.h"

#define COUNT_MAX UINT16_MAX /* of leaves and of siblings of one operand */

static uint32_t leaf_place(const struct witness_operand *operand, uint64_t leaf)
{
    uint32_t low = 0;
    uint32_t high = operand->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (operand->leaves[middle].index < leaf) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static enum status insert_leaf(struct witness *witness, struct witness_operand *operand,
                               uint32_t at, uint64_t leaf)
{
    uint8_t *bytes;
    enum status status;

    if (operand->count == operand->capacity) {
        uint32_t capacity = operand->capacity * 2 + 8;
        void *grown = realloc(operand->leaves, capacity * sizeof(*operand->leaves));

        if (grown == NULL) {
            return error_set(witness->error, STATUS_NO_MEMORY, "no memory for leaves");
        }
        operand->leaves = grown;
        operand->capacity = capacity;
    }
    bytes = malloc(MERKLE_LEAF_SIZE);
    if (bytes == NULL) {
        return error_set(witness->error, STATUS_NO_MEMORY, "no memory for a leaf");
    }
    status = witness->source->leaf(witness->source->context, bytes, operand->list, operand->item,
                                   leaf, witness->error);
    if (status != STATUS_OK) {
        free(bytes);
        return status;
    }
    memmove(&operand->leaves[at + 1], &operand->leaves[at],
            (operand->count - at) * sizeof(*operand->leaves));
    operand->leaves[at] = (struct witness_leaf){.index = leaf, .bytes = bytes};
    operand->count++;
    return STATUS_OK;
}

static uint32_t fetch_operand(void *context, uint32_t number, uint64_t index)
{
    struct witness *witness = context;
    struct witness_operand *operand = &witness->operands[number];
    uint64_t at;
    uint64_t leaf;

    assert(number < witness->operand_count && operand->tensor != NULL);
    at = index * dtype_size(operand->tensor->dtype);
    leaf = at / MERKLE_LEAF_SIZE;
    if (witness->status != STATUS_OK) {
        return 0; /* what the rule makes of it is not looked at */
    }
    assert(index < operand->tensor->count);
    if (operand->last >= operand->count || operand->leaves[operand->last].index != leaf) {
        operand->last = leaf_place(operand, leaf);
        if (operand->last == operand->count || operand->leaves[operand->last].index != leaf) {
            witness->status = insert_leaf(witness, operand, operand->last, leaf);
            if (witness->status != STATUS_OK) {
                return 0;
            }
        }
    }
    operand->leaves[operand->last].round = witness->round;
    return element_bits(operand->leaves[operand->last].bytes + at % MERKLE_LEAF_SIZE,
                        operand->tensor->dtype);
}

void witness_init(struct witness *witness, const struct tape *tape,
                  const struct evidence_source *source, const struct descriptor_places *places,
                  struct op_turn maker, struct error *error)
{
    const struct op *op = &tape->ops[maker.op];
    struct descriptor descriptor;

    *witness = (struct witness){.source = source,
                                .op = op,
                                .operand_count = op->input_count + op->output_count,
                                .call = {.op = op},
                                .error = error};
    descriptor_of_turn(&descriptor, places, maker);
    for (uint32_t i = 0; i < witness->operand_count; i++) {
        bool input = i < op->input_count;
        uint32_t slot = input ? i : i - op->input_count;
        uint32_t id = input ? op->inputs[slot] : op->outputs[slot];
        const struct tensor *tensor = &tape->tensors[id];
        struct witness_operand *operand = &witness->operands[i];

        operand->tensor = tensor;
        operand->item = descriptor.operands[i].place;
        operand->list = tensor->role == ROLE_DATA       ? EVIDENCE_DATA
                        : tensor->role == ROLE_CONSTANT ? EVIDENCE_CONSTANTS
                                                        : EVIDENCE_TRACE;
        *(input ? &witness->call.inputs[slot] : &witness->call.outputs[slot]) =
            (struct operand){.dtype = tensor->dtype,
                             .count = tensor->count,
                             .fetch = fetch_operand,
                             .context = witness,
                             .tensor = i};
    }
}

void witness_release(struct witness *witness)
{
    for (uint32_t i = 0; i < witness->operand_count; i++) {
        for (uint32_t leaf = 0; leaf < witness->operands[i].count; leaf++) {
            free(witness->operands[i].leaves[leaf].bytes);
        }
        free(witness->operands[i].leaves);
    }
}

uint32_t witness_found(struct witness *witness, const struct evidence_target *target)
{
    return fetch_operand(witness, witness->op->input_count + target->output, target->element);
}

enum status witness_run(struct witness *witness, bool *wrong, const struct evidence_target *target)
{
    const struct operand *accused = &witness->call.outputs[target->output];
    uint32_t wanted;

    witness->round++;
    wanted = rule_element(&witness->call, target->output, target->element);
    *wrong = element_cut(wanted, accused->dtype) != witness_found(witness, target);
    return witness->status;
}

/* Indexes of the leaves of an operand that this round needs. */
static uint32_t needed_indexes(uint64_t *indexes, const struct witness *witness,
                               const struct witness_operand *operand)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < operand->count; i++) {
        if (operand->leaves[i].round == witness->round) {
            indexes[count++] = operand->leaves[i].index;
        }
    }
    return count;
}

enum status witness_plan(struct witness_plan *plan, const struct witness *witness,
                         const struct witness_operand *operand)
{
    struct merkle_multi multi = {.leaf_count = trace_query_tensor_count(operand->tensor)};
    size_t capacity;

    *plan = (struct witness_plan){0};
    plan->indexes = malloc(((size_t)operand->count + 1) * sizeof(*plan->indexes));
    if (plan->indexes == NULL) {
        return error_set(witness->error, STATUS_NO_MEMORY, "no memory for a proof");
    }
    plan->count = needed_indexes(plan->indexes, witness, operand);
    /* An operand of which nothing is read has no proof. */
    if (plan->count == 0) {
        return STATUS_OK;
    }
    if (plan->count > COUNT_MAX) {
        return error_set(witness->error, STATUS_OVER_LIMIT, "a proof of %u leaves", plan->count);
    }
    capacity = MERKLE_MULTI_SIBLINGS(plan->count);
    capacity = capacity > COUNT_MAX ? COUNT_MAX : capacity;
    plan->places = malloc(capacity * sizeof(*plan->places));
    if (plan->places == NULL) {
        return error_set(witness->error, STATUS_NO_MEMORY, "no memory for a proof");
    }
    multi.indexes = plan->indexes;
    multi.index_count = plan->count;
    enum status status =
        merkle_multi_places(plan->places, &plan->place_count, (uint32_t)capacity, &multi);

    return status == STATUS_OK
               ? STATUS_OK
               : error_set(witness->error, status, "a proof of %u leaves has too many siblings",
                           plan->count);
}

void witness_plan_release(struct witness_plan *plan)
{
    free(plan->indexes);
    free(plan->places);
}
