/* check_keep.c - see check_keep.h. */
#include "verifier/check/check_keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/hex.h"
#include "proofs/bundle/checkpoint_write.h"
#include "proofs/commit/commit.h"
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

static enum status leave_state(const struct checker *checker, const struct digest *root,
                               struct error *error)
{
    const struct check_request *request = checker->request;
    uint32_t last = request->segment_count - 1;
    char path[FILE_PATH_MAX];
    char pieces[FILE_PATH_MAX];
    const struct checkpoint_write what = {.job = checker->job,
                                          .step = check_first_step_at(checker, last) +
                                                  request->segments[last].steps,
                                          .root = root,
                                          .machine = checker->run.machine,
                                          .pieces = pieces};

    TRY(check_keep_path(path, request->cache, root, KEPT_STATE, error));
    TRY(check_keep_path(pieces, request->cache, root, KEPT_PIECES, error));
    return checkpoint_write(&what, path, error);
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
    struct error why;
    enum status status;

    if (request->keep_max == 0 || request->diverged) {
        return;
    }
    error_init(&why);
    TRY_OUT(find_room(checker, &why));
    TRY_OUT(leave_job(checker, root, &why));
    TRY_OUT(leave_state(checker, root, &why));
out:
    result->kept = status == STATUS_OK;
    if (!result->kept) {
        (void)snprintf(result->keep_trouble, sizeof(result->keep_trouble), "%.*s",
                       CHECK_NOTE_MAX - 1, why.text);
    }
}
