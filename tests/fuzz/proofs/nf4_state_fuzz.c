/* nf4_state_fuzz.c - any bytes as what a folder says of a weight of four bits: what is read has
 * sound sizes. */
#include <math.h>
#include <stdlib.h>

#include "proofs/widen/quantized.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nf4_state state;
    struct error error;
    uint64_t count = 1;

    error_init(&error);
    if (nf4_state_parse(&state, data, size, "state", &error) != STATUS_OK) {
        if (error.status == STATUS_OK || error.text[0] == '\0') {
            abort(); /* refused without a word */
        }
        return 0;
    }
    for (uint32_t i = 0; i < state.rank; i++) {
        count *= state.dims[i];
    }
    if (state.rank == 0 || state.rank > ELEMENT_DIMS_MAX || count != state.count || count == 0 ||
        state.group < 32 || state.group > NF4_GROUP_MAX ||
        (state.nested && (state.nested_group < 32 || !isfinite(state.nested_offset)))) {
        abort();
    }
    return 0;
}
