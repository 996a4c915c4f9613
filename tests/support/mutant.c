/* mutant.c - see mutant.h. */
#include "tests/support/mutant.h"

#include <stdbool.h>
#include <string.h>

#include "tests/support/test.h"

#define HEAD_SIZE 400 /* where most of what is not a hash stands */

void mutant_make(struct buffer *mutant, const struct buffer *original, uint64_t *random)
{
    uint64_t kind = test_random_below(random, 12);
    bool early = test_random_below(random, 3) > 0 && original->size > HEAD_SIZE;
    size_t size = early ? HEAD_SIZE : original->size;
    size_t at = test_random_below(random, size);

    buffer_clear(mutant);
    buffer_add(mutant, original->data, original->size);
    if (kind < 6) {
        mutant->data[at] ^= (uint8_t)(1 << test_random_below(random, 8));
    } else if (kind < 9) {
        mutant->data[at] = (uint8_t)(mutant->data[at] + (kind == 6 ? 1 : -1));
    } else if (kind == 9) {
        mutant->size = at;
    } else if (kind == 10) {
        buffer_add(mutant, original->data, 1 + test_random_below(random, 40));
    } else {
        size_t from = test_random_below(random, size);
        size_t count = 1 + test_random_below(random, 33);

        if (at + count <= mutant->size && from + count <= mutant->size) {
            memcpy(mutant->data + at, original->data + from, count);
        }
    }
}
