/* launch_hash.h - Merkle roots of tensors (merkle.h); the search for NaN and infinity. */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_HASH_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_HASH_H

#include "engine/cuda/launch/launcher.h"

/* Fills first[] of items whose bytes and size are set. */
void launch_hash_plan(struct hash_item *items, uint32_t count);

/* Bytes of scratch for items that were planned. */
uint64_t launch_hash_scratch_size(const struct hash_item *items, uint32_t count);

/*
 * Puts the Merkle root over the leaves of each item into roots, 32 bytes each, all in device
 * memory; on_device is the device's copy of items.
 */
enum device_result launch_hash(const struct launcher *launcher, void *roots,
                               const struct hash_item *on_device, const struct hash_item *items,
                               uint32_t count);

/* Sets the word at `found` to 1 if one of count binary32 numbers is not finite. */
enum device_result launch_finite(const struct launcher *launcher, uint32_t *found,
                                 const void *values, uint64_t count);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_HASH_H */
