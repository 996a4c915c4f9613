/* job_reduced.c - see job_reduced.h. */
#include "chain/job/job_reduced.h"

#include <string.h>

/* ---- the job ------------------------------------------------------------------ */

bool job_reduced_is_changed_by(enum game_event_kind kind)
{
    return job_event_phase(kind) != GAME_PHASE_NONE || kind == GAME_COMMITTED ||
           kind == GAME_FINALIZED || kind == GAME_REWOUND || kind == GAME_ASKED ||
           kind == GAME_DELIVERED || kind == GAME_PAID;
}

/* A closed job keeps its solver, who may be asked for the last state and is paid on delivery. */
static void take_phase(struct job_reduced *job, const struct game_event *event)
{
    job->phase = job_event_phase(event->kind);
    if (event->kind == GAME_ACCEPTED) {
        job->solver = event->account;
        job->due_s = event->time_s;
    } else if (job->phase == GAME_PHASE_OPEN) {
        memset(&job->solver, 0, sizeof(job->solver));
    }
    job->unpaid = event->kind == GAME_CONVICTED ? job->generation : job->unpaid;
    job->generation += event->kind == GAME_CONVICTED || event->kind == GAME_VOIDED;
}

static void take_committed(struct job_reduced *job, const struct game_terms *terms,
                           const struct game_segment *segment)
{
    uint64_t due_s = segment->time_s + terms->segment_period_s;

    job->committed = segment->index + 1;
    job->generation = segment->generation;
    job->due_s = due_s < terms->deadline_s ? due_s : terms->deadline_s;
    job->ended = segment->diverged;
}

/* The client pays for final segments again. */
static void take_rewound(struct job_reduced *job, uint32_t index)
{
    job->generation++;
    if (index < job->finalized) {
        job->finalized = index;
        job->committed = index;
        job->ended = false;
    }
}

void job_reduced_take(struct job_reduced *job, const struct game_terms *terms,
                      const struct game_event *event)
{
    if (job_event_voids(event->kind) && job->finalized < job->committed) {
        job->committed = job->finalized;
        job->ended = false;
    }
    if (job_event_phase(event->kind) != GAME_PHASE_NONE) {
        take_phase(job, event);
        return;
    }
    switch ((int)event->kind) {
    case GAME_COMMITTED:
        take_committed(job, terms, &event->segment);
        break;
    case GAME_FINALIZED:
        job->finalized = event->index + 1;
        break;
    case GAME_REWOUND:
        take_rewound(job, event->index);
        break;
    case GAME_ASKED:
        job->asked = true;
        break;
    case GAME_DELIVERED:
        job->delivered = true;
        break;
    case GAME_PAID:
        job->unpaid = job->unpaid == event->generation ? JOB_REDUCED_PAID : job->unpaid;
        break;
    default:
        break;
    }
}

/* ---- segments and places -------------------------------------------------------- */

void job_reduced_take_segment(struct job_reduced_segment *segment, const struct game_event *event)
{
    switch ((int)event->kind) {
    case GAME_DRAWN:
        segment->seed = event->seal;
        segment->covered = event->flag;
        break;
    case GAME_ROUND:
        segment->start_s = event->time_s;
        segment->round = event->round;
        segment->to = event->to;
        segment->ended = event->from == event->to;
        break;
    case GAME_REVEALED:
        segment->rights += event->verdict == GAME_VERDICT_RIGHT;
        segment->unavailables += event->verdict == GAME_VERDICT_UNAVAILABLE;
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
    case GAME_ABSENT:
    case GAME_SETTLED:
        seat->phase = GAME_SEAT_CLOSED;
        break;
    case GAME_DISPROVED:
        seat->phase = GAME_SEAT_CLOSED;
        segment->rights -= segment->rights > 0;
        break;
    default:
        break;
    }
}

/* ---- claims --------------------------------------------------------------------- */

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
