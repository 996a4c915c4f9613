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

static struct watch_claim *find_claim(const struct watch *watch, const struct hash32 *key)
{
    for (uint32_t i = watch->claim_count; i-- > 0;) {
        if (hash32_equal(&watch->claims[i].key, key)) {
            return &watch->claims[i];
        }
    }
    return NULL;
}

static enum status add_job(struct watch *watch, const struct job_change *change,
                           struct error *error)
{
    if (find_job(watch, &change->job) != NULL) {
        return STATUS_OK;
    }
    if (watch->job_count >= WATCH_JOBS_MAX) {
        watch->jobs_left_out++;
        return STATUS_OK;
    }
    TRY(grow((void **)&watch->jobs, &watch->job_room, watch->job_count, sizeof(*watch->jobs),
             error));
    job_record_init(&watch->jobs[watch->job_count++], &change->job, NULL);
    return STATUS_OK;
}

static enum status add_claim(struct watch *watch, const struct job_change *change,
                             struct error *error)
{
    if (watch->claim_count >= WATCH_CLAIMS_MAX) {
        return STATUS_OK;
    }
    TRY(grow((void **)&watch->claims, &watch->claim_room, watch->claim_count,
             sizeof(*watch->claims), error));
    watch->claims[watch->claim_count++] = (struct watch_claim){.key = change->claim,
                                                               .job = change->job,
                                                               .index = change->index,
                                                               .claimant = change->account,
                                                               .attestor = change->attestor,
                                                               .phase = change->claim_phase,
                                                               .turn = change->turn,
                                                               .deadline_s = change->deadline_s};
    return STATUS_OK;
}

/* The seed and the attestor's address give the step that it had to check. */
static enum status add_reveal(struct watch *watch, const struct job_change *change,
                              struct error *error)
{
    const struct job_record *job = find_job(watch, &change->job);
    const struct job_record_segment *segment;

    if (job == NULL || change->index >= job->committed ||
        watch->reveal_count >= WATCH_REVEALS_MAX) {
        return STATUS_OK;
    }
    segment = &job->segments[change->index];
    if (segment->committed.steps == 0) {
        return STATUS_OK;
    }
    TRY(grow((void **)&watch->reveals, &watch->reveal_room, watch->reveal_count,
             sizeof(*watch->reveals), error));
    watch->reveals[watch->reveal_count++] = (struct watch_reveal){
        .job = (uint32_t)(job - watch->jobs),
        .index = change->index,
        .root = segment->committed.root,
        .step = game_sampled_step(&segment->seed, &change->account, segment->committed.steps),
        .account = change->account,
        .trace_root = change->trace_root,
    };
    return STATUS_OK;
}

/* A change that names a claim and no job. */
static enum status apply_to_claim(struct watch *watch, const struct job_change *change,
                                  struct error *error)
{
    struct watch_claim *claim = find_claim(watch, &change->claim);
    struct job_record *job = claim == NULL ? NULL : find_job(watch, &claim->job);

    if (claim != NULL && change->kind == JOB_CHANGE_CLAIM_TURN) {
        claim->phase = change->claim_phase;
        claim->turn = change->turn;
        claim->deadline_s = change->deadline_s;
    } else if (claim != NULL && change->kind == JOB_CHANGE_CLAIM_CLOSED) {
        *claim = watch->claims[--watch->claim_count];
    }
    return job == NULL ? STATUS_OK : job_record_apply(job, change, error);
}

static enum status apply(struct watch *watch, const struct job_change *change, struct error *error)
{
    struct job_record *job;

    switch ((int)change->kind) {
    case JOB_CHANGE_OPENED:
        TRY(add_job(watch, change, error));
        break;
    case JOB_CHANGE_CLAIM_OPENED:
        TRY(add_claim(watch, change, error));
        break;
    case JOB_CHANGE_CLAIM_TURN:
    case JOB_CHANGE_CLAIM_QUERIED:
    case JOB_CHANGE_CLAIM_CLOSED:
        return apply_to_claim(watch, change, error);
    case JOB_CHANGE_ATTESTATION:
        if (change->attestation == JOB_ATTESTATION_REVEALED) {
            TRY(add_reveal(watch, change, error));
        }
        break;
    default:
        break;
    }
    job = find_job(watch, &change->job);
    return job == NULL ? STATUS_OK : job_record_apply(job, change, error);
}

enum status watch_take(struct watch *watch, const struct ledger_entry *entry, struct error *error)
{
    struct job_change change;

    job_change_read(&change, entry);
    if (change.kind == JOB_CHANGE_REWIND && change.number > watch->rewound) {
        watch_free(watch);
        watch->rewound = change.number;
        return STATUS_OK;
    }
    watch->read = change.number;
    return change.kind == JOB_CHANGE_REWIND ? STATUS_OK : apply(watch, &change, error);
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
        enum job_segment_wait wait = job_record_waits_for(job, i, now_s);
        uint64_t end_s = job_record_claim_end(job, i);

        if (wait == JOB_SEGMENT_DISPUTED || wait == JOB_SEGMENT_RENEWAL ||
            wait == JOB_SEGMENT_UNCOVERED) {
            return 0;
        }
        final_s = end_s > final_s ? end_s : final_s;
    }
    return final_s;
}

const char *watch_wait_name(enum job_segment_wait wait)
{
    static const char *const names[] = {
        [JOB_SEGMENT_FINAL] = "final",           [JOB_SEGMENT_DISPUTED] = "disputed",
        [JOB_SEGMENT_ATTESTING] = "attesting",   [JOB_SEGMENT_REVEALING] = "revealing",
        [JOB_SEGMENT_CLAIM_TIME] = "claim-time", [JOB_SEGMENT_RENEWAL] = "another-round",
        [JOB_SEGMENT_UNCOVERED] = "never-final", [JOB_SEGMENT_PREDECESSOR] = "those-before",
        [JOB_SEGMENT_DUE] = "finalize",
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
    enum job_segment_wait wait = job_record_waits_for(job, index, sink->now_s);
    uint64_t attest_end_s = job_record_attest_end(job, index);
    uint64_t reveal_end_s = job_record_reveal_end(job, index);
    uint32_t come = segment->attested + segment->revealed;

    if (wait == JOB_SEGMENT_UNCOVERED) {
        add(sink, WATCH_UNCOVERED, &job->key, index, job->terms.deadline_s,
            "the job's deadline is over: this segment can never be final");
    } else if (wait == JOB_SEGMENT_RENEWAL) {
        add(sink, WATCH_UNCOVERED, &job->key, index, job->terms.deadline_s,
            "only %u of %u attestors revealed: it needs another round", segment->revealed,
            job->terms.attestors);
    } else if (wait == JOB_SEGMENT_ATTESTING && job_record_must_be_covered(job, index) &&
               come < job->terms.attestors && is_near(sink, attest_end_s)) {
        add(sink, WATCH_UNCOVERED, &job->key, index, attest_end_s,
            "only %u of %u attestors have come", come, job->terms.attestors);
    }
    if (wait == JOB_SEGMENT_REVEALING && segment->attested > 0 && is_near(sink, reveal_end_s)) {
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
                    "%s and %s revealed different traces of step %u: one of them is wrong", one,
                    other, late->step);
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
