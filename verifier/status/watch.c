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
    free(watch->claims);
    free(watch->reveals);
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

/* ---- events ------------------------------------------------------------- */

static struct job_record *find_job(const struct watch *watch, const struct hash32 *key)
{
    for (uint32_t i = watch->job_count; i-- > 0;) {
        if (hash32_equal(&watch->jobs[i].key, key)) {
            return &watch->jobs[i];
        }
    }
    return NULL;
}

static struct watch_claim *find_claim(const struct watch *watch, const struct hash32 *key)
{
    for (uint32_t i = watch->claim_count; i-- > 0;) {
        if (hash32_equal(&watch->claims[i].key, key)) {
            return &watch->claims[i];
        }
    }
    return NULL;
}

static enum status take_opened(struct watch *watch, const struct game_event *event,
                               struct error *error)
{
    enum status status;

    if (find_job(watch, &event->job) != NULL) {
        return STATUS_OK;
    }
    if (watch->job_count >= WATCH_JOBS_MAX) {
        watch->jobs_left_out++;
        return STATUS_OK;
    }
    status = grow((void **)&watch->jobs, &watch->job_room, watch->job_count, sizeof(*watch->jobs),
                  error);
    if (status == STATUS_OK) {
        job_record_init(&watch->jobs[watch->job_count++], &event->job, NULL);
    }
    return status;
}

static enum status take_claimed(struct watch *watch, const struct game_event *event,
                                struct error *error)
{
    struct watch_claim *claim;
    enum status status;

    if (watch->claim_count >= WATCH_CLAIMS_MAX) {
        return STATUS_OK;
    }
    status = grow((void **)&watch->claims, &watch->claim_room, watch->claim_count,
                  sizeof(*watch->claims), error);
    if (status != STATUS_OK) {
        return status;
    }
    claim = &watch->claims[watch->claim_count++];
    *claim = (struct watch_claim){.key = event->claim,
                                  .job = event->job,
                                  .index = event->index,
                                  .claimant = event->account,
                                  .attestor = event->other,
                                  .phase = GAME_CLAIM_CALLED,
                                  .turn = GAME_TURN_ACCUSED,
                                  .deadline_s = event->time_s};
    if (event->kind == GAME_ACCUSED) { /* its trace root is known already: the trial begins */
        claim->phase = GAME_CLAIM_TRIED;
        claim->turn = GAME_TURN_CLAIMANT;
    } else {
        memset(&claim->attestor, 0, sizeof(claim->attestor));
    }
    return STATUS_OK;
}

static void take_turn(struct watch *watch, const struct game_event *event)
{
    struct watch_claim *claim = find_claim(watch, &event->claim);

    if (claim != NULL) {
        claim->phase = GAME_CLAIM_TRIED;
        claim->turn =
            event->kind == GAME_ANSWERED ? GAME_TURN_CLAIMANT : (enum game_turn)event->turn;
        claim->deadline_s = event->time_s;
    }
}

static void take_claim_end(struct watch *watch, const struct game_event *event)
{
    struct watch_claim *claim = find_claim(watch, &event->claim);

    if (claim != NULL) {
        *claim = watch->claims[--watch->claim_count];
    }
}

/* The step that an attestor has to check follows from the seed and its address. */
static enum status take_revealed(struct watch *watch, const struct game_event *event,
                                 struct error *error)
{
    const struct job_record *job = find_job(watch, &event->job);
    const struct job_record_segment *segment;
    enum status status;

    if (job == NULL || event->index >= job->committed || watch->reveal_count >= WATCH_REVEALS_MAX) {
        return STATUS_OK;
    }
    segment = &job->segments[event->index];
    if (segment->committed.steps == 0) {
        return STATUS_OK;
    }
    status = grow((void **)&watch->reveals, &watch->reveal_room, watch->reveal_count,
                  sizeof(*watch->reveals), error);
    if (status == STATUS_OK) {
        watch->reveals[watch->reveal_count++] = (struct watch_reveal){
            .job = (uint32_t)(job - watch->jobs),
            .index = event->index,
            .root = segment->committed.root,
            .step = game_sampled_step(&segment->seed, &event->account, segment->committed.steps),
            .account = event->account,
            .trace_root = event->root,
        };
    }
    return status;
}

static enum status take_own(struct watch *watch, const struct game_event *event,
                            struct error *error)
{
    switch ((int)event->kind) {
    case GAME_OPENED:
        return take_opened(watch, event, error);
    case GAME_CLAIMED:
    case GAME_ACCUSED:
        return take_claimed(watch, event, error);
    case GAME_ANSWERED:
    case GAME_TURN_PASSED:
        take_turn(watch, event);
        return STATUS_OK;
    case GAME_RULED:
    case GAME_LAPSED:
        take_claim_end(watch, event);
        return STATUS_OK;
    case GAME_REVEALED:
        return take_revealed(watch, event, error);
    default:
        return STATUS_OK;
    }
}

enum status watch_take(struct watch *watch, const struct ledger_entry *entry, struct error *error)
{
    const struct game_event *event = &entry->event;
    struct job_record *job;
    enum status status;

    if (entry->kind == LEDGER_REWIND) {
        if (entry->number > watch->rewound) { /* reading anew passes it again */
            watch_free(watch);
            watch->rewound = entry->number;
        } else {
            watch->read = entry->number;
        }
        return STATUS_OK;
    }
    watch->read = entry->number;
    status = take_own(watch, event, error);
    if (event->kind == GAME_RULED || event->kind == GAME_LAPSED) { /* these name a claim only */
        for (uint32_t i = 0; i < watch->job_count && status == STATUS_OK; i++) {
            status = job_record_take(&watch->jobs[i], entry, error);
        }
        return status;
    }
    job = find_job(watch, &event->job);
    return status == STATUS_OK && job != NULL ? job_record_take(job, entry, error) : status;
}

enum status watch_follow(struct watch *watch, struct ledger *ledger, struct error *error)
{
    struct ledger_entry entry;
    enum status status;

    while ((status = ledger_next(ledger, &entry, watch->read, 0, error)) == STATUS_OK) {
        status = watch_take(watch, &entry, error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- what follows ------------------------------------------------------- */

uint64_t watch_forecast(const struct job_record *job, uint32_t index, uint64_t now_s)
{
    uint64_t final_s = now_s;

    for (uint32_t i = job->finalized; i <= index && i < job->committed; i++) {
        enum job_record_wait wait = job_record_waits_for(job, i, now_s);
        uint64_t end_s = job_record_claim_end(job, i);

        if (wait == JOB_RECORD_DISPUTED || wait == JOB_RECORD_RENEWAL ||
            wait == JOB_RECORD_UNCOVERED) {
            return 0;
        }
        final_s = end_s > final_s ? end_s : final_s;
    }
    return final_s;
}

const char *watch_wait_name(enum job_record_wait wait)
{
    static const char *const names[] = {
        [JOB_RECORD_FINAL] = "final",           [JOB_RECORD_DISPUTED] = "disputed",
        [JOB_RECORD_ATTESTING] = "attesting",   [JOB_RECORD_REVEALING] = "revealing",
        [JOB_RECORD_CLAIM_TIME] = "claim-time", [JOB_RECORD_RENEWAL] = "another-round",
        [JOB_RECORD_UNCOVERED] = "never-final", [JOB_RECORD_PREDECESSOR] = "those-before",
        [JOB_RECORD_DUE] = "finalize",
    };

    return names[wait];
}

const char *watch_alarm_name(enum watch_alarm_kind kind)
{
    static const char *const names[] = {
        [WATCH_SOLVER_LATE] = "solver-late",   [WATCH_UNCOVERED] = "uncovered",
        [WATCH_REVEAL_DUE] = "reveal-due",     [WATCH_TURN] = "turn",
        [WATCH_DISAGREEMENT] = "disagreement", [WATCH_CONVICTED] = "convicted",
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
    const struct job_record_segment *segment = &job->segments[index];
    enum job_record_wait wait = job_record_waits_for(job, index, sink->now_s);
    uint64_t attest_end_s = job_record_attest_end(job, index);
    uint64_t reveal_end_s = job_record_reveal_end(job, index);
    uint32_t come = segment->attested + segment->revealed;

    if (wait == JOB_RECORD_UNCOVERED) {
        add(sink, WATCH_UNCOVERED, &job->key, index, job->terms.deadline_s,
            "the job's deadline is over: this segment can never be final");
    } else if (wait == JOB_RECORD_RENEWAL) {
        add(sink, WATCH_UNCOVERED, &job->key, index, job->terms.deadline_s,
            "only %u of %u attestors revealed: it needs another round", segment->revealed,
            job->terms.attestors);
    } else if (wait == JOB_RECORD_ATTESTING && job_record_must_be_covered(job, index) &&
               come < job->terms.attestors && is_near(sink, attest_end_s)) {
        add(sink, WATCH_UNCOVERED, &job->key, index, attest_end_s,
            "only %u of %u attestors have come", come, job->terms.attestors);
    }
    if (wait == JOB_RECORD_REVEALING && segment->attested > 0 && is_near(sink, reveal_end_s)) {
        add(sink, WATCH_REVEAL_DUE, &job->key, index, reveal_end_s,
            "%u attestors have not revealed: each loses its bond", segment->attested);
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

static void look_at_claims(struct sink *sink, const struct watch *watch)
{
    for (uint32_t i = 0; i < watch->claim_count; i++) {
        const struct watch_claim *claim = &watch->claims[i];
        uint32_t before = sink->count;

        const struct job_record *job = find_job(watch, &claim->job);

        /* A claim about a segment that is gone lapses, and costs nobody anything. */
        if (!is_near(sink, claim->deadline_s) || job == NULL || claim->index >= job->committed) {
            continue;
        }
        add(sink, WATCH_TURN, &claim->job, claim->index, claim->deadline_s,
            "it is the turn of %s%s",
            claim->turn == GAME_TURN_CLAIMANT   ? "the claimant"
            : address_is_zero(&claim->attestor) ? "the solver"
                                                : "the attestor",
            sink->now_s > claim->deadline_s ? ", whose time is over: it loses its bond or stake"
                                            : "");
        if (sink->count > before) {
            sink->alarms[before].claim = claim->key;
        }
    }
}

static bool contradict(const struct watch_reveal *a, const struct watch_reveal *b)
{
    return a->job == b->job && a->index == b->index && a->step == b->step &&
           digest_equal(&a->root, &b->root) && !digest_equal(&a->trace_root, &b->trace_root);
}

static void look_at_reveals(struct sink *sink, const struct watch *watch)
{
    for (uint32_t i = 0; i < watch->reveal_count; i++) {
        const struct watch_reveal *late = &watch->reveals[i];
        const struct job_record *job = &watch->jobs[late->job];
        /* Segments of a job come in order and in time: their reveals are not far apart. */
        uint32_t first = i > 4096 ? i - 4096 : 0;

        if (job->phase == GAME_PHASE_CLOSED || late->index >= job->committed ||
            !digest_equal(&late->root, &job->segments[late->index].committed.root)) {
            continue; /* paid out, or gone */
        }
        for (uint32_t j = first; j < i; j++) {
            if (contradict(&watch->reveals[j], late)) {
                char one[ADDRESS_TEXT_SIZE];
                char other[ADDRESS_TEXT_SIZE];

                address_print(one, &watch->reveals[j].account);
                address_print(other, &late->account);
                add(sink, WATCH_DISAGREEMENT, &job->key, late->index, 0,
                    "%s and %s told different traces of step %u: one of them is wrong", one, other,
                    late->step);
                break;
            }
        }
    }
}

uint32_t watch_alarms(struct watch_alarm alarms[WATCH_ALARMS_MAX], const struct watch *watch,
                      uint64_t now_s, uint64_t margin_s)
{
    struct sink sink = {.alarms = alarms, .now_s = now_s, .margin_s = margin_s};

    look_at_reveals(&sink, watch); /* the worst first: the rest may be cut */
    look_at_claims(&sink, watch);
    for (uint32_t i = 0; i < watch->job_count; i++) {
        look_at_job(&sink, &watch->jobs[i]);
    }
    return sink.count;
}
