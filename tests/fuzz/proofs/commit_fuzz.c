/* commit_fuzz.c - any bytes as the header of a tensor: what is read is sound and writes back to
 * the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tensor tensor;
    enum commit_array kind;
    struct digest root;
    uint8_t again[COMMIT_TENSOR_HEADER_MAX];

    if (commit_tensor_header_read(&tensor, &kind, &root, data, size) != STATUS_OK) {
        return 0;
    }
    if (!commit_tensor_sound(&tensor) ||
        commit_tensor_header(again, kind, &tensor, &root) != size ||
        memcmp(again, data, size) != 0) {
        abort();
    }
    return 0;
}
