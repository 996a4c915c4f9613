/* unlooped.c - see unlooped.h. */
#include "tests/support/loops/unlooped.h"

#include <stdlib.h>
#include <string.h>

#include "engine/plan/expand.h"

struct op_turn unlooped_maker(const struct unlooped *unlooped, uint32_t op)
{
    const struct op_origin *origins = unlooped->tape->origins;

    return unlooped->expanded == NULL ? (struct op_turn){op, 0}
                                      : (struct op_turn){origins[op].item, origins[op].instance};
}

/* Is it an output that a micro-batch keeps to itself? */
static bool is_inner(const struct tape *tape, struct op_turn maker, uint32_t output)
{
    const struct tape *brief = tape->brief;
    uint32_t item = brief == NULL ? 0 : tape->origins[maker.op].item;

    if (brief == NULL || item < brief->repeat.first ||
        item - brief->repeat.first >= brief->repeat.op_count) {
        return false;
    }
    for (uint32_t k = 0; k < brief->repeat.carry_count; k++) {
        if (brief->repeat.carries[k].after == brief->ops[item].outputs[output]) {
            return false;
        }
    }
    return true;
}

static void count_given(uint32_t *places, const struct tape *tape)
{
    uint32_t counts[ROLE_COUNT] = {0};

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        places[id] = counts[tape->tensors[id].role]++;
    }
}

/* Of one of the two lists: all that micro-batches keep to themselves stands behind the rest. */
static uint32_t count_list(struct unlooped *unlooped, const struct tape *tape, bool inner,
                           uint32_t next)
{
    for (uint32_t at = 0; at < unlooped->tape->op_count; at++) {
        const struct op *op = &unlooped->tape->ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            if (is_inner(tape, unlooped_maker(unlooped, at), i) == inner) {
                unlooped->places[op->outputs[i]] = next++;
            }
        }
    }
    return next;
}

bool unlooped_open(struct unlooped *unlooped, const struct tape *tape)
{
    struct error error;

    memset(unlooped, 0, sizeof(*unlooped));
    error_init(&error);
    if (expand_build(&unlooped->expanded, tape, &error) != STATUS_OK) {
        return false;
    }
    unlooped->tape = unlooped->expanded != NULL ? unlooped->expanded : tape;
    unlooped->places = malloc(((size_t)unlooped->tape->tensor_count + 1) * sizeof(uint32_t));
    if (unlooped->places == NULL) {
        unlooped_close(unlooped);
        return false;
    }
    count_given(unlooped->places, unlooped->tape);
    (void)count_list(unlooped, tape, true, count_list(unlooped, tape, false, tape->state_count));
    return true;
}

void unlooped_close(struct unlooped *unlooped)
{
    tape_free(unlooped->expanded);
    free(unlooped->places);
    memset(unlooped, 0, sizeof(*unlooped));
}
