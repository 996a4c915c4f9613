/*
 * job_file.c - see job_file.h.
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
#include "proofs/job/job_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/io/file.h"
#include "base/reader.h"
#include "engine/rules/rule.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/element.h"
#include "proofs/hash/sha256.h"

#define BODY_DIGEST_AT 88

/* ---- writing ------------------------------------------------------------ */

static enum status encode_body(struct buffer *bytes, const struct job *job, struct error *error)
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
            buffer_add(bytes, job->constants[constant++],
                       commit_tensor_size(&job->tape->tensors[id]));
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
    return encode_body(bytes, job, error);
}

enum status job_write(const struct job *job, const char *path, struct error *error)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    TRY_OUT(job_encode(&bytes, job, error));
    TRY_OUT(file_write_new(path, error, bytes.data, bytes.size, 0644));
out:
    buffer_release(&bytes);
    return status;
}

/* ---- checks and the header ---------------------------------------------- */

static enum status check_terms(const struct job *job, struct error *error)
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

static enum status check_constants(const struct job *job, struct error *error)
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
        void *bytes = malloc(commit_tensor_size(tensor));

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

/* Fills header and id from everything else; body is the SHA-256 of the encoded body. */
static enum status make_header(struct job *job, const struct digest *body, struct error *error)
{
    uint8_t *at = job->header;
    struct digest roots[5];

    TRY(descriptor_program_root(&roots[0], job->tape, error));
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

enum status job_complete(struct job *job, struct error *error)
{
    struct buffer bytes;
    struct digest body;
    enum status status;

    TRY(check_terms(job, error));
    TRY(check_constants(job, error));
    if (!job->first_state_given) {
        TRY(drawn_state_root(job, error));
    }
    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    TRY_OUT(encode_body(&bytes, job, error));
    sha256(&body, bytes.data, bytes.size);
    TRY_OUT(make_header(job, &body, error));
out:
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
        if (commit_tensor_size(tensor) > reader_left(reader)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "byte %zu: the job ends inside the constant '%s'", reader->at,
                             tensor->name);
        }
        copy = malloc(commit_tensor_size(tensor));
        if (copy == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the constant '%s'",
                             tensor->name);
        }
        reader_copy(reader, copy, commit_tensor_size(tensor));
        job->constants[job->constant_count++] = copy;
    }

    enum status status = check_constants(job, error);

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
        /* The ids rise: a tensor has one draw, and a job one encoding. */
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
    enum status status;

    TRY(read_tape(job, reader, error));
    TRY(read_constants(job, reader, error));
    job->data_count = job_tensors(NULL, 0, job, ROLE_DATA);
    status = check_terms(job, error);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "the terms from byte 8 on");
        return status;
    }
    for (uint32_t i = 0; i < job->data_count; i++) {
        reader_copy(reader, job->data_roots[i].bytes, DIGEST_SIZE);
    }
    TRY(read_draws(job, reader, error));
    return reader_end(reader, error, "the job");
}

/* The byte at which two different headers differ first. */
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

    if (header == NULL || memcmp(header, JOB_MAGIC, 8) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "byte 0: these bytes are not a job");
    }
    /* First: were these bytes agreed to, right or wrong? */
    sha256(&body_digest, body, reader_left(reader));
    if (memcmp(header + BODY_DIGEST_AT, body_digest.bytes, DIGEST_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte %d: the job's header does not commit to what follows it",
                         BODY_DIGEST_AT);
    }
    job->rules_version = endian_load_be32(header + 8);
    job->steps = endian_load_be64(header + 12);
    job->segment_length = endian_load_be64(header + 20);
    job->requirements.memory = endian_load_be64(header + 28);
    job->requirements.compute_capability = endian_load_be32(header + 36);
    job->requirements.contraction_rate = endian_load_be32(header + 40);
    memcpy(job->first_state_root.bytes, header + 184, DIGEST_SIZE);
    TRY(read_body(job, reader, error));
    TRY(make_header(job, &body_digest, error));
    if (memcmp(job->header, header, JOB_HEADER_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte %zu: the header does not match the bytes after it",
                         first_difference(job->header, header));
    }
    return STATUS_OK;
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
    enum status status;

    TRY(file_read(&bytes, error, path, JOB_FILE_SIZE_MAX));
    status = job_parse(job, bytes.data, bytes.size, error);
    file_bytes_release(&bytes);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s", path);
    }
    return status;
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
