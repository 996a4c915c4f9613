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
