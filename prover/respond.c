/* respond.c - see respond.h. */
#include "prover/respond.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/conviction.h"
#include "proofs/question.h"
#include "proofs/replay.h"
#include "prover/lie.h"

enum stage {
    STAGE_IDLE,
    STAGE_WANTED,
    STAGE_WORKING,
    STAGE_READY,
};

struct respond {
    /* The thread's alone. */
    char path[FILE_PATH_MAX];
    char data[JOB_DATA_MAX][FILE_PATH_MAX];
    const char *paths[JOB_DATA_MAX];
    size_t path_count;
    struct machine_options machine;
    struct seal_key key;
    bool has_key;
    struct bundle *bundle; /* NULL: no step is ready */
    struct run run;
    struct teller teller;
    uint64_t step;

    pthread_t thread;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    bool stopping;
    enum stage stage;
    struct respond_wish wish;
    enum status outcome;
    struct error error;
    size_t size;
    uint8_t bytes[RESPOND_BYTES_MAX];
};

/* ---- the step ---------------------------------------------------------------- */

static void forget(struct respond *respond)
{
    teller_close(&respond->teller);
    memset(&respond->teller, 0, sizeof(respond->teller));
    run_close(&respond->run);
    memset(&respond->run, 0, sizeof(respond->run));
    bundle_close(respond->bundle);
    respond->bundle = NULL;
}

/* On the machine that trains, or on this computer where that one has no room for two. */
static enum status open_run(struct respond *respond, struct error *error)
{
    struct machine_options here;
    enum status status = run_open(&respond->run, bundle_job(respond->bundle), respond->paths,
                                  respond->path_count, &respond->machine, error);

    if (status == STATUS_OK || respond->machine.backend == NULL) {
        return status;
    }
    run_close(&respond->run);
    memset(&respond->run, 0, sizeof(respond->run));
    status = machine_options_default(&here, error);
    here.thread_count = respond->machine.thread_count;
    here.memory_max = respond->machine.memory_max;
    return status == STATUS_OK ? run_open(&respond->run, bundle_job(respond->bundle),
                                          respond->paths, respond->path_count, &here, error)
                               : status;
}

static enum status make_ready(struct respond *respond, uint64_t step, struct error *error)
{
    const struct replay_options replay = {.threads = respond->machine.thread_count};
    enum status status;

    if (respond->bundle != NULL && respond->step == step) {
        return STATUS_OK;
    }
    forget(respond);
    respond->step = step;
    status = bundle_open(&respond->bundle, respond->path, BUNDLE_READ, error);
    if (status == STATUS_OK && respond->has_key) {
        status = bundle_unlock(respond->bundle, &respond->key, error);
    }
    if (status == STATUS_OK) {
        status = open_run(respond, error);
    }
    if (status == STATUS_OK) {
        status =
            replay_teller(&respond->teller, &respond->run, respond->bundle, step, &replay, error);
    }
    if (status == STATUS_OK) {
        status = lie_stand_by(&respond->teller, respond->bundle, step, error);
    }
    if (status != STATUS_OK) {
        forget(respond);
    }
    return status;
}

static enum status tell_diverged(uint8_t *bytes, size_t *size, struct respond *respond,
                                 struct error *error)
{
    struct buffer evidence;
    enum status status;

    buffer_init(&evidence, RESPOND_BYTES_MAX);
    status = conviction_not_finite(&evidence, &respond->teller, error);
    if (status == STATUS_OK) {
        status = buffer_check(&evidence, error, "the proof that the training diverged");
    }
    if (status == STATUS_OK) {
        memcpy(bytes, evidence.data, evidence.size);
        *size = evidence.size;
    }
    buffer_release(&evidence);
    return status;
}

static enum status make(uint8_t *bytes, size_t *size, struct respond *respond,
                        const struct respond_wish *wish, struct error *error)
{
    struct asked asked;
    enum status status = make_ready(respond, wish->step, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (wish->asked_size == 0) {
        memcpy(bytes, respond->teller.trace.root.bytes, DIGEST_SIZE);
        *size = DIGEST_SIZE;
        return STATUS_OK;
    }
    if (asked_read(&asked, wish->asked, wish->asked_size) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "the ledger asks what this program cannot read");
    }
    return asked.ask.kind == ASK_DIVERGED
               ? tell_diverged(bytes, size, respond, error)
               : teller_answer(bytes, size, &respond->teller, &asked.ask, error);
}

/* ---- the thread -------------------------------------------------------------- */

static void *serve(void *context)
{
    struct respond *respond = context;
    uint8_t *bytes = malloc(RESPOND_BYTES_MAX);

    (void)pthread_mutex_lock(&respond->lock);
    while (!respond->stopping) {
        struct respond_wish wish;
        struct error error;
        enum status status;
        size_t size = 0;

        if (respond->stage != STAGE_WANTED) {
            (void)pthread_cond_wait(&respond->changed, &respond->lock);
            continue;
        }
        respond->stage = STAGE_WORKING;
        wish = respond->wish;
        (void)pthread_mutex_unlock(&respond->lock);
        error_init(&error);
        status = bytes == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory for an answer")
                               : make(bytes, &size, respond, &wish, &error);
        (void)pthread_mutex_lock(&respond->lock);
        respond->outcome = status;
        respond->error = error;
        respond->size = size;
        if (status == STATUS_OK) {
            memcpy(respond->bytes, bytes, size);
        }
        respond->stage = STAGE_READY;
    }
    (void)pthread_mutex_unlock(&respond->lock);
    free(bytes);
    return NULL;
}

enum status respond_open(struct respond **respond, const char *bundle, const struct seal_key *key,
                         const char *const *paths, size_t path_count,
                         const struct machine_options *machine, struct error *error)
{
    struct respond *made = calloc(1, sizeof(*made));

    *respond = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to answer claims");
    }
    (void)pthread_cond_init(&made->changed, NULL);
    (void)snprintf(made->path, sizeof(made->path), "%s", bundle);
    for (size_t i = 0; i < path_count && i < JOB_DATA_MAX; i++) {
        (void)snprintf(made->data[i], FILE_PATH_MAX, "%s", paths[i]);
        made->paths[i] = made->data[i];
        made->path_count = i + 1;
    }
    made->machine = *machine;
    made->machine.timed = NULL;
    made->machine.trace = false;
    if (key != NULL) {
        made->key = *key;
        made->has_key = true;
    }
    if (pthread_create(&made->thread, NULL, serve, made) != 0) {
        (void)pthread_cond_destroy(&made->changed);
        (void)pthread_mutex_destroy(&made->lock);
        seal_key_wipe(&made->key);
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "the answering thread cannot be started");
    }
    *respond = made;
    return STATUS_OK;
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
    forget(respond);
    (void)pthread_cond_destroy(&respond->changed);
    (void)pthread_mutex_destroy(&respond->lock);
    seal_key_wipe(&respond->key);
    free(respond);
}

static bool same_wish(const struct respond_wish *a, const struct respond_wish *b)
{
    return a->step == b->step && a->asked_size == b->asked_size &&
           memcmp(a->asked, b->asked, a->asked_size) == 0;
}

enum status respond_get(struct respond *respond, uint8_t *bytes, size_t *size,
                        const struct respond_wish *wish, struct error *error)
{
    enum status status = STATUS_NOT_FOUND;

    (void)pthread_mutex_lock(&respond->lock);
    if (respond->stage == STAGE_READY && same_wish(&respond->wish, wish)) {
        status = respond->outcome;
        if (status == STATUS_OK) {
            *size = respond->size;
            memcpy(bytes, respond->bytes, respond->size);
        } else {
            *error = respond->error;
            respond->stage = STAGE_IDLE;
            status = status == STATUS_NOT_FOUND ? STATUS_REFUSED : status;
        }
    } else if (respond->stage != STAGE_WORKING && respond->stage != STAGE_WANTED) {
        respond->wish = *wish;
        respond->stage = STAGE_WANTED;
        (void)pthread_cond_signal(&respond->changed);
    }
    (void)pthread_mutex_unlock(&respond->lock);
    return status;
}
