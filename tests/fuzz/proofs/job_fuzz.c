/*
 * job_fuzz.c - any bytes as a job file. First byte 1: the header is made to commit to the rest
 * first, as a forger would, so that the readers of the rest see the bytes too. A job that is
 * accepted writes back to the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/hash/sha256.h"
#include "proofs/job/job.h"
#include "proofs/job/job_facts.h"
#include "proofs/job/job_file.h"
#include "proofs/run/module_shares.h"

#define BODY_DIGEST 88

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *bytes, size_t size)
{
    struct job *job = NULL;
    struct module_shares shares;
    struct buffer again;
    json_t *view;

    if (job_parse(&job, bytes, size, NULL) != STATUS_OK) {
        return;
    }
    buffer_init(&again, JOB_FILE_SIZE_MAX);
    if (job_encode(&again, job, NULL) != STATUS_OK || again.size != size ||
        memcmp(again.data, bytes, size) != 0) {
        abort();
    }
    if (job_segments(job) == 0 || job_segment_end(job, job_segments(job) - 1) != job->steps) {
        abort();
    }
    if (module_shares_find(&shares, job, NULL) == STATUS_OK) {
        module_shares_fold(&shares, 4);
        module_shares_release(&shares);
    }
    view = job_json(job);
    json_decref(view);
    buffer_release(&again);
    job_free(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size == 0) {
        return 0;
    }
    copy = malloc(size);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data + 1, size - 1);
    if (data[0] == 1 && size > JOB_HEADER_SIZE) {
        struct digest digest;

        sha256(&digest, copy + JOB_HEADER_SIZE, size - 1 - JOB_HEADER_SIZE);
        memcpy(copy + BODY_DIGEST, digest.bytes, DIGEST_SIZE);
    }
    check(copy, size - 1);
    free(copy);
    return 0;
}
