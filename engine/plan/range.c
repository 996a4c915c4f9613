/* range.c - see range.h. */
#include "engine/plan/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool allocate_tables(struct range *range, const struct tape *whole)
{
    size_t tensors = (size_t)whole->tensor_count + 1;
    struct tape *tape = calloc(1, sizeof(*tape));

    range->tape = tape;
    range->given = malloc(tensors * sizeof(*range->given));
    range->made = malloc(tensors * sizeof(*range->made));
    range->ids = malloc(tensors * sizeof(*range->ids));
    if (tape == NULL || range->given == NULL || range->made == NULL || range->ids == NULL) {
        return false;
    }
    tape->loss = TENSOR_NONE;
    tape->tensors = malloc(tensors * sizeof(*tape->tensors));
    tape->ops = malloc(((size_t)(range->last - range->first) + 1) * sizeof(*tape->ops));
    return tape->tensors != NULL && tape->ops != NULL;
}

/* The tensor's id in the range. The first call for a tensor adds it. */
static uint32_t range_id(struct range *range, const struct tape *whole, uint32_t id, bool made)
{
    struct tensor *tensor;

    if (range->ids[id] != TENSOR_NONE) {
        return range->ids[id];
    }
    range->ids[id] = range->tape->tensor_count++;
    tensor = &range->tape->tensors[range->ids[id]];
    *tensor = whole->tensors[id];
    if (made) {
        tensor->role = ROLE_OUTPUT;
        range->made[range->made_count++] = id;
    } else {
        tensor->role = tensor->role == ROLE_DATA ? ROLE_DATA : ROLE_INPUT;
        range->given[range->given_count++] = id;
    }
    /* Inputs and outputs need unique names, which temporaries do not have. */
    (void)snprintf(tensor->name, sizeof(tensor->name), "t.%u", id);
    return range->ids[id];
}

enum status range_build(struct range *range, const struct tape *whole, uint32_t first,
                        uint32_t last, struct error *error)
{
    memset(range, 0, sizeof(*range));
    if (first >= last || last > whole->op_count) {
        return error_set(error, STATUS_USAGE, "operations %u to %u are no range of a tape of %u",
                         first, last, whole->op_count);
    }
    range->first = first;
    range->last = last;
    if (!allocate_tables(range, whole)) {
        range_release(range);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a range of %u operations",
                         last - first);
    }
    for (uint32_t id = 0; id < whole->tensor_count; id++) {
        range->ids[id] = TENSOR_NONE;
    }
    for (uint32_t at = first; at < last; at++) {
        struct op *op = &range->tape->ops[range->tape->op_count++];

        *op = whole->ops[at];
        for (uint32_t i = 0; i < op->input_count; i++) {
            op->inputs[i] = range_id(range, whole, op->inputs[i], false);
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            op->outputs[i] = range_id(range, whole, op->outputs[i], true);
        }
    }
    return STATUS_OK;
}

void range_release(struct range *range)
{
    tape_free(range->tape);
    free(range->given);
    free(range->made);
    free(range->ids);
    memset(range, 0, sizeof(*range));
}

uint32_t range_fit(const struct tape *whole, uint32_t first, uint64_t memory_max)
{
    bool *counted = calloc((size_t)whole->tensor_count + 1, sizeof(*counted));
    uint64_t total = 0;
    uint32_t last = first;

    while (counted != NULL && last < whole->op_count) {
        const struct op *op = &whole->ops[last];

        for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
            uint32_t id = i < op->input_count ? op->inputs[i] : op->outputs[i - op->input_count];

            if (!counted[id]) {
                counted[id] = true;
                total += tensor_size(&whole->tensors[id]);
            }
        }
        if (total > memory_max && last > first) {
            break;
        }
        last++;
    }
    free(counted);
    return last > first ? last : first + 1;
}
