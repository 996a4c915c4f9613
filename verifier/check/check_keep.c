/* check_keep.c - see check_keep.h. */
#include "verifier/check/check_keep.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/bundle/checkpoint_write.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/piece.h"
#include "proofs/format/safetensors.h"
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

/* ---- room ---------------------------------------------------------------- */

static uint64_t state_size(const struct tape *tape)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        size += commit_tensor_size(&tape->tensors[tape->states[i].before]);
    }
    return size;
}

enum status check_keep_room(const struct checker *checker, uint64_t size_max, struct error *error)
{
    const uint64_t size = state_size(checker->job->tape);
    struct statvfs disk;

    if (size > size_max) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the state has %.1f MB; --keep-max allows %.1f MB", (double)size / 1e6,
                         (double)size_max / 1e6);
    }
    if (statvfs(checker->request->cache, &disk) == 0 &&
        (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize < size + FREE_LEAST) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "the state has %.1f MB, and the disk's last GiB is left free",
                         (double)size / 1e6);
    }
    return STATUS_OK;
}

static void note_trouble(struct check_result *result, const struct error *why)
{
    (void)snprintf(result->keep_trouble, sizeof(result->keep_trouble), "%.*s", CHECK_NOTE_MAX - 1,
                   why->text);
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
    TRY_OUT(check_keep_room(checker, request->keep_max, &why));
    TRY_OUT(leave_job(checker, root, &why));
    TRY_OUT(leave_state(checker, root, &why));
out:
    result->kept = status == STATUS_OK;
    if (!result->kept) {
        note_trouble(result, &why);
    }
}

/* ---- states that are fetched ---------------------------------------------- */

struct wanted_file {
    const struct tape *tape;
    const struct digest *root;
};

static enum status take_file(void *context, const char *path, struct error *error)
{
    const struct wanted_file *wanted = context;
    struct safetensors file;
    struct digest root;
    enum status status = safetensors_open(&file, error, path);

    if (status != STATUS_OK) {
        return status;
    }
    status = checkpoint_file_root(&root, &file, wanted->tape, error);
    safetensors_close(&file);
    TRY(status);
    return digest_equal(&root, wanted->root)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%s is another state", path);
}

static enum status copy_file(int to, int from)
{
    ssize_t size = 1;

    while (size > 0) {
        size = sendfile(to, from, NULL, (size_t)1 << 30);
    }
    return size == 0 && fsync(to) == 0 ? STATUS_OK : STATUS_IO;
}

/* A file of the cache gets a second name; one of a mirror's folder is copied. */
static enum status link_or_copy(const char *from, const char *to, struct error *error)
{
    enum status status = STATUS_IO;
    int source;
    int made;

    (void)unlink(to);
    if (link(from, to) == 0) {
        return STATUS_OK;
    }
    source = open(from, O_RDONLY | O_CLOEXEC);
    made = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (source >= 0 && made >= 0) {
        status = copy_file(made, source);
    }
    if (status != STATUS_OK) {
        (void)error_set_errno(error, "cannot keep %s", to);
        (void)unlink(to);
    }
    if (source >= 0) {
        (void)close(source);
    }
    if (made >= 0) {
        (void)close(made);
    }
    return status;
}

static enum status leave_pieces(const struct checker *checker, const struct safetensors *file,
                                const struct digest *root, struct error *error)
{
    const struct tape *tape = checker->job->tape;
    const uint64_t count = piece_count_of_state(tape);
    struct digest *hashes = calloc(count + 1, sizeof(*hashes));
    char path[FILE_PATH_MAX];
    enum status status;

    if (hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of hashes");
    }
    TRY_OUT(check_keep_path(path, checker->request->cache, root, KEPT_PIECES, error));
    TRY_OUT(checkpoint_file_pieces(hashes, file, tape, error));
    TRY_OUT(file_write(path, error, hashes, count * sizeof(*hashes), 0644));
out:
    free(hashes);
    return status;
}

/* Only a file that is this checkpoint to the byte is served: who fetches pieces counts on it. */
static enum status leave_file(const struct checker *checker, const struct digest *root,
                              uint64_t step, const char *from, struct error *error)
{
    struct safetensors file;
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(check_keep_room(checker, checker->request->keep_max, error));
    TRY(leave_job(checker, root, error));
    TRY(check_keep_path(path, checker->request->cache, root, KEPT_STATE, error));
    TRY(safetensors_open(&file, error, from));
    status = checkpoint_file_is(&file, checker->job, step, root)
                 ? leave_pieces(checker, &file, root, error)
                 : error_set(error, STATUS_BAD_FORMAT, "a mirror gives it in another form");
    safetensors_close(&file);
    TRY(status);
    return link_or_copy(from, path, error);
}

static enum status fetch_state(struct checker *checker, const struct digest *root, uint64_t step,
                               bool *kept, struct error *error)
{
    const struct wanted_file about = {checker->job->tape, root};
    const struct mirror_wanted wanted = {.kind = MIRROR_STATE,
                                         .job = checker->request->job_id,
                                         .root = *root,
                                         .number = step,
                                         .size_max = SAFETENSORS_HEADER_MAX + 8 +
                                                     state_size(checker->job->tape),
                                         .check = take_file,
                                         .context = (void *)(uintptr_t)&about};
    char path[FILE_PATH_MAX];
    struct error why;

    checker->result->wanted_bytes += state_size(checker->job->tape);
    if (wanted.size_max > checker->request->file_max) {
        return error_set(error, STATUS_OVER_LIMIT, "a checkpoint is larger than a file may be");
    }
    TRY(fetch_get(path, checker->fetch, &wanted, checker->job, error));
    if (checker->request->keep_max == 0) {
        return STATUS_OK;
    }
    error_init(&why);
    *kept = leave_file(checker, root, step, path, &why) == STATUS_OK;
    if (!*kept) {
        note_trouble(checker->result, &why);
    }
    return STATUS_OK;
}

/* The end also where the start is not to be had: then at least that is not lost. */
enum status check_states(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    const uint32_t place = request->segment_count - 1;
    const uint64_t first = check_first_step_at(checker, place);
    struct check_result *result = checker->result;
    enum status status = STATUS_OK;
    struct error why;

    TRY(check_first_root(&result->before, checker, place, error));
    if (first > 0 || checker->job->first_state_given) {
        status = fetch_state(checker, &result->before, first, &result->kept_start, error);
    }
    if (!request->diverged) {
        enum status end;

        error_init(&why);
        end = fetch_state(checker, check_keep_root(request), first + request->segments[place].steps,
                          &result->kept, &why);
        if (status == STATUS_OK && end != STATUS_OK) {
            *error = why;
            status = end;
        }
    }
    return status;
}
