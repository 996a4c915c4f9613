/*
 * ranks_frame.h - the head of a message between ranks, as bytes. Its numbers are big-endian.
 *
 *     offset size
 *     0      8    RANKS_FRAME_MAGIC
 *     8      4    the rank that sends
 *     12     4    the rank that receives
 *     16     4    tag
 *     20     4    CRC-32C of the bytes that follow the head
 *     24     8    step
 *     32     8    number of the message, from that rank to this one
 *     40     8    bytes that follow the head
 *     48     32   job id
 *     80     32   HMAC-SHA-256 of the head up to here and of the bytes that follow;
 *                 zero through MPI
 */
#ifndef PROVER_RANKS_RANKS_FRAME_H
#define PROVER_RANKS_RANKS_FRAME_H

#include "prover/ranks/ranks_seal.h"

#define RANKS_FRAME_MAGIC "LSRANK\0\1"
#define RANKS_FRAME_SIZE  112

struct ranks_frame {
    uint32_t from;
    uint32_t to;
    uint32_t tag;
    uint64_t step;
    uint64_t number;
    uint64_t size;
    struct digest job;
};

/* key: NULL: no seal. */
void ranks_frame_write(uint8_t *head, const struct ranks_frame *frame, const struct ranks_key *key,
                       const void *bytes);

/* False: it does not begin as a message does. The rest is not checked. */
MUST_CHECK bool ranks_frame_read(struct ranks_frame *frame, const uint8_t *head);

/* Is it sealed with the key? */
MUST_CHECK bool ranks_frame_is_sealed(const uint8_t *head, const struct ranks_key *key,
                                      const void *bytes, uint64_t size);

/* Is the CRC that of the bytes? */
MUST_CHECK bool ranks_frame_is_whole(const uint8_t *head, const void *bytes, uint64_t size);

#endif /* PROVER_RANKS_RANKS_FRAME_H */
