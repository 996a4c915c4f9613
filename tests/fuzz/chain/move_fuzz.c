/*
 * move_fuzz.c - any bytes as the file of a move in the folder of a dispute. What is read is written
 * back as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "verifier/dispute/dispute_move.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dispute_move move;
    struct buffer again;

    if (dispute_move_read(&move, data, size, NULL) != STATUS_OK) {
        return 0;
    }
    buffer_init(&again, size);
    dispute_move_write(&again, &move);
    if (again.size != size || memcmp(again.data, data, size) != 0) {
        abort();
    }
    buffer_release(&again);
    return 0;
}
