/*
 * npy_fuzz.c - any bytes as an .npy file: the data lies inside the file, and the header, written by
 * our writer, reads the same.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/format/npy.h"
#include "tests/support/proofs/npy_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct npy npy;
    struct npy again;
    uint8_t header[NPY_HEADER_MAX];

    error_init(&error);
    if (npy_header_read(&npy, &error, data, size) != STATUS_OK) {
        return 0;
    }
    if (npy.data_offset + npy.data_size != size || npy.rank > ELEMENT_DIMS_MAX) {
        abort();
    }
    again = npy;

    size_t header_size = npy_header_write(header, &again);
    struct npy read;

    if (npy_header_read(&read, &error, header, header_size + npy.data_size) != STATUS_OK ||
        read.element != npy.element || read.rank != npy.rank ||
        memcmp(read.dims, npy.dims, sizeof(npy.dims)) != 0) {
        abort();
    }
    return 0;
}
