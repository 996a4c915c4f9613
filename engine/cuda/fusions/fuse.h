/*
 * fuse.h - finds what of a tape can be fused, and launches it: the table of patterns at work.
 */
#ifndef ENGINE_CUDA_FUSIONS_FUSE_H
#define ENGINE_CUDA_FUSIONS_FUSE_H

#include "engine/cuda/fusions/fusion.h"
#include "engine/plan/plan.h"

/* Looks for every pattern that is not disabled. Call fusion_release() after a failure too. */
MUST_CHECK enum status fuse_tape(struct fusion *fusion, const struct tape *tape,
                                 const struct fusion_facts *facts, struct error *error);

/* The pattern of a kernel variant, or NULL. */
const struct fusion_pattern *fuse_pattern(enum kernel_variant variant);

/* Cuts the units that the plan's places forbid, or of which an operation is not made. */
void fuse_check(struct fusion *fusion, const struct tape *tape, const struct plan *plan,
                const struct plan_hooks *hooks);

/* Sends the lists to device memory of fusion->size bytes. The launcher is ready. */
MUST_CHECK enum status fuse_upload(enum device_result *result, struct fusion *fusion,
                                   const struct launcher *launcher, void *device_memory,
                                   struct error *error);

/*
 * Launches operation `at`, or the unit that starts there where it ends before last. *next: the
 * operation to go on from. fusion NULL: every operation alone.
 */
enum device_result fuse_launch(uint32_t *next, const struct fusion *fusion,
                               const struct launcher *launcher, uint32_t at, uint32_t last);

#endif /* ENGINE_CUDA_FUSIONS_FUSE_H */
