/* simulation_judge.c - see simulation.h: the promises. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/game/promised.h"
#include "tests/support/node/simulation.h"
#include "tests/support/test.h"

static struct simulation_node *node_of(struct simulation *simulation, const struct address *account)
{
    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        if (address_equal(&simulation->nodes[i].account, account)) {
            return &simulation->nodes[i];
        }
    }
    return NULL;
}

static const struct simulation_job *job_of(const struct simulation *simulation,
                                           const struct hash32 *key)
{
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        if (hash32_equal(&simulation->jobs[i].record.key, key)) {
            return &simulation->jobs[i];
        }
    }
    return NULL;
}

/* ---- money ---------------------------------------------------------------------------- */

static wei money_of(struct simulation *simulation, const struct address *account)
{
    const struct hash32 key = local_key_of_account(account);
    struct local_account found;

    if (local_get(&simulation->chain->store, &found, LOCAL_ACCOUNT, &key, 0) != STATUS_OK) {
        fail_msg("an account cannot be read");
    }
    return found.purse + found.owed;
}

static wei money_of_all(struct simulation *simulation)
{
    wei sum = 0;

    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        sum += money_of(simulation, &simulation->nodes[i].account);
    }
    for (uint32_t i = 0; i < SIMULATION_PLAYERS; i++) {
        sum += money_of(simulation, &simulation->accounts[i]);
    }
    return sum;
}

/* Owed, held and burned is what was paid in. */
static void judge_money(struct simulation *simulation)
{
    if (money_of_all(simulation) + promised_money(&simulation->chain->store) !=
        simulation->paid_in) {
        simulation_wrong(simulation, "money was made or lost");
    }
}

/* ---- what was said ---------------------------------------------------------------------- */

/* Is the last step of a segment the end of its job, as it was said? */
static bool is_end(const struct game_segment *segment, uint32_t step)
{
    return segment->diverged && step + 1 == segment->steps;
}

/* Has a segment that stands a step that is none? step: the first. */
static bool has_lie(const struct simulation *simulation, const struct job_record *record,
                    uint32_t index, uint32_t *step)
{
    const struct simulation_list *list =
        simulation_find_list(simulation, &record->segments[index].committed.root);
    const struct game_segment *segment = &record->segments[index].committed;
    uint32_t before = job_of(simulation, &record->key)->first;

    if (index > 0) {
        const struct simulation_list *last =
            simulation_find_list(simulation, &record->segments[index - 1].committed.root);

        before = last->numbers[last->steps - 1];
    }
    for (*step = 0; *step < list->steps; (*step)++) {
        if (list->numbers[*step] != before + 1 ||
            is_end(segment, *step) != (list->numbers[*step] == VIRTUAL_NOT_FINITE)) {
            return true;
        }
        before = list->numbers[*step];
    }
    return false;
}

/* A claim is about the last commit before it. */
static void note_committed(struct simulation *simulation, const struct game_event *event)
{
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        struct simulation_job *job = &simulation->jobs[i];

        if (hash32_equal(&job->record.key, &event->job) && event->index < SIMULATION_SEGMENTS) {
            job->judged[event->index] = event->segment;
        }
    }
}

static void judge_claim(struct simulation *simulation, const struct game_event *event)
{
    const struct simulation_node *node = node_of(simulation, &event->account);
    const struct simulation_job *job = job_of(simulation, &event->job);
    bool ends = is_end(&job->judged[event->index], event->step);
    bool is_false = virtual_is_false(&event->pre_state, &event->post_state, ends);

    if (node == NULL) {
        simulation->result->slanders += !is_false;
        return;
    }
    simulation->result->pretended +=
        is_false && !virtual_is_false(&event->pre_state, &event->post_state, !ends);
    simulation->result->claims += event->rank >= GAME_RANK_OUTSIDER;
    simulation->result->alarms += event->rank < GAME_RANK_OUTSIDER;
    if (!is_false) {
        simulation_wrong(simulation, "node %u claims that a true step is false", node->number);
    }
}

/* The record is as of this block, so the event may be about what was void a moment later. */
static void judge_verdict(struct simulation *simulation, const struct game_event *event)
{
    const struct simulation_job *job = job_of(simulation, &event->job);
    const struct job_record *record = &job->record;
    uint32_t step;

    for (uint32_t i = 0; i < record->seat_count; i++) {
        const struct job_record_seat *seat = &record->seats[i];

        if (seat->place != event->place || seat->index != event->index ||
            node_of(simulation, &seat->owner) == NULL || event->index >= record->state.committed) {
            continue;
        }
        simulation->result->rights += event->verdict == GAME_VERDICT_RIGHT;
        if (event->verdict == GAME_VERDICT_RIGHT &&
            has_lie(simulation, record, event->index, &step)) {
            simulation_wrong(simulation, "a node says right of segment %u, whose step %u is false",
                             event->index, step);
        }
    }
}

/* The bond of an entry is lost but for what was false. */
static void judge_disproved(struct simulation *simulation, const struct game_event *event)
{
    const struct simulation_job *job = job_of(simulation, &event->job);

    simulation->result->disproved++;
    if (event->entry < job->record.state.entries &&
        node_of(simulation, &job->record.entries[event->entry].owner) != NULL) {
        simulation_wrong(simulation, "an honest right was disproved");
    }
}

static void count_query(struct simulation *simulation, const struct hash32 *claim)
{
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        const struct job_record *record = &simulation->jobs[i].record;

        for (uint32_t k = 0; k < record->claim_count; k++) {
            struct simulation_node *node = node_of(simulation, &record->claims[k].state.lead);

            if (hash32_equal(&record->claims[k].key, claim) && node != NULL) {
                node->lost += record->terms.query_fee;
            }
        }
    }
}

/* In fair weather every node can get the states of an honest solver. */
static void count_unseen(struct simulation *simulation, const struct game_event *event)
{
    simulation->result->unseen += node_of(simulation, &event->account) != NULL;
    if (simulation->fair && !job_of(simulation, &event->job)->withholds &&
        node_of(simulation, &event->account) != NULL) {
        simulation_wrong(simulation, "a node says in fair weather that it cannot get states");
    }
}

/* Only a client that refuses makes work void that everybody could have had. */
static void judge_void(struct simulation *simulation, const struct game_event *event)
{
    simulation->result->voided++;
    if (address_equal(&event->account, &simulation->accounts[PLAYER_HONEST]) &&
        !job_of(simulation, &event->job)->refuses) {
        simulation_wrong(simulation, "the work of an honest solver is void");
    }
}

/* Of a leg, any of whose segments may be a lie. */
static void judge_final(struct simulation *simulation, const struct game_event *event)
{
    const struct simulation_job *job = job_of(simulation, &event->job);
    uint32_t step;

    simulation->result->finals++;
    for (uint32_t i = event->index + 1 - event->count; i <= event->index; i++) {
        simulation->result->diverged +=
            i < job->record.state.committed && job->record.segments[i].committed.diverged;
        if (i >= job->record.state.committed || !has_lie(simulation, &job->record, i, &step)) {
            continue;
        }
        simulation->result->lies++;
        if (simulation->fair && !job->withholds) {
            simulation_wrong(simulation, "a lie became final in fair weather, though a node looks");
        }
    }
}

static void judge_event(struct simulation *simulation, const struct game_event *event)
{
    switch ((int)event->kind) {
    case GAME_CONVICTED:
        simulation->result->convictions++;
        if (address_equal(&event->account, &simulation->accounts[PLAYER_HONEST])) {
            simulation_wrong(simulation, "an honest solver was convicted");
        }
        break;
    case GAME_COMMITTED:
        note_committed(simulation, event);
        break;
    case GAME_CLAIMED:
        judge_claim(simulation, event);
        break;
    case GAME_REVEALED:
        judge_verdict(simulation, event);
        break;
    case GAME_DISPROVED:
        judge_disproved(simulation, event);
        break;
    case GAME_DEFAULTED:
        if (node_of(simulation, &event->account) != NULL) {
            simulation_wrong(simulation, "a node let its clock run out, and lost its bond");
        }
        break;
    case GAME_SAID_UNSEEN:
        count_unseen(simulation, event);
        break;
    case GAME_QUERIED:
        count_query(simulation, &event->claim);
        break;
    case GAME_VOIDED:
        judge_void(simulation, event);
        break;
    case GAME_FINALIZED:
        judge_final(simulation, event);
        break;
    case GAME_CLOSED:
        simulation->result->closed++;
        break;
    default:
        break;
    }
}

wei simulation_held(const struct simulation *simulation)
{
    const struct hash32 none = {{0}};
    struct local_store *store = &simulation->chain->store;
    wei burned = 0;

    if (local_get(store, &burned, LOCAL_BURNED, &none, 0) != STATUS_OK) {
        fail_msg("what was burned cannot be read");
    }
    return promised_money(store) - burned;
}

void simulation_judge(struct simulation *simulation)
{
    struct ledger *ledger = &simulation->players[PLAYER_SEAT].ledger;
    struct ledger_entry entry;
    struct error error;

    error_init(&error);
    while (ledger_next(ledger, &entry, simulation->heard, 0, &error) == STATUS_OK) {
        simulation->heard = entry.number;
        if (entry.kind == LEDGER_EVENT) {
            judge_event(simulation, &entry.event);
        }
    }
    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        const char *name = simulation->nodes[i].ledger.contradicted;

        if (name[0] != '\0') {
            simulation_wrong(simulation, "node %u submits two moves of the name %s", i, name);
        }
    }
    judge_money(simulation);
}

/* ---- the end ------------------------------------------------------------------------------ */

static void judge_purses(struct simulation *simulation)
{
    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        const struct simulation_node *node = &simulation->nodes[i];
        wei has = money_of(simulation, &node->account);

        if (has + node->lost < VIRTUAL_PURSE) {
            simulation_wrong(simulation, "node %u has lost more than fees of queries", i);
        }
    }
}

void simulation_judge_end(struct simulation *simulation)
{
    char what[SIMULATION_WAIT_MAX];

    if (simulation->result->wrong[0] != '\0') {
        return;
    }
    if (simulation_waits_for(what, simulation)) {
        simulation_wrong(simulation, "a job never ends: %s", what);
        return;
    }
    judge_purses(simulation);
}
