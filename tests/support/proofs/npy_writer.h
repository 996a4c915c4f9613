/* npy_writer.h - arrays as .npy files, as NumPy writes them: header version 1, little-endian. */
#ifndef TESTS_SUPPORT_PROOFS_NPY_WRITER_H
#define TESTS_SUPPORT_PROOFS_NPY_WRITER_H

#include "proofs/format/npy.h"

/* Writes the header of element, rank and dims (data at a multiple of 64), fills in data_offset and
 * data_size; returns the size. The element must have a name in .npy. */
size_t npy_header_write(uint8_t bytes[NPY_HEADER_MAX], struct npy *npy);

/* Writes a whole file at path, or none: npy->data_size bytes follow the header. */
MUST_CHECK enum status npy_write(const char *path, struct error *error, struct npy *npy,
                                 const void *data);

#endif /* TESTS_SUPPORT_PROOFS_NPY_WRITER_H */
