/* simulation_waiting.c - bonds and fees do not wait for ever, whoever has vanished: see
 * simulation.h. */
#include "tests/support/node/simulation.h"

enum {
    TEND_ROOM_S = 150,   /* from where the node makes a segment final that nobody else does */
    EXPIRY_ROOM_S = 600, /* from where it has a job expire, after what may come before that */
};

/* What of the node waits in a job behind its first segment that is not final. */
struct waiting {
    const struct simulation_segment *first; /* NULL: all are final */
    const struct simulation_segment *last_final;
    bool revealed;
    bool sealed;
};

static struct waiting waiting_in(const struct simulation *simulation, uint32_t job)
{
    const struct simulation_segment *segment;
    struct waiting waiting = {0};

    for (uint32_t i = 0; (segment = simulation_standing(simulation, job, i)) != NULL; i++) {
        if (segment->final) {
            waiting.last_final = segment;
            continue;
        }
        waiting.first = waiting.first == NULL ? segment : waiting.first;
        waiting.revealed |= segment->mine == STORE_MINE_REVEALED;
        waiting.sealed |= segment->mine == STORE_MINE_SEALED;
    }
    return waiting;
}

/* How long a solver, or who is late in a dispute, may be late before the node makes its move. */
static uint64_t ledger_retry_of(const struct simulation *simulation)
{
    return simulation->options.grace_s + simulation->options.grace_s / 5;
}

static uint64_t later(uint64_t a_s, uint64_t b_s)
{
    return a_s > b_s ? a_s : b_s;
}

/* Until when claims on a segment, or on any of the job that stands, hold it up: to their end, or to
 * where the node ends those of others. */
static uint64_t disputed_until(const struct simulation *simulation, uint32_t job,
                               const struct simulation_segment *only)
{
    uint64_t until_s = 0;

    for (uint32_t i = 0; i < simulation->view.claim_count; i++) {
        const struct simulation_claim *claim = &simulation->view.claims[i];
        const struct simulation_segment *segment = &simulation->view.segments[claim->segment];
        bool open = claim->phase != GAME_CLAIM_CLOSED;

        if (segment->job != job || !segment->stands || (only != NULL && only != segment)) {
            continue;
        }
        if (open && (claim->ours || claim->against_us)) {
            return UINT64_MAX; /* judged by itself */
        }
        until_s = later(until_s,
                        open ? claim->deadline_s + ledger_retry_of(simulation) : claim->turned_s);
    }
    return until_s;
}

/* Was there calm for so long since a moment? */
static bool is_overdue(const struct simulation *simulation, uint64_t since_s, uint64_t room_s)
{
    uint64_t begin_s = later(since_s, simulation->calm_since_s);

    return begin_s < UINT64_MAX - room_s &&
           virtual_chain_time(simulation->chain) > begin_s + room_s;
}

void simulation_judge_waiting(struct simulation *simulation, uint32_t job)
{
    const struct game_terms *terms = &simulation->jobs[job].terms;
    const uint64_t retry_s = ledger_retry_of(simulation);
    const struct waiting waiting = waiting_in(simulation, job);
    uint64_t since_s = 0;
    bool covered;

    if (waiting.first == NULL || (!waiting.revealed && !waiting.sealed) ||
        simulation->options.mode == NODE_OBSERVE) {
        return;
    }
    covered = terms->coverage_ppm == 0 || waiting.first->revealed >= terms->attestors;
    if (waiting.last_final != NULL) {
        since_s = waiting.last_final->ended_s + retry_s;
    }
    since_s = later(since_s, waiting.first->round_s + terms->attest_period_s +
                                 terms->reveal_period_s + terms->claim_period_s + retry_s);
    since_s = later(since_s, disputed_until(simulation, job, waiting.first));
    if (waiting.revealed && covered && is_overdue(simulation, since_s, TEND_ROOM_S)) {
        simulation_wrong(simulation, "segment %u of job %u is made final by nobody",
                         waiting.first->committed.index, job);
    }
    since_s = terms->deadline_s + terms->attest_period_s + terms->reveal_period_s +
              terms->claim_period_s + retry_s;
    since_s = later(since_s, disputed_until(simulation, job, NULL));
    if (!(waiting.revealed && covered) && is_overdue(simulation, since_s, EXPIRY_ROOM_S)) {
        simulation_wrong(simulation, "bonds wait in job %u, which does not expire", job);
    }
}
