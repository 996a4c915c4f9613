/* job_change.c - see job_change.h. */
#include "chain/job/job_change.h"

static void read_phase(struct job_change *change, enum game_phase phase)
{
    change->kind = JOB_CHANGE_PHASE;
    change->phase = phase;
}

static void read_attestation(struct job_change *change, enum job_attestation_state state,
                             int attested, int revealed)
{
    change->kind = JOB_CHANGE_ATTESTATION;
    change->attestation = state;
    change->attested = attested;
    change->revealed = revealed;
}

static void read_claim(struct job_change *change, enum job_change_kind kind,
                       enum game_claim_phase phase, enum game_turn turn)
{
    change->kind = kind;
    change->claim_phase = phase;
    change->turn = turn;
}

/* The trace root of an accused attestor is known: its trial begins at once. */
static void read_claim_opened(struct job_change *change, const struct game_event *event)
{
    if (event->kind == GAME_ACCUSED) {
        read_claim(change, JOB_CHANGE_CLAIM_OPENED, GAME_CLAIM_TRIED, GAME_TURN_CLAIMANT);
        change->attestor = event->other;
    } else {
        read_claim(change, JOB_CHANGE_CLAIM_OPENED, GAME_CLAIM_CALLED, GAME_TURN_ACCUSED);
    }
}

static void read_claim_closed(struct job_change *change, enum job_claim_outcome outcome)
{
    read_claim(change, JOB_CHANGE_CLAIM_CLOSED, GAME_CLAIM_CLOSED, GAME_TURN_CLAIMANT);
    change->outcome = outcome;
}

static void read_committed(struct job_change *change, const struct game_event *event)
{
    change->kind = JOB_CHANGE_COMMITTED;
    change->segment = event->segment;
    change->segment.height = change->height; /* the event does not carry it */
    change->diverged = event->flag;
}

static void read_claim_event(struct job_change *change, const struct game_event *event)
{
    switch ((int)event->kind) {
    case GAME_CLAIMED:
    case GAME_ACCUSED:
        read_claim_opened(change, event);
        break;
    case GAME_ANSWERED:
        read_claim(change, JOB_CHANGE_CLAIM_TURN, GAME_CLAIM_TRIED, GAME_TURN_CLAIMANT);
        break;
    case GAME_TURN_PASSED:
        read_claim(change, JOB_CHANGE_CLAIM_TURN, GAME_CLAIM_TRIED, (enum game_turn)event->turn);
        break;
    case GAME_QUERIED:
        change->kind = JOB_CHANGE_CLAIM_QUERIED;
        change->queried = event->payload;
        break;
    case GAME_RULED:
        read_claim_closed(change, event->flag ? JOB_CLAIM_UPHELD : JOB_CLAIM_REFUTED);
        break;
    default: /* LAPSED */
        read_claim_closed(change, JOB_CLAIM_LAPSED);
        break;
    }
}

static void read_drawn(struct job_change *change, const struct game_event *event)
{
    change->kind = JOB_CHANGE_DRAWN;
    change->seed = event->seal;
    change->mandatory = event->flag;
}

static void read_job_event(struct job_change *change, const struct game_event *event)
{
    switch (event->kind) {
    case GAME_OPENED:
        change->kind = JOB_CHANGE_OPENED;
        change->terms = &event->terms;
        break;
    case GAME_ACCEPTED:
        read_phase(change, GAME_PHASE_RUNNING);
        change->solver = event->account;
        change->due_s = event->time_s;
        break;
    case GAME_RELEASED:
        read_phase(change, GAME_PHASE_OPEN);
        break;
    case GAME_CONVICTED:
        read_phase(change, GAME_PHASE_OPEN);
        change->voids = true;
        change->convicted = true;
        break;
    case GAME_CANCELLED:
        read_phase(change, GAME_PHASE_CLOSED);
        change->cancelled = true;
        break;
    case GAME_CLOSED:
        read_phase(change, GAME_PHASE_CLOSED);
        change->voids = true;
        break;
    case GAME_COMMITTED:
        read_committed(change, event);
        break;
    case GAME_DRAWN:
        read_drawn(change, event);
        break;
    case GAME_RENEWED:
        change->kind = JOB_CHANGE_RENEWED;
        change->start_s = event->time_s;
        break;
    case GAME_FINALIZED:
        change->kind = JOB_CHANGE_FINALIZED;
        break;
    case GAME_ATTESTED:
        read_attestation(change, JOB_ATTESTATION_SEALED, 1, 0);
        break;
    case GAME_REVEALED:
        read_attestation(change, JOB_ATTESTATION_REVEALED, -1, 1);
        change->trace_root = event->root;
        break;
    case GAME_SETTLED:
        read_attestation(change, JOB_ATTESTATION_SETTLED, 0, 0);
        change->payee = event->other;
        break;
    case GAME_WITHDRAWN:
        change->kind = JOB_CHANGE_WITHDRAWN;
        break;
    case GAME_CLAIMED:
    case GAME_ACCUSED:
    case GAME_ANSWERED:
    case GAME_TURN_PASSED:
    case GAME_QUERIED:
    case GAME_RULED:
    case GAME_LAPSED:
        read_claim_event(change, event);
        break;
    case GAME_SEALED:
    case GAME_REPLIED:
    case GAME_EVENT_KINDS:
        break;
    }
}

void job_change_read(struct job_change *change, const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;

    *change = (struct job_change){
        .number = entry->number, .height = entry->height, .time_s = entry->time_s};
    if (entry->kind == LEDGER_REWIND) {
        change->kind = JOB_CHANGE_REWIND;
        return;
    }
    change->job = event->job;
    change->index = event->index;
    change->account = event->account;
    change->amount = event->amount;
    change->claim = event->claim;
    change->step = event->step;
    change->pre_state = event->pre_state;
    change->post_state = event->post_state;
    change->deadline_s = event->time_s;
    read_job_event(change, event);
}

const char *job_claim_outcome_name(enum job_claim_outcome outcome)
{
    static const char *const names[] = {[JOB_CLAIM_OPEN] = "",
                                        [JOB_CLAIM_UPHELD] = "upheld",
                                        [JOB_CLAIM_REFUTED] = "refuted",
                                        [JOB_CLAIM_LAPSED] = "lapsed"};

    return names[outcome];
}
