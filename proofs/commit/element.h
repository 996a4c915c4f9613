/*
 * element.h - the element types in files of other programs, and their names in safetensors, in .npy
 * and in the engine. The engine computes with a few of them; the others can be named, measured and
 * skipped.
 */
#ifndef PROOFS_COMMIT_ELEMENT_H
#define PROOFS_COMMIT_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/ops/tensor.h"

#define ELEMENT_DIMS_MAX 8

enum element {
    ELEMENT_F32 = 0,
    ELEMENT_U8,
    ELEMENT_U16,
    ELEMENT_U32,
    ELEMENT_I16,
    ELEMENT_I32,
    ELEMENT_F16,
    ELEMENT_BF16, /* not in .npy */
    ELEMENT_F64,
    ELEMENT_I8,
    ELEMENT_I64,
    ELEMENT_U64,
    ELEMENT_BOOL,
};
#define ELEMENT_COUNT 13

size_t element_size(enum element element);

/* "F32"; never NULL. */
const char *element_safetensors_name(enum element element);

/* "<f4"; NULL where .npy has no such type. */
const char *element_npy_name(enum element element);

/* The element of that name; false: none has it. */
bool element_of_safetensors_name(enum element *element, const char *name);
bool element_of_npy_name(enum element *element, const char *name);

/* The engine's type; false: the engine has no such type. */
bool element_dtype(enum dtype *dtype, enum element element);
enum element element_of_dtype(enum dtype dtype);

/* Bytes of a dense array of these dims; false: they do not fit in 63 bits. */
bool element_array_size(uint64_t *size, enum element element, const uint64_t *dims, uint32_t rank);

/* Is none of count little-endian binary32 at bytes, which need no alignment, NaN or infinite? */
bool element_all_finite(const void *bytes, uint64_t count);

/* The little-endian element at bytes as rules see it: 32 bits, I16 sign-extended. */
uint32_t element_bits(const void *bytes, enum dtype dtype);

/* The same bits as an element of that type holds them: I16 cut to 16 bits and sign-extended. */
uint32_t element_cut(uint32_t bits, enum dtype dtype);

#endif /* PROOFS_COMMIT_ELEMENT_H */
