/* readers.c - see readers.h. */
#include "engine/cuda/fusions/readers.h"

#include <stdlib.h>
#include <string.h>

static void readers_see(struct readers *readers, const struct op *op, uint32_t at)
{
    bool makes = false;

    for (uint32_t i = 0; i < op->output_count; i++) {
        makes = makes || readers->kept[op->outputs[i]];
        readers->maker[op->outputs[i]] = at;
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = op->inputs[i];

        if (readers->last[id] != at) {
            readers->count[id]++;
        }
        if (readers->first[id] == NEVER) {
            readers->first[id] = at;
        }
        readers->last[id] = at;
        if (makes) {
            readers->states[id] = at;
        }
    }
}

static void read_too(struct readers *readers, uint32_t id, uint32_t with)
{
    const uint32_t first = readers->first[with];

    readers->first[id] = first < readers->first[id] ? first : readers->first[id];
    if (readers->last[with] != NEVER &&
        (readers->last[id] == NEVER || readers->last[id] < readers->last[with])) {
        readers->last[id] = readers->last[with];
    }
    if (readers->states[with] != NEVER &&
        (readers->states[id] == NEVER || readers->states[id] < readers->states[with])) {
        readers->states[id] = readers->states[with];
    }
    readers->count[id] += readers->count[with];
}

/* A reader of a part reads the whole, and a reader of the whole reads its parts. */
static void see_through_views(struct readers *readers, const struct fusion *fusion)
{
    for (uint32_t id = 0; id < fusion->tensor_count; id++) {
        if (fusion->holders[id] != id && readers->maker[id] == NEVER) {
            read_too(readers, fusion->holders[id], id);
        }
    }
    for (uint32_t id = 0; id < fusion->tensor_count; id++) {
        if (fusion->holders[id] != id && readers->maker[id] != NEVER) {
            read_too(readers, id, fusion->holders[id]);
        }
    }
}

bool readers_find(struct readers *readers, const struct fusion *fusion, const struct tape *tape)
{
    const size_t count = (size_t)tape->tensor_count + 1;
    uint32_t *words = malloc(5 * count * sizeof(*words));
    bool *flags = calloc(2 * count, sizeof(*flags));

    readers_release(readers);
    if (words == NULL || flags == NULL) {
        free(words);
        free(flags);
        return false;
    }
    readers->first = words;
    readers->last = words + count;
    readers->states = words + 2 * count;
    readers->maker = words + 3 * count;
    readers->count = words + 4 * count;
    readers->kept = flags;
    readers->is_output = flags + count;
    memset(words, 0xff, 4 * count * sizeof(*words)); /* NEVER */
    memset(readers->count, 0, count * sizeof(*words));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        readers->kept[id] = tape->tensors[id].role != ROLE_TEMPORARY || id == tape->loss;
        readers->is_output[id] = tape->tensors[id].role == ROLE_OUTPUT;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        readers->kept[tape->states[i].after] = true;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        readers_see(readers, &fusion->ops[at], at);
    }
    see_through_views(readers, fusion);
    return true;
}

void readers_release(struct readers *readers)
{
    free(readers->first);
    free(readers->kept);
    memset(readers, 0, sizeof(*readers));
}
