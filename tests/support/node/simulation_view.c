/* simulation_view.c - what stands on the chain: see simulation.h. */
#include <assert.h>
#include <string.h>

#include "tests/support/node/simulation.h"
#include "tests/support/test.h"

static int32_t job_of(const struct simulation *simulation, const struct hash32 *key)
{
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        if (hash32_equal(&simulation->jobs[i].key, key)) {
            return (int32_t)i;
        }
    }
    return -1;
}

static struct simulation_segment *standing(struct simulation_view *view, uint32_t job,
                                           uint32_t index)
{
    for (uint32_t i = view->segment_count; i > 0; i--) {
        struct simulation_segment *segment = &view->segments[i - 1];

        if (segment->job == job && segment->committed.index == index && segment->stands) {
            return segment;
        }
    }
    return NULL;
}

const struct simulation_segment *simulation_standing(const struct simulation *simulation,
                                                     uint32_t job, uint32_t index)
{
    return standing((struct simulation_view *)&simulation->view, job, index);
}

static struct simulation_claim *claim_of(struct simulation_view *view, const struct hash32 *key)
{
    for (uint32_t i = 0; i < view->claim_count; i++) {
        if (hash32_equal(&view->claims[i].key, key)) {
            return &view->claims[i];
        }
    }
    return NULL;
}

static void take_committed(struct simulation *simulation, uint32_t job,
                           const struct game_event *event, uint64_t height)
{
    struct simulation_view *view = &simulation->view;
    struct simulation_segment *segment = &view->segments[view->segment_count++];

    assert(view->segment_count <= SIMULATION_SEGMENTS_MAX);
    memset(segment, 0, sizeof(*segment));
    segment->job = job;
    segment->committed = event->segment;
    segment->committed.height = height;
    segment->hash = game_segment_hash(&event->job, &segment->committed);
    segment->truth = virtual_checks_find(&simulation->checks, &simulation->jobs[job].terms.job_id,
                                         &segment->committed.root);
    assert(segment->truth != NULL);
    segment->stands = true;
    segment->round_s = segment->committed.time_s;
    segment->generation = view->generations[job];
}

static void take_void(struct simulation_view *view, uint32_t job, uint32_t index, uint64_t time_s)
{
    for (uint32_t i = 0; i < view->segment_count; i++) {
        struct simulation_segment *segment = &view->segments[i];

        if (segment->job == job && segment->committed.index >= index && segment->stands) {
            segment->stands = false;
            segment->ended_s = time_s;
        }
    }
}

static void take_settled(struct simulation_view *view, uint32_t job, const struct game_event *event)
{
    for (uint32_t i = 0; i < view->segment_count; i++) {
        struct simulation_segment *segment = &view->segments[i];

        if (segment->job == job && segment->committed.index == event->index &&
            segment->mine != STORE_MINE_NOT && segment->mine != STORE_MINE_SETTLED) {
            segment->mine = STORE_MINE_SETTLED;
            return;
        }
    }
}

static void take_claimed(struct simulation *simulation, uint32_t job,
                         const struct game_event *event, uint64_t time_s)
{
    struct simulation_view *view = &simulation->view;
    struct simulation_claim *claim = &view->claims[view->claim_count++];
    struct simulation_segment *segment = standing(view, job, event->index);

    assert(view->claim_count <= SIMULATION_CLAIMS_MAX && segment != NULL);
    memset(claim, 0, sizeof(*claim));
    claim->key = event->claim;
    claim->segment = (uint32_t)(segment - view->segments);
    claim->ours = address_equal(&event->account, &simulation->accounts[SIMULATION_NODE]);
    claim->against_us = event->kind == GAME_ACCUSED &&
                        address_equal(&event->other, &simulation->accounts[SIMULATION_NODE]);
    claim->claimant = event->account;
    claim->attestor = event->other;
    claim->step = event->kind == GAME_CLAIMED
                      ? event->step
                      : game_sampled_step(&segment->seed, &event->other, segment->committed.steps);
    claim->phase = event->kind == GAME_ACCUSED ? GAME_CLAIM_TRIED : GAME_CLAIM_CALLED;
    claim->turn = event->kind == GAME_ACCUSED ? GAME_TURN_CLAIMANT : GAME_TURN_ACCUSED;
    claim->deadline_s = event->time_s;
    claim->turned_s = time_s;
}

static void take_attestor_convicted(struct simulation_view *view,
                                    const struct simulation_claim *claim)
{
    for (uint32_t i = 0; i < view->reveal_count && claim->upheld; i++) {
        struct simulation_reveal *reveal = &view->reveals[i];

        if (reveal->segment == claim->segment && reveal->stands &&
            address_equal(&reveal->attestor, &claim->attestor)) {
            reveal->stands = false;
            view->segments[claim->segment].revealed--;
            if (claim->against_us) { /* nothing is left to be settled */
                view->segments[claim->segment].mine = STORE_MINE_SETTLED;
            }
        }
    }
}

static void take_about_claim(struct simulation_view *view, const struct game_event *event,
                             uint64_t time_s)
{
    struct simulation_claim *claim = claim_of(view, &event->claim);

    if (claim == NULL) {
        return;
    }
    switch ((int)event->kind) {
    case GAME_ANSWERED:
    case GAME_TURN_PASSED:
        claim->phase = GAME_CLAIM_TRIED;
        claim->turn =
            event->kind == GAME_ANSWERED ? GAME_TURN_CLAIMANT : (enum game_turn)event->turn;
        claim->deadline_s = event->time_s;
        claim->turned_s = time_s;
        break;
    case GAME_QUERIED:
        claim->asked_size = event->payload.size < sizeof(claim->queried) ? event->payload.size
                                                                         : sizeof(claim->queried);
        memcpy(claim->queried, event->payload.bytes, claim->asked_size);
        break;
    case GAME_RULED:
        claim->upheld = event->flag;
        claim->phase = GAME_CLAIM_CLOSED;
        claim->turned_s = time_s;
        take_attestor_convicted(view, claim);
        break;
    case GAME_LAPSED:
        claim->phase = GAME_CLAIM_CLOSED;
        claim->turned_s = time_s;
        break;
    default:
        break;
    }
}

static void take_revealed(struct simulation *simulation, struct simulation_segment *segment,
                          const struct game_event *event, uint64_t time_s)
{
    struct simulation_view *view = &simulation->view;
    struct simulation_reveal *reveal = &view->reveals[view->reveal_count++];
    uint32_t step = game_sampled_step(&segment->seed, &event->account, segment->committed.steps);
    struct digest truth =
        virtual_trace_root(&segment->truth->job_id, virtual_state_before(segment->truth, step));

    assert(view->reveal_count <= SIMULATION_SEGMENTS_MAX);
    reveal->segment = (uint32_t)(segment - view->segments);
    reveal->attestor = event->account;
    reveal->false_one = !digest_equal(&truth, &event->root);
    reveal->stands = true;
    reveal->time_s = time_s;
}

static void take_about_segment(struct simulation *simulation, struct simulation_segment *segment,
                               const struct game_event *event, uint64_t time_s)
{
    bool ours = address_equal(&event->account, &simulation->accounts[SIMULATION_NODE]);

    switch ((int)event->kind) {
    case GAME_DRAWN:
        segment->seed = event->seal;
        break;
    case GAME_ATTESTED:
        segment->attested++;
        segment->mine = ours ? STORE_MINE_SEALED : segment->mine;
        segment->mine_step = ours ? event->step : segment->mine_step;
        segment->mine_seal = ours ? event->seal : segment->mine_seal;
        break;
    case GAME_REVEALED:
        segment->attested--;
        segment->revealed++;
        segment->mine = ours ? STORE_MINE_REVEALED : segment->mine;
        take_revealed(simulation, segment, event, time_s);
        break;
    case GAME_RENEWED:
        segment->round_s = event->time_s;
        segment->attested = 0;
        segment->mine_lost = segment->mine_lost || segment->mine == STORE_MINE_SEALED;
        break;
    case GAME_FINALIZED:
        segment->final = true;
        segment->ended_s = time_s;
        break;
    default:
        break;
    }
}

static void take(struct simulation *simulation, const struct game_event *event, uint64_t height,
                 uint64_t time_s)
{
    struct simulation_view *view = &simulation->view;
    int32_t job = job_of(simulation, &event->job);
    struct simulation_segment *segment;

    if (event->kind == GAME_WITHDRAWN &&
        address_equal(&event->account, &simulation->accounts[SIMULATION_NODE])) {
        view->received += event->amount;
    }
    take_about_claim(view, event, time_s);
    if (job < 0) {
        return;
    }
    switch ((int)event->kind) {
    case GAME_COMMITTED:
        take_committed(simulation, (uint32_t)job, event, height);
        return;
    case GAME_CONVICTED:
        view->generations[job]++;
        take_void(view, (uint32_t)job, event->index, time_s);
        return;
    case GAME_CLOSED:
        take_void(view, (uint32_t)job, event->index, time_s);
        return;
    case GAME_CLAIMED:
    case GAME_ACCUSED:
        take_claimed(simulation, (uint32_t)job, event, time_s);
        return;
    case GAME_SETTLED:
        if (address_equal(&event->account, &simulation->accounts[SIMULATION_NODE])) {
            take_settled(view, (uint32_t)job, event);
        }
        return;
    default:
        segment = standing(view, (uint32_t)job, event->index);
        if (segment != NULL) {
            take_about_segment(simulation, segment, event, time_s);
        }
        return;
    }
}

void simulation_look(struct simulation *simulation)
{
    struct simulation_view *view = &simulation->view;
    const struct virtual_chain *chain = simulation->chain;

    if (view->forks != chain->forks) {
        memset(view, 0, sizeof(*view));
        view->forks = chain->forks;
    }
    while (view->height < chain->height) {
        const struct virtual_block *block = &chain->blocks[++view->height];

        for (uint32_t i = 0; i < block->log_count; i++) {
            struct game_event event;

            if (game_event_decode(&event, &block->logs[i].log) != STATUS_OK) {
                fail_msg("an event of the virtual chain does not decode");
            }
            simulation_show(simulation, "chain: %s in block %llu, segment %u of job %d",
                            game_event_name(event.kind), (unsigned long long)view->height,
                            event.kind == GAME_COMMITTED ? event.segment.index : event.index,
                            job_of(simulation, &event.job));
            take(simulation, &event, view->height, block->time_s);
        }
    }
}
