/*
 * traffic.h - how many bytes a step moves on a device: an account of what is launched, not a
 * measurement.
 *
 * Launches are counted, never run, so it needs no GPU. A pass over a tensor counts whole, also where
 * a cache serves it: an operation that reads a row three times has three reads. What is brought
 * several times inside of one pass (tiles of a product, a bias) counts once.
 */
#ifndef ENGINE_CUDA_TRAFFIC_H
#define ENGINE_CUDA_TRAFFIC_H

#include "engine/cuda/machine.h"

struct traffic {
    uint64_t launches; /* of kernels, and fills */
    uint64_t read;     /* bytes */
    uint64_t written;
    uint64_t least; /* bytes: each input read once, each output that anybody needs written once */
};

/* counts[op_count]; what is launched together is counted at its first operation. */
void machine_cuda_traffic(struct traffic *counts, const struct machine *machine);

#endif /* ENGINE_CUDA_TRAFFIC_H */
