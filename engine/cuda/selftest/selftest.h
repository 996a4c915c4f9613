/*
 * selftest.h - the self-test of a kernel variant: small tapes on a device, every shown tensor
 * compared with the rules. variants.h runs it, and keeps what came out.
 */
#ifndef ENGINE_CUDA_SELFTEST_SELFTEST_H
#define ENGINE_CUDA_SELFTEST_SELFTEST_H

#include "engine/cuda/launch/launcher.h"

/* "pairs", "dots", "attention": as LOCKSTEP_CUDA_WITHOUT names it. */
const char *selftest_name(enum kernel_variant variant);

/*
 * Tries a variant with nothing beside it that device_launcher allows but what it needs. *right is
 * false where it gave other bits, or was not launched at all.
 */
enum device_result selftest_variant(bool *right, const struct launcher *device_launcher,
                                    enum kernel_variant variant);

#endif /* ENGINE_CUDA_SELFTEST_SELFTEST_H */
