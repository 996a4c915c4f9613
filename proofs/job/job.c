/* job.c - see job.h. */
#include "proofs/job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

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

/* ---- the view for people ------------------------------------------------ */

static json_t *digest_json(const uint8_t *bytes)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, bytes, DIGEST_SIZE);
    return json_string(text);
}

/* Of each data tensor, in the order of the roots: its name, type and dims. */
static json_t *shapes_json(json_t *names, json_t *types, const struct tape *tape)
{
    json_t *shapes = json_array();

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_DATA) {
            json_t *dims = json_array();

            for (uint32_t i = 0; i < tensor->rank; i++) {
                (void)json_array_append_new(dims, json_integer((json_int_t)tensor->dims[i]));
            }
            (void)json_array_append_new(shapes, dims);
            (void)json_array_append_new(names, json_string(tensor->name));
            (void)json_array_append_new(types, json_string(dtype_name(tensor->dtype)));
        }
    }
    return shapes;
}

json_t *job_json(const struct job *job)
{
    struct tape_footprint footprint = tape_footprint(job->tape);
    json_t *data = json_array();
    json_t *names = json_array();
    json_t *types = json_array();
    json_t *shapes = shapes_json(names, types, job->tape);

    for (uint32_t i = 0; i < job->data_count; i++) {
        (void)json_array_append_new(data, digest_json(job->data_roots[i].bytes));
    }
    return json_pack(
        "{s:o, s:i, s:I, s:I, s:I, s:{s:I, s:i, s:i},"
        " s:{s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I},"
        " s:{s:o, s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:b}",
        "id", digest_json(job->id.bytes), "rules_version", (int)job->rules_version, "steps",
        (json_int_t)job->steps, "segment_length", (json_int_t)job->segment_length, "segments",
        (json_int_t)job_segments(job), "requirements", "memory_bytes",
        (json_int_t)job->requirements.memory, "compute_capability",
        (int)job->requirements.compute_capability, "contraction_rate",
        (int)job->requirements.contraction_rate, "program", "operations", (int)job->tape->op_count,
        "tensors", (int)job->tape->tensor_count, "micro_batches",
        job->tape->brief == NULL ? 1 : (int)job->tape->brief->repeat.times, "states",
        (int)job->tape->state_count, "state_bytes", (json_int_t)footprint.state, "constant_bytes",
        (json_int_t)footprint.constant, "data_bytes", (json_int_t)footprint.data, "trace_bytes",
        (json_int_t)footprint.trace, "roots", "program", digest_json(job->header + 56), "body",
        digest_json(job->header + 88), "constants", digest_json(job->header + 120), "data",
        digest_json(job->header + 152), "first_state", digest_json(job->header + 184), "data", data,
        "data_shapes", shapes, "data_names", names, "data_types", types, "first_state_given",
        (int)job->first_state_given);
}
