/*
 * variants.h - which kernel variants a device may be trusted with: each is tested before it is
 * used.
 *
 * A variant whose kernels give other bits than the rules on a small problem (a compiler's fault, a
 * device's, or ours) is disabled, and plainer kernels take its place. No result is ever made by
 * kernels that were not seen to be right on this very device. The findings are kept for as long as
 * the process lives. LOCKSTEP_CUDA_WITHOUT=pairs,wgmma disables variants by name, untried: the way
 * out where kernels do not even end.
 */
#ifndef ENGINE_CUDA_SELFTEST_VARIANTS_H
#define ENGINE_CUDA_SELFTEST_VARIANTS_H

#include "base/error.h"
#include "engine/cuda/launch/launcher.h"

/* All in bits 1 << enum kernel_variant. */
struct variants {
    uint32_t offered; /* those that the device has */
    uint32_t without; /* of them, disabled by LOCKSTEP_CUDA_WITHOUT */
    uint32_t wrong;   /* of them, those that gave other bits */
};

/* What launcher.disabled is to be. */
static inline uint32_t variants_disabled(const struct variants *variants)
{
    return variants->without | variants->wrong;
}

/* "wgmma, mma, plain": those that contract; then "; disabled: dots (other bits than the rules)". */
#define VARIANTS_TEXT_MAX 512
void variants_text(char text[VARIANTS_TEXT_MAX], const struct variants *variants);

/* Those that a device has. */
uint32_t variants_offered(const struct device_facts *facts);

/*
 * Tries one variant on a device that is open, with nothing beside it but what it needs and
 * disabled allows. *right is false where it gave other bits, or did not start.
 */
enum device_result variants_try(bool *right, const struct device_calls *calls,
                                struct device *device, const struct device_facts *facts,
                                enum kernel_variant variant, uint32_t disabled);

/*
 * Tests a device that is open. STATUS_DEVICE and STATUS_NO_MEMORY: the device failed meanwhile, or
 * even its plainest kernels are wrong; STATUS_USAGE: LOCKSTEP_CUDA_WITHOUT names no variant.
 */
MUST_CHECK enum status variants_test(struct variants *variants, const struct device_calls *calls,
                                     struct device *device, const struct device_facts *facts,
                                     int ordinal, struct error *error);

/* The same for a device that is opened for it, and closed again. */
MUST_CHECK enum status variants_of_device(struct variants *variants,
                                          const struct device_calls *calls, int ordinal,
                                          struct error *error);

#endif /* ENGINE_CUDA_SELFTEST_VARIANTS_H */
