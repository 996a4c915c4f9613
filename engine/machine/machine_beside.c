/* machine_beside.c - see machine_beside.h. */
#include "engine/machine/machine_beside.h"

#include <stdlib.h>
#include <string.h>

#include "engine/plan/plan.h"

struct finder {
    struct beside *beside;
    const struct tape *tape;
    bool *settled; /* per tensor: it has a place of its own, and may have no other */
};

/* What outlives the step, or is no temporary, stays where it is. */
static void settle_lasting(const struct finder *finder)
{
    const struct tape *tape = finder->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        finder->settled[id] = tape->tensors[id].role != ROLE_TEMPORARY || id == tape->loss;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        finder->settled[tape->states[i].after] = true;
    }
}

static bool is_whole_lines(const struct finder *finder, uint32_t id)
{
    return tensor_size(&finder->tape->tensors[id]) % PLAN_ALIGNMENT == 0;
}

/* Parts lie one after the other where there is one row of them. */
static bool is_along_memory(const struct op *op)
{
    return (op->kind == OP_SPLIT || op->kind == OP_CONCAT) && op->attributes[SPLIT_ROWS] == 1;
}

/* A split: its outputs take their places inside of its input. */
static void hold_parts(const struct finder *finder, const struct op *op)
{
    const uint32_t whole = op->inputs[0];
    uint64_t offset = 0;

    for (uint32_t i = 0; i < op->output_count; i++) {
        if (finder->settled[op->outputs[i]] || !is_whole_lines(finder, op->outputs[i])) {
            return;
        }
    }
    if (finder->settled[whole]) {
        return;
    }
    finder->settled[whole] = true;
    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint32_t part = op->outputs[i];

        finder->settled[part] = true;
        finder->beside->holders[part] = whole;
        finder->beside->offsets[part] = offset;
        offset += tensor_size(&finder->tape->tensors[part]);
    }
}

/* A concat of states, each of which lies beside no others yet. taken: those that do. */
static void join_states(const struct finder *finder, uint32_t at, bool *taken)
{
    const struct op *op = &finder->tape->ops[at];

    if (finder->settled[op->outputs[0]]) {
        return;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = op->inputs[i];

        if (finder->tape->tensors[id].role != ROLE_STATE || taken[id] ||
            !is_whole_lines(finder, id)) {
            return;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (op->inputs[j] == id) {
                return;
            }
        }
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        taken[op->inputs[i]] = true;
    }
    finder->settled[op->outputs[0]] = true;
    finder->beside->joins[at] = true;
}

static bool allocate_beside(struct beside *beside, const struct tape *tape)
{
    const size_t tensors = (size_t)tape->tensor_count + 1;

    beside->holders = malloc(tensors * sizeof(*beside->holders));
    beside->offsets = calloc(tensors, sizeof(*beside->offsets));
    beside->joins = calloc((size_t)tape->op_count + 1, sizeof(*beside->joins));
    return beside->holders != NULL && beside->offsets != NULL && beside->joins != NULL;
}

enum status beside_find(struct beside *beside, const struct tape *tape, const bool *lasting,
                        struct error *error)
{
    const size_t tensors = (size_t)tape->tensor_count + 1;
    struct finder finder = {.beside = beside, .tape = tape};
    bool *marks = calloc(2 * tensors, sizeof(*marks));

    memset(beside, 0, sizeof(*beside));
    if (!allocate_beside(beside, tape) || marks == NULL) {
        free(marks);
        beside_release(beside);
        return error_set(error, STATUS_NO_MEMORY, "no memory to plan %u tensors",
                         tape->tensor_count);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        beside->holders[id] = id;
    }
    finder.settled = marks;
    settle_lasting(&finder);
    for (uint32_t at = 0; tape->loop_count == 0 && at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        if (!is_along_memory(op) || (lasting != NULL && lasting[at])) {
            continue;
        }
        if (op->kind == OP_SPLIT) {
            hold_parts(&finder, op);
        } else {
            join_states(&finder, at, marks + tensors);
        }
    }
    free(marks);
    return STATUS_OK;
}

void beside_release(struct beside *beside)
{
    free(beside->holders);
    free(beside->offsets);
    free(beside->joins);
    memset(beside, 0, sizeof(*beside));
}
