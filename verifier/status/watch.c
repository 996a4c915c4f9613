/* watch.c - see watch.h. */
#include "verifier/status/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chain/job/job_status.h"

const char *watch_alarm_name(enum watch_alarm_kind kind)
{
    static const char *const names[] = {
        [WATCH_SOLVER_LATE] = "solver-late", [WATCH_PANEL] = "panel",
        [WATCH_UNSEEN] = "unseen",           [WATCH_KEEPER] = "keeper",
        [WATCH_REFUSED] = "refused",         [WATCH_BARRED] = "barred",
        [WATCH_CLAIMED] = "claimed",         [WATCH_TURN] = "turn",
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

/* Of a period so long. Where periods are short, most of one is not an alarm. */
static bool is_near(const struct sink *sink, uint64_t due_s, uint64_t period_s)
{
    uint64_t margin_s = sink->margin_s < period_s / 3 ? sink->margin_s : period_s / 3;

    return sink->now_s + margin_s >= due_s;
}

static bool is_of_panel(enum watch_alarm_kind kind)
{
    return kind == WATCH_PANEL || kind == WATCH_UNSEEN || kind == WATCH_KEEPER;
}

/* The same of the segment before: one cause is one alarm, however many segments wait for it. */
static bool goes_on(struct sink *sink, const struct watch_alarm *alarm)
{
    for (uint32_t i = sink->count; i > 0 && hash32_equal(&sink->alarms[i - 1].job, &alarm->job);
         i--) {
        struct watch_alarm *before = &sink->alarms[i - 1];

        if (before->kind == alarm->kind && before->last + 1 == alarm->index &&
            strcmp(before->text, alarm->text) == 0) {
            before->last = alarm->index;
            return true;
        }
        if (before->last + 1 < alarm->index) {
            break;
        }
    }
    return false;
}

__attribute__((format(printf, 6, 7))) static void add(struct sink *sink, enum watch_alarm_kind kind,
                                                      const struct hash32 *job, uint32_t index,
                                                      uint64_t due_s, const char *format, ...)
{
    struct watch_alarm alarm = {
        .kind = kind, .job = *job, .index = index, .last = index, .due_s = due_s};
    va_list list;

    va_start(list, format);
    (void)vsnprintf(alarm.text, sizeof(alarm.text), format, list);
    va_end(list);
    if (is_of_panel(kind) && goes_on(sink, &alarm)) {
        return;
    }
    if (sink->count < WATCH_ALARMS_MAX) {
        sink->alarms[sink->count++] = alarm;
    }
}

static void look_at_segment(struct sink *sink, const struct job_record *job, uint32_t index)
{
    const struct job_record_segment *of = &job->segments[index];
    struct job_segment segment = job_record_segment(job, index);
    enum job_segment_wait wait = job_segment_waits_for(&segment, sink->now_s);

    if (segment.covered && segment.tally.unseen > 0 && !segment.tally.vouched) {
        add(sink, WATCH_UNSEEN, &job->key, index, 0,
            "%u of the panel cannot get its states, and %u find it right", segment.tally.unseen,
            segment.tally.rights);
    }
    if (job_status_lacks_vouch(job, index, sink->now_s)) {
        add(sink, WATCH_KEEPER, &job->key, index, 0,
            "the keeper of this job has not vouched for it");
    }
    if (wait == JOB_SEGMENT_LOST) {
        add(sink, WATCH_PANEL, &job->key, index, 0,
            "its states cannot be fetched: anybody may settle it, and the price of what is not "
            "final burns");
    } else if (wait == JOB_SEGMENT_ROUND) {
        add(sink, WATCH_PANEL, &job->key, index, 0,
            "%u rights and %u unseen, and %u rights make it final: it needs another round",
            segment.tally.rights, segment.tally.unseen, segment.tally.wanted);
    } else if (wait == JOB_SEGMENT_SEALING && of->sealed < of->seated &&
               is_near(sink, job_segment_seal_end(&segment), job->terms.seal_period_s)) {
        add(sink, WATCH_PANEL, &job->key, index, job_segment_seal_end(&segment),
            "only %u of %u verdicts are sealed", of->sealed, of->seated);
    }
}

static void look_at_job(struct sink *sink, const struct job_record *job)
{
    bool all_there = job->state.ended || job->state.committed >= job->state.segments;

    if (job->state.phase == GAME_PHASE_OPEN && job->convicted) {
        add(sink, WATCH_CONVICTED, &job->key, job->state.committed, 0,
            "its solver was convicted, and nobody has taken it since");
    }
    if (job->state.phase == GAME_PHASE_OPEN && job->state.barred) {
        add(sink, WATCH_BARRED, &job->key, job->state.committed, 0,
            "what was not final is void, and its price burned: the client must resume or close it");
    }
    if (job->state.phase != GAME_PHASE_RUNNING) {
        return;
    }
    if (job->state.refused_until_s != 0) {
        add(sink, WATCH_REFUSED, &job->key, job->state.finalized, job->state.refused_until_s,
            "the %s refuses what is not final: what nobody vouches for becomes void",
            address_equal(&job->refuser, &job->client) ? "client" : "keeper");
    }
    if (!all_there && job->state.due_s > 0 &&
        is_near(sink, job->state.due_s, job->terms.segment_period_s)) {
        add(sink, WATCH_SOLVER_LATE, &job->key, job->state.committed, job->state.due_s, "%s",
            sink->now_s > job->state.due_s ? "the solver is late: its stake can be taken"
                                           : "the solver has little time left for it");
    }
    for (uint32_t i = job->state.finalized; i < job->state.committed; i++) {
        look_at_segment(sink, job, i);
    }
}

static const char *turn_of(const struct job_record_claim *claim)
{
    return claim->state.turn == GAME_TURN_CLAIMANT ? "the claimant" : "the solver";
}

static void look_at_claims(struct sink *sink, const struct job_record *job)
{
    for (uint32_t i = 0; i < job->claim_count; i++) {
        const struct job_record_claim *claim = &job->claims[i];
        uint32_t before = sink->count;

        if (!job_record_claim_is_open(claim)) {
            continue;
        }
        if (claim->state.deadline_s > 0 &&
            is_near(sink, claim->state.deadline_s, job->terms.clock_s)) {
            add(sink, WATCH_TURN, &job->key, claim->index, claim->state.deadline_s,
                "it is the turn of %s%s", turn_of(claim),
                sink->now_s > claim->state.deadline_s
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

uint32_t watch_alarms(struct watch_alarm alarms[WATCH_ALARMS_MAX], const struct board *board,
                      uint64_t now_s, uint64_t margin_s)
{
    struct sink sink = {.alarms = alarms, .now_s = now_s, .margin_s = margin_s};

    for (uint32_t i = 0; i < board->count; i++) { /* the worst first: the rest may be cut */
        look_at_claims(&sink, &board->jobs[i]);
    }
    for (uint32_t i = 0; i < board->count; i++) {
        look_at_job(&sink, &board->jobs[i]);
    }
    return sink.count;
}
