/* node_offers.c - see node_offers.h. */
#include "prover/node/node_offers.h"

#include <stdlib.h>
#include <string.h>

#include "base/steady.h"
#include "chain/commands/allow_file.h"
#include "chain/game/terms.h"
#include "proofs/run/known_pace.h"
#include "prover/post/stake_ready.h"

/* Offers have the numbers of the board's jobs, until a reorganization numbers them again. */
static enum status make_room(struct solver_node *node, struct error *error)
{
    uint32_t room = node->board.room == 0 ? 1 : node->board.room;
    struct offer *offers;

    if (node->offers_of != node->board.rewound) {
        node->offers_of = node->board.rewound;
        free(node->offers);
        node->offers = NULL;
        node->offer_room = 0;
    }
    if (node->offers != NULL && room <= node->offer_room) {
        return STATUS_OK;
    }
    offers = realloc(node->offers, room * sizeof(*offers));
    if (offers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the jobs of the ledger");
    }
    memset(offers + node->offer_room, 0, (room - node->offer_room) * sizeof(*offers));
    node->offers = offers;
    node->offer_room = room;
    return STATUS_OK;
}

/* ---- reasons ------------------------------------------------------------------------ */

static void refuse(struct offer *offer, const char *why)
{
    offer->refused = true;
    (void)snprintf(offer->why, sizeof(offer->why), "%.400s", why);
}

static bool is_held(const struct solver_node *node, const struct hash32 *key)
{
    for (uint32_t i = 0; i < node->held_count; i++) {
        if (hash32_equal(&node->held[i]->key, key)) {
            return true;
        }
    }
    return false;
}

static wei stakes(const struct solver_node *node)
{
    wei sum = 0;

    for (uint32_t i = 0; i < node->held_count; i++) {
        const struct solver_view *view = &node->held[i]->session.view;

        sum += view->phase == GAME_PHASE_CLOSED ? 0 : view->stake;
    }
    return sum;
}

/* What is not here may be fetched, and is measured then. */
static bool has_files(struct offer *offer, const struct solver_node *node,
                      const struct shelf_item *item)
{
    bool fetches = strcmp(node->options.fetch_most, "0") != 0;

    if (item == NULL || !shelf_is_complete(item)) {
        offer->measured = 0;
    }
    if (fetches) {
        return true;
    }
    if (item == NULL) {
        refuse(offer, "its job file is not here (--jobs, --fetch-max)");
    } else if (!item->has_data) {
        refuse(offer, "its data is not here (--data, --fetch-max)");
    } else if (!shelf_is_complete(item)) {
        refuse(offer, "its first state is not here (--fetch-max)");
    }
    return !offer->refused;
}

static bool has_money(struct offer *offer, const struct solver_node *node, wei stake)
{
    char is_text[WEI_TEXT_SIZE];
    char has[WEI_TEXT_SIZE];

    currency_print(is_text, ledger_get_currency(node->ledger), stake);
    if (stake > node->money.free) {
        currency_print(has, ledger_get_currency(node->ledger), node->money.free);
        (void)snprintf(offer->why, sizeof(offer->why), "the stake is %s, and the account has %s",
                       is_text, has);
        offer->refused = true;
    } else if (node->options.stakes_max != 0 && stakes(node) + stake > node->options.stakes_max) {
        currency_print(has, ledger_get_currency(node->ledger), node->options.stakes_max);
        (void)snprintf(offer->why, sizeof(offer->why),
                       "the stake is %s, and with those of other jobs more than %s "
                       "(--stakes-max)",
                       is_text, has);
        offer->refused = true;
    }
    return !offer->refused;
}

/* Where seats judge a segment, what they cannot fetch is void, and the work is for nothing. */
static bool can_be_fetched(struct offer *offer, const struct solver_node *node,
                           const struct game_terms *terms)
{
    if (terms->seats > 0 && node->options.nobody_fetches != NULL) {
        refuse(offer, node->options.nobody_fetches);
    }
    return !offer->refused;
}

static bool is_admitted(struct offer *offer, const struct solver_node *node,
                        const struct game_terms *terms)
{
    struct digest siblings[GAME_ALLOW_MAX];
    struct error error;
    uint32_t count = 0;

    error_init(&error);
    if (allow_file_path(siblings, &count, &terms->solvers, ledger_get_own(node->ledger),
                        node->options.terms.allow_list, &error) != STATUS_OK) {
        refuse(offer, error.text);
    }
    return !offer->refused;
}

/* A stake that has to wait would hold its slot up. */
static bool is_ready(struct offer *offer, const struct solver_node *node,
                     const struct job_record *job)
{
    char text[STAKE_READY_TEXT];

    if (!stake_ready(text, job, node->clock.time_s, node->options.terms.known)) {
        refuse(offer, text);
    }
    return !offer->refused;
}

/* ---- weighing -------------------------------------------------------------------------- */

static void set_pace(struct offer *offer, uint32_t slot, const struct known_pace *known,
                     const struct game_terms *terms)
{
    const uint64_t ns_per_ms = 1000000;
    double segment_ns = (double)known->step_ns * terms->segment_steps;
    double all_ns = (double)known->step_ns * (double)terms->steps;

    /* A segment of less than a millisecond takes one: nothing is for nothing. */
    offer->pace[slot].segment_ms = (uint64_t)(segment_ns / (double)ns_per_ms) + 1;
    offer->pace[slot].left_ms = (uint64_t)(all_ns / (double)ns_per_ms) + 1;
    offer->measured |= 1u << slot;
}

enum status node_offers_read_pace(struct solver_node *node, uint32_t slot,
                                  const struct digest *job_id, struct error *error)
{
    struct known_pace known;

    TRY(known_pace_find(&known, job_id, node->options.devices[slot], error));
    for (uint32_t i = 0; i < node->board.count && i < node->offer_room; i++) {
        if (digest_equal(&node->board.jobs[i].terms.job_id, job_id)) {
            set_pace(&node->offers[i], slot, &known, &node->board.jobs[i].terms);
        }
    }
    return STATUS_OK;
}

static void weigh(struct solver_node *node, uint32_t slot, uint32_t number)
{
    const struct job_record *job = &node->board.jobs[number];
    const struct policy *policy = node->options.terms.policy;
    struct offer *offer = &node->offers[number];
    struct policy_refusal refusal;
    struct error none;

    if (steady_ms() < offer->again_ms) {
        return;
    }
    offer->refused = false;
    offer->why[0] = '\0';
    if (held_job_is_known(node->options.terms.jobs, &job->key)) {
        refuse(offer, "it was begun here before, and lost or given back");
        return;
    }
    if (!has_files(offer, node, shelf_find(&node->options.shelf, &job->terms.job_id)) ||
        !is_admitted(offer, node, &job->terms) || !can_be_fetched(offer, node, &job->terms) ||
        !has_money(offer, node, job->terms.stake) || !is_ready(offer, node, job)) {
        return;
    }
    error_init(&none);
    if ((offer->looked & 1u << slot) == 0 &&
        shelf_find(&node->options.shelf, &job->terms.job_id) != NULL) {
        offer->looked |= 1u << slot;
        (void)!node_offers_read_pace(node, slot, &job->terms.job_id, &none);
    }
    if (!policy_solve(&refusal, policy, &job->terms, node->money.free, &offer->pace[slot],
                      node->clock.time_s)) {
        refuse(offer, refusal.text);
    }
    offer->hour = policy_hour(job->terms.reward, &offer->pace[slot]);
    offer->hour = offer->hour > policy->price ? offer->hour - policy->price : 0;
}

static bool is_open(const struct solver_node *node, const struct job_record *job)
{
    return job->state.phase == GAME_PHASE_OPEN && node->clock.time_s <= job->terms.deadline_s &&
           !is_held(node, &job->key);
}

enum status node_offers_weigh(struct solver_node *node, uint32_t slot, struct error *error)
{
    TRY(make_room(node, error));
    for (uint32_t i = 0; i < node->board.count; i++) {
        if (is_open(node, &node->board.jobs[i])) {
            weigh(node, slot, i);
        }
    }
    return STATUS_OK;
}

bool node_offers_choose(const struct solver_node *node, uint32_t slot, uint32_t *number,
                        bool *measure)
{
    bool found = false;
    wei most = 0;

    *measure = false;
    for (uint32_t i = 0; i < node->board.count; i++) {
        const struct offer *offer = &node->offers[i];

        if (offer->refused || steady_ms() < offer->again_ms ||
            !is_open(node, &node->board.jobs[i])) {
            continue;
        }
        if ((offer->measured & 1u << slot) == 0) {
            *number = i;
            *measure = true;
            return true;
        }
        if (!found || offer->hour > most) {
            found = true;
            most = offer->hour;
            *number = i;
        }
    }
    return found;
}

static void put_off(struct offer *offer, uint64_t wait_ms, const char *why)
{
    refuse(offer, why);
    offer->again_ms = steady_ms() + wait_ms;
}

void node_offers_put_off(struct solver_node *node, const struct hash32 *key, uint64_t wait_ms,
                         const char *why)
{
    const struct job_record *job = board_find(&node->board, key);
    uint32_t number = job == NULL ? 0 : (uint32_t)(job - node->board.jobs);

    if (job != NULL && number < node->offer_room) {
        put_off(&node->offers[number], wait_ms, why);
    }
}

void node_offers_put_off_all(struct solver_node *node, const struct digest *job_id,
                             uint64_t wait_ms, const char *why)
{
    for (uint32_t i = 0; i < node->board.count && i < node->offer_room; i++) {
        if (digest_equal(&node->board.jobs[i].terms.job_id, job_id)) {
            put_off(&node->offers[i], wait_ms, why);
        }
    }
}
