/*
 * proofs.h - each kernel variant proves itself in a process of its own before this one launches it.
 *
 * A fault of a kernel can take the device away from its process, or never end. So a variant that
 * is not known yet is tried in children, several times and two at once, with a limit of time; what
 * becomes of them bars that variant and no other. What was found is remembered for the device, its
 * driver and the plugin, in a file of the state folder (LOCKSTEP_CUDA_PROOFS names another; "off":
 * no children, and nothing is remembered). A process that has opened a device before cannot have
 * children that do: then nothing is proven here, and the self-tests of the process itself decide.
 */
#ifndef ENGINE_CUDA_SELFTEST_PROOFS_H
#define ENGINE_CUDA_SELFTEST_PROOFS_H

#include "engine/cuda/launch/launcher.h"

enum proof {
    PROOF_NONE,  /* not tried */
    PROOF_SOUND, /* the bits of the rules */
    PROOF_WRONG, /* other bits, or it does not start */
    PROOF_LOST,  /* the device failed: a fault or a trap */
    PROOF_DIED,  /* its process ended */
    PROOF_HUNG,  /* it did not end */
    PROOF_COUNT
};

/* By variant. */
struct proofs {
    uint8_t found[VARIANT_COUNT];
};

#define PROOFS_SECONDS 30.0

/* Bits 1 << enum kernel_variant of those that must not be launched. */
uint32_t proofs_barred(const struct proofs *proofs);

/* "it trapped or failed" */
const char *proofs_words(enum proof proof);

/*
 * Those of `wanted` that are not known are tried, each for at most limit_s. Nothing fails: where
 * nothing can be proven, all are PROOF_NONE.
 */
void proofs_find(struct proofs *proofs, const struct device_calls *calls, int ordinal,
                 uint32_t wanted, double limit_s);

/* What is remembered of an open device, where nothing was found. */
void proofs_recall(struct proofs *proofs, const struct device_calls *calls,
                   const struct device_facts *facts);

#endif /* ENGINE_CUDA_SELFTEST_PROOFS_H */
