/* job_reduced.c - see job_reduced.h. */
#include "chain/job/job_reduced.h"

#include <string.h>

/* ---- the job ------------------------------------------------------------------ */

bool job_reduced_is_changed_by(enum game_event_kind kind)
{
    return job_event_phase(kind) != GAME_PHASE_NONE || kind == GAME_COMMITTED ||
           kind == GAME_DRAWN || kind == GAME_FINALIZED || kind == GAME_RESUMED ||
           kind == GAME_STOPPED || kind == GAME_REFUSED || kind == GAME_ENLISTED ||
           kind == GAME_GONE || kind == GAME_PAID;
}

bool job_reduced_fits(const struct job_reduced *job, const struct game_event *event)
{
    return (event->kind != GAME_DRAWN && event->kind != GAME_FINALIZED) ||
           (event->index >= job->finalized && event->index < job->committed);
}

/* The end of a tenure: the next one has a panel of its own. */
static void reopen_job(struct job_reduced *job, const struct game_event *event)
{
    job->unpaid = event->kind == GAME_CONVICTED ? job->generation : job->unpaid;
    job->generation++;
    job->committed = job->finalized;
    job->drawn = job->finalized;
    job->leg_start = job->finalized;
    job->entries = 0;
    job->due_s = 0;
    job->refused_until_s = 0;
    job->ended = false;
    if (event->kind == GAME_VOIDED) {
        job->barred = true;
        job->missing_escrow = event->escrow;
        job->missing_pool = event->pool;
    }
}

/* A closed job keeps its solver: people ask who it was. */
static void take_phase(struct job_reduced *job, const struct game_terms *terms,
                       const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;

    job->phase = job_event_phase(event->kind);
    switch ((int)event->kind) {
    case GAME_OPENED:
        job->segments = game_segment_count(terms);
        break;
    case GAME_ACCEPTED:
        job->solver = event->account;
        job->due_s = event->time_s;
        break;
    case GAME_CLOSED:
        job->missing_escrow = 0;
        job->missing_pool = 0;
        break;
    default:
        reopen_job(job, event);
        break;
    }
    if (job->phase == GAME_PHASE_OPEN) {
        memset(&job->solver, 0, sizeof(job->solver));
        job->opened_s = entry->time_s;
    }
}

static uint64_t due_after(const struct game_terms *terms, uint64_t from_s)
{
    uint64_t due_s = from_s + terms->segment_period_s;

    return due_s < terms->deadline_s ? due_s : terms->deadline_s;
}

/* No time runs while as many segments are open as may be. */
static void take_committed(struct job_reduced *job, const struct game_terms *terms,
                           const struct game_segment *segment)
{
    bool full;

    job->committed = segment->index + 1;
    full = job->committed - job->finalized == GAME_OPEN_MAX;
    job->due_s = full ? 0 : due_after(terms, segment->time_s);
    job->ended = segment->diverged;
}

static void take_finalized(struct job_reduced *job, const struct game_terms *terms,
                           const struct ledger_entry *entry)
{
    bool was_full = job->committed - job->finalized == GAME_OPEN_MAX;

    job->finalized = entry->event.index + 1;
    if (was_full && job->refused_until_s == 0) {
        job->due_s = due_after(terms, entry->time_s);
    }
}

static void take_resumed(struct job_reduced *job, uint64_t now_s)
{
    job->barred = false;
    job->missing_escrow = 0;
    job->missing_pool = 0;
    job->opened_s = now_s;
}

void job_reduced_take(struct job_reduced *job, const struct game_terms *terms,
                      const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;

    if (job_event_phase(event->kind) != GAME_PHASE_NONE) {
        take_phase(job, terms, entry);
        return;
    }
    switch ((int)event->kind) {
    case GAME_COMMITTED:
        take_committed(job, terms, &event->segment);
        break;
    case GAME_DRAWN:
        job->drawn = event->index + 1;
        job->leg_start = event->flag ? event->index + 1 : job->leg_start;
        break;
    case GAME_FINALIZED:
        take_finalized(job, terms, entry);
        break;
    case GAME_RESUMED:
        take_resumed(job, entry->time_s);
        break;
    case GAME_STOPPED:
        job->segments = event->count;
        break;
    case GAME_REFUSED:
        job->refused_until_s = event->time_s;
        break;
    case GAME_ENLISTED:
        job->entries += event->count;
        break;
    case GAME_GONE: /* from an open panel it takes its number with it */
        job->entries -= job->phase == GAME_PHASE_OPEN && event->generation == job->generation &&
                        job->entries > 0;
        break;
    case GAME_PAID:
        job->unpaid = job->unpaid == event->generation ? JOB_REDUCED_PAID : job->unpaid;
        break;
    default:
        break;
    }
}

/* ---- segments and places -------------------------------------------------------- */

void job_reduced_take_segment(struct job_reduced_segment *segment, uint32_t leg_start,
                              const struct game_event *event)
{
    switch ((int)event->kind) {
    case GAME_DRAWN:
        segment->seed = event->seal;
        segment->covered = event->flag;
        segment->leg_start = leg_start;
        break;
    case GAME_ROUND_OVER:
        segment->over_height = event->height;
        segment->over_s = event->time_s;
        break;
    case GAME_ROUND:
        segment->over_height = 0;
        segment->over_s = 0;
        segment->start_s = event->time_s;
        segment->round = event->round;
        segment->to = event->to;
        break;
    case GAME_REVEALED:
        segment->rights += event->verdict == GAME_VERDICT_RIGHT;
        break;
    case GAME_SAID_UNSEEN:
        segment->unseen++;
        break;
    case GAME_VOUCHED:
        segment->vouched = true;
        break;
    default:
        break;
    }
}

void job_reduced_take_seat(struct job_reduced_seat *seat, struct job_reduced_segment *segment,
                           const struct game_event *event)
{
    switch ((int)event->kind) {
    case GAME_SEALED_VERDICT:
        seat->phase = GAME_SEAT_SEALED;
        break;
    case GAME_REVEALED: /* an alarm is a claim from now on */
        seat->verdict = event->verdict;
        seat->phase = event->verdict == GAME_VERDICT_FALSE ? GAME_SEAT_CLOSED : GAME_SEAT_REVEALED;
        break;
    case GAME_SAID_UNSEEN:
        seat->phase = GAME_SEAT_UNSEEN;
        break;
    case GAME_DISPROVED:
        seat->phase = GAME_SEAT_CLOSED;
        segment->rights -= segment->rights > 0;
        segment->unseen++;
        break;
    default:
        break;
    }
}

/* ---- claims --------------------------------------------------------------------- */

struct job_reduced_claim job_reduced_claim_of(const struct game_event *event)
{
    return (struct job_reduced_claim){.phase = GAME_CLAIM_WAITING,
                                      .turn = GAME_TURN_ACCUSED,
                                      .lead = event->account,
                                      .rank = event->rank};
}

void job_reduced_take_claim(struct job_reduced_claim *claim, const struct game_event *event)
{
    switch ((int)event->kind) {
    case GAME_CLAIMED:
        claim->rank = event->rank < claim->rank ? event->rank : claim->rank;
        break;
    case GAME_TURN_PASSED:
        claim->phase = (enum game_claim_phase)event->phase;
        claim->turn = (enum game_turn)event->turn;
        claim->lead = event->account;
        claim->deadline_s = event->time_s;
        claim->turns++;
        break;
    case GAME_RULED:
        claim->phase = GAME_CLAIM_CLOSED;
        claim->outcome = (enum game_outcome)event->outcome;
        claim->deadline_s = 0;
        break;
    default:
        break;
    }
}
