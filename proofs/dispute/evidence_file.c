/*
 * evidence_file.c - see evidence_file.h.
 *
 *     OFFSET  SIZE  MEANING
 *     0       8     "LSEVID" 0x00 0x01
 *     8       216   the job's header
 *     224     8     step
 *     232     32x3  P, Q, T
 *     328     1     flags: 2 the job is said to have diverged here,
 *                   4 the places follow, 8 the root of a micro-batch follows
 *             32    the root of a micro-batch
 *             ...   places: of Q; of P, unless the step is the first: root (32), path (FORMATS 1.1)
 *             4     size of the evidence
 *                   the evidence
 */
#include "proofs/dispute/evidence_file.h"

#include <string.h>

#include "base/endian.h"
#include "base/reader.h"
#include "engine/rules/rule.h"
#include "proofs/commit/commit.h"
#include "proofs/job/job.h"

static const uint8_t magic[8] = {'L', 'S', 'E', 'V', 'I', 'D', 0, 1};

enum {
    FLAG_DIVERGED = 2,
    FLAG_PLACED = 4,
    FLAG_BATCH = 8,
    FLAGS_ALL = FLAG_DIVERGED | FLAG_PLACED | FLAG_BATCH
};

enum status evidence_context_of_job(struct evidence_context *context,
                                    const uint8_t header[JOB_HEADER_SIZE], struct error *error)
{
    uint64_t steps = endian_load_be64(header + JOB_AT_STEPS);
    uint64_t segment = endian_load_be64(header + JOB_AT_SEGMENT);

    if (memcmp(header, JOB_MAGIC, 8) != 0 || steps == 0 || steps > JOB_STEPS_MAX || segment == 0 ||
        segment > steps) {
        return error_set(error, STATUS_BAD_FORMAT, "these bytes are not the header of a job");
    }
    if (endian_load_be32(header + JOB_AT_RULES) != RULES_VERSION) {
        return error_set(error, STATUS_REFUSED,
                         "the job is made for version %u of the rules; this program knows %d",
                         endian_load_be32(header + JOB_AT_RULES), RULES_VERSION);
    }
    memcpy(context->program.bytes, header + JOB_AT_PROGRAM, DIGEST_SIZE);
    memcpy(context->constants.bytes, header + JOB_AT_CONSTANTS, DIGEST_SIZE);
    memcpy(context->data.bytes, header + JOB_AT_DATA, DIGEST_SIZE);
    return STATUS_OK;
}

/* ---- reading ------------------------------------------------------------ */

static enum status read_place(struct evidence_place *place, struct reader *reader,
                              struct error *error)
{
    struct reader head;
    const uint8_t *path;
    size_t size;

    reader_copy(reader, place->segment.bytes, DIGEST_SIZE);
    head = *reader; /* a path says its size in its bytes 16 and 17 */
    (void)reader_take(&head, 16);
    size = 18 + (size_t)reader_u16(&head) * DIGEST_SIZE;
    path = reader_take(reader, size);
    if (path == NULL || merkle_path_read(&place->path, path, size) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "the path of a state in its segment is no path");
    }
    return STATUS_OK;
}

/* Is this state, the one after `step`, where the place says? */
static bool place_holds(const struct evidence_file *file, const struct evidence_place *place,
                        const struct digest *state, uint64_t step)
{
    uint64_t steps = endian_load_be64(file->header + JOB_AT_STEPS);
    uint64_t length = endian_load_be64(file->header + JOB_AT_SEGMENT);
    uint64_t first = step - step % length;
    uint64_t most = steps - first < length ? steps - first : length;

    /* A segment in which the job diverged is shorter. */
    return place->path.leaf_index == step - first && place->path.leaf_count <= most &&
           commit_item_check(&place->segment, COMMIT_SEGMENT, first, state->bytes, DIGEST_SIZE,
                             &place->path) == VERDICT_VALID;
}

static enum status read_places(struct evidence_file *file, struct reader *reader,
                               struct error *error)
{
    enum status status = read_place(&file->after, reader, error);

    if (status == STATUS_OK && file->step > 0) {
        status = read_place(&file->before, reader, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (!place_holds(file, &file->after, &file->context.after, file->step) ||
        (file->step > 0 &&
         !place_holds(file, &file->before, &file->context.before, file->step - 1))) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a state of the evidence is not under its segment root");
    }
    return STATUS_OK;
}

static enum status read_file(struct evidence_file *file, struct reader *reader, struct error *error)
{
    const uint8_t *start = reader_take(reader, sizeof(magic));
    uint8_t flags;
    enum status status;

    reader_copy(reader, file->header, JOB_HEADER_SIZE);
    file->step = reader_u64(reader);
    reader_copy(reader, file->context.before.bytes, DIGEST_SIZE);
    reader_copy(reader, file->context.after.bytes, DIGEST_SIZE);
    reader_copy(reader, file->context.trace.bytes, DIGEST_SIZE);
    flags = reader_u8(reader);
    /* One flag that we do not know means that there are bytes that we do not read: refused. */
    if (reader->failed || memcmp(start, magic, sizeof(magic)) != 0 || (flags & ~FLAGS_ALL) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "these bytes are not an evidence file");
    }
    file->context.diverged = (flags & FLAG_DIVERGED) != 0;
    file->placed = (flags & FLAG_PLACED) != 0;
    if ((flags & FLAG_BATCH) != 0) {
        reader_copy(reader, file->context.batch.bytes, DIGEST_SIZE);
    }
    status = evidence_context_of_job(&file->context, file->header, error);
    if (status != STATUS_OK) {
        return status;
    }
    commit_job_id(&file->job_id, file->header, JOB_HEADER_SIZE);
    if (file->step >= endian_load_be64(file->header + JOB_AT_STEPS)) {
        return error_set(error, STATUS_BAD_FORMAT, "the job has no step %llu",
                         (unsigned long long)file->step);
    }
    /* The state before step 0 is the job's, which the header binds: no solver says what it is. */
    if (file->step == 0 &&
        memcmp(file->context.before.bytes, file->header + JOB_AT_FIRST_STATE, DIGEST_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the state before step 0 is not the job's first state");
    }
    if (file->placed) {
        status = read_places(file, reader, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    file->size = reader_u32(reader);
    file->evidence = reader_take(reader, file->size);
    return reader_end(reader, error, "the evidence file");
}

enum status evidence_file_read(struct evidence_file *file, const uint8_t *bytes, size_t size,
                               struct error *error)
{
    struct reader reader;

    memset(file, 0, sizeof(*file));
    if (size > EVIDENCE_FILE_SIZE_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "an evidence file of %zu bytes", size);
    }
    reader_init(&reader, bytes, size);
    return read_file(file, &reader, error);
}

/* ---- writing ------------------------------------------------ */

static void put_place(struct buffer *bytes, const struct evidence_place *place)
{
    uint8_t path[MERKLE_PATH_BYTES_MAX];

    buffer_add(bytes, place->segment.bytes, DIGEST_SIZE);
    buffer_add(bytes, path, merkle_path_write(path, &place->path));
}

enum status evidence_file_write(struct buffer *bytes, const struct evidence_file *file,
                                struct error *error)
{
    static const struct digest none;
    bool batch = !digest_equal(&file->context.batch, &none);
    uint8_t flags = (uint8_t)((file->context.diverged ? FLAG_DIVERGED : 0) |
                              (file->placed ? FLAG_PLACED : 0) | (batch ? FLAG_BATCH : 0));

    buffer_add(bytes, magic, sizeof(magic));
    buffer_add(bytes, file->header, JOB_HEADER_SIZE);
    buffer_add_u64(bytes, file->step);
    buffer_add(bytes, file->context.before.bytes, DIGEST_SIZE);
    buffer_add(bytes, file->context.after.bytes, DIGEST_SIZE);
    buffer_add(bytes, file->context.trace.bytes, DIGEST_SIZE);
    buffer_add_u8(bytes, flags);
    if (batch) {
        buffer_add(bytes, file->context.batch.bytes, DIGEST_SIZE);
    }
    if (file->placed) {
        put_place(bytes, &file->after);
        if (file->step > 0) {
            put_place(bytes, &file->before);
        }
    }
    buffer_add_u32(bytes, (uint32_t)file->size);
    buffer_add(bytes, file->evidence, file->size);
    return buffer_check(bytes, error, "the evidence file");
}
