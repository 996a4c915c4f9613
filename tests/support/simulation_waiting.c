/* simulation_waiting.c - bonds and fees do not wait for ever, whoever has vanished: see
 * simulation.h. */
#include "tests/support/simulation.h"

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

static bool is_disputed(const struct simulation *simulation, uint32_t job,
                        const struct simulation_segment *only)
{
    for (uint32_t i = 0; i < simulation->view.claim_count; i++) {
        const struct simulation_claim *claim = &simulation->view.claims[i];
        const struct simulation_segment *segment = &simulation->view.segments[claim->segment];

        if (claim->phase != GAME_CLAIM_CLOSED && segment->job == job && segment->stands &&
            (only == NULL || only == segment)) {
            return true;
        }
    }
    return false;
}

void simulation_judge_waiting(struct simulation *simulation, uint32_t job)
{
    const struct game_terms *terms = &simulation->jobs[job].terms;
    const uint64_t patience_s = simulation->options.grace_s + simulation->options.grace_s / 5;
    const struct waiting waiting = waiting_in(simulation, job);
    uint64_t now_s = virtual_chain_time(simulation->chain);
    uint64_t since_s;
    bool covered;

    if (waiting.first == NULL || (!waiting.revealed && !waiting.sealed) ||
        simulation->options.mode == NODE_OBSERVE) {
        return;
    }
    covered = terms->coverage_ppm == 0 || waiting.first->revealed >= terms->attestors;
    since_s = waiting.first->round_s + terms->attest_period_s + terms->reveal_period_s +
              terms->claim_period_s + patience_s;
    if (waiting.last_final != NULL && waiting.last_final->ended_s + patience_s > since_s) {
        since_s = waiting.last_final->ended_s + patience_s;
    }
    since_s = simulation->calm_since_s > since_s ? simulation->calm_since_s : since_s;
    if (waiting.revealed && covered && now_s > since_s + TEND_ROOM_S &&
        !is_disputed(simulation, job, waiting.first)) {
        simulation_wrong(simulation, "segment %u of job %u is made final by nobody",
                         waiting.first->committed.index, job);
    }
    since_s = terms->deadline_s + terms->attest_period_s + terms->reveal_period_s +
              terms->claim_period_s + patience_s;
    since_s = simulation->calm_since_s > since_s ? simulation->calm_since_s : since_s;
    if (!(waiting.revealed && covered) && now_s > since_s + EXPIRY_ROOM_S &&
        !is_disputed(simulation, job, NULL)) {
        simulation_wrong(simulation, "bonds wait in job %u, which does not expire", job);
    }
}
