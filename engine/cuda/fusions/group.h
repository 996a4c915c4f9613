/* group.h - several operations become one: a fused group. */
#ifndef ENGINE_CUDA_FUSIONS_GROUP_H
#define ENGINE_CUDA_FUSIONS_GROUP_H

#include "engine/cuda/fusions/fusion.h"
#include "engine/cuda/fusions/readers.h"

/*
 * Can these operations, ascending, be one that stands at the last? They are in one loop or outside
 * of all. Nobody else reads what they make but `made`; and of `made` nobody reads anything before
 * the last, or asks for it between legs.
 */
bool group_can_form(const struct fusion *fusion, const struct readers *readers, const uint32_t *ats,
                    uint32_t count, const uint32_t *made, uint32_t made_count);

/*
 * Makes the operations at `ats` one: `maker`, at the last of them. The maker's inputs and outputs
 * are all that is read and made. Its kind says what the plan may do with it (write in place, leave
 * outputs out, give scratch). The caller calls readers_regroup(). false: no memory.
 */
MUST_CHECK bool group_add(struct fusion *fusion, const uint32_t *ats, uint32_t count,
                          const struct op *maker, const struct fusion_pattern *pattern);

#endif /* ENGINE_CUDA_FUSIONS_GROUP_H */
