/* network.c - see network.h. */
#include "tests/support/network/network.h"

#include <math.h>
#include <string.h>

#include "tests/support/network/network_leg.h"

#define RESUMES_MAX 5
#define TENURES_MAX 20

uint64_t network_random(uint64_t *random)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

bool network_chance(struct network *network, double p)
{
    return (double)(network_random(&network->random) >> 11) * 0x1p-53 < p;
}

struct hash32 network_seed(struct network *network)
{
    struct hash32 seed;

    for (size_t i = 0; i < sizeof(seed.bytes); i += sizeof(uint64_t)) {
        uint64_t word = network_random(&network->random);

        memcpy(seed.bytes + i, &word, sizeof(word));
    }
    return seed;
}

void network_init(struct network *network, const struct network_terms *terms, uint64_t seed)
{
    memset(network, 0, sizeof(*network));
    network->terms = *terms;
    network->random = seed;
}

void network_move(struct network *network, enum network_account from, enum network_account to,
                  int64_t amount)
{
    network->money[from] -= amount;
    network->money[to] += amount;
    network->is_short |=
        from >= ACCOUNT_ESCROW && from <= ACCOUNT_STAKE && network->money[from] < 0;
}

/* ---- one solver at work ------------------------------------------------------------------ */

struct tenure {
    struct network *network;
    bool attacks;
    bool gone; /* commits nothing any more */
    bool over;
    bool closed;       /* the job */
    uint32_t segments; /* of the job */
    uint32_t finalized;
    uint32_t committed;
    uint32_t leg_start; /* all before it are in legs */
    uint64_t ready_s;   /* the next segment is computed */
    uint64_t due_s;
    uint64_t refuse_s;
    uint64_t refused_s;
    uint64_t refused_until_s;
    uint64_t convict_s;
    enum network_account finder;
    uint32_t leg_first;   /* in the queue */
    uint32_t vouch_first; /* ... that is not vouched */
    uint32_t leg_count;
    bool is_false[NETWORK_SEGMENTS_MAX];
    struct network_leg legs[NETWORK_SEGMENTS_MAX];
};

static enum network_account solver_of(const struct tenure *tenure)
{
    return tenure->attacks ? ACCOUNT_ATTACKER : ACCOUNT_SOLVERS;
}

static uint32_t open_segments(const struct tenure *tenure)
{
    return tenure->committed - tenure->finalized;
}

/* The first leg that is not final; NULL: all that is open is an uncovered tail. */
static struct network_leg *first_leg(struct tenure *tenure)
{
    return tenure->leg_first < tenure->leg_count ? &tenure->legs[tenure->leg_first] : NULL;
}

/* The first leg that nobody has vouched yet, in the order of their draws; NULL: none. */
static const struct network_leg *first_unvouched(struct tenure *tenure, uint64_t now_s)
{
    while (tenure->vouch_first < tenure->leg_count &&
           (tenure->vouch_first < tenure->leg_first ||
            tenure->legs[tenure->vouch_first].vouched_s <= now_s)) {
        tenure->vouch_first++;
    }
    return tenure->vouch_first < tenure->leg_count ? &tenure->legs[tenure->vouch_first] : NULL;
}

static uint32_t unvouched_segments(struct tenure *tenure, uint64_t now_s)
{
    const struct network_leg *leg = first_unvouched(tenure, now_s);

    return tenure->committed - (leg != NULL ? leg->first : tenure->leg_start);
}

/* As our solver plays: docs/OPERATIONS.md, --ahead. Never below a leg. */
static bool may_commit(struct tenure *tenure, uint64_t now_s)
{
    const struct network_terms *terms = &tenure->network->terms;
    uint32_t afford = (uint32_t)(terms->game.stake / terms->game.reward);
    uint32_t most = terms->ahead < afford ? terms->ahead : afford - 1;

    return !tenure->gone && tenure->committed < tenure->segments && tenure->refused_until_s == 0 &&
           open_segments(tenure) < GAME_OPEN_MAX &&
           unvouched_segments(tenure, now_s) < (most > GAME_LEG_MAX ? most : GAME_LEG_MAX);
}

static bool serves(const struct tenure *tenure, uint32_t index, bool keeper)
{
    const struct network_terms *terms = &tenure->network->terms;

    if (!tenure->attacks) {
        return tenure->network->now_s + terms->draw_s + terms->fetch_s <= terms->killed_s;
    }
    switch (terms->solver) {
    case SOLVER_WITHHOLDING:
    case SOLVER_SILENT:
        return false;
    case SOLVER_SELECTIVE:
        return keeper;
    case SOLVER_LAST:
        return index + 1 < tenure->segments;
    case SOLVER_HONEST:
    case SOLVER_FALSE:
    case SOLVER_SLEEPING:
    case SOLVER_LEAVING:
        return true;
    }
    return true;
}

/* ---- a commit ---------------------------------------------------------------------------- */

static void swarm(struct tenure *tenure)
{
    struct network *network = tenure->network;
    enum network_account solver = solver_of(tenure);

    for (uint32_t i = 0; i < network->terms.swarm; i++) {
        int64_t bond = (int64_t)game_claim_bond(&network->terms.game, i);

        network_move(network, ACCOUNT_ATTACKER, solver, bond / 2);
        network_move(network, ACCOUNT_ATTACKER, ACCOUNT_BURNED, bond - bond / 2);
    }
    network->work[solver] += network->terms.swarm > 0 ? network->terms.replay : 0;
}

/* Honest nodes that have no seat look where nobody expects them. */
static bool watch(struct tenure *tenure, uint32_t index)
{
    struct network *network = tenure->network;
    bool watched = false;

    if (network_chance(network, network->terms.watched) && serves(tenure, index, false)) {
        network->work[ACCOUNT_WATCHERS] += network->terms.replay;
        watched = true;
    }
    if (watched && tenure->is_false[index]) {
        uint64_t at_s = network->now_s + network->terms.draw_s + network->terms.segment_s;

        tenure->convict_s = at_s < tenure->convict_s ? at_s : tenure->convict_s;
        tenure->finder = ACCOUNT_WATCHERS;
    }
    return watched;
}

static uint64_t first_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void cover(struct tenure *tenure, uint32_t index, const struct hash32 *seed, bool watched)
{
    struct network *network = tenure->network;
    struct network_leg *leg = &tenure->legs[tenure->leg_count++];
    const struct game_segment segment = {.index = index};

    *leg = (struct network_leg){
        .first = tenure->leg_start,
        .last = index,
        .wanted = game_wanted_rights(&network->terms.game, &segment, tenure->segments),
        .seed = *seed,
        .drawn_s = network->now_s + network->terms.draw_s,
        .attacks = tenure->attacks,
        .is_false = tenure->is_false[index],
        .serves_seats = serves(tenure, index, false),
        .serves_keeper = serves(tenure, index, true),
        .watched = watched};
    tenure->leg_start = index + 1;
    network_leg_play(network, leg);
    if (leg->alarm_s < tenure->convict_s) {
        tenure->convict_s = leg->alarm_s;
        tenure->finder = ACCOUNT_PANEL;
    }
    tenure->refuse_s = first_of(tenure->refuse_s, leg->refuse_s);
}

/* A client that refuses does it when the solver waits, or is about to end the job. */
static void attack_as_client(struct tenure *tenure)
{
    struct network *network = tenure->network;
    enum network_client client = network->terms.client;
    bool waits = !may_commit(tenure, network->now_s) || tenure->committed + 1 >= tenure->segments;

    if (!waits || (client != CLIENT_REFUSING && client != CLIENT_STOPPING) ||
        tenure->committed == tenure->segments) {
        return;
    }
    if (client == CLIENT_STOPPING) {
        network_move(network, ACCOUNT_ESCROW, ACCOUNT_CLIENT,
                     (int64_t)(tenure->segments - tenure->committed - 1) *
                         (int64_t)network->terms.game.reward);
        tenure->segments = tenure->committed + 1;
    }
    tenure->refuse_s = network->now_s + 1;
}

static void commit(struct tenure *tenure)
{
    struct network *network = tenure->network;
    const struct network_terms *terms = &network->terms;
    uint32_t index = tenure->committed++;
    const struct game_segment segment = {.index = index, .time_s = network->now_s};
    struct hash32 seed = network_seed(network);
    bool lies =
        tenure->attacks && (terms->solver == SOLVER_FALSE || terms->solver == SOLVER_WITHHOLDING ||
                            terms->solver == SOLVER_SELECTIVE);

    tenure->is_false[index] = lies && network_chance(network, terms->false_share);
    network->falses += tenure->is_false[index];
    network->work[solver_of(tenure)] += tenure->is_false[index] ? 0 : NETWORK_UNIT;
    network->honest += tenure->attacks ? (int64_t)terms->game.reward - NETWORK_UNIT : 0;
    network->worked_s += terms->segment_s;
    network->stalled_s += network->now_s - tenure->ready_s;
    if (tenure->attacks && network_chance(network, terms->blocks) &&
        game_seed_covers(&seed, terms->game.coverage_ppm)) {
        seed = network_seed(network);
    }
    swarm(tenure);
    bool watched = watch(tenure, index);
    if (leg_is_covered(&terms->game, &segment, tenure->segments, tenure->leg_start, &seed, false)) {
        cover(tenure, index, &seed, watched);
    }
    network->most_open =
        open_segments(tenure) > network->most_open ? open_segments(tenure) : network->most_open;
    tenure->due_s = network->now_s + terms->game.segment_period_s;
    tenure->ready_s = network->now_s + terms->segment_s;
    tenure->gone |= tenure->attacks && terms->solver == SOLVER_LEAVING &&
                    tenure->committed + 1 >= tenure->segments;
    attack_as_client(tenure);
}

/* ---- what ends a leg, or a tenure ----------------------------------------------------------- */

/* Rights of one side, of the first round or of later ones. */
static void pay_rights(struct network *network, enum network_account account, uint32_t count,
                       int64_t fee)
{
    network_move(network, ACCOUNT_POOL, account, count * fee);
}

static void settle(struct tenure *tenure)
{
    struct network *network = tenure->network;
    const struct game_terms *terms = &network->terms.game;
    const struct network_leg *leg = first_leg(tenure);
    uint32_t rights = leg->rights[SIDE_HONEST] + leg->rights[SIDE_ATTACKER];
    static const enum network_account owners[] = {
        [SIDE_HONEST] = ACCOUNT_PANEL, [SIDE_ATTACKER] = ACCOUNT_ATTACKER};
    uint32_t count = leg->last + 1 - tenure->finalized;
    wei pool = (wei)network->money[ACCOUNT_POOL];

    for (int side = 0; rights > 0 && side < SIDES; side++) {
        uint32_t late = leg->late_rights[side];

        pay_rights(network, owners[side], leg->rights[side] - late,
                   (int64_t)leg_fee(terms, pool, rights, false));
        pay_rights(network, owners[side], late, (int64_t)leg_fee(terms, pool, rights, true));
    }
    network_move(network, ACCOUNT_ESCROW, solver_of(tenure), count * (int64_t)terms->reward);
    for (uint32_t i = tenure->finalized; i <= leg->last; i++) {
        network->passed += tenure->is_false[i];
    }
    network->honest_segments += tenure->attacks ? 0 : count;
    tenure->finalized = leg->last + 1;
    tenure->leg_first++;
    if (tenure->finalized == tenure->segments) {
        network_move(network, ACCOUNT_STAKE, solver_of(tenure), (int64_t)terms->stake);
        tenure->over = true;
        tenure->closed = true;
    }
}

static void take_segments(struct tenure *tenure, uint32_t open)
{
    struct network *network = tenure->network;

    if (network->terms.client != CLIENT_HONEST) {
        network->value += open * (int64_t)network->terms.game.reward;
    }
    tenure->over = true;
}

/* leg: the one that decides; NULL where an uncovered tail was refused. */
static void void_leg(struct tenure *tenure, const struct network_leg *leg)
{
    struct network *network = tenure->network;
    uint32_t open = open_segments(tenure);
    uint32_t honest = leg == NULL ? 0 : leg->unseen[SIDE_HONEST];
    uint32_t theirs = leg == NULL ? 0 : leg->unseen[SIDE_ATTACKER];
    struct leg_void burned = leg_void(&network->terms.game, (wei)network->money[ACCOUNT_POOL], open,
                                      tenure->segments - tenure->finalized, honest + theirs,
                                      leg != NULL && leg->last + 1 == tenure->segments);
    int64_t each = (int64_t)burned.each;

    network_move(network, ACCOUNT_STAKE, ACCOUNT_PANEL, honest * each);
    network_move(network, ACCOUNT_STAKE, ACCOUNT_ATTACKER, theirs * each);
    network_move(network, ACCOUNT_STAKE, ACCOUNT_BURNED,
                 (int64_t)burned.stake - (honest + theirs) * each);
    network_move(network, ACCOUNT_STAKE, solver_of(tenure),
                 (int64_t)(network->terms.game.stake - burned.stake));
    network_move(network, ACCOUNT_ESCROW, ACCOUNT_BURNED, (int64_t)burned.escrow);
    network_move(network, ACCOUNT_POOL, ACCOUNT_BURNED, (int64_t)burned.pool);
    network->client_burned += (int64_t)(burned.escrow + burned.pool);
    network->voids++;
    network->void_open += open;
    network->voided += !tenure->attacks;
    take_segments(tenure, open);
    /* What the client puts back to go on. */
    network_move(network, ACCOUNT_CLIENT, ACCOUNT_ESCROW, (int64_t)burned.escrow);
    network_move(network, ACCOUNT_CLIENT, ACCOUNT_POOL, (int64_t)burned.pool);
}

/* The attacker always wins the race for a quarter of its own stake. */
static void convict(struct tenure *tenure)
{
    struct network *network = tenure->network;
    int64_t stake = (int64_t)network->terms.game.stake;
    int64_t quarter = stake / GAME_POT_SHARE;

    network_move(network, ACCOUNT_STAKE, ACCOUNT_CLIENT, quarter);
    network_move(network, ACCOUNT_STAKE, tenure->attacks ? ACCOUNT_ATTACKER : tenure->finder,
                 quarter);
    network_move(network, ACCOUNT_STAKE, ACCOUNT_BURNED, stake - 2 * quarter);
    network->convicted++;
    take_segments(tenure, open_segments(tenure));
}

static void release(struct tenure *tenure)
{
    struct network *network = tenure->network;
    int64_t stake = (int64_t)network->terms.game.stake;
    int64_t penalty = tenure->refused_until_s != 0 ? 0 : stake / GAME_LATE_SHARE;

    network_move(network, ACCOUNT_STAKE, ACCOUNT_BURNED, penalty);
    network_move(network, ACCOUNT_STAKE, solver_of(tenure), stake - penalty);
    take_segments(tenure, open_segments(tenure));
}

/* ---- the clock ------------------------------------------------------------------------------ */

enum happening {
    HAPPENS_CONVICTION,
    HAPPENS_SETTLE,
    HAPPENS_VOID,
    HAPPENS_RELEASE,
    HAPPENS_REFUSAL,
    HAPPENS_VOUCH,
    HAPPENS_COMMIT,
    HAPPENINGS,
};

static bool is_held(const struct tenure *tenure, const struct network_leg *leg)
{
    return tenure->refused_until_s != 0 && leg->vouched_s > tenure->refused_until_s &&
           leg->end_s >= tenure->refused_s;
}

static void see_end(struct tenure *tenure, uint64_t times_s[HAPPENINGS])
{
    const struct network_leg *leg = first_leg(tenure);

    if (leg != NULL && is_held(tenure, leg)) {
        times_s[HAPPENS_VOID] = tenure->refused_until_s + 1;
    } else if (leg != NULL) {
        times_s[leg->is_final ? HAPPENS_SETTLE : HAPPENS_VOID] = leg->end_s;
    } else if (tenure->refused_until_s != 0) {
        times_s[open_segments(tenure) > 0 ? HAPPENS_VOID : HAPPENS_RELEASE] =
            tenure->refused_until_s + 1;
    } else if (tenure->gone) {
        times_s[HAPPENS_RELEASE] = tenure->due_s + 1;
    }
}

/* When each could come next. */
static void see_times(struct tenure *tenure, uint64_t times_s[HAPPENINGS])
{
    uint64_t now_s = tenure->network->now_s;
    const struct network_leg *unvouched = first_unvouched(tenure, now_s);

    for (int i = 0; i < HAPPENINGS; i++) {
        times_s[i] = NETWORK_NEVER;
    }
    times_s[HAPPENS_CONVICTION] = tenure->convict_s;
    see_end(tenure, times_s);
    if (tenure->refused_until_s == 0 && open_segments(tenure) > 0) {
        times_s[HAPPENS_REFUSAL] = tenure->refuse_s;
    }
    if (unvouched != NULL) {
        times_s[HAPPENS_VOUCH] = unvouched->vouched_s;
    }
    if (may_commit(tenure, now_s)) {
        times_s[HAPPENS_COMMIT] = tenure->ready_s > now_s ? tenure->ready_s : now_s;
    }
}

static void happen(struct tenure *tenure, enum happening what)
{
    const struct game_terms *terms = &tenure->network->terms.game;

    switch (what) {
    case HAPPENS_CONVICTION:
        convict(tenure);
        return;
    case HAPPENS_SETTLE:
        settle(tenure);
        return;
    case HAPPENS_VOID:
        void_leg(tenure, first_leg(tenure));
        return;
    case HAPPENS_RELEASE:
        release(tenure);
        return;
    case HAPPENS_REFUSAL:
        tenure->refused_s = tenure->network->now_s;
        tenure->refused_until_s = tenure->network->now_s + terms->seal_period_s +
                                  terms->reveal_period_s + terms->claim_period_s;
        return;
    case HAPPENS_COMMIT:
        commit(tenure);
        return;
    case HAPPENS_VOUCH: /* only time goes on: a solver may commit more */
    case HAPPENINGS:
        return;
    }
}

static void next_happening(struct tenure *tenure)
{
    struct network *network = tenure->network;
    uint64_t times_s[HAPPENINGS];
    enum happening first = HAPPENS_CONVICTION;

    see_times(tenure, times_s);
    for (enum happening i = HAPPENS_CONVICTION; i < HAPPENINGS; i++) {
        first = times_s[i] < times_s[first] ? i : first;
    }
    if (!tenure->attacks && !tenure->gone && times_s[first] > network->terms.killed_s) {
        tenure->gone = true;
        return;
    }
    network->now_s = times_s[first] > network->now_s ? times_s[first] : network->now_s;
    happen(tenure, first);
}

/* ---- a job ---------------------------------------------------------------------------------- */

static void begin(struct tenure *tenure, struct network *network, bool attacks)
{
    uint32_t done = tenure->finalized;
    uint32_t segments = tenure->segments;

    memset(network->gone, 0, sizeof(network->gone));
    memset(tenure, 0, offsetof(struct tenure, is_false));
    tenure->network = network;
    tenure->attacks = attacks;
    tenure->segments = segments;
    tenure->finalized = done;
    tenure->committed = done;
    tenure->leg_start = done;
    tenure->refuse_s = NETWORK_NEVER;
    tenure->convict_s = NETWORK_NEVER;
    tenure->gone = attacks && network->terms.solver == SOLVER_SLEEPING;
    tenure->ready_s = network->now_s + network->terms.segment_s;
    tenure->due_s = network->now_s + network->terms.game.segment_period_s;
    network_move(network, solver_of(tenure), ACCOUNT_STAKE, (int64_t)network->terms.game.stake);
}

static void open_job(struct network *network, uint32_t segments)
{
    network_move(network, ACCOUNT_CLIENT, ACCOUNT_ESCROW,
                 (int64_t)(segments * network->terms.game.reward));
    network_move(network, ACCOUNT_CLIENT, ACCOUNT_POOL,
                 (int64_t)game_fees(&network->terms.game, segments));
}

static bool goes_on(const struct network *network, const struct tenure *tenure, uint64_t voids)
{
    return !tenure->closed && network->voids - voids <= RESUMES_MAX &&
           (network->terms.client == CLIENT_HONEST || network->terms.client == CLIENT_DENYING ||
            tenure->refused_until_s == 0);
}

void network_play(struct network *network)
{
    static struct tenure tenure;
    uint64_t voids = network->voids;
    bool attacks = network->terms.solver != SOLVER_HONEST;

    network->now_s = 0;
    tenure.segments = game_segment_count(&network->terms.game);
    tenure.finalized = 0;
    tenure.closed = false;
    tenure.refused_until_s = 0;
    open_job(network, tenure.segments);
    for (int i = 0; i < TENURES_MAX && goes_on(network, &tenure, voids); i++) {
        begin(&tenure, network, attacks);
        while (!tenure.over) {
            next_happening(&tenure);
        }
        attacks = false;
        network->terms.killed_s = NETWORK_NEVER;
    }
    network->unfinished += !tenure.closed;
    network_move(network, ACCOUNT_ESCROW, ACCOUNT_CLIENT, network->money[ACCOUNT_ESCROW]);
    network_move(network, ACCOUNT_POOL, ACCOUNT_CLIENT, network->money[ACCOUNT_POOL]);
    network->jobs++;
}

/* ---- what came of it --------------------------------------------------------------------- */

static double in_units(int64_t money)
{
    return (double)money / NETWORK_UNIT;
}

static int64_t net(const struct network *network, enum network_account account)
{
    return network->money[account] - network->work[account];
}

double network_advantage(const struct network *network)
{
    int64_t gain = net(network, ACCOUNT_ATTACKER) - network->honest;

    if (network->terms.client != CLIENT_HONEST) {
        gain += network->value - network->client_burned;
    }
    return in_units(gain) / (double)network->jobs;
}

double network_solver_net(const struct network *network)
{
    return network->honest_segments == 0
               ? NAN
               : in_units(net(network, ACCOUNT_SOLVERS)) / (double)network->honest_segments;
}

double network_seat_net(const struct network *network)
{
    return network->honest_seats == 0
               ? NAN
               : in_units(net(network, ACCOUNT_PANEL)) / (double)network->honest_seats;
}

bool network_is_sound(const struct network *network)
{
    bool sound = !network->is_short && network->money[ACCOUNT_ESCROW] == 0 &&
                 network->money[ACCOUNT_POOL] == 0 && network->money[ACCOUNT_STAKE] == 0;

    return sound && (network->convicted == 0 || network->falses > 0);
}
