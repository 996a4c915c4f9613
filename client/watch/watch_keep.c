/* watch_keep.c - see watch_keep.h. */
#include "client/watch/watch_keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "chain/commands/job_source.h"
#include "proofs/mirror/kept.h"
#include "proofs/mirror/piece_fetch.h"

enum {
    RETRY_S = 10, /* what nobody gave is asked for again */
    NOTE_MAX = 130,
};

/* What the ledger says, and who may have it. */
struct keep_told {
    struct job_states_place places[WATCH_KEEP_STATES_MAX];
    uint32_t count;
    struct mirror_set mirrors;
};

struct watch_keep {
    struct watch_keep_options options;
    struct kept *folder;
    bool running; /* the thread */
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members up to `had_count` */
    pthread_cond_t changed;
    struct keep_told told;
    bool ending;
    bool news;
    bool rested;
    struct digest had[WATCH_KEEP_STATES_MAX]; /* roots of states that were brought or checked */
    uint32_t had_count;

    /* Of the thread. */
    struct job_source source; /* its mirrors and its job; no ledger */
    struct keep_told now;
    uint32_t kept;                          /* states, in this round */
    bool failed;                            /* something, in this round */
    char trouble[NOTE_MAX];                 /* of this round; empty: none */
    char dropped[MIRROR_SET_MAX][NOTE_MAX]; /* mirrors, and why; empty: it was not */
    uint32_t last_dropped;
};

/* ---- what is said ---------------------------------------------------------------------- */

/* What is new is logged too. */
static void note_trouble(const struct watch_keep *keep, char text[NOTE_MAX], const char *what,
                         const char *why)
{
    char before[NOTE_MAX];

    memcpy(before, text, NOTE_MAX);
    (void)snprintf(text, NOTE_MAX, "; %.50s: %.70s", what, why);
    if (strcmp(before, text) != 0) {
        log_warn(keep->options.log, keep->options.area, "%s: %s", what, why);
    }
}

static void set_trouble(struct watch_keep *keep, const char *what, const char *why)
{
    keep->failed = true;
    note_trouble(keep, keep->trouble, what, why);
}

static void say_copies(struct watch_keep *keep, uint64_t state_size)
{
    struct watch_sight *sight = keep->options.sight;
    struct job_view *view = &sight->view;

    (void)pthread_mutex_lock(&sight->lock);
    (void)snprintf(view->copies, sizeof(view->copies),
                   "%" PRIu32 " end states, %.1f MB, in %.40s%s%.40s%.129s%.129s", keep->kept,
                   (double)(keep->kept * state_size) / 1e6, keep->options.folder,
                   kept_url(keep->folder)[0] != '\0' ? ", served at " : "", kept_url(keep->folder),
                   keep->trouble, keep->dropped[keep->last_dropped]);
    view->download[0] = '\0';
    (void)pthread_mutex_unlock(&sight->lock);
}

static void show_progress(void *context, uint64_t bytes, uint64_t total)
{
    struct watch_sight *sight = context;

    (void)pthread_mutex_lock(&sight->lock);
    (void)snprintf(sight->view.download, sizeof(sight->view.download),
                   "%.1f of %.1f MB of an end state", (double)bytes / 1e6, (double)total / 1e6);
    (void)pthread_mutex_unlock(&sight->lock);
}

/* A mirror that gave something false, or broke off: the last one is shown. */
static void name_dropped(struct watch_keep *keep)
{
    const struct mirror_set *set = &keep->source.mirrors;

    for (uint32_t i = 0; i < set->count; i++) {
        if (set->mirrors[i].dropped) {
            note_trouble(keep, keep->dropped[i], set->mirrors[i].url, set->mirrors[i].note.trouble);
            keep->last_dropped = i;
        }
    }
}

/* ---- states ---------------------------------------------------------------------------- */

static const struct digest *job_of(const struct watch_keep *keep)
{
    return &keep->options.terms->job_id;
}

static enum status fetch_state(struct watch_keep *keep, const struct job_states_place *place,
                               struct error *error)
{
    char path[FILE_PATH_MAX];
    char hashes[FILE_PATH_MAX];
    struct piece_fetch fetch = {.mirrors = &keep->source.mirrors,
                                .job = keep->source.job,
                                .step = place->step,
                                .root = place->root,
                                .whole = true,
                                .hashes = hashes,
                                .progress = show_progress,
                                .context = keep->options.sight};
    enum status status;

    TRY(kept_path(path, keep->folder, job_of(keep), place->step, KEPT_STATE, error));
    TRY(kept_path(hashes, keep->folder, job_of(keep), place->step, KEPT_PIECES, error));
    status = piece_fetch_run(&fetch, path, error);
    if (status == STATUS_REFUSED &&
        file_exists(path)) { /* of a commit that was voided, or broken */
        kept_drop(keep->folder, job_of(keep), place->step);
        error_init(error);
        status = piece_fetch_run(&fetch, path, error);
    }
    return status;
}

/* Which of the states are whole and checked; reading them all again each time would take long. */
bool watch_keep_has(struct watch_keep *keep, const struct job_states_place *place)
{
    bool had = false;

    (void)pthread_mutex_lock(&keep->lock);
    for (uint32_t i = 0; i < keep->had_count && !had; i++) {
        had = digest_equal(&keep->had[i], &place->root);
    }
    (void)pthread_mutex_unlock(&keep->lock);
    return had && kept_has(keep->folder, job_of(keep), place->step);
}

static void note_had(struct watch_keep *keep, const struct digest *root)
{
    (void)pthread_mutex_lock(&keep->lock);
    if (keep->had_count == WATCH_KEEP_STATES_MAX) {
        keep->had_count = 0;
    }
    keep->had[keep->had_count++] = *root;
    (void)pthread_mutex_unlock(&keep->lock);
}

/* Brings what is not there yet. */
static void keep_state(struct watch_keep *keep, const struct job_states_place *place)
{
    char what[64];
    struct error why;

    if (!watch_keep_has(keep, place)) {
        (void)snprintf(what, sizeof(what), "the state before step %" PRIu64, place->step);
        keep->source.mirrors = keep->now.mirrors; /* who failed may be well again */
        keep->source.mirrors.stop = keep->options.stop;
        error_init(&why);
        if (fetch_state(keep, place, &why) != STATUS_OK) {
            set_trouble(keep, what, why.text);
            name_dropped(keep);
            return;
        }
        name_dropped(keep);
        note_had(keep, &place->root);
        log_info(keep->options.log, keep->options.area, "%s is kept", what);
    }
    keep->kept++;
}

static bool is_over(struct watch_keep *keep)
{
    bool over;

    (void)pthread_mutex_lock(&keep->lock);
    over = keep->ending || keep->news || stop_requested(keep->options.stop);
    (void)pthread_mutex_unlock(&keep->lock);
    return over;
}

/* As they were told, as many as fit; those behind them go. One of them stays as long as nobody
 * gives one before it. */
static void keep_states(struct watch_keep *keep, uint64_t state_size)
{
    uint64_t room = keep->options.bytes_max / (state_size == 0 ? 1 : state_size);
    char why[96];

    if (room == 0) {
        (void)snprintf(why, sizeof(why), "%.1f MB; --keep-max allows less",
                       (double)state_size / 1e6);
        set_trouble(keep, "one state has", why);
        return;
    }
    for (uint32_t i = 0; i < keep->now.count && !is_over(keep); i++) {
        const struct job_states_place *place = &keep->now.places[i];

        if (place->step != 0 && keep->kept < room) {
            keep_state(keep, place);
        } else if (place->step != 0) {
            kept_drop(keep->folder, job_of(keep), place->step);
        }
        say_copies(keep, state_size);
    }
}

/* ---- the thread ------------------------------------------------------------------------ */

static void fetch_states(struct watch_keep *keep)
{
    const struct tape *tape;
    char path[FILE_PATH_MAX];
    uint64_t state_size = 0;
    struct error why;

    error_init(&why);
    keep->kept = 0;
    keep->failed = false;
    /* The job file first: without its tape nobody knows what a state holds. */
    if (keep->source.job == NULL) {
        keep->source.mirrors = keep->now.mirrors;
        keep->source.mirrors.stop = keep->options.stop;
        if (kept_path(path, keep->folder, job_of(keep), 0, KEPT_JOB, &why) != STATUS_OK ||
            job_source_get(&keep->source, path, &why) != STATUS_OK) {
            set_trouble(keep, "the job file", why.text);
        }
        name_dropped(keep);
    }
    if (keep->source.job != NULL) {
        tape = keep->source.job->tape;
        for (uint32_t i = 0; i < tape->state_count; i++) {
            state_size += tensor_size(&tape->tensors[tape->states[i].before]);
        }
        keep_states(keep, state_size);
    }
    if (!keep->failed) {
        keep->trouble[0] = '\0';
    }
    say_copies(keep, state_size);
}

static void *run_keep(void *context)
{
    struct watch_keep *keep = context;

    (void)pthread_mutex_lock(&keep->lock);
    while (!keep->ending) {
        struct timespec until;

        keep->now = keep->told;
        keep->news = false;
        /* The lock is not held while mirrors answer: the ledger's reader must not wait for them. */
        (void)pthread_mutex_unlock(&keep->lock);
        if (keep->now.mirrors.count > 0) {
            fetch_states(keep);
        }
        (void)pthread_mutex_lock(&keep->lock);
        /* News that came meanwhile start the next round at once. */
        keep->rested = !keep->news;
        /* pthread_cond_timedwait() measures by the wall clock. */
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += RETRY_S;
        while (!keep->ending && !keep->news &&
               pthread_cond_timedwait(&keep->changed, &keep->lock, &until) == 0) {
        }
    }
    (void)pthread_mutex_unlock(&keep->lock);
    return NULL;
}

void watch_keep_tell(struct watch_keep *keep, const struct job_states_place *places, uint32_t count,
                     const struct mirror_set *mirrors)
{
    (void)pthread_mutex_lock(&keep->lock);
    memcpy(keep->told.places, places, count * sizeof(*places));
    keep->told.count = count;
    keep->told.mirrors = *mirrors;
    keep->news = true;
    keep->rested = false;
    (void)pthread_cond_signal(&keep->changed);
    (void)pthread_mutex_unlock(&keep->lock);
}

bool watch_keep_rest(struct watch_keep *keep)
{
    bool rested;

    (void)pthread_mutex_lock(&keep->lock);
    rested = keep->rested;
    (void)pthread_mutex_unlock(&keep->lock);
    return rested;
}

struct serve_counts watch_keep_counts(struct watch_keep *keep)
{
    return kept_counts(keep->folder);
}

/* ---- opening and closing --------------------------------------------------------------- */

enum status watch_keep_open(struct watch_keep **keep, const struct watch_keep_options *options,
                            struct error *error)
{
    struct watch_keep *made = calloc(1, sizeof(*made));
    enum status status;

    *keep = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to keep states");
    }
    made->options = *options;
    made->source.record.terms = *options->terms;
    (void)pthread_mutex_init(&made->lock, NULL);
    (void)pthread_cond_init(&made->changed, NULL);
    TRY_OUT(kept_open(&made->folder, options->folder, options->place, error));
    if (options->place != NULL) {
        log_info(options->log, options->area, "serving the kept states at %s",
                 kept_url(made->folder));
    }
    made->running = pthread_create(&made->thread, NULL, run_keep, made) == 0;
    if (!made->running) {
        status = error_set(error, STATUS_NO_MEMORY, "cannot start a thread that keeps states");
    }
out:
    if (status != STATUS_OK) {
        /* watch_keep_close() takes what is only half open. */
        watch_keep_close(made);
        made = NULL;
    }
    *keep = made;
    return status;
}

void watch_keep_close(struct watch_keep *keep)
{
    if (keep == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&keep->lock);
    keep->ending = true;
    (void)pthread_cond_signal(&keep->changed);
    (void)pthread_mutex_unlock(&keep->lock);
    if (keep->running) {
        (void)pthread_join(keep->thread, NULL);
    }
    kept_close(keep->folder);
    job_free(keep->source.job);
    (void)pthread_cond_destroy(&keep->changed);
    (void)pthread_mutex_destroy(&keep->lock);
    free(keep);
}

const char *watch_keep_url(const struct watch_keep *keep)
{
    return kept_url(keep->folder);
}

bool watch_keep_can_be_called(const struct watch_keep *keep)
{
    return kept_can_be_called(keep->folder);
}

uint64_t watch_keep_job_size(const struct watch_keep *keep)
{
    char path[FILE_PATH_MAX];
    struct stat about;
    struct error none;

    error_init(&none);
    return kept_path(path, keep->folder, job_of(keep), 0, KEPT_JOB, &none) == STATUS_OK &&
                   stat(path, &about) == 0
               ? (uint64_t)about.st_size
               : 0;
}
