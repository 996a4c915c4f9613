/*
 * job_file.c - the bytes of a job file; see job.h.
 *
 *     OFFSET  SIZE  MEANING
 *     0       8     "LSJOB" 0x00 0x00 0x01
 *     8       4     version of the rules
 *     12      8     steps
 *     20      8     steps of a segment
 *     28      8     memory that a machine must have, bytes
 *     36      4     compute capability that a CUDA device must have
 *     40      4     contraction rate that a machine must have
 *     44      12    zeros
 *     56      32    program root
 *     88      32    SHA-256 of everything after the header
 *     120     32    root of the list of the constants' roots
 *     152     32    root of the list of the data's roots
 *     184     32    root of the first state
 *     216           end of the header, whose hash is the job id; then
 *             8+n   length of the tape, the tape
 *             ...   the constants, in the tape's order, one after another
 *             32d   the roots of the data tensors, in the tape's order
 *             1     1: the first state is given as a checkpoint; 0: it is drawn
 *             8+4   seed; number of draws
 *             13    each draw: tensor (4), stream (4), kind (1), value bits (4)
 */
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/io/file.h"
#include "base/reader.h"
#include "proofs/job/job_header.h"

static uint64_t tensor_size(const struct tensor *tensor)
{
    return tensor->count * dtype_size(tensor->dtype);
}

/* ---- writing ------------------------------------------------------------ */

enum status job_body_encode(struct buffer *bytes, const struct job *job, struct error *error)
{
    uint64_t tape_size = tape_encoded_size(job->tape);
    uint8_t *tape = malloc(tape_size);
    uint32_t constant = 0;

    if (tape == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a tape");
    }
    tape_encode(tape, job->tape);
    buffer_add_u64(bytes, tape_size);
    buffer_add(bytes, tape, tape_size);
    free(tape);
    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        if (job->tape->tensors[id].role == ROLE_CONSTANT) {
            buffer_add(bytes, job->constants[constant++], tensor_size(&job->tape->tensors[id]));
        }
    }
    for (uint32_t i = 0; i < job->data_count; i++) {
        buffer_add(bytes, job->data_roots[i].bytes, DIGEST_SIZE);
    }
    buffer_add_u8(bytes, job->first_state_given);
    buffer_add_u64(bytes, job->seed);
    buffer_add_u32(bytes, job->draw_count);
    for (uint32_t i = 0; i < job->draw_count; i++) {
        buffer_add_u32(bytes, job->draws[i].tensor);
        buffer_add_u32(bytes, job->draws[i].stream);
        buffer_add_u8(bytes, (uint8_t)job->draws[i].init.kind);
        buffer_add_u32(bytes, job->draws[i].init.value_bits);
    }
    return buffer_check(bytes, error, "the job file");
}

enum status job_encode(struct buffer *bytes, const struct job *job, struct error *error)
{
    buffer_add(bytes, job->header, JOB_HEADER_SIZE);
    return job_body_encode(bytes, job, error);
}

enum status job_write(const struct job *job, const char *path, struct error *error)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    status = job_encode(&bytes, job, error);
    if (status == STATUS_OK) {
        status = file_write_new(path, error, bytes.data, bytes.size, 0644);
    }
    buffer_release(&bytes);
    return status;
}

/* ---- reading ------------------------------------------------------------ */

static enum status read_tape(struct job *job, struct reader *reader, struct error *error)
{
    uint64_t size = reader_u64(reader);
    const uint8_t *bytes;

    if (size > reader_left(reader)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte %d: the job ends inside its tape of %llu bytes", JOB_HEADER_SIZE,
                         (unsigned long long)size);
    }
    bytes = reader_take(reader, size);

    enum status status = tape_parse(&job->tape, bytes, size, error);

    if (status != STATUS_OK) {
        (void)error_wrap(error, "the tape from byte %d on", JOB_HEADER_SIZE + 8);
    }
    return status;
}

static enum status read_constants(struct job *job, struct reader *reader, struct error *error)
{
    uint32_t count = job_tensors(NULL, 0, job, ROLE_CONSTANT);

    job->constants = calloc((size_t)count + 1, sizeof(*job->constants));
    if (job->constants == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u constants", count);
    }
    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        const struct tensor *tensor = &job->tape->tensors[id];
        void *copy;

        if (tensor->role != ROLE_CONSTANT) {
            continue;
        }
        if (tensor_size(tensor) > reader_left(reader)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "byte %zu: the job ends inside the constant '%s'", reader->at,
                             tensor->name);
        }
        copy = malloc(tensor_size(tensor));
        if (copy == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the constant '%s'",
                             tensor->name);
        }
        reader_copy(reader, copy, tensor_size(tensor));
        job->constants[job->constant_count++] = copy;
    }

    enum status status = job_constants_check(job, error);

    if (status != STATUS_OK) {
        (void)error_wrap(error, "the constants before byte %zu", reader->at);
    }
    return status;
}

static bool draw_is_sound(const struct job *job, const struct job_draw *draw)
{
    return draw->tensor < job->tape->tensor_count &&
           job->tape->tensors[draw->tensor].role == ROLE_STATE &&
           job->tape->tensors[draw->tensor].dtype == DTYPE_F32 &&
           (unsigned)draw->init.kind <= INIT_NORMAL &&
           (draw->init.value_bits & UINT32_C(0x7f800000)) != UINT32_C(0x7f800000);
}

static enum status read_draws(struct job *job, struct reader *reader, struct error *error)
{
    uint8_t given = reader_u8(reader);
    uint32_t count;

    job->first_state_given = given == 1;
    job->seed = reader_u64(reader);
    count = reader_u32(reader);
    if (given > 1 || count > job->tape->state_count || (given == 1 && count != 0)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "before byte %zu: %u draws for %u states, flag %u", reader->at, count,
                         job->tape->state_count, given);
    }
    job->draws = calloc((size_t)count + 1, sizeof(*job->draws));
    if (job->draws == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u draws", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct job_draw *draw = &job->draws[i];

        draw->tensor = reader_u32(reader);
        draw->stream = reader_u32(reader);
        draw->init.kind = (enum init_kind)reader_u8(reader);
        draw->init.value_bits = reader_u32(reader);
        /* Rising ids: one draw a tensor, and one way to write a job. */
        if (reader->failed || !draw_is_sound(job, draw) ||
            (i > 0 && draw->tensor <= job->draws[i - 1].tensor)) {
            return error_set(error, STATUS_BAD_FORMAT, "draw %u, before byte %zu, makes no sense",
                             i, reader->at);
        }
        job->draw_count++;
    }
    return STATUS_OK;
}

static enum status read_body(struct job *job, struct reader *reader, struct error *error)
{
    enum status status = read_tape(job, reader, error);

    if (status == STATUS_OK) {
        status = read_constants(job, reader, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    job->data_count = job_tensors(NULL, 0, job, ROLE_DATA);
    status = job_terms_check(job, error);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "the terms from byte 8 on");
        return status;
    }
    for (uint32_t i = 0; i < job->data_count; i++) {
        reader_copy(reader, job->data_roots[i].bytes, DIGEST_SIZE);
    }
    status = read_draws(job, reader, error);
    return status == STATUS_OK ? reader_end(reader, error, "the job") : status;
}

/* Of two headers that are not the same. */
static size_t first_difference(const uint8_t *left, const uint8_t *right)
{
    size_t at = 0;

    while (at + 1 < JOB_HEADER_SIZE && left[at] == right[at]) {
        at++;
    }
    return at;
}

static enum status read_job(struct job *job, struct reader *reader, struct error *error)
{
    const uint8_t *header = reader_take(reader, JOB_HEADER_SIZE);
    const uint8_t *body = reader->bytes + reader->at;
    struct digest body_digest;
    enum status status;

    if (header == NULL || memcmp(header, JOB_MAGIC, 8) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "byte 0: these bytes are not a job");
    }
    /* First of all: what is behind the header was agreed to, whatever else is wrong with it. */
    sha256(&body_digest, body, reader_left(reader));
    if (memcmp(header + JOB_BODY_DIGEST_AT, body_digest.bytes, DIGEST_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte %d: the job's header does not commit to what follows it",
                         JOB_BODY_DIGEST_AT);
    }
    job->rules_version = endian_load_be32(header + 8);
    job->steps = endian_load_be64(header + 12);
    job->segment_length = endian_load_be64(header + 20);
    job->requirements.memory = endian_load_be64(header + 28);
    job->requirements.compute_capability = endian_load_be32(header + 36);
    job->requirements.contraction_rate = endian_load_be32(header + 40);
    memcpy(job->first_state_root.bytes, header + 184, DIGEST_SIZE);
    status = read_body(job, reader, error);
    if (status == STATUS_OK) {
        status = job_header_make(job, &body_digest, error);
    }
    if (status == STATUS_OK && memcmp(job->header, header, JOB_HEADER_SIZE) != 0) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "byte %zu: the header is not that of what follows it",
                           first_difference(job->header, header));
    }
    return status;
}

enum status job_parse(struct job **result, const uint8_t *bytes, size_t size, struct error *error)
{
    struct job *job = calloc(1, sizeof(*job));
    struct reader reader;
    enum status status;

    if (job == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a job");
    }
    reader_init(&reader, bytes, size);
    status = read_job(job, &reader, error);
    if (status != STATUS_OK) {
        job_free(job);
        return status;
    }
    *result = job;
    return STATUS_OK;
}

enum status job_read(struct job **job, const char *path, struct error *error)
{
    struct file_bytes bytes;
    enum status status = file_read(&bytes, error, path, JOB_FILE_SIZE_MAX);

    if (status == STATUS_OK) {
        status = job_parse(job, bytes.data, bytes.size, error);
        if (status != STATUS_OK) {
            (void)error_wrap(error, "%s", path);
        }
    }
    file_bytes_release(&bytes);
    return status;
}
