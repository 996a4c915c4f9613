/*
 * npy.h - arrays in NumPy's .npy files: header versions 1, 2 and 3, little-endian, C order.
 *
 * Refused: Fortran order, big-endian, structured and object types (which would run code in other
 * readers), headers above NPY_HEADER_MAX, and files that are not exactly as long as they say.
 */
#ifndef PROOFS_FORMAT_NPY_H
#define PROOFS_FORMAT_NPY_H

#include "base/error.h"
#include "proofs/commit/element.h"

#define NPY_HEADER_MAX 4096 /* with the magic and the length before it */

struct npy {
    enum element element;
    uint32_t rank;
    uint64_t dims[ELEMENT_DIMS_MAX];
    uint64_t data_offset;
    uint64_t data_size;
};

/*
 * Reads a header from the first min(file_size, NPY_HEADER_MAX) bytes of a file of file_size bytes.
 */
MUST_CHECK enum status npy_header_read(struct npy *npy, struct error *error, const uint8_t *bytes,
                                       uint64_t file_size);

#endif /* PROOFS_FORMAT_NPY_H */
