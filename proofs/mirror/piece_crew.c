/* piece_crew.c - see piece_crew.h. */
#include "proofs/mirror/piece_crew.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proofs/mirror/fetch_http.h"

enum {
    RUN_MAX = 16,      /* pieces of one request */
    FAILURES_MAX = 3,  /* requests in a row that gave nothing, then the mirror is dropped */
    LOOK_MS = 100,     /* how often waiting threads look around */
    TAKERS_MAX = 2,    /* threads that fetch the same piece */
    PAUSE_LOOKS = 10,  /* looks between two tries at a mirror that failed */
    NPY_LENGTH_AT = 8, /* in a .npy: the length of the rest of its header, in 2 bytes, or in 4 */
    NPY_START_SIZE = 12,
};

/* What the threads share; the lock covers all of it, and the pieces' takers and done. */
struct crew_shared {
    struct piece_crew *crew;
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint64_t next; /* pieces before it are taken or done */
    uint32_t working;
    atomic_bool over;
    enum status failure; /* our own: the disk */
    struct error *error;
};

struct crew_member {
    struct crew_shared *shared;
    struct mirror *mirror;
    struct fetch_http *http;
    uint8_t *bytes;
    uint64_t start; /* of the pieces in its mirror's file */
    uint64_t first; /* its run */
    uint64_t count;
    uint32_t run; /* how many pieces it asks for at a time */
    pthread_t thread;
    bool started;
};

/* Waits for news, or a moment. The lock is held. */
static void wait_a_moment(struct crew_shared *shared)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&shared->news, &shared->lock, &until);
}

/* ---- runs ---------------------------------------------------------------- */

/* From `first` on: pieces that follow each other at the mirrors and have `takers` takers. */
static uint64_t run_length(const struct piece_crew *crew, uint64_t first, uint32_t most,
                           uint16_t takers)
{
    uint64_t count = 0;

    while (count < most && first + count < crew->count) {
        const struct piece *piece = &crew->pieces[first + count];

        if (piece->done || piece->takers != takers ||
            (count > 0 && piece[-1].remote + piece[-1].size != piece->remote)) {
            break;
        }
        count++;
    }
    return count;
}

/* False: there is nothing to take now. The lock is held. */
static bool take_pieces(struct crew_member *worker)
{
    struct crew_shared *shared = worker->shared;
    struct piece_crew *crew = shared->crew;

    worker->count = 0;
    while (shared->next < crew->count && worker->count == 0) {
        worker->first = shared->next;
        worker->count = run_length(crew, worker->first, worker->run, 0);
        shared->next += worker->count == 0;
    }
    for (uint16_t takers = 1; takers < TAKERS_MAX && worker->count == 0; takers++) {
        for (uint64_t i = 0; i < crew->count && worker->count == 0; i++) {
            worker->first = i;
            worker->count = run_length(crew, i, 1, takers);
        }
    }
    for (uint64_t i = 0; i < worker->count; i++) {
        crew->pieces[worker->first + i].takers++;
    }
    return worker->count > 0;
}

/* Waits for a run; false: the thread is done. */
static bool take_or_wait(struct crew_member *worker)
{
    struct crew_shared *shared = worker->shared;
    bool found = false;

    (void)pthread_mutex_lock(&shared->lock);
    while (!found && !atomic_load(&shared->over) && shared->crew->done < shared->crew->count) {
        found = take_pieces(worker);
        if (!found) {
            wait_a_moment(shared);
        }
    }
    (void)pthread_mutex_unlock(&shared->lock);
    return found;
}

static void give_back(struct crew_member *worker)
{
    struct crew_shared *shared = worker->shared;

    (void)pthread_mutex_lock(&shared->lock);
    for (uint64_t i = 0; i < worker->count; i++) {
        shared->crew->pieces[worker->first + i].takers--;
    }
    if (worker->first < shared->next) {
        shared->next = worker->first;
    }
    (void)pthread_cond_broadcast(&shared->news);
    (void)pthread_mutex_unlock(&shared->lock);
}

/* ---- one request --------------------------------------------------------- */

static void fail_crew(struct crew_shared *shared, const char *what)
{
    (void)pthread_mutex_lock(&shared->lock);
    if (shared->failure == STATUS_OK) {
        shared->failure = error_set_errno(shared->error, "cannot write %s", what);
        atomic_store(&shared->over, true);
    }
    (void)pthread_mutex_unlock(&shared->lock);
}

static bool write_piece(const struct piece_crew *crew, const struct piece *piece,
                        const uint8_t *bytes)
{
    uint32_t done = 0;

    while (done < piece->size) {
        ssize_t wrote = pwrite(crew->descriptor, bytes + done, piece->size - done,
                               (off_t)(piece->local + done));

        if (wrote <= 0) {
            return false;
        }
        done += (uint32_t)wrote;
    }
    return true;
}

/* Keeps the pieces that came whole. False: one is false, or the disk failed. */
static bool keep_pieces(struct crew_member *worker, size_t came)
{
    struct crew_shared *shared = worker->shared;
    const uint8_t *bytes = worker->bytes;

    for (uint64_t i = 0; i < worker->count; i++) {
        struct piece *piece = &shared->crew->pieces[worker->first + i];
        char trouble[MIRROR_SET_TROUBLE_MAX];
        struct digest hash;

        /* A transfer that broke off: the pieces before the break are whole, and another mirror has
         * the rest. */
        if (came < piece->size) {
            return true;
        }
        piece_hash(&hash, bytes, piece->size);
        if (!digest_equal(&hash, piece->hash)) {
            (void)snprintf(trouble, sizeof(trouble), "gives false bytes of the %s '%.100s'",
                           shared->crew->is_data ? "data" : "tensor", piece->tensor);
            /* One false piece shows a mirror that lies or is damaged: nothing more is asked of
             * it. */
            mirror_drop(worker->mirror, trouble);
            return false;
        }
        if (!write_piece(shared->crew, piece, bytes)) {
            fail_crew(shared, shared->crew->path);
            return false;
        }
        (void)pthread_mutex_lock(&shared->lock);
        /* A piece that is brought twice counts once. */
        if (!piece->done) {
            piece->done = true;
            shared->crew->done++;
            worker->mirror->note.bytes += piece->size;
        }
        (void)pthread_mutex_unlock(&shared->lock);
        bytes += piece->size;
        came -= piece->size;
    }
    return true;
}

/* What a request that failed says of the mirror. */
static void judge_mirror(struct crew_member *worker, enum status status, const struct error *why)
{
    struct crew_shared *shared = worker->shared;

    if (status == STATUS_BAD_FORMAT) {
        mirror_drop(worker->mirror, why->text);
    } else if (status == STATUS_UNREACHABLE) {
        mirror_failed(worker->mirror, worker->http, why->text);
    } else {
        mirror_note(worker->mirror, why->text);
    }
    if (status == STATUS_REFUSED) {
        (void)pthread_mutex_lock(&shared->lock);
        shared->crew->gives_whole = true;
        (void)pthread_mutex_unlock(&shared->lock);
    }
}

/* Bytes of the file. What breaks off is gone on with, while something comes. */
static enum status get_bytes(struct crew_member *worker, size_t *came, uint64_t first, size_t size,
                             struct error *error)
{
    struct crew_shared *shared = worker->shared;
    enum status status;
    size_t more;

    *came = 0;
    do {
        status =
            fetch_http_range(worker->http, worker->bytes + *came, &more, worker->mirror->url,
                             shared->crew->name, first + *came, size - *came, &shared->over, error);
        *came += more;
    } while (status == STATUS_UNREACHABLE && more >= FETCH_TRICKLE &&
             !fetch_http_stalled(worker->http));
    return status;
}

/* One request. False: nothing more of this mirror. *failures: in a row. */
static bool fetch_run(struct crew_member *worker, uint32_t *failures)
{
    const struct piece *first = &worker->shared->crew->pieces[worker->first];
    const struct piece *last = &first[worker->count - 1];
    struct error error;
    enum status status;
    size_t came;

    error_init(&error);
    status = get_bytes(worker, &came, worker->start + first->remote,
                       (size_t)(last->remote + last->size - first->remote), &error);
    if (!keep_pieces(worker, came) || status == STATUS_STOPPED) {
        return false;
    }
    if (status == STATUS_OK) {
        *failures = 0;
        worker->mirror->note.good++;
        worker->mirror->tired = false;
        worker->run = worker->run < RUN_MAX ? 2 * worker->run : RUN_MAX;
        return true;
    }
    *failures = came >= first->size ? 0 : *failures + 1;
    if (status != STATUS_UNREACHABLE || *failures >= FAILURES_MAX ||
        fetch_http_stalled(worker->http) || fetch_http_refused(worker->http)) {
        judge_mirror(worker, status, &error);
        return false;
    }
    mirror_note(worker->mirror, error.text);
    worker->run = 1;
    return true;
}

/* Where the elements begin in the mirror's file: behind the header of a .npy, if it has one. */
static bool find_start(struct crew_member *worker)
{
    const uint8_t *bytes = worker->bytes;
    const uint8_t *length = bytes + NPY_LENGTH_AT;
    struct error error;
    enum status status = STATUS_UNREACHABLE;
    size_t came = 1;

    for (int i = 0; i < FAILURES_MAX && status == STATUS_UNREACHABLE && came > 0; i++) {
        error_init(&error);
        status = get_bytes(worker, &came, 0, NPY_START_SIZE, &error);
    }
    if (status != STATUS_OK) {
        if (status != STATUS_STOPPED) {
            judge_mirror(worker, status, &error);
        }
        return false;
    }
    if (memcmp(bytes, MIRROR_NPY_MAGIC, MIRROR_NPY_MAGIC_SIZE) == 0) {
        worker->start = bytes[MIRROR_NPY_MAGIC_SIZE] == 1
                            ? 10 + (uint64_t)(length[0] | length[1] << 8)
                            : 12 + ((uint64_t)(length[0] | length[1] << 8 | length[2] << 16) |
                                    (uint64_t)length[3] << 24);
    }
    return true;
}

/* Other mirrors go on meanwhile. */
static void pause_after(struct crew_shared *shared)
{
    (void)pthread_mutex_lock(&shared->lock);
    for (int i = 0;
         i < PAUSE_LOOKS && !atomic_load(&shared->over) && shared->crew->done < shared->crew->count;
         i++) {
        wait_a_moment(shared);
    }
    (void)pthread_mutex_unlock(&shared->lock);
}

static void *fetch_pieces(void *context)
{
    struct crew_member *worker = context;
    struct crew_shared *shared = worker->shared;
    uint32_t failures = 0;
    bool goes_on = !shared->crew->is_data || find_start(worker);

    while (goes_on && take_or_wait(worker)) {
        goes_on = fetch_run(worker, &failures);
        give_back(worker);
        if (goes_on && failures > 0) {
            pause_after(shared);
        }
    }
    (void)pthread_mutex_lock(&shared->lock);
    shared->working--;
    (void)pthread_cond_broadcast(&shared->news);
    (void)pthread_mutex_unlock(&shared->lock);
    return NULL;
}

/* ---- all of it ----------------------------------------------------------- */

static uint64_t bytes_done(const struct piece_crew *crew, uint64_t *total)
{
    uint64_t bytes = 0;

    *total = 0;
    for (uint64_t i = 0; i < crew->count; i++) {
        *total += crew->pieces[i].size;
        bytes += crew->pieces[i].done ? crew->pieces[i].size : 0;
    }
    return bytes;
}

/* Until all is done, or nobody works any more. */
static void watch_members(struct crew_shared *shared)
{
    const struct piece_crew *crew = shared->crew;

    (void)pthread_mutex_lock(&shared->lock);
    while (shared->working > 0) {
        uint64_t total;
        uint64_t bytes = bytes_done(crew, &total);

        if (crew->progress != NULL) {
            crew->progress(crew->context, bytes, total);
        }
        if (crew->done == crew->count || stop_requested(crew->mirrors->stop)) {
            atomic_store(&shared->over, true);
        }
        wait_a_moment(shared);
    }
    (void)pthread_mutex_unlock(&shared->lock);
}

/* A thread for each mirror among those that are to be asked now. */
static enum status start_members(struct crew_member *workers, struct crew_shared *shared,
                                 const bool *among, struct error *error)
{
    struct mirror_set *mirrors = shared->crew->mirrors;

    for (uint32_t i = 0; i < mirrors->count; i++) {
        struct crew_member *worker = &workers[i];

        if (mirrors->mirrors[i].dropped || !among[i]) {
            continue;
        }
        *worker = (struct crew_member){.shared = shared, .mirror = &mirrors->mirrors[i], .run = 1};
        worker->bytes = malloc((size_t)RUN_MAX * PIECE_SIZE);
        if (worker->bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory to fetch");
        }
        TRY(fetch_http_open(&worker->http, &mirrors->pace, mirror_timeout(mirrors, worker->mirror),
                            error));
        fetch_http_set_reach(worker->http, worker->mirror->reach);
        (void)pthread_mutex_lock(&shared->lock);
        worker->started = pthread_create(&worker->thread, NULL, fetch_pieces, worker) == 0;
        shared->working += worker->started;
        (void)pthread_mutex_unlock(&shared->lock);
        if (!worker->started) {
            return error_set(error, STATUS_NO_MEMORY, "no thread to fetch with");
        }
    }
    return STATUS_OK;
}

static enum status verdict_of(const struct crew_shared *shared, struct error *error)
{
    const struct piece_crew *crew = shared->crew;

    if (crew->done == crew->count) {
        return STATUS_OK;
    }
    if (shared->failure != STATUS_OK) {
        return shared->failure;
    }
    if (stop_requested(crew->mirrors->stop)) {
        (void)error_set(error, STATUS_STOPPED, "stopped; what came is kept");
        error_advise(error, "the same command goes on");
        return STATUS_STOPPED;
    }
    (void)error_set(error, STATUS_UNREACHABLE, "no mirror is left that gives the rest");
    error_advise(error, "what came is kept: the same command goes on, with more mirrors by "
                        "--mirror");
    return STATUS_UNREACHABLE;
}

static enum status run_members(struct crew_shared *shared, const bool *among, struct error *error)
{
    struct crew_member workers[MIRROR_SET_MAX] = {{0}};
    enum status status = start_members(workers, shared, among, error);

    if (status != STATUS_OK) {
        atomic_store(&shared->over, true);
    }
    watch_members(shared);
    for (uint32_t i = 0; i < MIRROR_SET_MAX; i++) {
        if (workers[i].started) {
            (void)pthread_join(workers[i].thread, NULL);
        }
        fetch_http_close(workers[i].http);
        free(workers[i].bytes);
    }
    return status;
}

enum status piece_crew_run(struct piece_crew *crew, struct error *error)
{
    struct crew_shared shared = {.crew = crew, .error = error};
    bool among[MIRROR_SET_MAX] = {false};
    enum status status = STATUS_OK;

    if (pthread_mutex_init(&shared.lock, NULL) != 0) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a lock");
    }
    (void)pthread_cond_init(&shared.news, NULL);
    atomic_init(&shared.over, false);
    for (uint32_t i = 0; i < crew->mirrors->count; i++) {
        among[i] = !crew->mirrors->mirrors[i].tired;
    }
    /* Those that were silent lately are asked for what the others do not give. */
    for (int pass = 0; pass < 2 && status == STATUS_OK && !atomic_load(&shared.over); pass++) {
        status = run_members(&shared, among, error);
        for (uint32_t i = 0; i < MIRROR_SET_MAX; i++) {
            among[i] = !among[i];
        }
    }
    (void)pthread_cond_destroy(&shared.news);
    (void)pthread_mutex_destroy(&shared.lock);
    return status != STATUS_OK ? status : verdict_of(&shared, error);
}
