/* element.c - see element.h. */
#include "proofs/commit/element.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"

struct names {
    const char *safetensors;
    const char *npy;
    uint8_t size;
};

static const struct names table[ELEMENT_COUNT] = {
    [ELEMENT_F32] = {"F32", "<f4", 4},   [ELEMENT_U8] = {"U8", "|u1", 1},
    [ELEMENT_U16] = {"U16", "<u2", 2},   [ELEMENT_U32] = {"U32", "<u4", 4},
    [ELEMENT_I16] = {"I16", "<i2", 2},   [ELEMENT_I32] = {"I32", "<i4", 4},
    [ELEMENT_F16] = {"F16", "<f2", 2},   [ELEMENT_BF16] = {"BF16", NULL, 2},
    [ELEMENT_F64] = {"F64", "<f8", 8},   [ELEMENT_I8] = {"I8", "|i1", 1},
    [ELEMENT_I64] = {"I64", "<i8", 8},   [ELEMENT_U64] = {"U64", "<u8", 8},
    [ELEMENT_BOOL] = {"BOOL", "|b1", 1},
};

_Static_assert((int)ELEMENT_F32 == (int)DTYPE_F32 && (int)ELEMENT_U8 == (int)DTYPE_U8 &&
                   (int)ELEMENT_U16 == (int)DTYPE_U16 && (int)ELEMENT_U32 == (int)DTYPE_U32 &&
                   (int)ELEMENT_I16 == (int)DTYPE_I16 && (int)ELEMENT_I32 == (int)DTYPE_I32 &&
                   (int)ELEMENT_F16 == (int)DTYPE_F16 && (int)ELEMENT_BF16 == (int)DTYPE_BF16,
               "the engine's types come first, in its order");

size_t element_size(enum element element)
{
    assert((unsigned)element < ELEMENT_COUNT);
    return table[element].size;
}

const char *element_safetensors_name(enum element element)
{
    assert((unsigned)element < ELEMENT_COUNT);
    return table[element].safetensors;
}

const char *element_npy_name(enum element element)
{
    assert((unsigned)element < ELEMENT_COUNT);
    return table[element].npy;
}

bool element_of_safetensors_name(enum element *element, const char *name)
{
    for (int i = 0; i < ELEMENT_COUNT; i++) {
        if (strcmp(table[i].safetensors, name) == 0) {
            *element = (enum element)i;
            return true;
        }
    }
    return false;
}

bool element_of_npy_name(enum element *element, const char *name)
{
    for (int i = 0; i < ELEMENT_COUNT; i++) {
        if (table[i].npy != NULL && strcmp(table[i].npy, name) == 0) {
            *element = (enum element)i;
            return true;
        }
    }
    return false;
}

bool element_dtype(enum dtype *dtype, enum element element)
{
    if ((int)element >= (int)DTYPE_COUNT) {
        return false;
    }
    *dtype = (enum dtype)(int)element;
    return true;
}

enum element element_of_dtype(enum dtype dtype)
{
    return (enum element)(int)dtype;
}

bool element_array_size(uint64_t *size, enum element element, const uint64_t *dims, uint32_t rank)
{
    uint64_t product = element_size(element);
    bool empty = false;

    for (uint32_t i = 0; i < rank; i++) {
        empty = empty || dims[i] == 0;
    }
    for (uint32_t i = 0; i < rank && !empty; i++) {
        if (dims[i] > INT64_MAX / product) {
            return false;
        }
        product *= dims[i];
    }
    *size = empty ? 0 : product;
    return true;
}

bool element_all_finite(const void *bytes, uint64_t count)
{
    const uint8_t *at = bytes;
    uint32_t found = 0;

    /* A NaN or an infinity has all exponent bits set. States are large, so the loop must
     * vectorize. */
#pragma omp simd reduction(| : found)
    for (uint64_t i = 0; i < count; i++) {
        found |= (endian_load_le32(at + 4 * i) & UINT32_C(0x7f800000)) == UINT32_C(0x7f800000);
    }
    return found == 0;
}

uint32_t element_bits(const void *bytes, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
    case DTYPE_U32:
    case DTYPE_I32:
        return endian_load_le32(bytes);
    case DTYPE_U8:
        return *(const uint8_t *)bytes;
    case DTYPE_U16:
    case DTYPE_F16:
    case DTYPE_BF16:
        return endian_load_le16(bytes);
    case DTYPE_I16:
        return (uint32_t)(int32_t)(int16_t)endian_load_le16(bytes);
    case DTYPE_COUNT:
        break;
    }
    return 0;
}

uint32_t element_cut(uint32_t bits, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_U8:
        return (uint8_t)bits;
    case DTYPE_U16:
    case DTYPE_F16:
    case DTYPE_BF16:
        return (uint16_t)bits;
    case DTYPE_I16:
        return (uint32_t)(int32_t)(int16_t)bits;
    case DTYPE_F32:
    case DTYPE_U32:
    case DTYPE_I32:
    case DTYPE_COUNT:
        break;
    }
    return bits;
}
