/* piece_crew.c - see piece_crew.h. */
#include "proofs/mirror/piece_crew.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "proofs/mirror/fetch_http.h"

enum {
    RUN_MAX = 16,     /* pieces of one request */
    FAILURES_MAX = 3, /* requests in a row that gave nothing, then the mirror is dropped */
    LOOK_MS = 100,    /* how often waiting threads look around */
    TAKERS_MAX = 2,   /* threads that fetch the same piece */
    PAUSE_LOOKS = 10, /* looks between two tries at a mirror that failed */
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
static bool take(struct crew_member *worker)
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
        found = take(worker);
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

static void fail(struct crew_shared *shared, const char *what)
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

        if (came < piece->size) {
            return true;
        }
        piece_hash(&hash, bytes, piece->size);
        if (!digest_equal(&hash, piece->hash)) {
            (void)snprintf(trouble, sizeof(trouble), "gives false bytes of the tensor '%.100s'",
                           piece->tensor);
            mirror_drop(worker->mirror, trouble);
            return false;
        }
        if (!write_piece(shared->crew, piece, bytes)) {
            fail(shared, shared->crew->path);
            return false;
        }
        (void)pthread_mutex_lock(&shared->lock);
        if (!piece->done) {
            piece->done = true;
            shared->crew->done++;
            worker->mirror->bytes += piece->size;
        }
        (void)pthread_mutex_unlock(&shared->lock);
        bytes += piece->size;
        came -= piece->size;
    }
    return true;
}

/* One request. False: nothing more of this mirror. *failures: in a row. */
static bool fetch_run(struct crew_member *worker, uint32_t *failures)
{
    const struct piece_crew *crew = worker->shared->crew;
    const struct piece *first = &crew->pieces[worker->first];
    const struct piece *last = &first[worker->count - 1];
    size_t size = (size_t)(last->remote + last->size - first->remote);
    struct error error;
    enum status status;
    size_t came;

    error_init(&error);
    status = fetch_http_range(worker->http, worker->bytes, &came, worker->mirror->url, crew->name,
                              first->remote, size, &worker->shared->over, &error);
    if (!keep_pieces(worker, came) || status == STATUS_STOPPED) {
        return false;
    }
    if (status == STATUS_OK) {
        *failures = 0;
        worker->run = worker->run < RUN_MAX ? 2 * worker->run : RUN_MAX;
        return true;
    }
    *failures = came >= first->size ? 0 : *failures + 1;
    if (status != STATUS_UNREACHABLE || *failures >= FAILURES_MAX) {
        mirror_drop(worker->mirror, error.text);
        return false;
    }
    mirror_note(worker->mirror, error.text);
    worker->run = 1;
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

static void *work(void *context)
{
    struct crew_member *worker = context;
    struct crew_shared *shared = worker->shared;
    uint32_t failures = 0;
    bool goes_on = true;

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
static void watch(struct crew_shared *shared)
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

static enum status start(struct crew_member *workers, struct crew_shared *shared,
                         struct error *error)
{
    struct mirror_set *mirrors = shared->crew->mirrors;

    for (uint32_t i = 0; i < mirrors->count; i++) {
        struct crew_member *worker = &workers[i];

        if (mirrors->mirrors[i].dropped) {
            continue;
        }
        *worker = (struct crew_member){.shared = shared, .mirror = &mirrors->mirrors[i], .run = 1};
        worker->bytes = malloc((size_t)RUN_MAX * PIECE_SIZE);
        if (worker->bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory to fetch");
        }
        TRY(fetch_http_open(&worker->http, 0, mirrors->timeout_s, error));
        (void)pthread_mutex_lock(&shared->lock);
        worker->started = pthread_create(&worker->thread, NULL, work, worker) == 0;
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

enum status piece_crew_run(struct piece_crew *crew, struct error *error)
{
    struct crew_member workers[MIRROR_SET_MAX] = {{0}};
    struct crew_shared shared = {.crew = crew, .error = error};
    enum status status;

    if (pthread_mutex_init(&shared.lock, NULL) != 0) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a lock");
    }
    (void)pthread_cond_init(&shared.news, NULL);
    atomic_init(&shared.over, false);
    status = start(workers, &shared, error);
    if (status != STATUS_OK) {
        atomic_store(&shared.over, true);
    }
    watch(&shared);
    for (uint32_t i = 0; i < MIRROR_SET_MAX; i++) {
        if (workers[i].started) {
            (void)pthread_join(workers[i].thread, NULL);
        }
        fetch_http_close(workers[i].http);
        free(workers[i].bytes);
    }
    (void)pthread_cond_destroy(&shared.news);
    (void)pthread_mutex_destroy(&shared.lock);
    return status != STATUS_OK ? status : verdict_of(&shared, error);
}
