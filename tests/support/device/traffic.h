/*
 * traffic.h - how many bytes a step moves on a device: an account of what is launched, not a
 * measurement.
 *
 * Launches are counted, never run, so it needs no GPU. A pass over a tensor counts whole. What the
 * same block of threads looks at again, while a cache still has it (a row of up to 16 KiB), is
 * counted apart; what is brought several times inside of one pass (tiles of a product, a bias)
 * counts once.
 */
#ifndef TESTS_SUPPORT_DEVICE_TRAFFIC_H
#define TESTS_SUPPORT_DEVICE_TRAFFIC_H

#include "engine/cuda/machine/machine.h"

struct traffic {
    uint64_t launches; /* of kernels, and fills */
    uint64_t read;     /* bytes */
    uint64_t again;    /* bytes that were read a moment ago */
    uint64_t written;
    uint64_t least; /* bytes: each input read once, each output that anybody needs written once */
};

/* counts[op_count], all zero; what is launched together is counted at its first operation. */
void traffic_count(struct traffic *counts, const struct machine *machine);

/* What is launched there: an operation of the tape, or what it was rewritten to, or moved. */
const struct op *traffic_op(const struct machine *machine, uint32_t at);

#endif /* TESTS_SUPPORT_DEVICE_TRAFFIC_H */
