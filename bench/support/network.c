/* network.c - see network.h. */
#include "bench/support/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const network_role_names[ROLE_COUNT] = {
    "honest solver",   "sloppy solver",  "lazy solver",       "colluding solver",
    "honest verifier", "hasty verifier", "guessing verifier", "friend of cheats",
};

struct seat {
    uint32_t node;
    int guessed;
};

struct segment {
    int is_false;
    uint32_t seat_count;
    struct seat seats[NETWORK_SEATS_MAX];
};

/* One solver's work on a job. */
struct turn {
    uint32_t solver;
    enum role role;
    uint32_t first; /* segment */
    struct segment segments[NETWORK_SEGMENTS_MAX];
};

/* The nodes that know that a segment is false; they race for the claim. */
struct alarm {
    uint32_t witnesses;
    uint32_t claimant;
    uint32_t replayed; /* nodes that replayed all of it */
};

/* SplitMix64. */
static uint64_t next(uint64_t *random)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

double network_draw(uint64_t *random)
{
    return (double)(next(random) >> 11) * 0x1p-53;
}

static int chance(struct network *network, double p)
{
    return network_draw(&network->random) < p;
}

static uint32_t any_of(struct network *network, uint32_t first, uint32_t end)
{
    return first + (uint32_t)(network_draw(&network->random) * (end - first));
}

static enum role role_of(const struct network *network, uint32_t node)
{
    int role = 0;

    while (node >= network->first[role + 1]) {
        role++;
    }
    return (enum role)role;
}

int network_init(struct network *network, const struct network_terms *terms,
                 const uint32_t counts[ROLE_COUNT], uint64_t seed)
{
    memset(network, 0, sizeof(*network));
    network->terms = *terms;
    network->random = seed;
    for (int role = 0; role < ROLE_COUNT; role++) {
        network->first[role + 1] = network->first[role] + counts[role];
    }
    network->node_count = network->first[ROLE_COUNT];
    network->unwatched = pow(1.0 - terms->extra, counts[VERIFIER_HONEST]);
    network->money = calloc(network->node_count, sizeof(double));
    network->work = calloc(network->node_count, sizeof(double));
    return network->money != NULL && network->work != NULL ? 0 : -1;
}

void network_release(struct network *network)
{
    free(network->money);
    free(network->work);
}

/* ---- looking ------------------------------------------------------------------------ */

static void witness(struct network *network, struct alarm *alarm, uint32_t node)
{
    alarm->witnesses++;
    if (any_of(network, 0, alarm->witnesses) == 0) {
        alarm->claimant = node; /* each of them is the first with the same chance */
    }
}

/* A node replays a whole segment. */
static void replay(struct network *network, struct alarm *alarm, const struct segment *segment,
                   uint32_t node)
{
    network->work[node] += network->terms.replay;
    alarm->replayed++;
    if (segment->is_false) {
        witness(network, alarm, node);
    }
}

static uint32_t choose_attestor(struct network *network, const struct turn *turn)
{
    if (turn->role == SOLVER_COLLUDING && chance(network, network->terms.seized)) {
        return any_of(network, network->first[VERIFIER_FRIEND], network->first[ROLE_COUNT]);
    }
    return any_of(network, network->first[VERIFIER_HONEST], network->first[ROLE_COUNT]);
}

/* A node takes a seat, or claims instead. */
static void attest(struct network *network, struct alarm *alarm, const struct turn *turn,
                   struct segment *segment)
{
    uint32_t node = choose_attestor(network, turn);
    enum role role = role_of(network, node);
    int whistles = 0;

    if (role == VERIFIER_HONEST || (role == VERIFIER_FRIEND && turn->role != SOLVER_COLLUDING)) {
        replay(network, alarm, segment, node);
        whistles = segment->is_false;
    } else if (role == VERIFIER_HASTY) {
        double own_step = network_draw(&network->random);

        network->work[node] += network->terms.replay * own_step;
        /* The false step can be any step; all states after it are false too. */
        whistles = segment->is_false && chance(network, own_step);
        if (whistles) {
            witness(network, alarm, node);
        }
    }
    if (!whistles) {
        network->work[node] += network->terms.gas;
        network->tally[role].seats++;
        segment->seats[segment->seat_count++] =
            (struct seat){.node = node, .guessed = role == VERIFIER_GUESSER};
    }
}

/* The number of watchers that happen to check a segment: binomial, by inversion. */
static void watch(struct network *network, struct alarm *alarm, const struct segment *segment)
{
    uint32_t first = network->first[VERIFIER_HONEST];
    uint32_t count = network->first[VERIFIER_HONEST + 1] - first;

    if (network->terms.extra * count < 1e-12) {
        return;
    }
    double rate = network->terms.extra;
    double draw = 1.0 - network_draw(&network->random);
    double term = network->unwatched;

    for (uint32_t seen = 0; seen < count && draw > term; seen++) {
        draw -= term;
        term *= (double)(count - seen) / (double)(seen + 1) * rate / (1.0 - rate);
        replay(network, alarm, segment, any_of(network, first, first + count));
        if (term < 1e-300) {
            return;
        }
    }
}

/* A guessed reveal that is tried proves false. The accuser gets the bond; another takes the
 * seat. */
static void try_reveals(struct network *network, const struct alarm *alarm, struct segment *segment)
{
    double escape = 1.0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < alarm->replayed; i++) {
        escape *= 1.0 - network->terms.peers;
    }
    for (uint32_t i = 0; i < segment->seat_count; i++) {
        struct seat seat = segment->seats[i];

        if (seat.guessed && chance(network, 1.0 - escape)) {
            uint32_t accuser = any_of(network, network->first[VERIFIER_HONEST],
                                      network->first[VERIFIER_HONEST + 1]);

            network->money[seat.node] -= network->terms.bond;
            network->money[accuser] += network->terms.bond;
            network->work[accuser] += network->terms.gas;
            network->tally[VERIFIER_GUESSER].convicted++;
            network->tally[VERIFIER_HONEST].claims++;
        } else {
            segment->seats[kept++] = seat;
        }
    }
    segment->seat_count = kept;
}

/* Plays a segment until its claim time is over. */
static struct alarm examine(struct network *network, const struct turn *turn,
                            struct segment *segment)
{
    struct alarm alarm = {0};
    int must_be_covered = chance(network, network->terms.coverage);

    segment->seat_count = 0;
    watch(network, &alarm, segment);
    /* Rounds continue until attestors that were not convicted hold all seats. */
    while (must_be_covered && alarm.witnesses == 0 &&
           segment->seat_count < network->terms.attestors) {
        while (segment->seat_count < network->terms.attestors && alarm.witnesses == 0) {
            attest(network, &alarm, turn, segment);
        }
        try_reveals(network, &alarm, segment);
    }
    return alarm;
}

/* ---- the game ------------------------------------------------------------------------- */

static void compute(struct network *network, struct turn *turn, uint32_t index)
{
    struct segment *segment = &turn->segments[index];
    struct network_tally *tally = &network->tally[turn->role];

    segment->is_false = chance(network, network->terms.false_share[turn->role]);
    network->work[turn->solver] += segment->is_false ? 1.0 - network->terms.saved : 1.0;
    tally->segments++;
    tally->falses += segment->is_false != 0;
}

static void finalize(struct network *network, const struct turn *turn, uint32_t index)
{
    const struct segment *segment = &turn->segments[index];

    network->money[turn->solver] += network->terms.reward;
    network->clients -= network->terms.reward;
    for (uint32_t i = 0; i < segment->seat_count; i++) {
        network->money[segment->seats[i].node] += network->terms.fee;
        network->clients -= network->terms.fee;
    }
    network->tally[turn->role].passed += segment->is_false != 0;
}

/* Half to the first claimant, half to the client. */
static void convict(struct network *network, const struct turn *turn, const struct alarm *alarm)
{
    double half = network->terms.stake / 2.0;
    uint32_t claimant = alarm->claimant;

    if (turn->role == SOLVER_COLLUDING && chance(network, network->terms.accomplice)) {
        claimant = turn->solver; /* by another account */
    }
    network->money[turn->solver] -= network->terms.stake;
    network->money[claimant] += half;
    network->work[claimant] += network->terms.gas;
    network->clients += half;
    network->tally[turn->role].convicted++;
    network->tally[turn->role].caught++;
    network->tally[role_of(network, claimant)].claims++;
}

/* Returns the segment at which the next solver continues; the number of segments at the end. */
static uint32_t take_turn(struct network *network, struct turn *turn, uint32_t *committed)
{
    uint32_t count = network->terms.segments;
    uint32_t window = network->terms.open_segments;
    uint32_t done = turn->first; /* final */

    network->tally[turn->role].jobs++;
    for (uint32_t index = turn->first; index < count; index++) {
        compute(network, turn, index);
        *committed = index + 1 - turn->first;

        struct alarm alarm = examine(network, turn, &turn->segments[index]);

        if (alarm.witnesses > 0) {
            convict(network, turn, &alarm);
            return done;
        }
        if (index + 1 >= done + window) {
            finalize(network, turn, done++);
        }
    }
    while (done < count) {
        finalize(network, turn, done++);
    }
    return count;
}

static void begin(struct network *network, struct turn *turn, uint32_t solver, uint32_t first)
{
    turn->solver = solver;
    turn->role = role_of(network, solver);
    turn->first = first;
}

void network_play(struct network *network)
{
    static struct turn turn;
    uint32_t committed = 0;
    uint32_t at = 0;

    while (at < network->terms.segments) {
        begin(network, &turn, any_of(network, 0, network->first[VERIFIER_HONEST]), at);
        at = take_turn(network, &turn, &committed);
    }
}

double network_advantage(struct network *network, uint32_t solver)
{
    static struct turn turn;
    double before = network->money[solver] - network->work[solver];
    uint32_t committed = 0;

    begin(network, &turn, solver, 0);
    (void)take_turn(network, &turn, &committed);
    return network->money[solver] - network->work[solver] - before -
           (double)committed * (network->terms.reward - 1.0);
}
