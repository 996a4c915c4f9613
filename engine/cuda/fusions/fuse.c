/* fuse.c - see fuse.h. */
#include "engine/cuda/fusions/fuse.h"

#include <stdlib.h>

#include "engine/cuda/fusions/lists.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/launch/launch.h"

/* In this order: what one has taken, the next ones leave. */
static const struct fusion_pattern *const patterns[] = {
    &pattern_repeated, &pattern_views, &pattern_entropy, &pattern_lists, &pattern_attention,
    &pattern_epilogue, &pattern_held,  &pattern_strips,  &pattern_tiles,
};

#define PATTERN_COUNT (sizeof(patterns) / sizeof(patterns[0]))

const struct fusion_pattern *fuse_pattern(enum kernel_variant variant)
{
    for (size_t i = 0; i < PATTERN_COUNT; i++) {
        if (patterns[i]->variant == variant) {
            return patterns[i];
        }
    }
    return NULL;
}

static bool find_all(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (size_t i = 0; i < PATTERN_COUNT; i++) {
        const enum kernel_variant variant = patterns[i]->variant;

        if ((variant == VARIANT_COUNT || fusion_allows(fusion, variant)) &&
            (!readers_find(readers, fusion, tape) || !patterns[i]->match(fusion, tape, readers))) {
            return false;
        }
    }
    return true;
}

enum status fuse_tape(struct fusion *fusion, const struct tape *tape,
                      const struct fusion_facts *facts, struct error *error)
{
    const struct launcher nothing = {.tape = tape};
    struct readers readers = {.first = NULL};
    const bool found = fusion_init(fusion, tape, facts) && find_all(fusion, tape, &readers);

    readers_release(&readers);
    if (!found) {
        fusion_release(fusion);
        return error_set(error, STATUS_NO_MEMORY, "no memory to look through %u operations",
                         tape->op_count);
    }
    lists_write(fusion, &nothing, NULL, NULL);
    return STATUS_OK;
}

enum device_result fuse_launch(uint32_t *next, const struct fusion *fusion,
                               const struct launcher *launcher, uint32_t at, uint32_t last)
{
    const struct fusion_pattern *pattern = fusion == NULL ? NULL : fusion->patterns[at];

    *next = at + 1;
    if (pattern == NULL || fusion->ends[at] > last) {
        return launch_op(launcher, at);
    }
    *next = fusion->ends[at];
    return pattern->launch(launcher, fusion, at);
}

/* ---- units and the plan -------------------------------------------------------------- */

struct region {
    uint64_t first;
    uint64_t end;
    bool in_state;
    bool there;
};

/* The memory of a tensor. A part counts as its whole: its rows lie between those of others. */
static struct region region_of(const struct tape *tape, const struct fusion *fusion,
                               const struct plan *plan, const struct plan_hooks *hooks,
                               const struct op *maker, uint32_t tensor)
{
    const uint32_t id = fusion->holders[tensor];
    struct region region = {.in_state = plan->in_state[id],
                            .there = plan->places[id] != PLAN_ABSENT};
    uint64_t size = tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);

    for (uint32_t i = 0; maker != NULL && i < maker->output_count; i++) {
        if (maker->outputs[i] == id && hooks->output_size != NULL) {
            size = hooks->output_size(hooks->context, maker, i, tape->tensors);
        }
    }
    region.first = plan->places[id];
    region.end = region.first + size;
    return region;
}

static bool regions_overlap(const struct region *a, const struct region *b)
{
    return a->there && b->there && a->in_state == b->in_state && a->first < b->end &&
           b->first < a->end;
}

/* Does an operation of a unit write where another one reads or writes something else? */
static bool disturbs_other(const struct tape *tape, const struct fusion *fusion,
                           const struct plan *plan, const struct plan_hooks *hooks, uint32_t writer,
                           uint32_t other)
{
    const struct op *op = &fusion->ops[writer];
    const struct op *to = &fusion->ops[other];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct region made = region_of(tape, fusion, plan, hooks, op, op->outputs[i]);

        for (uint32_t j = 0; j < to->input_count; j++) {
            const struct region read = region_of(tape, fusion, plan, hooks, NULL, to->inputs[j]);

            if (to->inputs[j] != op->outputs[i] && regions_overlap(&made, &read)) {
                return true;
            }
        }
        for (uint32_t j = 0; j < to->output_count; j++) {
            const struct region written = region_of(tape, fusion, plan, hooks, to, to->outputs[j]);

            if (regions_overlap(&made, &written)) {
                return true;
            }
        }
    }
    return false;
}

static bool unit_holds(const struct tape *tape, const struct fusion *fusion,
                       const struct plan *plan, const struct plan_hooks *hooks, uint32_t first,
                       uint32_t end)
{
    for (uint32_t at = first; at < end; at++) {
        if (!plan->runs[at]) {
            return false;
        }
        for (uint32_t other = first; other < end; other++) {
            if (other != at && disturbs_other(tape, fusion, plan, hooks, at, other)) {
                return false;
            }
        }
    }
    return true;
}

void fuse_check(struct fusion *fusion, const struct tape *tape, const struct plan *plan,
                const struct plan_hooks *hooks)
{
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        if (fusion->ends[at] > at + 1 &&
            !unit_holds(tape, fusion, plan, hooks, at, fusion->ends[at])) {
            fusion->ends[at] = at + 1;
            fusion->patterns[at] = NULL;
        }
    }
}

/* ---- the device ---------------------------------------------------------------------- */

enum status fuse_upload(enum device_result *result, struct fusion *fusion,
                        const struct launcher *launcher, void *device_memory, struct error *error)
{
    uint8_t *host;

    *result = DEVICE_OK;
    if (fusion->size == 0) {
        return STATUS_OK;
    }
    host = calloc(1, fusion->size);
    if (host == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for lists of %u operations",
                         fusion->op_count);
    }
    lists_write(fusion, launcher, host, device_memory);
    *result = launcher->calls->upload(launcher->device, device_memory, host, fusion->size);
    free(host);
    return STATUS_OK;
}
