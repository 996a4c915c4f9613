/* respond.c - see respond.h. */
#include "prover/post/respond.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/steady.h"
#include "proofs/run/data_paths.h"

enum stage {
    STAGE_FREE = 0,
    STAGE_WANTED,
    STAGE_WORKING,
    STAGE_READY,
};

/* One requested answer. */
struct slot {
    enum stage stage;
    bool dropped; /* no longer requested, while it was being made */
    struct respond_request request;
    uint32_t failures;
    enum status outcome;
    struct error error;
    uint8_t *bytes;
    size_t size;
};

struct respond {
    /* Used by the thread alone. */
    char path[FILE_PATH_MAX];
    struct data_paths paths;
    struct machine_options machine;
    struct encryption_key key;
    bool has_key;
    struct tracer *tracer; /* NULL: no step is ready */

    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    bool stopping;
    bool is_ready; /* ready_step is */
    uint64_t ready_step;
    uint64_t segment_length; /* 0: no step was timed yet */
    double step_seconds;     /* the longest so far */
    struct slot slots[RESPOND_REQUESTS_MAX];
};

/* ---- the step ---------------------------------------------------------------- */

/* Until a replay was timed, the forecast follows the journal's time of the step. */
static void forecast_by_journal(struct respond *respond, uint64_t step)
{
    struct bundle *bundle = NULL;
    struct bundle_step entry = {0};
    struct error ignored;

    error_init(&ignored);
    if (bundle_open(&bundle, respond->path, BUNDLE_READ, &ignored) == STATUS_OK &&
        (!respond->has_key || bundle_unlock(bundle, &respond->key, &ignored) == STATUS_OK) &&
        bundle_step_read(&entry, bundle, step, &ignored) == STATUS_OK) {
        (void)pthread_mutex_lock(&respond->lock);
        respond->segment_length = bundle_job(bundle)->segment_length;
        respond->step_seconds = (double)entry.nanoseconds / 1e9;
        (void)pthread_mutex_unlock(&respond->lock);
    }
    bundle_close(bundle);
}

/* The traced step is run twice: for its roots, and for the queries. */
static void note_time(struct respond *respond, double seconds, uint64_t steps_run)
{
    double each = seconds / (double)(steps_run + 2);

    (void)pthread_mutex_lock(&respond->lock);
    if (each > respond->step_seconds) {
        respond->step_seconds = each;
    }
    (void)pthread_mutex_unlock(&respond->lock);
}

static void note_ready(struct respond *respond, bool ready, uint64_t step)
{
    (void)pthread_mutex_lock(&respond->lock);
    respond->is_ready = ready;
    respond->ready_step = step;
    (void)pthread_mutex_unlock(&respond->lock);
}

static enum status open_tracer(struct respond *respond, uint64_t step, struct error *error)
{
    const struct tracer_step wanted = {.bundle = respond->path,
                                       .key = respond->has_key ? &respond->key : NULL,
                                       .data = (const char *const *)respond->paths.of,
                                       .data_count = respond->paths.count,
                                       .machine = &respond->machine,
                                       .step = step};

    tracer_close(respond->tracer);
    return tracer_open(&respond->tracer, &wanted, error);
}

/* The root of the step's trace, once it is run. A failure leaves no step ready. */
static enum status make_ready(struct digest *root, struct respond *respond, uint64_t step,
                              struct error *error)
{
    double start = steady_seconds();
    uint64_t steps_run = 0;
    enum status status;

    if (respond->tracer != NULL && tracer_is_of(respond->tracer, respond->path, step)) {
        return tracer_ready(respond->tracer, root, &steps_run, error);
    }
    note_ready(respond, false, 0);
    TRY(open_tracer(respond, step, error));
    if (respond->segment_length == 0) { /* which this thread alone sets */
        forecast_by_journal(respond, step);
    }
    status = tracer_ready(respond->tracer, root, &steps_run, error);
    if (status != STATUS_OK) {
        tracer_close(respond->tracer);
        respond->tracer = NULL;
        return status;
    }
    note_time(respond, steady_seconds() - start, steps_run);
    note_ready(respond, true, step);
    return STATUS_OK;
}

static enum status make_bytes(uint8_t *bytes, size_t *size, struct respond *respond,
                              const struct respond_request *request, struct error *error)
{
    struct digest root;

    TRY(make_ready(&root, respond, request->step, error));
    if (request->query_size > 0) {
        return tracer_ask_ledger(respond->tracer, bytes, size, request->query, request->query_size,
                                 error);
    }
    memcpy(bytes, root.bytes, DIGEST_SIZE);
    *size = DIGEST_SIZE;
    return STATUS_OK;
}

/* ---- the thread -------------------------------------------------------------- */

/* Does a come before b? A request that failed comes after the others; one about the ready step
 * costs no replay and comes first; then the earlier deadline. */
static bool comes_first(const struct respond *respond, const struct slot *a, const struct slot *b)
{
    bool a_ready = respond->is_ready && a->request.step == respond->ready_step;
    bool b_ready = respond->is_ready && b->request.step == respond->ready_step;

    if (a->failures != b->failures) {
        return a->failures < b->failures;
    }
    if (a_ready != b_ready) {
        return a_ready;
    }
    return a->request.deadline_s < b->request.deadline_s;
}

static struct slot *choose_slot(struct respond *respond)
{
    struct slot *best = NULL;

    for (uint32_t i = 0; i < RESPOND_REQUESTS_MAX; i++) {
        struct slot *slot = &respond->slots[i];

        if (slot->stage == STAGE_WANTED && (best == NULL || comes_first(respond, slot, best))) {
            best = slot;
        }
    }
    return best;
}

static void empty_slot(struct slot *slot)
{
    free(slot->bytes);
    memset(slot, 0, sizeof(*slot));
}

/* Called with the lock, which it releases while it works. */
static void work_on_slot(struct respond *respond, struct slot *slot, uint8_t *bytes)
{
    const struct respond_request request = slot->request;
    struct error error;
    size_t size = 0;
    enum status status;

    slot->stage = STAGE_WORKING;
    (void)pthread_mutex_unlock(&respond->lock);
    error_init(&error);
    status = bytes == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory for an answer")
                           : make_bytes(bytes, &size, respond, &request, &error);
    (void)pthread_mutex_lock(&respond->lock);
    slot->stage = STAGE_READY;
    slot->failures += status != STATUS_OK;
    slot->outcome = status;
    slot->error = error;
    if (status == STATUS_OK) {
        slot->bytes = malloc(size);
        slot->size = size;
        if (slot->bytes == NULL) {
            slot->outcome = error_set(&slot->error, STATUS_NO_MEMORY, "no memory for an answer");
        } else {
            memcpy(slot->bytes, bytes, size);
        }
    }
    if (slot->dropped) {
        empty_slot(slot);
    }
}

static void *serve_requests(void *context)
{
    struct respond *respond = context;
    uint8_t *bytes = malloc(RESPOND_BYTES_MAX);

    (void)pthread_mutex_lock(&respond->lock);
    while (!respond->stopping) {
        struct slot *slot = choose_slot(respond);

        if (slot == NULL) {
            (void)pthread_cond_wait(&respond->changed, &respond->lock);
        } else {
            work_on_slot(respond, slot, bytes);
        }
    }
    (void)pthread_mutex_unlock(&respond->lock);
    free(bytes);
    return NULL;
}

static void release_respond(struct respond *respond)
{
    (void)pthread_cond_destroy(&respond->changed);
    (void)pthread_mutex_destroy(&respond->lock);
    encryption_key_wipe(&respond->key);
    data_paths_close(&respond->paths);
    free(respond);
}

enum status respond_open(struct respond **respond, const char *bundle,
                         const struct encryption_key *key, const char *const *paths,
                         size_t path_count, const struct machine_options *machine,
                         struct error *error)
{
    struct respond *made = calloc(1, sizeof(*made));
    enum status status;

    *respond = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to answer claims");
    }
    (void)pthread_cond_init(&made->changed, NULL);
    (void)snprintf(made->path, sizeof(made->path), "%s", bundle);
    TRY_OUT(data_paths_open(&made->paths, (uint32_t)path_count, error));
    for (uint32_t i = 0; i < path_count; i++) {
        TRY_OUT(data_paths_set(&made->paths, i, paths[i], error));
    }
    made->machine = *machine;
    if (key != NULL) {
        made->key = *key;
        made->has_key = true;
    }
    if (pthread_create(&made->thread, NULL, serve_requests, made) != 0) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "the answering thread cannot be started"));
    }
    *respond = made;
    return STATUS_OK;
out:
    release_respond(made);
    return status;
}

void respond_close(struct respond *respond)
{
    if (respond == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&respond->lock);
    respond->stopping = true;
    (void)pthread_cond_signal(&respond->changed);
    (void)pthread_mutex_unlock(&respond->lock);
    (void)pthread_join(respond->thread, NULL);
    tracer_close(respond->tracer);
    for (uint32_t i = 0; i < RESPOND_REQUESTS_MAX; i++) {
        empty_slot(&respond->slots[i]);
    }
    release_respond(respond);
}

/* ---- requests ------------------------------------------------------------------ */

static bool same_request(const struct respond_request *a, const struct respond_request *b)
{
    return a->step == b->step && a->query_size == b->query_size &&
           memcmp(a->query, b->query, a->query_size) == 0;
}

static struct slot *find_slot(struct respond *respond, const struct respond_request *request)
{
    for (uint32_t i = 0; i < RESPOND_REQUESTS_MAX; i++) {
        struct slot *slot = &respond->slots[i];

        if (slot->stage != STAGE_FREE && !slot->dropped && same_request(&slot->request, request)) {
            return slot;
        }
    }
    return NULL;
}

static void drop_others(struct respond *respond, const struct respond_request *requests,
                        uint32_t count)
{
    for (uint32_t i = 0; i < RESPOND_REQUESTS_MAX; i++) {
        struct slot *slot = &respond->slots[i];
        bool wanted = false;

        for (uint32_t k = 0; k < count && !wanted; k++) {
            wanted = same_request(&slot->request, &requests[k]);
        }
        if (slot->stage == STAGE_WORKING) {
            slot->dropped = !wanted;
        } else if (slot->stage != STAGE_FREE && !wanted) {
            empty_slot(slot);
        }
    }
}

void respond_want(struct respond *respond, const struct respond_request *requests, uint32_t count)
{
    (void)pthread_mutex_lock(&respond->lock);
    drop_others(respond, requests, count);
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = find_slot(respond, &requests[i]);

        for (uint32_t k = 0; k < RESPOND_REQUESTS_MAX && slot == NULL; k++) {
            if (respond->slots[k].stage == STAGE_FREE) {
                slot = &respond->slots[k];
                slot->stage = STAGE_WANTED;
            }
        }
        if (slot != NULL) { /* a dropped one that is still being made may fill a slot */
            slot->request = requests[i];
        }
    }
    (void)pthread_cond_signal(&respond->changed);
    (void)pthread_mutex_unlock(&respond->lock);
}

enum status respond_get(struct respond *respond, uint8_t *bytes, size_t *size,
                        const struct respond_request *request, struct error *error)
{
    enum status status = STATUS_NOT_FOUND;
    struct slot *slot;

    (void)pthread_mutex_lock(&respond->lock);
    slot = find_slot(respond, request);
    if (slot != NULL && slot->stage == STAGE_READY) {
        status = slot->outcome;
        if (status == STATUS_OK) {
            *size = slot->size;
            memcpy(bytes, slot->bytes, slot->size);
        } else {
            *error = slot->error;
            slot->stage = STAGE_WANTED;
            status = status == STATUS_NOT_FOUND ? STATUS_REFUSED : status;
            (void)pthread_cond_signal(&respond->changed);
        }
    }
    (void)pthread_mutex_unlock(&respond->lock);
    return status;
}

double respond_forecast(struct respond *respond, uint64_t step)
{
    double seconds = 0;

    (void)pthread_mutex_lock(&respond->lock);
    if (respond->segment_length > 0) {
        bool ready = respond->is_ready && respond->ready_step == step;

        seconds =
            respond->step_seconds * (ready ? 1.0 : (double)(step % respond->segment_length + 2));
    }
    (void)pthread_mutex_unlock(&respond->lock);
    return seconds;
}
