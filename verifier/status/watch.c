/* watch.c - see watch.h. */
#include "verifier/status/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void watch_init(struct watch *watch)
{
    memset(watch, 0, sizeof(*watch));
}

void watch_free(struct watch *watch)
{
    for (uint32_t i = 0; i < watch->job_count; i++) {
        job_record_free(&watch->jobs[i]);
    }
    free(watch->jobs);
    watch_init(watch);
}

static enum status grow(void **items, uint32_t *room, uint32_t count, size_t size,
                        struct error *error)
{
    uint32_t wanted = *room == 0 ? 16 : 2 * *room;
    void *larger;

    if (count < *room) {
        return STATUS_OK;
    }
    larger = realloc(*items, wanted * size);
    if (larger == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to watch so many jobs");
    }
    *items = larger;
    *room = wanted;
    return STATUS_OK;
}

/* ---- changes ------------------------------------------------------------ */

static struct job_record *find_job(const struct watch *watch, const struct hash32 *key)
{
    for (uint32_t i = watch->job_count; i-- > 0;) {
        if (hash32_equal(&watch->jobs[i].key, key)) {
            return &watch->jobs[i];
        }
    }
    return NULL;
}

/* The job that a claim is about. */
static struct job_record *find_job_of(const struct watch *watch, const struct hash32 *claim)
{
    for (uint32_t i = watch->job_count; i-- > 0;) {
        for (uint32_t k = watch->jobs[i].claim_count; k-- > 0;) {
            if (watch->jobs[i].claims[k].open &&
                hash32_equal(&watch->jobs[i].claims[k].key, claim)) {
                return &watch->jobs[i];
            }
        }
    }
    return NULL;
}

static enum status add_job(struct watch *watch, const struct hash32 *key, struct error *error)
{
    if (find_job(watch, key) != NULL) {
        return STATUS_OK;
    }
    if (watch->job_count >= WATCH_JOBS_MAX) {
        watch->jobs_left_out++;
        return STATUS_OK;
    }
    TRY(grow((void **)&watch->jobs, &watch->job_room, watch->job_count, sizeof(*watch->jobs),
             error));
    job_record_init(&watch->jobs[watch->job_count++], key, NULL);
    return STATUS_OK;
}

enum status watch_take(struct watch *watch, const struct ledger_entry *entry, struct error *error)
{
    const struct game_event *event = &entry->event;
    struct job_record *job;

    if (entry->kind == LEDGER_REWIND && entry->number > watch->rewound) {
        watch_free(watch);
        watch->rewound = entry->number;
        return STATUS_OK;
    }
    watch->read = entry->number;
    if (entry->kind == LEDGER_REWIND) {
        return STATUS_OK;
    }
    if (event->kind == GAME_OPENED) {
        TRY(add_job(watch, &event->job, error));
    }
    job = job_event_is_of_claim(event->kind) ? find_job_of(watch, &event->claim)
                                             : find_job(watch, &event->job);
    return job == NULL ? STATUS_OK : job_record_take(job, entry, error);
}

enum status watch_follow(struct watch *watch, struct ledger *ledger, struct error *error)
{
    struct ledger_entry entry;
    enum status status;

    while ((status = ledger_next(ledger, &entry, watch->read, 0, error)) == STATUS_OK) {
        TRY(watch_take(watch, &entry, error));
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- what follows ------------------------------------------------------- */

uint64_t watch_forecast(const struct job_record *job, uint32_t index, uint64_t now_s)
{
    uint64_t final_s = now_s;

    for (uint32_t i = job->finalized; i <= index && i < job->committed; i++) {
        struct job_segment segment = job_record_segment(job, i);
        enum job_segment_wait wait = job_segment_waits_for(&segment, now_s);
        uint64_t end_s = job_segment_claim_end(&segment);

        if (wait == JOB_SEGMENT_DISPUTED || wait == JOB_SEGMENT_RENEWAL ||
            wait == JOB_SEGMENT_UNDRAWN || wait == JOB_SEGMENT_LOST) {
            return 0;
        }
        final_s = end_s > final_s ? end_s : final_s;
    }
    return final_s;
}

const char *watch_alarm_name(enum watch_alarm_kind kind)
{
    static const char *const names[] = {
        [WATCH_SOLVER_LATE] = "solver-late",
        [WATCH_PANEL] = "panel",
        [WATCH_UNAVAILABLE] = "unavailable",
        [WATCH_CLAIMED] = "claimed",
        [WATCH_TURN] = "turn",
        [WATCH_CONVICTED] = "convicted",
    };

    return names[kind];
}

/* ---- alarms ------------------------------------------------------------- */

struct sink {
    struct watch_alarm *alarms;
    uint32_t count;
    uint64_t now_s;
    uint64_t margin_s;
};

static bool is_near(const struct sink *sink, uint64_t due_s)
{
    return sink->now_s + sink->margin_s >= due_s;
}

__attribute__((format(printf, 6, 7))) static void add(struct sink *sink, enum watch_alarm_kind kind,
                                                      const struct hash32 *job, uint32_t index,
                                                      uint64_t due_s, const char *format, ...)
{
    struct watch_alarm *alarm = &sink->alarms[sink->count];
    va_list list;

    if (sink->count >= WATCH_ALARMS_MAX) {
        return;
    }
    sink->count++;
    *alarm = (struct watch_alarm){.kind = kind, .job = *job, .index = index, .due_s = due_s};
    va_start(list, format);
    (void)vsnprintf(alarm->text, sizeof(alarm->text), format, list);
    va_end(list);
}

static void look_at_segment(struct sink *sink, const struct job_record *job, uint32_t index)
{
    const struct job_record_segment *of = &job->segments[index];
    struct job_segment segment = job_record_segment(job, index);
    enum job_segment_wait wait = job_segment_waits_for(&segment, sink->now_s);

    if (segment.covered && segment.unavailables > segment.rights) {
        add(sink, WATCH_UNAVAILABLE, &job->key, index, 0,
            "%u of the panel cannot get its states, and %u find it right", segment.unavailables,
            segment.rights);
    }
    if (wait == JOB_SEGMENT_LOST) {
        add(sink, WATCH_PANEL, &job->key, index, 0,
            "the panel is asleep or cannot get its states: anybody may forfeit it");
    } else if (wait == JOB_SEGMENT_RENEWAL) {
        add(sink, WATCH_PANEL, &job->key, index, 0,
            "its score is %d, and %u makes it final: it needs another round",
            job_segment_score(&segment), job->terms.seats);
    } else if (wait == JOB_SEGMENT_SEALING && of->sealed < of->seated &&
               is_near(sink, job_segment_seal_end(&segment))) {
        add(sink, WATCH_PANEL, &job->key, index, job_segment_seal_end(&segment),
            "only %u of %u verdicts are sealed", of->sealed, of->seated);
    }
}

static void look_at_job(struct sink *sink, const struct job_record *job)
{
    bool all_there = job->ended || job->committed >= job->segment_count;

    if (job->phase == GAME_PHASE_OPEN && job->convicted) {
        add(sink, WATCH_CONVICTED, &job->key, job->committed, 0,
            "its solver was convicted, and nobody has taken it since");
    }
    if (job->phase != GAME_PHASE_RUNNING) {
        return;
    }
    if (!all_there && is_near(sink, job->due_s)) {
        add(sink, WATCH_SOLVER_LATE, &job->key, job->committed, job->due_s, "%s",
            sink->now_s > job->due_s ? "the solver is late: its stake can be taken"
                                     : "the solver has little time left for it");
    }
    for (uint32_t i = job->finalized; i < job->committed; i++) {
        look_at_segment(sink, job, i);
    }
}

static const char *turn_of(const struct job_record_claim *claim)
{
    return claim->turn == GAME_TURN_CLAIMANT ? "the claimant" : "the solver";
}

static void look_at_claims(struct sink *sink, const struct job_record *job)
{
    for (uint32_t i = 0; i < job->claim_count; i++) {
        const struct job_record_claim *claim = &job->claims[i];
        uint32_t before = sink->count;

        if (!claim->open) {
            continue;
        }
        if (claim->deadline_s > 0 && is_near(sink, claim->deadline_s)) {
            add(sink, WATCH_TURN, &job->key, claim->index, claim->deadline_s,
                "it is the turn of %s%s", turn_of(claim),
                sink->now_s > claim->deadline_s
                    ? ", whose clock has run out: it loses its bond or stake"
                    : "");
        } else {
            add(sink, WATCH_CLAIMED, &job->key, claim->index, 0,
                "step %u of it is said to be false", claim->step);
        }
        if (sink->count > before) {
            sink->alarms[before].claim = claim->key;
        }
    }
}

uint32_t watch_alarms(struct watch_alarm alarms[WATCH_ALARMS_MAX], const struct watch *watch,
                      uint64_t now_s, uint64_t margin_s)
{
    struct sink sink = {.alarms = alarms, .now_s = now_s, .margin_s = margin_s};

    for (uint32_t i = 0; i < watch->job_count; i++) { /* the worst first: the rest may be cut */
        look_at_claims(&sink, &watch->jobs[i]);
    }
    for (uint32_t i = 0; i < watch->job_count; i++) {
        look_at_job(&sink, &watch->jobs[i]);
    }
    return sink.count;
}
