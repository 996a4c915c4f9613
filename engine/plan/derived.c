/* derived.c - see derived.h. */
#include "engine/plan/derived.h"

#include <stdlib.h>
#include <string.h>

struct tape *derived_new(const struct tape *tape, size_t ops, size_t tensors)
{
    struct tape *derived = calloc(1, sizeof(*derived));

    if (derived == NULL) {
        return NULL;
    }
    derived->ops = malloc(ops * sizeof(*derived->ops));
    derived->origins = malloc(ops * sizeof(*derived->origins));
    derived->tensors = malloc(tensors * sizeof(*derived->tensors));
    derived->states = malloc(((size_t)tape->state_count + 1) * sizeof(*derived->states));
    if (derived->ops == NULL || derived->origins == NULL || derived->tensors == NULL ||
        derived->states == NULL) {
        tape_free(derived);
        return NULL;
    }
    memcpy(derived->tensors, tape->tensors, tape->tensor_count * sizeof(*derived->tensors));
    memcpy(derived->states, tape->states, tape->state_count * sizeof(*derived->states));
    derived->tensor_count = tape->tensor_count;
    derived->state_count = tape->state_count;
    derived->loss = tape->loss;
    return derived;
}

bool derived_grow(struct tape *derived, struct derived_room *room, uint32_t ops, uint32_t tensors)
{
    if (derived->op_count + ops <= room->ops && derived->tensor_count + tensors <= room->tensors) {
        return true;
    }
    room->ops += room->ops / 4 + ops + 1;
    room->tensors += room->tensors / 4 + tensors + 1;
    void *all_ops = realloc(derived->ops, (size_t)room->ops * sizeof(*derived->ops));
    derived->ops = all_ops != NULL ? all_ops : derived->ops;
    void *origins = realloc(derived->origins, (size_t)room->ops * sizeof(*derived->origins));
    derived->origins = origins != NULL ? origins : derived->origins;
    void *all_tensors =
        realloc(derived->tensors, (size_t)room->tensors * sizeof(*derived->tensors));
    derived->tensors = all_tensors != NULL ? all_tensors : derived->tensors;
    return all_ops != NULL && origins != NULL && all_tensors != NULL;
}

void derived_put(struct tape *derived, const struct op *op, uint32_t item, bool again)
{
    derived->origins[derived->op_count] = (struct op_origin){item, again};
    derived->ops[derived->op_count++] = *op;
}

uint32_t derived_tensor(struct tape *derived, const struct tensor *like)
{
    derived->tensors[derived->tensor_count] = *like;
    derived->tensors[derived->tensor_count].role = ROLE_TEMPORARY;
    return derived->tensor_count++;
}

bool derived_is_again(const struct tape *tape, uint32_t op)
{
    return tape->brief == NULL && tape->origins != NULL && tape->origins[op].instance != 0;
}

/* An operation of the rewrite belongs to the loop that the one it comes from is in. */
bool derived_take_loops(struct tape *derived, const struct tape *tape)
{
    if (tape->loop_count == 0) {
        return true;
    }
    derived->loops = malloc(tape->loop_count * sizeof(*derived->loops));
    derived->loop_carries =
        malloc(((size_t)tape->loop_carry_count + 1) * sizeof(*derived->loop_carries));
    if (derived->loops == NULL || derived->loop_carries == NULL) {
        return false;
    }
    memcpy(derived->loops, tape->loops, tape->loop_count * sizeof(*derived->loops));
    memcpy(derived->loop_carries, tape->loop_carries,
           tape->loop_carry_count * sizeof(*derived->loop_carries));
    derived->loop_count = tape->loop_count;
    derived->loop_carry_count = tape->loop_carry_count;
    for (uint32_t i = 0, at = 0; i < tape->loop_count; i++) {
        while (at < derived->op_count && derived->origins[at].item < tape->loops[i].first) {
            at++;
        }
        derived->loops[i].first = at;
        while (at < derived->op_count && derived->origins[at].item < tape->loops[i].last) {
            at++;
        }
        derived->loops[i].last = at;
    }
    return true;
}

void derived_mark_carries(bool *marks, const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->loop_carry_count; i++) {
        marks[tape->loop_carries[i].in] = true;
        marks[tape->loop_carries[i].out] = true;
    }
}
