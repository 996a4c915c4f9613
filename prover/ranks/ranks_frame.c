/* ranks_frame.c - see ranks_frame.h. */
#include "prover/ranks/ranks_frame.h"

#include <string.h>

#include "base/endian.h"

enum {
    FROM_AT = 8,
    TO_AT = 12,
    TAG_AT = 16,
    CRC_AT = 20,
    STEP_AT = 24,
    NUMBER_AT = 32,
    SIZE_AT = 40,
    JOB_AT = 48,
    SEAL_AT = 80,
};

void ranks_frame_write(uint8_t *head, const struct ranks_frame *frame, const struct ranks_key *key,
                       const void *bytes)
{
    struct digest seal;

    memcpy(head, RANKS_FRAME_MAGIC, FROM_AT);
    endian_store_be32(head + FROM_AT, frame->from);
    endian_store_be32(head + TO_AT, frame->to);
    endian_store_be32(head + TAG_AT, frame->tag);
    endian_store_be32(head + CRC_AT, ranks_seal_crc(bytes, frame->size));
    endian_store_be64(head + STEP_AT, frame->step);
    endian_store_be64(head + NUMBER_AT, frame->number);
    endian_store_be64(head + SIZE_AT, frame->size);
    memcpy(head + JOB_AT, frame->job.bytes, DIGEST_SIZE);
    memset(head + SEAL_AT, 0, DIGEST_SIZE);
    if (key != NULL) {
        ranks_seal_hmac(&seal, key, head, SEAL_AT, bytes, frame->size);
        memcpy(head + SEAL_AT, seal.bytes, DIGEST_SIZE);
    }
}

bool ranks_frame_read(struct ranks_frame *frame, const uint8_t *head)
{
    frame->from = endian_load_be32(head + FROM_AT);
    frame->to = endian_load_be32(head + TO_AT);
    frame->tag = endian_load_be32(head + TAG_AT);
    frame->step = endian_load_be64(head + STEP_AT);
    frame->number = endian_load_be64(head + NUMBER_AT);
    frame->size = endian_load_be64(head + SIZE_AT);
    memcpy(frame->job.bytes, head + JOB_AT, DIGEST_SIZE);
    return memcmp(head, RANKS_FRAME_MAGIC, FROM_AT) == 0;
}

bool ranks_frame_is_sealed(const uint8_t *head, const struct ranks_key *key, const void *bytes,
                           uint64_t size)
{
    struct digest seal;

    ranks_seal_hmac(&seal, key, head, SEAL_AT, bytes, size);
    return secret_equal(seal.bytes, head + SEAL_AT, DIGEST_SIZE);
}

bool ranks_frame_is_whole(const uint8_t *head, const void *bytes, uint64_t size)
{
    return endian_load_be32(head + CRC_AT) == ranks_seal_crc(bytes, size);
}
