/* lists.h - the lists in device memory that the launches of lists.c go through. */
#ifndef ENGINE_CUDA_FUSIONS_LISTS_H
#define ENGINE_CUDA_FUSIONS_LISTS_H

#include "engine/cuda/fusions/fusion.h"

/* Writes them to host as they are for memory at `device`; host NULL: finds fusion->size only. */
void lists_write(struct fusion *fusion, const struct launcher *launcher, uint8_t *host,
                 uint8_t *device);

#endif /* ENGINE_CUDA_FUSIONS_LISTS_H */
