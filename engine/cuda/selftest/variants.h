/*
 * variants.h - which kernel variants a device may be trusted with: each is tested before it is
 * used.
 *
 * A variant whose kernels give other bits than the rules on a small problem (a compiler's fault, a
 * device's, or ours) is disabled, and plainer kernels take its place. No result is ever made by
 * kernels that were not seen to be right on this very device. What a fault could take the process
 * with it was tried in children first (proofs.h). The findings are kept for as long as the process
 * lives. LOCKSTEP_CUDA_WITHOUT=wgmma,held disables variants by name, untried.
 */
#ifndef ENGINE_CUDA_SELFTEST_VARIANTS_H
#define ENGINE_CUDA_SELFTEST_VARIANTS_H

#include "base/error.h"
#include "engine/cuda/launch/launcher.h"
#include "engine/cuda/selftest/proofs.h"

/* All in bits 1 << enum kernel_variant. */
struct variants {
    uint32_t offered;     /* those that the device has */
    uint32_t without;     /* of them, disabled by LOCKSTEP_CUDA_WITHOUT */
    uint32_t wrong;       /* of them, those that gave other bits in this process */
    uint32_t quicker;     /* launcher.quicker: where halves are quicker than bytes, as measured */
    struct proofs proofs; /* what each did in a process of its own */
};

/* What launcher.disabled is to be. */
static inline uint32_t variants_disabled(const struct variants *variants)
{
    return variants->without | variants->wrong | proofs_barred(&variants->proofs);
}

/* "mma, half, plain": those that contract; then "; half first in products of 14 bits", where it is
 * quicker; then "; disabled: dots (other bits than the rules)". */
#define VARIANTS_TEXT_MAX 768
void variants_text(char text[VARIANTS_TEXT_MAX], const struct variants *variants);

/*
 * Tests a device, which is opened for it and closed again. Before the process opens one for itself:
 * children of a process that has one open can have none. STATUS_DEVICE and STATUS_NO_MEMORY: the
 * device failed meanwhile, or even its plainest kernels are wrong; STATUS_USAGE:
 * LOCKSTEP_CUDA_WITHOUT names no variant.
 */
MUST_CHECK enum status variants_of_device(struct variants *variants,
                                          const struct device_calls *calls, int ordinal,
                                          struct error *error);

#endif /* ENGINE_CUDA_SELFTEST_VARIANTS_H */
