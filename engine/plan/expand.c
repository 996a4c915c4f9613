/* expand.c - see expand.h. */
#include "engine/plan/expand.h"

#include <stdlib.h>

#include "engine/plan/derived.h"

struct expander {
    const struct tape *tape;
    struct tape *expanded;
    uint32_t *now;    /* per tensor of the tape: the one that stands for it */
    uint32_t *handed; /* per carry of a loop: what the turn before left */
};

static void add_op(struct expander *expander, uint32_t at, uint32_t turn)
{
    struct tape *expanded = expander->expanded;
    struct op op = expander->tape->ops[at];

    for (uint32_t i = 0; i < op.input_count; i++) {
        op.inputs[i] = expander->now[op.inputs[i]];
    }
    for (uint32_t i = 0; i < op.output_count; i++) {
        uint32_t id = op.outputs[i];

        if (turn > 0) {
            expanded->tensors[expanded->tensor_count] = expanded->tensors[id];
            expander->now[id] = op.outputs[i] = expanded->tensor_count++;
        }
    }
    expanded->origins[expanded->op_count] = (struct op_origin){at, turn};
    expanded->ops[expanded->op_count++] = op;
}

static void add_loop(struct expander *expander, const struct loop *loop)
{
    const struct loop_carry *carries = expander->tape->loop_carries + loop->carry_first;

    for (uint32_t turn = 0; turn < loop->turns; turn++) {
        for (uint32_t k = 0; turn > 0 && k < loop->carry_count; k++) {
            expander->handed[k] = expander->now[carries[k].out];
        }
        for (uint32_t k = 0; turn > 0 && k < loop->carry_count; k++) {
            expander->now[carries[k].in] = expander->handed[k];
        }
        for (uint32_t at = loop->first; at < loop->last; at++) {
            add_op(expander, at, turn);
        }
    }
    for (uint32_t k = 0; k < loop->carry_count; k++) {
        expander->now[carries[k].in] = carries[k].in;
    }
}

static void expand_tape(struct expander *expander)
{
    const struct tape *tape = expander->tape;
    struct tape *expanded = expander->expanded;
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        expander->now[id] = id;
    }
    for (uint32_t i = 0; i < tape->loop_count; i++) {
        for (; at < tape->loops[i].first; at++) {
            add_op(expander, at, 0);
        }
        add_loop(expander, &tape->loops[i]);
        at = tape->loops[i].last;
    }
    for (; at < tape->op_count; at++) {
        add_op(expander, at, 0);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        expanded->states[i].after = expander->now[tape->states[i].after];
    }
    expanded->loss = tape->loss == TENSOR_NONE ? TENSOR_NONE : expander->now[tape->loss];
}

enum status expand_build(struct tape **expanded, const struct tape *tape, struct error *error)
{
    const struct tape_unlooped all = tape_unlooped(tape);
    struct expander expander = {.tape = tape};
    enum status status = STATUS_OK;

    *expanded = NULL;
    if (tape->loop_count == 0) {
        return STATUS_OK;
    }
    if (all.ops > REPEAT_OPS_MAX || all.tensors > REPEAT_TENSORS_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "a machine that runs parts of a step takes at most %u operations on %u "
                         "tensors; all micro-batches of this one have %llu on %llu",
                         REPEAT_OPS_MAX, REPEAT_TENSORS_MAX, (unsigned long long)all.ops,
                         (unsigned long long)all.tensors);
    }
    expander.expanded = derived_new(tape, all.ops, all.tensors);
    expander.now = malloc(tape->tensor_count * sizeof(*expander.now));
    expander.handed = malloc((tape->loop_carry_count + (size_t)1) * sizeof(*expander.handed));
    if (expander.expanded == NULL || expander.now == NULL || expander.handed == NULL) {
        tape_free(expander.expanded);
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %llu operations",
                           (unsigned long long)all.ops);
    } else {
        expand_tape(&expander);
        *expanded = expander.expanded;
    }
    free(expander.now);
    free(expander.handed);
    return status;
}

/* ---- observers ------------------------------------------------------------- */

static enum status pass_on(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                           uint64_t size, struct error *error)
{
    const struct expand_observer *own = context;
    const struct op_origin *origin = &own->expanded->origins[maker.op];

    return own->observer->made(own->observer->context,
                               (struct op_turn){origin->item, origin->instance}, output, bytes,
                               size, error);
}

static bool wants_output(const void *context, struct op_turn maker, uint32_t output)
{
    const struct expand_observer *own = context;
    const struct op_origin *origin = &own->expanded->origins[maker.op];

    return observer_wants(own->observer, (struct op_turn){origin->item, origin->instance}, output);
}

struct observer expand_observer(const struct expand_observer *context)
{
    return (struct observer){
        .made = pass_on, .context = (void *)(uintptr_t)context, .wants = wants_output};
}
