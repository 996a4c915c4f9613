/*
 * opening_fuzz.c - a trace root, then any bytes as an opening under it. What is read writes back to
 * the same bytes; an opening that is accepted lies inside its own tensor.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[TRACE_OPENING_BYTES_MAX];
    const struct tape tape = {.state_count = 2};
    struct trace_opening opening;
    struct digest root;
    uint32_t bits = 0;

    if (size < DIGEST_SIZE) {
        return 0;
    }
    memcpy(root.bytes, data, DIGEST_SIZE);
    data += DIGEST_SIZE;
    size -= DIGEST_SIZE;
    if (trace_opening_read(&opening, data, size) != STATUS_OK) {
        return 0;
    }
    if (trace_opening_write(bytes, &opening) != size || memcmp(bytes, data, size) != 0) {
        abort();
    }
    if (trace_opening_check(&bits, &opening, &root, &tape) == VERDICT_VALID) {
        struct tensor tensor;
        enum commit_array kind;
        struct digest leaves;

        if (opening.item > 1 ||
            commit_tensor_header_read(&tensor, &kind, &leaves, opening.header,
                                      opening.header_size) != STATUS_OK ||
            opening.element >= tensor.count) {
            abort();
        }
    }
    return 0;
}
