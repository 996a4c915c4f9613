/*
 * selftest.h - the self-test of a kernel variant: small tapes on a device, every shown tensor
 * compared with the rules. variants.h runs it, and keeps what came out.
 */
#ifndef ENGINE_CUDA_SELFTEST_SELFTEST_H
#define ENGINE_CUDA_SELFTEST_SELFTEST_H

#include "engine/cuda/launch/launcher.h"

/* "wgmma", "held", "attention": as LOCKSTEP_CUDA_WITHOUT names it. */
const char *selftest_name(enum kernel_variant variant);

/*
 * Tries a variant with nothing beside it that device_launcher allows but what it needs. *right is
 * false where it gave other bits, or was not launched at all.
 */
enum device_result selftest_variant(bool *right, const struct launcher *device_launcher,
                                    enum kernel_variant variant);

/* Variants that a device has, in bits 1 << enum kernel_variant. */
uint32_t selftest_offered(const struct device_facts *facts);

/*
 * Tries one variant on a device that is open, with nothing beside it but what it needs and
 * disabled allows. *right is false where it gave other bits, or did not start.
 */
enum device_result selftest_try(bool *right, const struct device_calls *calls,
                                struct device *device, const struct device_facts *facts,
                                enum kernel_variant variant, uint32_t disabled);

#endif /* ENGINE_CUDA_SELFTEST_SELFTEST_H */
