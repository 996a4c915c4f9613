/* group.c - see group.h. */
#include "engine/cuda/fusions/group.h"

#include <stdlib.h>

static bool is_among(const uint32_t *ids, uint32_t count, uint32_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Does an operation read a tensor, or another that lies inside of the same whole? */
static bool reads_whole(const struct fusion *fusion, const struct op *op, uint32_t id)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (fusion->holders[op->inputs[i]] == fusion->holders[id]) {
            return true;
        }
    }
    return false;
}

static uint32_t readers_among(const struct fusion *fusion, const uint32_t *ats, uint32_t count,
                              uint32_t id)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        found += reads_whole(fusion, &fusion->ops[ats[i]], id);
    }
    return found;
}

/* Do all other readers of a tensor come behind the last of these operations? */
static bool is_read_behind(const struct fusion *fusion, const struct readers *readers,
                           const uint32_t *ats, uint32_t count, uint32_t id)
{
    const uint32_t maker = ats[count - 1];

    for (uint32_t at = readers->first[id]; at < maker && readers->first[id] != NEVER; at++) {
        if (reads_whole(fusion, &fusion->ops[at], id) && !is_among(ats, count, at)) {
            return false;
        }
    }
    return true;
}

/* May the last operation make a tensor that an earlier one of them made? */
static bool may_be_late(const struct fusion *fusion, const struct readers *readers,
                        const uint32_t *ats, uint32_t count, uint32_t id)
{
    return (!fusion->facts.in_legs || !readers->is_output[id]) &&
           is_read_behind(fusion, readers, ats, count, id);
}

bool group_can_form(const struct fusion *fusion, const struct readers *readers, const uint32_t *ats,
                    uint32_t count, const uint32_t *made, uint32_t made_count)
{
    if (!fusion_is_stretch(fusion, ats[0], ats[count - 1])) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct op *op = &fusion->ops[ats[i]];

        for (uint32_t j = 0; j < op->output_count; j++) {
            const uint32_t id = op->outputs[j];

            if (is_among(made, made_count, id)
                    ? i + 1 < count && !may_be_late(fusion, readers, ats, count, id)
                    : readers->kept[id] ||
                          readers_among(fusion, ats, count, id) != readers->count[id]) {
                return false;
            }
        }
    }
    return true;
}

bool group_add(struct fusion *fusion, const uint32_t *ats, uint32_t count, const struct op *maker,
               const struct fusion_pattern *pattern)
{
    struct fused_group *groups =
        realloc(fusion->groups, ((size_t)fusion->group_count + 1) * sizeof(*groups));
    struct fused_group *group;

    assert(count > 0 && count <= GROUP_OPS_MAX);
    assert(fusion_is_stretch(fusion, ats[0], ats[count - 1]));
    if (groups == NULL) {
        return false;
    }
    fusion->groups = groups;
    group = &groups[fusion->group_count++];
    *group = (struct fused_group){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct op *op = &fusion->ops[ats[i]];

        assert(fusion_may_take(fusion, ats[i]) && (i == 0 || ats[i - 1] < ats[i]));
        fusion->group_of[ats[i]] = fusion->group_count;
        group->ats[i] = ats[i];
        group->ops[i] = *op;
        op->input_count = 0;
        op->output_count = 0;
    }
    fusion->ops[ats[count - 1]] = *maker;
    fusion->patterns[ats[count - 1]] = pattern;
    return true;
}
