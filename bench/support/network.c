/* network.c - see network.h. */
#include "bench/support/network.h"

#include <math.h>
#include <string.h>

#include "chain/game/game.h"

/* A committed segment that is not final. */
struct open_segment {
    bool is_false;
    bool covered;
    uint32_t honest_rights;
    uint32_t attacker_rights;
    double forfeits;
};

enum fate {
    FATE_FINAL,
    FATE_CONVICTED, /* by a seat */
    FATE_WATCHED,   /* convicted by a watcher */
    FATE_REFUSED,   /* void, and an eighth of the stake is burned */
    FATE_VOID,
};

/* SplitMix64. */
static uint64_t next(uint64_t *random)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool chance(struct network *network, double p)
{
    return (double)(next(&network->random) >> 11) * 0x1p-53 < p;
}

void network_init(struct network *network, const struct network_terms *terms, uint64_t seed)
{
    memset(network, 0, sizeof(*network));
    network->terms = *terms;
    network->random = seed;
}

/* ---- looking ------------------------------------------------------------------------ */

/* One solver at work on the job. */
struct turn {
    bool attacks;
    uint32_t count; /* of open segments */
    struct open_segment segments[NETWORK_SEGMENTS_MAX];
};

static bool is_served(const struct network *network, const struct turn *turn)
{
    bool hides = turn->attacks && (network->terms.solver == SOLVER_WITHHOLDING ||
                                   network->terms.solver == SOLVER_SILENT);

    return !hides || network->terms.kept;
}

static struct network_pool *solver_of(struct network *network, const struct turn *turn)
{
    return turn->attacks ? &network->attacker : &network->solvers;
}

/* The bond of a claim or an alarm that proves nothing. The solver replays the segment once. */
static void refute(struct network *network, struct turn *turn)
{
    struct network_pool *solver = solver_of(network, turn);

    network->attacker.money -= network->terms.bond;
    solver->money += network->terms.bond / 2.0;
    network->burned += network->terms.bond / 2.0;
}

/* Rights that were made up are convicted when somebody honest replays the segment. */
static void challenge(struct network *network, struct open_segment *segment)
{
    network->attacker.money -= segment->attacker_rights * network->terms.bond;
    network->panel.money += segment->attacker_rights * network->terms.bond / 2.0;
    network->burned += segment->attacker_rights * network->terms.bond / 2.0;
    segment->attacker_rights = 0;
}

struct look {
    int score;
    bool replayed; /* by somebody honest */
    bool alarmed;  /* truly */
    bool watched;  /* the alarm is a watcher's */
};

static void honest_seat(struct network *network, const struct turn *turn,
                        struct open_segment *segment, struct look *look)
{
    network->honest_seats++;
    network->panel.work += network->terms.economy.gas;
    if (!is_served(network, turn)) {
        look->score--;
        return;
    }
    look->replayed = true;
    network->panel.work += network->terms.replay;
    if (segment->is_false) {
        look->alarmed = true;
    } else {
        segment->honest_rights++;
        look->score++;
    }
}

static void attacking_seat(struct network *network, struct turn *turn, struct open_segment *segment,
                           struct look *look)
{
    const struct network_terms *terms = &network->terms;
    enum network_panel panel = terms->panel;

    if (panel == PANEL_PARTNER && !turn->attacks) {
        panel = PANEL_HONEST;
    }
    network->attacker_seats++;
    network->attacker.work += terms->economy.gas;
    switch (panel) {
    case PANEL_HONEST:
        network->attacker.work += terms->replay;
        segment->attacker_rights++;
        look->score++;
        break;
    case PANEL_PARTNER:
    case PANEL_TRUSTING:
    case PANEL_GUESSING:
        segment->attacker_rights++;
        look->score++;
        break;
    case PANEL_ABSENT:
        network->attacker.money -= 2.0 * terms->economy.fee;
        segment->forfeits += 2.0 * terms->economy.fee;
        break;
    case PANEL_DENYING:
        look->score--;
        break;
    case PANEL_ALARMING:
        refute(network, turn);
        break;
    }
}

/* Draws seats until the score decides, or the panel is exhausted. */
static void draw_seats(struct network *network, struct turn *turn, struct open_segment *segment,
                       struct look *look)
{
    int wanted = (int)network->terms.economy.seats;

    for (uint32_t place = 0;
         place < GAME_PLACES_MAX && place < network->terms.economy.panel && !look->alarmed &&
         look->score < wanted && look->score > GAME_SCORE_VOID;
         place++) {
        if (chance(network, network->terms.share)) {
            attacking_seat(network, turn, segment, look);
        } else {
            honest_seat(network, turn, segment, look);
        }
        if (network->terms.panel == PANEL_GUESSING && look->replayed &&
            segment->attacker_rights > 0) {
            look->score -= (int)segment->attacker_rights;
            challenge(network, segment);
        }
    }
}

/* Honest outsiders check in secret what they can get. */
static void watch(struct network *network, const struct turn *turn,
                  const struct open_segment *segment, struct look *look)
{
    for (int i = 0; i < (int)ceil(network->terms.economy.watchers); i++) {
        if (chance(network, network->terms.economy.extra) && is_served(network, turn)) {
            look->replayed = true;
            network->watchers.work += network->terms.replay;
            look->alarmed |= segment->is_false;
            look->watched |= segment->is_false;
        }
    }
}

static enum fate examine(struct network *network, struct turn *turn, struct open_segment *segment)
{
    struct look look = {0};

    watch(network, turn, segment, &look);
    for (int i = 0; i < (int)ceil(network->terms.swarm); i++) {
        refute(network, turn);
    }
    if (network->terms.swarm > 0.0) {
        solver_of(network, turn)->work += network->terms.replay; /* one replay answers all */
    }
    if (segment->covered && !look.alarmed) {
        draw_seats(network, turn, segment, &look);
    }
    if (look.alarmed) {
        return look.watched ? FATE_WATCHED : FATE_CONVICTED;
    }
    if (!segment->covered || look.score > 0) {
        return FATE_FINAL;
    }
    return look.score <= GAME_SCORE_VOID ? FATE_REFUSED : FATE_VOID;
}

/* ---- the game ------------------------------------------------------------------------- */

static void compute(struct network *network, struct turn *turn, bool last)
{
    const struct network_terms *terms = &network->terms;
    struct open_segment *segment = &turn->segments[turn->count++];

    memset(segment, 0, sizeof(*segment));
    segment->is_false =
        turn->attacks && terms->solver != SOLVER_SILENT && chance(network, terms->false_share);
    segment->covered =
        terms->economy.seats > 0.0 && (last || chance(network, terms->economy.coverage));
    solver_of(network, turn)->work += segment->is_false ? 1.0 - terms->economy.saved : 1.0;
    network->falses += segment->is_false;
    network->attacker_segments += turn->attacks;
}

/* The first open segment becomes final. */
static void finalize(struct network *network, struct turn *turn)
{
    const struct economy *economy = &network->terms.economy;
    const struct open_segment segment = turn->segments[0];
    double rights = (double)segment.honest_rights + segment.attacker_rights;
    double fee = 0.0;

    network->pool += segment.forfeits;
    if (rights > 0.0) {
        fee = fmin(economy->fee, network->pool / rights);
    }
    network->pool -= rights * fee;
    solver_of(network, turn)->money += economy->reward;
    network->panel.money += segment.honest_rights * fee;
    network->attacker.money += segment.attacker_rights * fee;
    network->client.money -= economy->reward;
    network->passed += segment.is_false;
    network->honest_segments += !turn->attacks;
    turn->count--;
    memmove(&turn->segments[0], &turn->segments[1], turn->count * sizeof(turn->segments[0]));
}

/* A solver goes, and what is open is void: nobody is paid for it. Forfeits stay in the pool. */
static void end_turn(struct network *network, struct turn *turn, enum fate fate)
{
    const struct network_terms *terms = &network->terms;
    struct network_pool *solver = solver_of(network, turn);
    double quarter = terms->economy.stake / GAME_POT_SHARE;
    double eighth = terms->economy.stake / GAME_LATE_SHARE;

    for (uint32_t i = 0; i < turn->count; i++) {
        network->pool += turn->segments[i].forfeits;
    }
    network->voided += (fate == FATE_REFUSED || fate == FATE_VOID) && !turn->attacks;
    if (fate == FATE_CONVICTED || fate == FATE_WATCHED) {
        struct network_pool *finder = fate == FATE_WATCHED ? &network->watchers : &network->panel;

        network->unfairly += !turn->attacks;
        network->convicted++;
        solver->money -= terms->economy.stake;
        network->client.money += quarter;
        (chance(network, terms->first) ? &network->attacker : finder)->money += quarter;
        network->burned += terms->economy.stake - 2.0 * quarter;
    } else if (fate == FATE_REFUSED) {
        solver->money -= eighth;
        network->burned += eighth;
    }
    if (terms->attacks_client) { /* what was computed is seen, and never paid */
        network->attacker.money += (double)turn->count * (turn->attacks ? 0.0 : 1.0);
        network->client.money -= (double)turn->count * (turn->attacks ? 0.0 : 1.0);
    }
    turn->count = 0;
}

/* Returns how many segments are final when the solver goes. */
static uint32_t take_turn(struct network *network, struct turn *turn, uint32_t done)
{
    uint32_t all = (uint32_t)network->terms.economy.segments;

    for (uint32_t index = done; index < all; index++) {
        enum fate fate;

        compute(network, turn, index + 1 == all);
        fate = examine(network, turn, &turn->segments[turn->count - 1]);
        if (fate != FATE_FINAL) {
            end_turn(network, turn, fate);
            return done;
        }
        if (turn->count >= network->terms.open_segments) {
            finalize(network, turn);
            done++;
        }
    }
    while (turn->count > 0) {
        finalize(network, turn);
        done++;
    }
    return done;
}

/* What the client pays in for fees: docs/PROTOCOL.md, section 3. */
static double pool_of(const struct economy *economy)
{
    double covered = 3.0 + floor(1.5 * economy->segments * economy->coverage);

    return 2.0 * economy->seats * economy->fee * fmin(economy->segments, covered);
}

void network_play(struct network *network)
{
    static struct turn turn;
    uint32_t all = (uint32_t)network->terms.economy.segments;
    uint32_t done = 0;

    network->pool = pool_of(&network->terms.economy);
    network->client.money -= network->pool;
    turn.attacks = network->terms.solver != SOLVER_HONEST;
    /* A hundred solvers lost to a hostile panel: nobody comes any more. */
    for (int solvers = 0; done < all && solvers < 100; solvers++) {
        done = take_turn(network, &turn, done);
        turn.attacks = false;
    }
    network->client.money += network->pool;
    network->jobs++;
}

/* ---- what came of it --------------------------------------------------------------------- */

static double net(const struct network_pool *pool)
{
    return pool->money - pool->work;
}

double network_advantage(const struct network *network)
{
    const struct economy *economy = &network->terms.economy;
    double honest =
        (double)network->attacker_segments * (economy->reward - 1.0) +
        (double)network->attacker_seats * (economy->fee - network->terms.replay - economy->gas);

    return (net(&network->attacker) - honest) / (double)network->jobs;
}

double network_solver_net(const struct network *network)
{
    return network->honest_segments == 0
               ? NAN
               : net(&network->solvers) / (double)network->honest_segments;
}

double network_seat_net(const struct network *network)
{
    return network->honest_seats == 0 ? NAN : net(&network->panel) / (double)network->honest_seats;
}

double network_leak(const struct network *network)
{
    return network->attacker.money + network->solvers.money + network->panel.money +
           network->watchers.money + network->client.money + network->burned;
}
