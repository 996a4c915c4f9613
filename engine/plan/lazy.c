/* lazy.c - see lazy.h. */
#include "engine/plan/lazy.h"

#include <stdlib.h>
#include <string.h>

enum { SELECT_C, SELECT_A, SELECT_B };

static bool is_choice(const struct tape *tape, const struct op *op)
{
    return op->kind == OP_SELECT && tape->tensors[op->inputs[SELECT_C]].count == 1 &&
           op->inputs[SELECT_C] != op->inputs[SELECT_A];
}

/* Where the condition is made; 0 for what is there before the step. */
static uint32_t made_before(const struct tape *tape, uint32_t condition)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            if (tape->ops[at].outputs[i] == condition) {
                return at + 1;
            }
        }
    }
    return 0;
}

/* Marks what a step needs where the condition is zero. */
static void mark_needed(bool *needed, const struct tape *tape, uint32_t condition)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        needed[id] = tape->tensors[id].role == ROLE_OUTPUT;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        needed[tape->states[i].after] = true;
    }
    if (tape->loss != TENSOR_NONE) {
        needed[tape->loss] = true;
    }
    for (uint32_t i = 0; i < tape->loop_carry_count; i++) {
        needed[tape->loop_carries[i].out] = true; /* the next turn may */
    }
    for (uint32_t at = tape->op_count; at > 0; at--) {
        const struct op *op = &tape->ops[at - 1];
        bool runs = false;

        for (uint32_t i = 0; i < op->output_count; i++) {
            runs = runs || needed[op->outputs[i]];
        }
        for (uint32_t i = 0; runs && i < op->input_count; i++) {
            bool dropped =
                i == SELECT_A && is_choice(tape, op) && op->inputs[SELECT_C] == condition;

            needed[op->inputs[i]] = needed[op->inputs[i]] || !dropped;
        }
    }
}

static enum status find_ops(struct lazy *lazy, const struct tape *tape, struct error *error)
{
    const uint32_t from = made_before(tape, lazy->condition);
    bool *needed = calloc((size_t)tape->tensor_count + 1, sizeof(*needed));

    lazy->ops = calloc((size_t)tape->op_count + 1, sizeof(*lazy->ops));
    if (needed == NULL || lazy->ops == NULL) {
        free(needed);
        return error_set(error, STATUS_NO_MEMORY, "no memory to look at %u tensors",
                         tape->tensor_count);
    }
    mark_needed(needed, tape, lazy->condition);
    for (uint32_t at = from; at < tape->op_count; at++) {
        lazy->ops[at] = true;
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            lazy->ops[at] = lazy->ops[at] && !needed[tape->ops[at].outputs[i]];
        }
    }
    free(needed);
    return STATUS_OK;
}

enum status lazy_find(struct lazy *lazy, const struct tape *tape, struct error *error)
{
    *lazy = (struct lazy){.condition = TENSOR_NONE};
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (is_choice(tape, &tape->ops[at])) {
            lazy->condition = tape->ops[at].inputs[SELECT_C];
        }
    }
    return lazy->condition == TENSOR_NONE ? STATUS_OK : find_ops(lazy, tape, error);
}

void lazy_release(struct lazy *lazy)
{
    free(lazy->ops);
    lazy->ops = NULL;
}

bool lazy_holds(const struct tensor *condition, const void *bytes)
{
    uint32_t bits;

    if (dtype_size(condition->dtype) == 1) {
        return *(const uint8_t *)bytes != 0;
    }
    memcpy(&bits, bytes, sizeof(bits));
    return (bits & UINT32_C(0x7fffffff)) != 0;
}
