/*
 * quantized.h - the 4-bit numbers of other programs, widened as their own programs widen them.
 *
 * NF4 of bitsandbytes: a table of 16 numbers times the largest of a group, one product in binary32.
 * Doubly quantized, the largest are bytes: a table of 256 numbers times a scale, plus an offset.
 * MXFP4 of the Open Compute Project: a number of four bits times a power of two, which BF16 holds
 * exactly.
 *
 * The words of such a file are hostile: bounded, strict JSON.
 */
#ifndef PROOFS_WIDEN_QUANTIZED_H
#define PROOFS_WIDEN_QUANTIZED_H

#include "base/error.h"
#include "proofs/commit/element.h"

#define NF4_CODES          16
#define NF4_NESTED_CODES   256
#define NF4_STATE_SIZE_MAX 4096
#define NF4_GROUP_MAX      4096

/* What ".quant_state.bitsandbytes__nf4" says of a weight. */
struct nf4_state {
    uint32_t rank;
    uint64_t dims[ELEMENT_DIMS_MAX];
    uint64_t count; /* numbers */
    uint32_t group; /* numbers that share a largest one */
    bool nested;    /* the largest are quantized too: */
    uint32_t nested_group;
    float nested_offset;
};

/* what names the tensor in errors. */
MUST_CHECK enum status nf4_state_parse(struct nf4_state *state, const void *bytes, size_t size,
                                       const char *what, struct error *error);

/* The number of a code, for a largest one of 1. */
float nf4_number(uint32_t code);

/* Two codes a byte: that of an even number stands in the upper half. */
uint32_t nf4_code(const uint8_t *packed, uint64_t number);

/* The largest of a group that is doubly quantized. */
float nf4_largest(const struct nf4_state *state, uint8_t byte, const float *codes, float scale);

/* The BF16 of a code of four bits under a scale; false: the scale is NaN, or overflows. */
bool mxfp4_number(uint16_t *number, uint32_t code, uint8_t scale);

#define MXFP4_GROUP 32 /* numbers that share a scale; 16 bytes, the even number in the lower half */

#endif /* PROOFS_WIDEN_QUANTIZED_H */
