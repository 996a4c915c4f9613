/*
 * job_file.c - see job_file.h.
 *
 *     OFFSET  SIZE  MEANING
 *     0       8     "LSJOB" 0x00 0x00 0x02
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
 *             8     the seed of the tape's draws; 0 where the first state is given
 *             1+n   only where one of these is not empty: the title; then
 *             1+n   the name of the model
 *             4+n   only where there are some: the notes (job_notes.h)
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
#include "proofs/hash/sha256.h"
#include "proofs/job/job_check.h"
#include "proofs/job/job_notes.h"

/* ---- writing ------------------------------------------------------------ */

static void add_text(struct buffer *bytes, const char *text)
{
    size_t size = strlen(text);

    buffer_add_u8(bytes, (uint8_t)size);
    buffer_add(bytes, text, size);
}

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
    if (job->title[0] != '\0' || job->model[0] != '\0' || job->notes != NULL) {
        add_text(bytes, job->title);
        add_text(bytes, job->model);
    }
    if (job->notes != NULL) {
        buffer_add_u32(bytes, (uint32_t)strlen(job->notes));
        buffer_add_text(bytes, job->notes);
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

/* ---- the header --------------------------------------------------------- */

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
    endian_store_be32(at + JOB_AT_RULES, job->rules_version);
    endian_store_be64(at + JOB_AT_STEPS, job->steps);
    endian_store_be64(at + JOB_AT_SEGMENT, job->segment_length);
    endian_store_be64(at + JOB_AT_MEMORY, job->requirements.memory);
    endian_store_be32(at + JOB_AT_COMPUTE_CAPABILITY, job->requirements.compute_capability);
    endian_store_be32(at + JOB_AT_CONTRACTION_RATE, job->requirements.contraction_rate);
    for (int i = 0; i < 5; i++) {
        memcpy(at + JOB_AT_PROGRAM + DIGEST_SIZE * i, roots[i].bytes, DIGEST_SIZE);
    }
    commit_job_id(&job->id, job->header, sizeof(job->header));
    return STATUS_OK;
}

enum status job_complete(struct job *job, struct error *error)
{
    struct buffer bytes;
    struct digest body;
    enum status status;

    TRY(job_check_terms(job, error));
    TRY(job_check_constants(job, error));
    TRY(job_check_program(job, error));
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
        /* Memory only for bytes that are there: a tape can name constants of any size. */
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

    enum status status = job_check_constants(job, error);

    if (status != STATUS_OK) {
        (void)error_wrap(error, "the constants before byte %zu", reader->at);
    }
    return status;
}

static enum status read_draw(struct job *job, struct reader *reader, struct error *error)
{
    uint8_t given = reader_u8(reader);

    job->first_state_given = given == 1;
    job->seed = reader_u64(reader);
    if (given > 1 || (given == 1 && job->seed != 0)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "before byte %zu: a first state with flag %u and the seed %llu",
                         reader->at, given, (unsigned long long)job->seed);
    }
    return STATUS_OK;
}

/* A byte 0 in the text would hide what follows it. */
static enum status read_text(char text[JOB_TITLE_MAX + 1], struct reader *reader, const char *what,
                             struct error *error)
{
    uint8_t size = reader_u8(reader);

    if (size > JOB_TITLE_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "before byte %zu: the %s has more than %d bytes",
                         reader->at, what, JOB_TITLE_MAX);
    }
    reader_copy(reader, text, size);
    return strlen(text) == size || reader->failed
               ? job_check_text(text, what, error)
               : error_set(error, STATUS_BAD_FORMAT, "before byte %zu: the %s holds a byte 0",
                           reader->at, what);
}

static enum status read_notes(struct job *job, struct reader *reader, struct error *error)
{
    const uint32_t size = reader_u32(reader);

    if (size == 0 || size > JOB_NOTES_MAX || size > reader_left(reader)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "before byte %zu: notes of %u bytes; they have 1 to %u, all of them there",
                         reader->at, size, JOB_NOTES_MAX);
    }
    job->notes = calloc(1, (size_t)size + 1);
    if (job->notes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the notes of a job");
    }
    reader_copy(reader, (uint8_t *)job->notes, size);
    return strlen(job->notes) == size
               ? job_notes_check(job->notes, job->tape, error)
               : error_set(error, STATUS_BAD_FORMAT, "the notes of the job hold a byte 0");
}

static enum status read_texts(struct job *job, struct reader *reader, struct error *error)
{
    if (reader_left(reader) == 0) {
        return STATUS_OK;
    }
    TRY(read_text(job->title, reader, "title", error));
    TRY(read_text(job->model, reader, "name of the model", error));
    if (reader_left(reader) > 0) {
        return read_notes(job, reader, error);
    }
    return job->title[0] != '\0' || job->model[0] != '\0'
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT,
                           "before byte %zu: an empty title and an empty name", reader->at);
}

static enum status read_body(struct job *job, struct reader *reader, struct error *error)
{
    enum status status;

    TRY(read_tape(job, reader, error));
    TRY(read_constants(job, reader, error));
    job->data_count = job_tensors(NULL, 0, job, ROLE_DATA);
    status = job_check_terms(job, error);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "the terms from byte 8 on");
        return status;
    }
    job->data_roots = calloc((size_t)job->data_count + 1, sizeof(*job->data_roots));
    if (job->data_roots == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u roots", job->data_count);
    }
    for (uint32_t i = 0; i < job->data_count; i++) {
        reader_copy(reader, job->data_roots[i].bytes, DIGEST_SIZE);
    }
    TRY(read_draw(job, reader, error));
    TRY(read_texts(job, reader, error));
    TRY(reader_end(reader, error, "the job"));
    return job_check_program(job, error);
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

    if (header != NULL && memcmp(header, JOB_MAGIC, 7) == 0 && header[7] < JOB_FORMAT) {
        return error_set(error, STATUS_REFUSED,
                         "a job of version %u of the format; this program knows %d", header[7],
                         JOB_FORMAT);
    }
    if (header == NULL || memcmp(header, JOB_MAGIC, 8) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "byte 0: these bytes are not a job");
    }
    /* First: were these bytes agreed to, right or wrong? */
    sha256(&body_digest, body, reader_left(reader));
    if (memcmp(header + JOB_AT_BODY, body_digest.bytes, DIGEST_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte %d: the job's header does not commit to what follows it",
                         JOB_AT_BODY);
    }
    job->rules_version = endian_load_be32(header + JOB_AT_RULES);
    TRY(job_check_rules(job, error));
    job->steps = endian_load_be64(header + JOB_AT_STEPS);
    job->segment_length = endian_load_be64(header + JOB_AT_SEGMENT);
    job->requirements.memory = endian_load_be64(header + JOB_AT_MEMORY);
    job->requirements.compute_capability = endian_load_be32(header + JOB_AT_COMPUTE_CAPABILITY);
    job->requirements.contraction_rate = endian_load_be32(header + JOB_AT_CONTRACTION_RATE);
    memcpy(job->first_state_root.bytes, header + JOB_AT_FIRST_STATE, DIGEST_SIZE);
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
    version = endian_load_be32(header + JOB_AT_RULES);
    return digest_equal(&found, id) && version != RULES_VERSION ? version : 0;
}
