/* job.c - see job.h. The bytes are in job_file.c. */
#include "proofs/job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/hex.h"
#include "engine/rules/rule.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/element.h"
#include "proofs/job/job_header.h"

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
    free(job->draws);
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
    const struct tensor *shape = &job->tape->tensors[tensor];

    for (uint32_t i = 0; i < job->draw_count; i++) {
        if (job->draws[i].tensor == tensor) {
            init_fill(bytes, shape->count, &job->draws[i].init, job->seed, job->draws[i].stream);
            return;
        }
    }
    memset(bytes, 0, shape->count * dtype_size(shape->dtype));
}

/* ---- roots -------------------------------------------------------------- */

static enum status body_digest(struct digest *digest, const struct job *job, struct error *error)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    status = job_body_encode(&bytes, job, error);
    if (status == STATUS_OK) {
        sha256(digest, bytes.data, bytes.size);
    }
    buffer_release(&bytes);
    return status;
}

static struct digest constants_root(const struct job *job)
{
    struct commit_roots roots;
    struct digest root;
    uint32_t at = 0;

    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        if (job->tape->tensors[id].role == ROLE_CONSTANT) {
            commit_tensor_root(&root, COMMIT_TENSOR, &job->tape->tensors[id], job->constants[at++],
                               0);
            if (commit_roots_add(&roots, &root) != STATUS_OK) {
                abort(); /* a checked tape has fewer tensors than a list has places */
            }
        }
    }
    commit_roots_end(&roots, &root);
    return root;
}

static enum status drawn_state_root(struct job *job, struct error *error)
{
    struct commit_roots roots;
    struct digest root;

    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < job->tape->state_count; i++) {
        uint32_t id = job->tape->states[i].before;
        const struct tensor *tensor = &job->tape->tensors[id];
        void *bytes = malloc(tensor->count * dtype_size(tensor->dtype));

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the state '%s'", tensor->name);
        }
        job_first_state(bytes, job, id);
        commit_tensor_root(&root, COMMIT_TENSOR, tensor, bytes, 0);
        free(bytes);
        if (commit_roots_add(&roots, &root) != STATUS_OK) {
            abort(); /* a checked tape has fewer tensors than a list has places */
        }
    }
    commit_roots_end(&roots, &job->first_state_root);
    return STATUS_OK;
}

enum status job_header_make(struct job *job, const struct digest *body, struct error *error)
{
    uint8_t *at = job->header;
    struct digest roots[5];
    enum status status = descriptor_program_root(&roots[0], job->tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    roots[1] = *body;
    roots[2] = constants_root(job);
    commit_list_root(&roots[3], COMMIT_STATE, 0, job->data_roots, job->data_count);
    roots[4] = job->first_state_root;
    memset(job->header, 0, sizeof(job->header));
    memcpy(at, JOB_MAGIC, 8);
    endian_store_be32(at + 8, job->rules_version);
    endian_store_be64(at + 12, job->steps);
    endian_store_be64(at + 20, job->segment_length);
    endian_store_be64(at + 28, job->requirements.memory);
    endian_store_be32(at + 36, job->requirements.compute_capability);
    endian_store_be32(at + 40, job->requirements.contraction_rate);
    for (int i = 0; i < 5; i++) {
        memcpy(at + 56 + 32 * i, roots[i].bytes, DIGEST_SIZE);
    }
    commit_job_id(&job->id, job->header, sizeof(job->header));
    return STATUS_OK;
}

uint32_t job_unknown_rules(const char *path, const struct digest *id)
{
    uint8_t header[JOB_HEADER_SIZE];
    FILE *file = fopen(path, "rbe");
    size_t size = file == NULL ? 0 : fread(header, 1, sizeof(header), file);
    struct digest found;
    uint32_t version;

    if (file != NULL) {
        (void)fclose(file);
    }
    if (size != sizeof(header)) {
        return 0;
    }
    commit_job_id(&found, header, sizeof(header));
    version = endian_load_be32(header + 8);
    return digest_equal(&found, id) && version != RULES_VERSION ? version : 0;
}

/* ---- checks and making -------------------------------------------------- */

enum status job_terms_check(const struct job *job, struct error *error)
{
    uint32_t data = job_tensors(NULL, 0, job, ROLE_DATA);

    if (job->rules_version != RULES_VERSION) {
        return error_set(error, STATUS_REFUSED,
                         "the job is made for version %u of the rules; this program knows %d",
                         job->rules_version, RULES_VERSION);
    }
    if (job->steps == 0 || job->steps > JOB_STEPS_MAX || job->segment_length == 0 ||
        job->segment_length > job->steps) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%llu steps in segments of %llu: there must be 1 to %llu steps, and a "
                         "segment no longer than all of them",
                         (unsigned long long)job->steps, (unsigned long long)job->segment_length,
                         (unsigned long long)JOB_STEPS_MAX);
    }
    if (data != job->data_count || data > JOB_DATA_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%u roots of data for a tape with %u data tensors (at most %d)",
                         job->data_count, data, JOB_DATA_MAX);
    }
    if (job->tape->state_count == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the tape has no state to commit to");
    }
    if (job_tensors(NULL, 0, job, ROLE_INPUT) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the tape needs inputs that no job gives");
    }
    return STATUS_OK;
}

enum status job_constants_check(const struct job *job, struct error *error)
{
    uint32_t at = 0;

    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        const struct tensor *tensor = &job->tape->tensors[id];

        if (tensor->role != ROLE_CONSTANT) {
            continue;
        }
        if (tensor->dtype == DTYPE_F32 && !element_all_finite(job->constants[at], tensor->count)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the constant '%s' holds a NaN or an infinity", tensor->name);
        }
        at++;
    }
    return STATUS_OK;
}

static enum status take_model(struct job *job, struct model *model, struct error *error)
{
    job->tape = model->tape;
    model->tape = NULL;
    job->constants = calloc((size_t)model->constant_count + 1, sizeof(*job->constants));
    job->draws = calloc((size_t)model->parameter_count + 1, sizeof(*job->draws));
    if (job->constants == NULL || job->draws == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a job");
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        job->constants[job->constant_count++] = model->constants[i].bytes;
    }
    model->constant_count = 0;
    if (job->first_state_given) {
        return STATUS_OK; /* nothing is drawn, and the seed of the first state means nothing */
    }
    job->seed = model->options.seed;
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        uint32_t tensor = model->parameters[i].tensor;

        job->draws[job->draw_count++] =
            (struct job_draw){tensor, tensor, model->parameters[i].init};
    }
    return STATUS_OK;
}

static struct job *job_of_terms(const struct job_terms *terms)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->rules_version = RULES_VERSION;
    job->steps = terms->steps;
    job->segment_length = terms->segment_length;
    job->requirements = terms->requirements;
    job->data_count = terms->data_count;
    memcpy(job->data_roots, terms->data_roots, sizeof(job->data_roots));
    job->first_state_given = terms->first_state_given;
    job->first_state_root = terms->first_state_root;
    return job;
}

/* Checks what was put together, commits to it, and hands it over or frees it. */
static enum status finish(struct job **result, struct job *job, enum status status,
                          struct error *error)
{
    struct digest body;

    if (status == STATUS_OK) {
        status = job_terms_check(job, error);
    }
    if (status == STATUS_OK) {
        status = job_constants_check(job, error);
    }
    if (status == STATUS_OK && !job->first_state_given) {
        status = drawn_state_root(job, error);
    }
    if (status == STATUS_OK) {
        status = body_digest(&body, job, error);
    }
    if (status == STATUS_OK) {
        status = job_header_make(job, &body, error);
    }
    if (status != STATUS_OK) {
        job_free(job);
        return status;
    }
    *result = job;
    return STATUS_OK;
}

enum status job_from_model(struct job **result, struct model *model, const struct job_terms *terms,
                           struct error *error)
{
    struct job *job = job_of_terms(terms);

    if (job == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a job");
    }
    return finish(result, job, take_model(job, model, error), error);
}

enum status job_from_tape(struct job **result, struct tape *tape, void **constants,
                          uint32_t constant_count, const struct job_terms *terms,
                          struct error *error)
{
    struct job *job = job_of_terms(terms);
    enum status status = STATUS_OK;

    if (job == NULL) {
        tape_free(tape);
        for (uint32_t i = 0; i < constant_count; i++) {
            free(constants[i]);
        }
        free(constants);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a job");
    }
    job->tape = tape;
    job->constants = constants;
    job->constant_count = constant_count;
    if (constant_count != job_tensors(NULL, 0, job, ROLE_CONSTANT)) {
        status = error_set(error, STATUS_USAGE, "%u constants for a tape with %u", constant_count,
                           job_tensors(NULL, 0, job, ROLE_CONSTANT));
    }
    return finish(result, job, status, error);
}

/* ---- the view for people ------------------------------------------------ */

static json_t *digest_json(const uint8_t *bytes)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, bytes, DIGEST_SIZE);
    return json_string(text);
}

json_t *job_json(const struct job *job)
{
    struct tape_footprint footprint = tape_footprint(job->tape);
    json_t *data = json_array();

    for (uint32_t i = 0; i < job->data_count; i++) {
        (void)json_array_append_new(data, digest_json(job->data_roots[i].bytes));
    }
    return json_pack(
        "{s:o, s:i, s:I, s:I, s:I, s:{s:I, s:i, s:i},"
        " s:{s:i, s:i, s:i, s:I, s:I, s:I, s:I},"
        " s:{s:o, s:o, s:o, s:o, s:o}, s:o, s:b}",
        "id", digest_json(job->id.bytes), "rules_version", (int)job->rules_version, "steps",
        (json_int_t)job->steps, "segment_length", (json_int_t)job->segment_length, "segments",
        (json_int_t)job_segments(job), "requirements", "memory_bytes",
        (json_int_t)job->requirements.memory, "compute_capability",
        (int)job->requirements.compute_capability, "contraction_rate",
        (int)job->requirements.contraction_rate, "program", "operations", (int)job->tape->op_count,
        "tensors", (int)job->tape->tensor_count, "states", (int)job->tape->state_count,
        "state_bytes", (json_int_t)footprint.state, "constant_bytes",
        (json_int_t)footprint.constant, "data_bytes", (json_int_t)footprint.data, "trace_bytes",
        (json_int_t)footprint.trace, "roots", "program", digest_json(job->header + 56), "body",
        digest_json(job->header + 88), "constants", digest_json(job->header + 120), "data",
        digest_json(job->header + 152), "first_state", digest_json(job->header + 184), "data", data,
        "first_state_given", (int)job->first_state_given);
}
