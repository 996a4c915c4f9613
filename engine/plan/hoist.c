/* hoist.c - see hoist.h. */
#include "engine/plan/hoist.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/derived.h"

#define FREE_SLOT UINT32_MAX

struct hoister {
    const struct tape *tape;
    struct tape *derived;
    bool *pinned;    /* per tensor: a next state, the loss, an output, or of a loop's carries */
    uint32_t *now;   /* per tensor: the one that stands for it */
    uint32_t *slots; /* operations of the rewrite, by what they compute */
    uint32_t mask;   /* slots less one; a power of two less one */
};

/* ---- equal operations ------------------------------------------------------ */

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint32_t slot_of(const struct hoister *hoister, const struct op *op)
{
    uint64_t hash = mix_hash((uint64_t)op->kind, op->input_count);

    for (uint32_t i = 0; i < op->attribute_count; i++) {
        hash = mix_hash(hash, (uint64_t)op->attributes[i]);
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        hash = mix_hash(hash, op->inputs[i]);
    }
    return (uint32_t)hash & hoister->mask;
}

static bool is_alike(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

static bool is_equal(const struct hoister *hoister, const struct op *a, const struct op *b)
{
    const struct tensor *tensors = hoister->tape->tensors;

    for (uint32_t i = 0; i < a->output_count && i < b->output_count; i++) {
        if (!is_alike(&tensors[a->outputs[i]], &tensors[b->outputs[i]])) {
            return false;
        }
    }
    return a->kind == b->kind && a->attribute_count == b->attribute_count &&
           a->input_count == b->input_count && a->output_count == b->output_count &&
           memcmp(a->attributes, b->attributes, a->attribute_count * sizeof(a->attributes[0])) ==
               0 &&
           memcmp(a->inputs, b->inputs, a->input_count * sizeof(a->inputs[0])) == 0;
}

/* May the operation stand for others, or others for it? Not where something else finds its outputs
 * by their ids, not where it was repeated on purpose, not where it reads nothing: a sum begins in
 * place of its zeros. And not where each turn of a loop reads something else under one id. */
static bool may_share(const struct hoister *hoister, uint32_t at)
{
    const struct tape *tape = hoister->tape;
    bool again = derived_is_again(tape, at);

    for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
        if (hoister->pinned[tape->ops[at].outputs[i]]) {
            return false;
        }
    }
    for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
        again = again || tape_varies(tape, at, tape->ops[at].inputs[i]);
    }
    return !again && tape->ops[at].input_count > 0;
}

/* The operation of the rewrite that is equal, or FREE_SLOT; then this one is noted. */
static uint32_t find_equal(struct hoister *hoister, const struct op *op)
{
    uint32_t slot = slot_of(hoister, op);

    for (; hoister->slots[slot] != FREE_SLOT; slot = (slot + 1) & hoister->mask) {
        if (is_equal(hoister, &hoister->derived->ops[hoister->slots[slot]], op)) {
            return hoister->slots[slot];
        }
    }
    hoister->slots[slot] = hoister->derived->op_count;
    return FREE_SLOT;
}

static void rewrite_tape(struct hoister *hoister)
{
    const struct tape *tape = hoister->tape;
    struct tape *derived = hoister->derived;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct op op = tape->ops[at];
        uint32_t equal = FREE_SLOT;

        for (uint32_t i = 0; i < op.input_count; i++) {
            op.inputs[i] = hoister->now[op.inputs[i]];
        }
        if (may_share(hoister, at)) {
            equal = find_equal(hoister, &op);
        }
        if (equal == FREE_SLOT) {
            derived->origins[derived->op_count] = (struct op_origin){at, 0};
            derived->ops[derived->op_count++] = op;
            continue;
        }
        for (uint32_t i = 0; i < op.output_count; i++) {
            hoister->now[op.outputs[i]] = derived->ops[equal].outputs[i];
        }
    }
}

/* ---- building --------------------------------------------------------------- */

static void note_pinned(struct hoister *hoister)
{
    const struct tape *tape = hoister->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        hoister->pinned[id] = tape->tensors[id].role == ROLE_OUTPUT;
        hoister->now[id] = id;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        hoister->pinned[tape->states[i].after] = true;
    }
    if (tape->loss != TENSOR_NONE) {
        hoister->pinned[tape->loss] = true;
    }
    derived_mark_carries(hoister->pinned, tape);
    for (uint32_t i = 0; i <= hoister->mask; i++) {
        hoister->slots[i] = FREE_SLOT;
    }
}

static bool make_room(struct hoister *hoister)
{
    const struct tape *tape = hoister->tape;
    size_t tensors = (size_t)tape->tensor_count + 1;
    size_t ops = (size_t)tape->op_count + 1;

    hoister->derived = derived_new(tape, ops, tensors);
    hoister->mask = 15;
    while (hoister->mask < 2 * ops) {
        hoister->mask = 2 * hoister->mask + 1;
    }
    hoister->pinned = malloc(tensors * sizeof(*hoister->pinned));
    hoister->now = malloc(tensors * sizeof(*hoister->now));
    hoister->slots = malloc(((size_t)hoister->mask + 1) * sizeof(*hoister->slots));
    return hoister->derived != NULL && hoister->pinned != NULL && hoister->now != NULL &&
           hoister->slots != NULL;
}

enum status hoist_build(struct tape **derived, const struct tape *tape, struct error *error)
{
    struct hoister hoister = {.tape = tape};
    enum status status = STATUS_OK;

    *derived = NULL;
    if (make_room(&hoister)) {
        note_pinned(&hoister);
        rewrite_tape(&hoister);
        *derived = hoister.derived;
    }
    if (*derived == NULL || !derived_take_loops(*derived, tape)) {
        tape_free(hoister.derived);
        *derived = NULL;
        status = error_set(error, STATUS_NO_MEMORY, "no memory to rewrite a tape");
    }
    free(hoister.pinned);
    free(hoister.now);
    free(hoister.slots);
    return status;
}

/* ---- what lasts --------------------------------------------------------------- */

enum status hoist_find_lasting(bool *lasting, const struct tape *tape, struct error *error)
{
    bool *changes = calloc((size_t)tape->tensor_count + 1, sizeof(*changes));
    bool *carried = calloc((size_t)tape->tensor_count + 1, sizeof(*carried));

    if (changes == NULL || carried == NULL) {
        free(changes);
        free(carried);
        return error_set(error, STATUS_NO_MEMORY, "no memory to look at %u tensors",
                         tape->tensor_count);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        enum role role = tape->tensors[id].role;

        changes[id] = role != ROLE_CONSTANT && role != ROLE_DATA;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        /* A state that ends as it began is a frozen weight. */
        changes[tape->states[i].before] = tape->states[i].after != tape->states[i].before;
    }
    derived_mark_carries(carried, tape);
    /* In the order of the tape: when an operation is reached, all that it reads is already
     * judged. */
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        lasting[at] = true;
        for (uint32_t i = 0; i < op->input_count; i++) {
            lasting[at] = lasting[at] && !changes[op->inputs[i]];
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            /* What is handed to the next micro-batch is written over there, so it lasts for one
             * turn only. */
            lasting[at] = lasting[at] && !carried[op->outputs[i]] &&
                          tape->tensors[op->outputs[i]].role == ROLE_TEMPORARY;
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            changes[op->outputs[i]] = !lasting[at];
        }
    }
    free(changes);
    free(carried);
    return STATUS_OK;
}
