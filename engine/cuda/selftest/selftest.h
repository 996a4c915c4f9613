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

/* What a product took by bytes and by halves, in seconds; 0 and 0 where there is no choice. */
struct unit_times {
    double bytes;
    double halves;
};

/*
 * Times a product that fills the device, of 14 and of 16 bits: nobody keeps a list of what which
 * device does better. What disabled bars is not launched.
 */
enum device_result selftest_units(struct unit_times times[2], const struct device_calls *calls,
                                  struct device *device, const struct device_facts *facts,
                                  uint32_t disabled);

/* launcher.quicker, by these times. */
uint32_t selftest_quicker(const struct unit_times times[2]);

#endif /* ENGINE_CUDA_SELFTEST_SELFTEST_H */
