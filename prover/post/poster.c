/* poster.c - see poster.h. */
#include "prover/post/poster.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "base/steady.h"

#define JOB_DIGITS 4 /* bytes */

struct poster {
    struct solver *solver;
    atomic_bool *stopping;
    const struct log *log;
    char job[HEX_SIZE(JOB_DIGITS)]; /* the digits of its key that each command takes */
    double seconds;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t woken;
    bool wanted; /* a round at once */
    struct solver_view view;
    struct job_standing standing;
    double spent_s;
};

static double thread_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void log_changes(const struct poster *poster, const struct solver_view *before,
                        const struct solver_view *now)
{
    if (strcmp(before->trouble, now->trouble) != 0) {
        if (now->trouble[0] == '\0') {
            log_info(poster->log, "ledger", "job 0x%s: the trouble is over", poster->job);
        } else {
            log_warn(poster->log, "ledger", "job 0x%s: %s%s", poster->job, now->trouble,
                     now->gone ? "" : "; training goes on, and posting retries");
        }
    }
    if (now->disputed > before->disputed) {
        log_warn(poster->log, "ledger", "job 0x%s: %u claims are open", poster->job, now->disputed);
    }
}

/* Waits for the next round, or until it is woken. */
static void wait_for_round(struct poster *poster)
{
    struct timespec until = steady_after(poster->seconds);
    int waited = 0;

    while (!poster->wanted && !atomic_load(poster->stopping) && waited == 0) {
        waited = pthread_cond_timedwait(&poster->woken, &poster->lock, &until);
    }
    poster->wanted = false;
}

static void *post_rounds(void *context)
{
    struct poster *poster = context;
    struct solver_view before = {0};

    while (!atomic_load(poster->stopping) && !before.gone) {
        struct solver_view now;
        struct error error;

        error_init(&error);
        if (solver_round(poster->solver, &now, &error) != STATUS_OK) {
            log_error(poster->log, "ledger", "job 0x%s: %s", poster->job, error.text);
        }
        if (!atomic_load(poster->stopping)) { /* a stop interrupts the round */
            log_changes(poster, &before, &now);
        }
        before = now;
        (void)pthread_mutex_lock(&poster->lock);
        poster->view = now;
        solver_show(&poster->standing, poster->solver);
        poster->spent_s = thread_seconds();
        wait_for_round(poster);
        (void)pthread_mutex_unlock(&poster->lock);
    }
    return NULL;
}

static enum status make_locks(struct poster *poster, struct error *error)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);

    failed = failed != 0 ? failed : pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed = failed != 0 ? failed : pthread_cond_init(&poster->woken, &attributes);
    failed = failed != 0 ? failed : pthread_mutex_init(&poster->lock, NULL);
    (void)pthread_condattr_destroy(&attributes);
    return failed == 0 ? STATUS_OK
                       : error_set(error, STATUS_NO_MEMORY, "no lock for the posting thread");
}

enum status poster_start(struct poster **poster, struct solver *solver, const struct hash32 *job,
                         atomic_bool *stopping, const struct log *log, double seconds,
                         struct error *error)
{
    struct poster *made = calloc(1, sizeof(*made));
    enum status status;

    *poster = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the posting thread");
    }
    made->solver = solver;
    hex_encode(made->job, job->bytes, JOB_DIGITS);
    made->stopping = stopping;
    made->log = log;
    made->seconds = seconds;
    TRY_OUT(make_locks(made, error));
    if (pthread_create(&made->thread, NULL, post_rounds, made) != 0) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "the posting thread cannot be started"));
    }
    *poster = made;
    return STATUS_OK;
out:
    free(made);
    return status;
}

void poster_wake(struct poster *poster)
{
    (void)pthread_mutex_lock(&poster->lock);
    poster->wanted = true;
    (void)pthread_cond_signal(&poster->woken);
    (void)pthread_mutex_unlock(&poster->lock);
}

void poster_show(struct poster *poster, struct job_standing *standing)
{
    (void)pthread_mutex_lock(&poster->lock);
    *standing = poster->standing;
    (void)pthread_mutex_unlock(&poster->lock);
}

void poster_look(struct poster *poster, struct solver_view *view, double *seconds)
{
    (void)pthread_mutex_lock(&poster->lock);
    *view = poster->view;
    *seconds = poster->spent_s;
    (void)pthread_mutex_unlock(&poster->lock);
}

void poster_stop(struct poster *poster)
{
    if (poster == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&poster->lock);
    atomic_store(poster->stopping, true);
    (void)pthread_cond_signal(&poster->woken);
    (void)pthread_mutex_unlock(&poster->lock);
    (void)pthread_join(poster->thread, NULL);
    (void)pthread_cond_destroy(&poster->woken);
    (void)pthread_mutex_destroy(&poster->lock);
    free(poster);
}
