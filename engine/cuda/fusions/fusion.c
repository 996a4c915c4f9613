/* fusion.c - see fusion.h. */
#include "engine/cuda/fusions/fusion.h"

#include <stdlib.h>
#include <string.h>

/* A stretch ends where a loop begins or ends, and where a step may leave out what follows. */
static bool number_stretches(struct fusion *fusion, const struct tape *tape)
{
    struct error ignored;

    error_init(&ignored);
    if (lazy_find(&fusion->lazy, tape, &ignored) != STATUS_OK) {
        return false;
    }
    const bool *lazy = fusion->lazy.ops;

    for (uint32_t at = 1; at < tape->op_count; at++) {
        const bool ends = tape_loop_of(tape, at) != tape_loop_of(tape, at - 1) ||
                          (lazy != NULL && lazy[at] != lazy[at - 1]);

        fusion->stretch[at] = fusion->stretch[at - 1] + ends;
    }
    return true;
}

bool fusion_init(struct fusion *fusion, const struct tape *tape, const struct fusion_facts *facts)
{
    const size_t count = (size_t)tape->op_count + 1;
    const size_t tensors = (size_t)tape->tensor_count + 1;

    *fusion = (struct fusion){.facts = *facts};
    fusion->op_count = tape->op_count;
    fusion->tensor_count = tape->tensor_count;
    fusion->holders = malloc(tensors * sizeof(*fusion->holders));
    fusion->offsets = calloc(tensors, sizeof(*fusion->offsets));
    fusion->ops = malloc(count * sizeof(*fusion->ops));
    fusion->ends = malloc(count * sizeof(*fusion->ends));
    fusion->group_of = calloc(count, sizeof(*fusion->group_of));
    fusion->apart = calloc(count, sizeof(*fusion->apart));
    fusion->stretch = calloc(count, sizeof(*fusion->stretch));
    fusion->patterns = calloc(count, sizeof(const struct fusion_pattern *));
    if (fusion->patterns == NULL || fusion->ops == NULL || fusion->ends == NULL ||
        fusion->group_of == NULL || fusion->apart == NULL || fusion->stretch == NULL ||
        fusion->holders == NULL || fusion->offsets == NULL) {
        return false;
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        fusion->holders[id] = id;
    }
    memcpy(fusion->ops, tape->ops, tape->op_count * sizeof(*fusion->ops));
    for (uint32_t at = 0; at < tape->op_count; at++) {
        fusion->ends[at] = at + 1;
        fusion->apart[at] = tape->ops[at].input_count > 0 &&
                            dtype_is_half(tape->tensors[tape->ops[at].inputs[0]].dtype);
    }
    return number_stretches(fusion, tape);
}

void fusion_release(struct fusion *fusion)
{
    free(fusion->ops);
    free(fusion->ends);
    free(fusion->holders);
    free(fusion->offsets);
    free(fusion->group_of);
    free(fusion->apart);
    free(fusion->stretch);
    lazy_release(&fusion->lazy);
    free(fusion->groups);
    free(fusion->patterns);
    memset(fusion, 0, sizeof(*fusion));
}

bool fusion_allows(const struct fusion *fusion, enum kernel_variant variant)
{
    return (fusion->facts.disabled >> variant & 1) == 0;
}

/* ---- groups ---------------------------------------------------------------------------- */

const struct fused_group *fusion_group(const struct fusion *fusion, uint32_t at)
{
    const uint32_t place = fusion->group_of[at];
    const struct fused_group *group = place == 0 ? NULL : &fusion->groups[place - 1];

    return group == NULL || group->ats[group->count - 1] != at ? NULL : group;
}

bool fusion_is_stretch(const struct fusion *fusion, uint32_t first, uint32_t last)
{
    return fusion->stretch[first] == fusion->stretch[last];
}

bool fusion_may_take(const struct fusion *fusion, uint32_t at)
{
    return fusion->group_of[at] == 0 && fusion->ends[at] == at + 1 && !fusion->apart[at];
}
