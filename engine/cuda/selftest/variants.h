/*
 * variants.h - which ways to contract a device may be trusted with: each is proven before it is used.
 *
 * A way whose kernels give other bits than the rules on a small problem (a compiler's fault, a
 * device's, or ours) is barred, and the next slower one takes its place: no result is ever made by
 * kernels that were not seen to be right on this very device. What was found out is kept for as
 * long as the process lives. LOCKSTEP_CUDA_WITHOUT=pairs,wgmma bars ways by name, untried: the way
 * out where kernels do not even end.
 */
#ifndef ENGINE_CUDA_SELFTEST_VARIANTS_H
#define ENGINE_CUDA_SELFTEST_VARIANTS_H

#include "base/error.h"
#include "engine/cuda/launch/launch.h"

/* All in bits 1 << enum contract_path, or enum launch_way. */
struct paths {
    uint32_t offered; /* those that the device has */
    uint32_t unasked; /* of them, barred by LOCKSTEP_CUDA_WITHOUT */
    uint32_t wrong;   /* of them, those that gave other bits */
};

/* What launcher.barred is to be. */
static inline uint32_t paths_barred(const struct paths *paths)
{
    return paths->unasked | paths->wrong;
}

/* "pairs" (of blocks, by wgmma), "wgmma", "mma", "plain"; then enum launch_way: "dots". */
const char *path_name(uint32_t path);

/* "wgmma, mma, plain", those in use; and where some are not: "; not used: wgmma (other bits)". */
#define PATHS_TEXT_MAX 512
void paths_text(char text[PATHS_TEXT_MAX], const struct paths *paths);

/*
 * Looks at a device that is open. STATUS_DEVICE and STATUS_NO_MEMORY: the device failed meanwhile,
 * or even its plainest kernels are wrong; STATUS_USAGE: LOCKSTEP_CUDA_WITHOUT names no way.
 */
MUST_CHECK enum status paths_prove(struct paths *paths, const struct device_calls *calls,
                                   struct device *device, const struct device_facts *facts,
                                   int ordinal, struct error *error);

/* The same for a device that is opened for it, and closed again. */
MUST_CHECK enum status paths_of_device(struct paths *paths, const struct device_calls *calls,
                                       int ordinal, struct error *error);

#endif /* ENGINE_CUDA_SELFTEST_VARIANTS_H */
