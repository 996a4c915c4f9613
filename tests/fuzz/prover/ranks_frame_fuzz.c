/*
 * ranks_frame_fuzz.c - any bytes as a message between ranks: a head, and what follows it. What is
 * read writes back to a head that is sealed and whole and reads the same; and a message that is
 * sealed and whole with the fuzzer's key has the one head that its numbers have.
 */
#include <stdlib.h>
#include <string.h>

#include "prover/ranks/ranks_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ranks_key key = {.bytes = "the key of ranks_frame_fuzz"};
    const uint8_t *bytes = data + RANKS_FRAME_SIZE;
    const uint64_t count = size - RANKS_FRAME_SIZE;
    uint8_t again[RANKS_FRAME_SIZE];
    struct ranks_frame frame;
    struct ranks_frame twice;

    /* Where it is read, a head of another size ends the connection. */
    if (size < RANKS_FRAME_SIZE || !ranks_frame_read(&frame, data) || frame.size != count) {
        return 0;
    }
    ranks_frame_write(again, &frame, &key, bytes);
    insist(ranks_frame_read(&twice, again) && ranks_frame_is_sealed(again, &key, bytes, count) &&
           ranks_frame_is_whole(again, bytes, count));
    insist(twice.from == frame.from && twice.to == frame.to && twice.tag == frame.tag &&
           twice.step == frame.step && twice.number == frame.number && twice.size == frame.size &&
           digest_equal(&twice.job, &frame.job));
    insist(!ranks_frame_is_sealed(data, &key, bytes, count) ||
           !ranks_frame_is_whole(data, bytes, count) || memcmp(again, data, RANKS_FRAME_SIZE) == 0);
    return 0;
}
