/* division_bytes.c - see division_bytes.h. */
#include "tests/support/numeric/division_bytes.h"

uint64_t division_bytes(const struct division *division, const struct tape *tape)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < division->move_count; i++) {
        const struct tensor *tensor = &tape->tensors[division->moves[i].tensor];

        bytes += tensor_size(tensor);
    }
    return bytes;
}
