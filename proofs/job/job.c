/* job.c - see job.h. */
#include "proofs/job/job.h"

#include <stdlib.h>
#include <string.h>

void job_free(struct job *job)
{
    if (job == NULL) {
        return;
    }
    tape_free(job->tape);
    for (uint32_t i = 0; job->constants != NULL && i < job->constant_count; i++) {
        free(job->constants[i]);
    }
    free(job->constants);
    free(job->data_roots);
    free(job->notes);
    free(job);
}

uint32_t job_tensors(uint32_t *ids, uint32_t count_max, const struct job *job, enum role role)
{
    uint32_t count = 0;

    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        if (job->tape->tensors[id].role == role) {
            if (count < count_max) {
                ids[count] = id;
            }
            count++;
        }
    }
    return count;
}

uint64_t job_segments(const struct job *job)
{
    return (job->steps + job->segment_length - 1) / job->segment_length;
}

uint64_t job_segment_end(const struct job *job, uint64_t segment)
{
    uint64_t end = (segment + 1) * job->segment_length;

    return end < job->steps ? end : job->steps;
}

void job_first_state(void *bytes, const struct job *job, uint32_t tensor)
{
    tape_first_value(bytes, job->tape, tensor, job->seed);
}

const void *job_constant(const struct job *job, uint32_t tensor)
{
    uint32_t at = 0;

    for (uint32_t id = 0; id < tensor; id++) {
        at += job->tape->tensors[id].role == ROLE_CONSTANT;
    }
    return at < job->constant_count ? job->constants[at] : NULL;
}
