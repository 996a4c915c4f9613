/* check_keep.c - see check_keep.h. */
#include "verifier/check/check_keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/whole_file.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/piece.h"
#include "proofs/commit/state_root.h"
#include "proofs/job/job_file.h"

#define FREE_LEAST ((uint64_t)1 << 30) /* bytes of the disk that nothing kept takes */

const struct digest *check_keep_root(const struct check_request *request)
{
    const struct check_segment *last = &request->segments[request->segment_count - 1];

    return &last->states[last->steps - 1];
}

enum status check_keep_path(char path[FILE_PATH_MAX], const char *cache, const struct digest *root,
                            enum kept_part part, struct error *error)
{
    static const char *const endings[] = {
        [KEPT_JOB] = "kept-job", [KEPT_STATE] = "kept-state", [KEPT_PIECES] = "kept-pieces"};
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, root->bytes, DIGEST_SIZE);
    return snprintf(path, FILE_PATH_MAX, "%s/%s.%s", cache, text, endings[part]) < FILE_PATH_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "the path of the cache is too long");
}

/* ---- the state ----------------------------------------------------------- */

struct leaving {
    struct checker *checker;
    struct safetensors_writer writer;
    struct digest *hashes; /* of all pieces, in the tape's order */
    struct digest *next;   /* of the tensor that comes */
};

static enum status add_bytes(void *context, const struct tensor *tensor, const void *bytes,
                             struct error *error)
{
    struct leaving *leaving = context;
    uint64_t size = commit_tensor_size(tensor);

    for (uint64_t from = 0; from < size; from += PIECE_SIZE) {
        piece_hash(leaving->next++, (const uint8_t *)bytes + from,
                   size - from < PIECE_SIZE ? (size_t)(size - from) : PIECE_SIZE);
    }
    return safetensors_writer_add(&leaving->writer, error, bytes, (size_t)size);
}

static enum status write_state(struct leaving *leaving, const struct checkpoint_file *layout,
                               const char *path, struct error *error)
{
    struct machine *machine = leaving->checker->run.machine;
    const struct tape *tape = leaving->checker->job->tape;
    struct safetensors_plan plan = checkpoint_file_plan(layout);
    enum status status;

    TRY(safetensors_writer_open_plan(&leaving->writer, error, path, &plan));
    for (uint32_t i = 0; i < layout->count; i++) {
        leaving->next = leaving->hashes;
        for (uint32_t k = 0; k < layout->states[i]; k++) {
            leaving->next += piece_count(&tape->tensors[tape->states[k].before]);
        }
        TRY_OUT(state_root_visit(machine, tape->states[layout->states[i]].before, add_bytes,
                                 leaving, error));
    }
    return safetensors_writer_keep(&leaving->writer, error);
out:
    safetensors_writer_drop(&leaving->writer);
    return status;
}

static enum status leave_state(struct leaving *leaving, const struct digest *root,
                               struct error *error)
{
    const struct check_request *request = leaving->checker->request;
    const struct job *job = leaving->checker->job;
    uint64_t count = piece_count_of_state(job->tape);
    uint64_t step = check_first_step_at(leaving->checker, request->segment_count - 1) +
                    request->segments[request->segment_count - 1].steps;
    struct checkpoint_file layout;
    char path[FILE_PATH_MAX];
    enum status status;

    leaving->hashes = calloc(count + 1, sizeof(*leaving->hashes));
    if (leaving->hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of hashes");
    }
    status = checkpoint_file_init(&layout, job, step, root, error);
    TRY_OUT(status);
    TRY_OUT(check_keep_path(path, request->cache, root, KEPT_STATE, error));
    TRY_OUT(write_state(leaving, &layout, path, error));
    TRY_OUT(check_keep_path(path, request->cache, root, KEPT_PIECES, error));
    TRY_OUT(file_write(path, error, leaving->hashes, count * DIGEST_SIZE, 0644));
out:
    checkpoint_file_release(&layout);
    free(leaving->hashes);
    return status;
}

/* ---- the job ------------------------------------------------------------- */

static enum status leave_job(const struct checker *checker, const struct digest *root,
                             struct error *error)
{
    struct buffer bytes;
    char path[FILE_PATH_MAX];
    enum status status;

    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    TRY_OUT(check_keep_path(path, checker->request->cache, root, KEPT_JOB, error));
    TRY_OUT(job_encode(&bytes, checker->job, error));
    TRY_OUT(file_write(path, error, bytes.data, bytes.size, 0644));
out:
    buffer_release(&bytes);
    return status;
}

/* ---- all of it ----------------------------------------------------------- */

static enum status find_room(const struct checker *checker, struct error *error)
{
    const struct tape *tape = checker->job->tape;
    uint64_t size = 0;
    struct statvfs disk;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        size += commit_tensor_size(&tape->tensors[tape->states[i].before]);
    }
    if (size > checker->request->keep_max) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the state has %.1f MB; --keep-bytes allows %.1f MB", (double)size / 1e6,
                         (double)checker->request->keep_max / 1e6);
    }
    if (statvfs(checker->request->cache, &disk) == 0 &&
        (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize < size + FREE_LEAST) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the state has %.1f MB, and the disk's last GiB is left free",
                         (double)size / 1e6);
    }
    return STATUS_OK;
}

void check_keep(struct checker *checker)
{
    const struct check_request *request = checker->request;
    const struct digest *root = check_keep_root(request);
    struct check_result *result = checker->result;
    struct leaving leaving = {.checker = checker};
    struct error why;
    enum status status;

    if (request->keep_max == 0 || request->diverged) {
        return;
    }
    error_init(&why);
    TRY_OUT(find_room(checker, &why));
    TRY_OUT(leave_job(checker, root, &why));
    TRY_OUT(leave_state(&leaving, root, &why));
out:
    result->kept = status == STATUS_OK;
    if (!result->kept) {
        (void)snprintf(result->keep_trouble, sizeof(result->keep_trouble), "%.*s",
                       CHECK_NOTE_MAX - 1, why.text);
    }
}
