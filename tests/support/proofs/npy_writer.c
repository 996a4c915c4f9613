/* npy_writer.c - see npy_writer.h. */
#include "tests/support/proofs/npy_writer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "base/io/whole_file.h"

size_t npy_header_write(uint8_t bytes[NPY_HEADER_MAX], struct npy *npy)
{
    char *text = (char *)bytes + 10;
    size_t room = NPY_HEADER_MAX - 10;
    size_t used;
    size_t size;
    bool fits = element_array_size(&npy->data_size, npy->element, npy->dims, npy->rank);

    assert(fits);
    assert(npy->rank <= ELEMENT_DIMS_MAX);
    assert(element_npy_name(npy->element) != NULL);
    used = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                            element_npy_name(npy->element));
    for (uint32_t i = 0; i < npy->rank; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s%llu%s", i == 0 ? "" : " ",
                                 (unsigned long long)npy->dims[i],
                                 i + 1 < npy->rank || npy->rank == 1 ? "," : "");
    }
    used += (size_t)snprintf(text + used, room - used, "), }");
    size = (10 + used + 1 + 63) / 64 * 64;
    memset(text + used, ' ', size - 10 - used);
    bytes[size - 1] = '\n';
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = 1;
    bytes[7] = 0;
    endian_store_le16(bytes + 8, (uint16_t)(size - 10));
    npy->data_offset = size;
    return size;
}

enum status npy_write(const char *path, struct error *error, struct npy *npy, const void *data)
{
    uint8_t header[NPY_HEADER_MAX];
    size_t header_size = npy_header_write(header, npy);
    struct whole_file file;
    enum status status;

    TRY(whole_file_open(&file, error, path, 0644));
    TRY_OUT(whole_file_add(&file, error, header, header_size));
    TRY_OUT(whole_file_add(&file, error, data, (size_t)npy->data_size));
    return whole_file_keep(&file, error);
out:
    whole_file_drop(&file);
    return status;
}
