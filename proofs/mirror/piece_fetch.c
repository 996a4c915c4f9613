/* piece_fetch.c - see piece_fetch.h: the list of hashes, the part file and its end. */
#include "proofs/mirror/piece_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/whole_file.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/commit/commit.h"
#include "proofs/mirror/piece_crew.h"

/* A fetch under way. */
struct fetch_work {
    struct piece_fetch *fetch;
    const struct tape *tape;
    struct digest *hashes; /* of all pieces of the state */
    uint64_t hash_count;
    struct checkpoint_file remote; /* the layout at the mirrors */
    struct checkpoint_file local;  /* and of the file that is made */
    struct buffer header;          /* of that */
    struct piece_crew crew;
    struct whole_file file; /* the part, and the final name */
    bool had_part;
};

/* ---- the list of hashes -------------------------------------------------- */

static enum status take_hashes(void *context, const char *path, struct error *error)
{
    struct fetch_work *work = context;
    struct file_bytes bytes = {0};
    struct digest root;
    enum status status;

    TRY(file_read(&bytes, error, path, work->hash_count * DIGEST_SIZE));
    if (bytes.size != work->hash_count * DIGEST_SIZE) {
        TRY_OUT(error_set(error, STATUS_BAD_FORMAT, "it has another length"));
    }
    memcpy(work->hashes, bytes.data, bytes.size);
    TRY_OUT(piece_state_root(&root, work->tape, work->hashes));
    if (!digest_equal(&root, &work->fetch->root)) {
        TRY_OUT(error_set(error, STATUS_BAD_FORMAT, "it is of another state"));
    }
out:
    file_bytes_release(&bytes);
    return status;
}

static enum status get_hashes(struct fetch_work *work, struct error *error)
{
    struct piece_fetch *fetch = work->fetch;
    char path[FILE_PATH_MAX];
    const struct mirror_wanted wanted = {.kind = MIRROR_STATE_PIECES,
                                         .root = fetch->root,
                                         .job = fetch->job->id,
                                         .number = fetch->step,
                                         .size_max = work->hash_count * DIGEST_SIZE,
                                         .check = take_hashes,
                                         .context = work};
    struct error none;
    enum status status;

    if (snprintf(path, sizeof(path), "%.4080s.pieces", work->file.part_path) >= (int)sizeof(path)) {
        return error_set(error, STATUS_USAGE, "the path of the file is too long");
    }
    error_init(&none);
    if (file_exists(path) && take_hashes(work, path, &none) != STATUS_OK) {
        (void)unlink(path); /* of another state, or cut short */
    }
    status = mirror_set_get(path, fetch->mirrors, &wanted, error);
    fetch->listed = status == STATUS_OK;
    if (status == STATUS_UNREACHABLE) {
        error_advise(error, "does a mirror have this state? 'lockstep prover serve' and 'publish' "
                            "show the checkpoints that a bundle keeps");
    }
    return status;
}

/* ---- the plan ------------------------------------------------------------ */

static enum status plan_files(struct fetch_work *work, struct error *error)
{
    struct piece_fetch *fetch = work->fetch;
    const struct digest *hashes = work->hashes;
    struct digest *roots = calloc((size_t)work->tape->state_count + 1, sizeof(*roots));
    enum status status;

    if (roots == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the roots of the tensors");
    }
    for (uint32_t i = 0; i < work->tape->state_count; i++) {
        const struct tensor *tensor = &work->tape->tensors[work->tape->states[i].before];

        piece_tensor_root(&roots[i], tensor, hashes);
        hashes += piece_count(tensor);
    }
    TRY_OUT(checkpoint_file_init(&work->remote, fetch->job, fetch->step, &fetch->root, error));
    TRY_OUT(fetch->whole
                ? checkpoint_file_init(&work->local, fetch->job, fetch->step, &fetch->root, error)
                : checkpoint_file_init_model(&work->local, fetch->job, fetch->step, &fetch->root,
                                             roots, error));
out:
    free(roots);
    return status;
}

/* The pieces of the tensors that the file has, in the order in which the mirrors have them. */
static void list_pieces(struct fetch_work *work, uint64_t remote_header)
{
    const struct checkpoint_file *remote = &work->remote;
    uint32_t taken = 0; /* both files have the tensors in the same order */

    for (uint32_t i = 0; i < remote->count && taken < work->local.count; i++) {
        const struct digest *hash = work->hashes;

        if (remote->states[i] != work->local.states[taken]) {
            continue;
        }
        for (uint32_t k = 0; k < remote->states[i]; k++) {
            hash += piece_count(&work->tape->tensors[work->tape->states[k].before]);
        }
        for (uint64_t from = 0; from < remote->entries[i].size; from += PIECE_SIZE) {
            uint64_t left = remote->entries[i].size - from;

            work->crew.pieces[work->crew.count++] = (struct piece){
                .remote = remote_header + remote->entries[i].offset + from,
                .local = work->header.size + work->local.entries[taken].offset + from,
                .size = left < PIECE_SIZE ? (uint32_t)left : PIECE_SIZE,
                .hash = hash++,
                .tensor = remote->entries[i].name};
        }
        work->fetch->total += remote->entries[i].size;
        taken++;
    }
}

static enum status plan_pieces(struct fetch_work *work, struct error *error)
{
    struct safetensors_plan remote;
    struct safetensors_plan local;
    struct buffer header;
    enum status status;

    buffer_init(&header, SAFETENSORS_HEADER_MAX + 8);
    TRY_OUT(plan_files(work, error));
    remote = checkpoint_file_plan(&work->remote);
    local = checkpoint_file_plan(&work->local);
    TRY_OUT(safetensors_plan_header(&header, &remote, error));
    TRY_OUT(safetensors_plan_header(&work->header, &local, error));
    work->crew.pieces = calloc(work->hash_count, sizeof(*work->crew.pieces));
    if (work->crew.pieces == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for the list of pieces"));
    }
    list_pieces(work, header.size);
out:
    buffer_release(&header);
    return status;
}

/* ---- the part file ------------------------------------------------------- */

/* The lock is the file itself: one process at a time writes to it. */
static enum status open_part(struct fetch_work *work, struct error *error)
{
    struct stat open_file;
    struct stat named;
    int descriptor;

    descriptor = open(work->file.part_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0) {
        return error_set_errno(error, "cannot write %s", work->file.part_path);
    }
    work->file.descriptor = descriptor;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(descriptor, &open_file) != 0 ||
        stat(work->file.part_path, &named) != 0 || open_file.st_ino != named.st_ino ||
        !S_ISREG(open_file.st_mode)) {
        (void)error_set(error, STATUS_REFUSED, "another process is fetching %s", work->file.path);
        error_advise(error, "wait until it is done, or name another folder");
        return STATUS_REFUSED;
    }
    work->had_part = open_file.st_size != 0;
    return STATUS_OK;
}

/* So that a disk that is too small says so before anything comes. */
static enum status make_room(const struct fetch_work *work, uint64_t size, struct error *error)
{
    int failed = posix_fallocate(work->file.descriptor, 0, (off_t)size);

    if (failed == 0) {
        return STATUS_OK;
    }
    if (!work->had_part) {
        (void)unlink(work->file.part_path);
    }
    errno = failed;
    return error_set_errno(error, "no room for %s", work->file.part_path);
}

/* Which pieces lie there already? */
static enum status look_at_part(struct fetch_work *work, struct error *error)
{
    uint8_t *bytes = malloc(PIECE_SIZE);
    enum status status = STATUS_OK;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to check %s", work->file.part_path);
    }
    for (uint64_t i = 0; i < work->crew.count; i++) {
        struct piece *piece = &work->crew.pieces[i];
        struct digest hash;

        if (stop_requested(work->fetch->mirrors->stop)) {
            TRY_OUT(error_set(error, STATUS_STOPPED, "stopped"));
        }
        TRY_OUT(whole_file_read_at(work->file.descriptor, error, bytes, piece->size, piece->local,
                                   work->file.part_path));
        piece_hash(&hash, bytes, piece->size);
        piece->done = digest_equal(&hash, piece->hash);
        work->fetch->resumed += piece->done ? piece->size : 0;
        work->crew.done += piece->done;
    }
out:
    free(bytes);
    return status;
}

static enum status prepare_part(struct fetch_work *work, struct error *error)
{
    uint64_t size = work->header.size + work->fetch->total;

    TRY(make_room(work, size, error));
    if (ftruncate(work->file.descriptor, (off_t)size) != 0 ||
        pwrite(work->file.descriptor, work->header.data, work->header.size, 0) !=
            (ssize_t)work->header.size) {
        return error_set_errno(error, "cannot write %s", work->file.part_path);
    }
    return work->had_part ? look_at_part(work, error) : STATUS_OK;
}

/* ---- the end ------------------------------------------------------------- */

/* Is the file at path the state? */
static enum status check_file(const struct fetch_work *work, const char *path, struct error *error)
{
    struct safetensors file;
    struct digest root;
    enum status status;

    TRY(safetensors_open(&file, error, path));
    status = checkpoint_file_root(&root, &file, work->tape, error);
    safetensors_close(&file);
    TRY(status);
    return digest_equal(&root, &work->fetch->root)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%s is another state", path);
}

static enum status keep_hashes(const struct fetch_work *work, struct error *error)
{
    struct whole_file file;

    TRY(whole_file_open(&file, error, work->fetch->hashes, 0644));
    TRY(whole_file_add(&file, error, work->hashes, work->hash_count * DIGEST_SIZE));
    return whole_file_keep(&file, error);
}

static enum status keep_file(struct fetch_work *work, struct error *error)
{
    char hashes[FILE_PATH_MAX];
    enum status status =
        work->fetch->judged ? STATUS_OK : check_file(work, work->file.part_path, error);

    if (status == STATUS_BAD_FORMAT) { /* every piece was right when it came */
        error_advise(error, "the disk gives back other bytes than were written, or another "
                            "program writes to the file; remove it and fetch again");
    }
    TRY(status);
    (void)snprintf(hashes, sizeof(hashes), "%.4080s.pieces", work->file.part_path);
    if (work->fetch->hashes != NULL) {
        TRY(keep_hashes(work, error));
    }
    TRY(whole_file_keep_new(&work->file, error));
    (void)unlink(hashes);
    return STATUS_OK;
}

/* The file at path is the state already; its list of hashes may be missing. */
static enum status keep_old(struct fetch_work *work, const char *path, struct error *error)
{
    struct safetensors file;
    enum status status;

    if (work->fetch->hashes == NULL || file_exists(work->fetch->hashes)) {
        return STATUS_OK;
    }
    TRY(safetensors_open(&file, error, path));
    status = checkpoint_file_pieces(work->hashes, &file, work->tape, error);
    safetensors_close(&file);
    TRY(status);
    return keep_hashes(work, error);
}

static enum status fetch_file(struct fetch_work *work, struct error *error)
{
    struct piece_fetch *fetch = work->fetch;
    const struct mirror_wanted state = {
        .kind = MIRROR_STATE, .root = fetch->root, .job = fetch->job->id, .number = fetch->step};
    enum status status;

    TRY(open_part(work, error));
    TRY(get_hashes(work, error));
    TRY(plan_pieces(work, error));
    TRY(prepare_part(work, error));
    work->crew.mirrors = fetch->mirrors;
    work->crew.descriptor = work->file.descriptor;
    work->crew.path = work->file.part_path;
    mirror_name(work->crew.name, &state, false);
    work->crew.progress = fetch->progress;
    work->crew.context = fetch->context;
    status = piece_crew_run(&work->crew, error);
    fetch->gives_whole = work->crew.gives_whole;
    return status == STATUS_OK ? keep_file(work, error) : status;
}

enum status piece_fetch_run(struct piece_fetch *fetch, const char *path, struct error *error)
{
    struct fetch_work work = {.fetch = fetch, .tape = fetch->job->tape};
    enum status status;

    work.file.descriptor = -1;
    work.file.mode = 0644;
    buffer_init(&work.header, SAFETENSORS_HEADER_MAX + 8);
    fetch->total = fetch->resumed = 0;
    if (snprintf(work.file.path, sizeof(work.file.path), "%s", path) >= FILE_PATH_MAX - 64) {
        return error_set(error, STATUS_USAGE, "the path %.80s... is too long", path);
    }
    (void)snprintf(work.file.part_path, sizeof(work.file.part_path), "%s.part", work.file.path);
    work.hash_count = piece_count_of_state(work.tape);
    work.hashes = calloc(work.hash_count + 1, sizeof(*work.hashes));
    if (work.hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of hashes");
    }
    if (file_exists(path)) {
        /* A file under that name may be another program's, or damaged: its root is compared. */
        status = check_file(&work, path, error);
        status = status == STATUS_OK ? keep_old(&work, path, error) : status;
        if (status == STATUS_BAD_FORMAT) {
            (void)error_set(error, STATUS_REFUSED, "%s is there already, and is another state",
                            path);
            error_advise(error, "name another folder");
            status = STATUS_REFUSED;
        }
        free(work.hashes);
        return status;
    }
    status = fetch_file(&work, error);
    if (work.file.descriptor >= 0) {
        (void)close(work.file.descriptor);
    }
    checkpoint_file_release(&work.remote);
    checkpoint_file_release(&work.local);
    buffer_release(&work.header);
    free(work.crew.pieces);
    free(work.hashes);
    return status;
}
