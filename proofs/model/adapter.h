/*
 * adapter.h - a low-rank adapter in a state, and the weight that it makes of the one beside it:
 * W + alpha / rank * B A, in binary64, rounded once.
 */
#ifndef PROOFS_MODEL_ADAPTER_H
#define PROOFS_MODEL_ADAPTER_H

#include "engine/tape/tape.h"
#include "proofs/format/safetensors.h"

struct adapter {
    const struct safetensors_entry *a; /* (rank, in); NULL: the tensor has no adapter */
    const struct safetensors_entry *b; /* (out, rank) */
    double scale;
    bool tokens; /* beside an embedding, whose rows are tokens: it is (in, out) */
};

/* Of a tensor of the base; adapter->a is NULL where it has none. */
void adapter_find(struct adapter *adapter, const struct tape *tape, const struct safetensors *state,
                  const char *name);

/* Adds the product to a weight of count numbers. in_first: it is (in, out). */
MUST_CHECK enum status adapter_merge(float *weight, const struct adapter *adapter,
                                     const struct safetensors *state, uint64_t count, bool in_first,
                                     struct error *error);

/* The same of numbers that were read, of the shapes that adapter->a and adapter->b have. */
void adapter_add(float *weight, const float *a, const float *b, const struct adapter *adapter,
                 bool in_first);

/* All of a tensor of binary32. The caller frees it, also after a failure. */
MUST_CHECK enum status adapter_read_part(float **values, const struct safetensors *file,
                                         const struct safetensors_entry *entry,
                                         struct error *error);

#endif /* PROOFS_MODEL_ADAPTER_H */
