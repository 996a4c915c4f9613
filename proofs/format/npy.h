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
 * Reads a header from the first bytes of a file of file_size bytes: min(file_size, NPY_HEADER_MAX)
 * of them.
 */
MUST_CHECK enum status npy_header_read(struct npy *npy, struct error *error, const uint8_t *bytes,
                                       uint64_t file_size);

/* Writes the header of element, rank and dims (version 1, data at a multiple of 64), fills in
 * data_offset and data_size; returns the size. The element must have a name in .npy. */
size_t npy_header_write(uint8_t bytes[NPY_HEADER_MAX], struct npy *npy);

#endif /* PROOFS_FORMAT_NPY_H */
