/* watch_mirrors.c - see watch_mirrors.h. */
#include "client/watch/watch_mirrors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/whole_file.h"
#include "chain/commands/job_source.h"
#include "proofs/mirror/fetch_http.h"
#include "proofs/run/step_time.h"

#define NAME_SIZE 160

struct watch_mirrors {
    struct watch_mirrors_options options;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members up to `rested` */
    pthread_cond_t told;
    bool ending;
    struct mirror_set known; /* by their URLs: the reader of the ledger adds to them */
    uint32_t committed;
    uint32_t generation;
    bool news;
    bool rested;

    /* Of the thread. */
    struct job_source source; /* its mirrors and its job; no ledger */
    char folder[FILE_PATH_MAX];
    uint32_t had; /* segments whose losses are in the curve */
    uint32_t had_generation;
    char from[MIRROR_SET_URL_MAX]; /* who gave the last ones; empty: nobody */
    atomic_bool ending_now;        /* the same as ending, for a transfer */
};

/* ---- the job file -------------------------------------------------------------------- */

static enum status get_job(struct watch_mirrors *mirrors, struct error *error)
{
    struct watch_sight *sight = mirrors->options.sight;
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(file_path_join(path, sizeof(path), error, mirrors->folder, "job"));
    status = job_source_get(&mirrors->source, path, error);
    (void)unlink(path);
    TRY(status);
    (void)pthread_mutex_lock(&sight->lock);
    sight->view.tokens = step_time_tokens(mirrors->source.job->tape);
    (void)pthread_mutex_unlock(&sight->lock);
    return STATUS_OK;
}

/* ---- losses -------------------------------------------------------------------------- */

/* Of one segment, by one mirror. */
static enum status get_losses_from(struct watch_mirrors *mirrors, struct fetch_http *http,
                                   struct mirror *mirror, uint32_t segment, struct error *error)
{
    const struct game_terms *terms = mirrors->options.terms;
    struct watch_sight *sight = mirrors->options.sight;
    uint64_t first = (uint64_t)segment * terms->segment_steps;
    /* The last segment may be shorter than the others. */
    uint64_t count =
        terms->steps - first < terms->segment_steps ? terms->steps - first : terms->segment_steps;
    uint8_t bytes[GAME_STATES_MAX * LOSS_CURVE_STEP_SIZE];
    char job[HEX_SIZE(DIGEST_SIZE)];
    char name[NAME_SIZE];
    size_t came;

    hex_encode(job, terms->job_id.bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "v1/jobs/%s/segments/%" PRIu32 ".losses", job, segment);
    TRY(fetch_http_range(http, bytes, &came, mirror->url, name, 0, count * LOSS_CURVE_STEP_SIZE,
                         &mirrors->ending_now, error));
    mirror->note.bytes += came;
    (void)pthread_mutex_lock(&sight->lock);
    /* These numbers are the mirror's word: no root binds them, and the page says so. */
    loss_curve_read(&sight->view.curve, first, bytes, count);
    sight->view.curve_pace = loss_curve_pace(&sight->view.curve);
    (void)pthread_mutex_unlock(&sight->lock);
    return STATUS_OK;
}

/* False: no mirror gives them now. */
static bool get_losses(struct watch_mirrors *mirrors, struct fetch_http *http, uint32_t segment)
{
    struct mirror_set *set = &mirrors->source.mirrors;

    for (uint32_t i = 0; i < set->count; i++) {
        struct mirror *mirror = &set->mirrors[i];
        struct error why;
        enum status status;

        if (mirror->dropped || stop_requested(mirrors->options.stop)) {
            continue;
        }
        error_init(&why);
        /* A mirror of a ledger is called only where a stranger's address may lead. */
        fetch_http_set_reach(http, mirror->reach);
        status = get_losses_from(mirrors, http, mirror, segment, &why);
        if (status == STATUS_OK) {
            (void)snprintf(mirrors->from, sizeof(mirrors->from), "%s", mirror->url);
            mirror->note.trouble[0] = '\0';
            return true;
        }
        /* A mirror that is away is asked again later, with pauses that grow; one that is wrong is
         * named. */
        if (status == STATUS_UNREACHABLE) {
            mirror_failed(mirror, http, why.text);
        } else {
            mirror_note(mirror, why.text);
        }
    }
    return false;
}

static void say_curve(struct watch_mirrors *mirrors, uint32_t wanted)
{
    struct watch_sight *sight = mirrors->options.sight;
    char missing[64] = "";

    if (mirrors->had < wanted) {
        (void)snprintf(missing, sizeof(missing), "; nobody gives it from segment %" PRIu32 " on",
                       mirrors->had);
    }
    (void)pthread_mutex_lock(&sight->lock);
    if (mirrors->from[0] != '\0') {
        (void)snprintf(sight->view.curve_words, sizeof(sight->view.curve_words),
                       "UNPROVEN, the word of %.200s: no root binds a loss%s", mirrors->from,
                       missing);
    } else if (wanted > 0) {
        (void)snprintf(sight->view.curve_words, sizeof(sight->view.curve_words),
                       "none: no mirror gives the losses");
    }
    sight->view.mirrors = mirrors->source.mirrors;
    (void)pthread_mutex_unlock(&sight->lock);
}

/* What a void segment said is forgotten. */
static void begin_generation(struct watch_mirrors *mirrors, uint32_t generation)
{
    struct watch_sight *sight = mirrors->options.sight;

    mirrors->had = 0;
    mirrors->had_generation = generation;
    (void)pthread_mutex_lock(&sight->lock);
    loss_curve_init(&sight->view.curve, mirrors->options.terms->steps);
    (void)pthread_mutex_unlock(&sight->lock);
}

static void follow_losses(struct watch_mirrors *mirrors, uint32_t committed)
{
    struct fetch_http *http;
    struct error none;

    error_init(&none);
    if (fetch_http_open(&http, NULL, mirrors->source.mirrors.timeout_s, &none) != STATUS_OK) {
        return;
    }
    while (mirrors->had < committed && get_losses(mirrors, http, mirrors->had)) {
        mirrors->had++;
    }
    fetch_http_close(http);
}

/* ---- the thread ---------------------------------------------------------------------- */

static void ask_mirrors(struct watch_mirrors *mirrors, uint32_t committed, uint32_t generation)
{
    struct error why;

    error_init(&why);
    if (mirrors->source.job == NULL && mirrors->source.mirrors.count > 0) {
        (void)!get_job(mirrors, &why); /* what a mirror did wrong stands in the set */
    }
    if (generation != mirrors->had_generation || committed < mirrors->had) {
        begin_generation(mirrors, generation);
    }
    follow_losses(mirrors, committed);
    say_curve(mirrors, committed);
}

static void *run_mirrors(void *context)
{
    struct watch_mirrors *mirrors = context;

    (void)pthread_mutex_lock(&mirrors->lock);
    while (!mirrors->ending) {
        uint32_t committed = mirrors->committed;
        uint32_t generation = mirrors->generation;
        struct timespec until;

        mirrors->news = false;
        /* Its own list, which remembers who lied, and takes in what the ledger's reader finds. */
        mirror_set_join(&mirrors->source.mirrors, &mirrors->known);
        /* The lock is not held while mirrors answer: the ledger's reader must not wait for them. */
        (void)pthread_mutex_unlock(&mirrors->lock);
        ask_mirrors(mirrors, committed, generation);
        (void)pthread_mutex_lock(&mirrors->lock);
        /* News that came meanwhile start the next round at once. */
        mirrors->rested = !mirrors->news;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += (time_t)mirrors->options.poll_s + 1;
        while (!mirrors->ending && !mirrors->news &&
               pthread_cond_timedwait(&mirrors->told, &mirrors->lock, &until) == 0) {
        }
    }
    (void)pthread_mutex_unlock(&mirrors->lock);
    return NULL;
}

void watch_mirrors_tell(struct watch_mirrors *mirrors, const struct job_record *record)
{
    (void)pthread_mutex_lock(&mirrors->lock);
    if (mirrors->committed != record->state.committed ||
        mirrors->generation != record->state.generation) {
        mirrors->committed = record->state.committed;
        mirrors->generation = record->state.generation;
        mirrors->news = true;
        mirrors->rested = false;
        (void)pthread_cond_signal(&mirrors->told);
    }
    (void)pthread_mutex_unlock(&mirrors->lock);
}

void watch_mirrors_add(struct watch_mirrors *mirrors, const struct mirror_set *set)
{
    uint32_t before;

    (void)pthread_mutex_lock(&mirrors->lock);
    before = mirrors->known.count;
    mirror_set_join(&mirrors->known, set);
    if (mirrors->known.count > before) {
        mirrors->news = true;
        mirrors->rested = false;
        (void)pthread_cond_signal(&mirrors->told);
    }
    (void)pthread_mutex_unlock(&mirrors->lock);
}

bool watch_mirrors_rest(struct watch_mirrors *mirrors)
{
    bool rested;

    (void)pthread_mutex_lock(&mirrors->lock);
    rested = mirrors->rested;
    (void)pthread_mutex_unlock(&mirrors->lock);
    return rested;
}

/* ---- opening and closing ------------------------------------------------------------- */

enum status watch_mirrors_open(struct watch_mirrors **mirrors,
                               const struct watch_mirrors_options *options, struct error *error)
{
    struct watch_mirrors *made = calloc(1, sizeof(*made));

    *mirrors = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to watch the mirrors");
    }
    made->options = *options;
    made->known = *options->mirrors;
    made->source.record.terms = *options->terms;
    made->source.mirrors = *options->mirrors;
    made->source.mirrors.stop = options->stop;
    /* For the job file alone; the close removes the folder. */
    (void)snprintf(made->folder, sizeof(made->folder), "/tmp/lockstep-XXXXXX");
    if (whole_file_make_part(made->folder, 0700, true) < 0) {
        free(made);
        return error_set_errno(error, "cannot make a folder below /tmp");
    }
    (void)pthread_mutex_init(&made->lock, NULL);
    (void)pthread_cond_init(&made->told, NULL);
    if (pthread_create(&made->thread, NULL, run_mirrors, made) != 0) {
        (void)rmdir(made->folder);
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "cannot start a thread for the mirrors");
    }
    *mirrors = made;
    return STATUS_OK;
}

void watch_mirrors_close(struct watch_mirrors *mirrors)
{
    if (mirrors == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&mirrors->lock);
    mirrors->ending = true;
    (void)pthread_cond_signal(&mirrors->told);
    (void)pthread_mutex_unlock(&mirrors->lock);
    atomic_store(&mirrors->ending_now, true);
    (void)pthread_join(mirrors->thread, NULL);
    job_free(mirrors->source.job);
    (void)rmdir(mirrors->folder);
    (void)pthread_cond_destroy(&mirrors->told);
    (void)pthread_mutex_destroy(&mirrors->lock);
    free(mirrors);
}
