/*
 * network_bench.c - 10,000 nodes play the game of docs/PROTOCOL.md: what each role earns, which
 * cheats are found, and where a cheat breaks even, compared with verifier/status/plan.h.
 *
 *     build/bench/network_bench build/bench/network.json docs/economics.svg
 *
 * The seed is fixed, so every machine prints the same figures (docs/ECONOMICS.md shows them). Fails
 * if money appears or disappears, or if a closed form lies outside the played interval.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/support/bench.h"
#include "bench/support/network.h"
#include "bench/support/network_plot.h"
#include "verifier/status/plan.h"

#define SEED          UINT64_C(20261121)
#define JOBS          20000
#define PLAYS         20000
#define SWEEP_FALSE   10
#define SWEEP_WATCHER 100
#define CONFIDENCE_Z  1.959964
/* With about 100 comparisons, 4.5 standard errors come by chance in one of 1,500 benchmarks. */
#define ALARM_Z       4.5

static const struct network_terms usual = {
    .segments = 100,
    .reward = 1.5,
    .fee = 1.2,
    .stake = 50.0,
    .bond = 12.0,
    .attestors = 1,
    .coverage = 1.0,
    .gas = 0.01,
    .replay = 1.05,
    .saved = 1.0,
    .extra = 0.00002,
    .peers = 0.5,
    .seized = 0.5,
    .accomplice = 0.5,
    .open_segments = 3,
    .false_share = {[SOLVER_SLOPPY] = 0.02, [SOLVER_LAZY] = 1.0, [SOLVER_COLLUDING] = 0.2},
};

static const uint32_t usual_counts[ROLE_COUNT] = {900, 40, 30, 30, 6300, 900, 900, 900};

/* ---- the network ------------------------------------------------------------------------ */

struct spread {
    double mean;
    double half; /* of the 95 % interval */
    double work;
};

static struct spread earnings(const struct network *network, int role)
{
    uint32_t first = network->first[role];
    uint32_t count = network->first[role + 1] - first;
    double squares = 0.0;
    struct spread spread = {0};

    for (uint32_t i = first; i < first + count; i++) {
        double net = network->money[i] - network->work[i];

        spread.mean += net / count;
        spread.work += network->work[i] / count;
        squares += net * net / count;
    }
    spread.half = CONFIDENCE_Z * sqrt(fmax(0.0, squares - spread.mean * spread.mean) / count);
    return spread;
}

/* Wilson's interval of a share. */
static void interval(double *low, double *high, double hits, double tries)
{
    double z2 = CONFIDENCE_Z * CONFIDENCE_Z;
    double share = tries > 0.0 ? hits / tries : 0.0;
    double scale = 1.0 / (1.0 + z2 / tries);
    double middle = scale * (share + z2 / (2.0 * tries));
    double half =
        scale * CONFIDENCE_Z * sqrt(share * (1.0 - share) / tries + z2 / (4.0 * tries * tries));

    *low = middle - half;
    *high = middle + half;
}

/* By plan.h: the holder of a seat finds all, half, or nothing. */
static double expected_detection(const struct network *network, int role)
{
    double seats = (double)(network->node_count - network->first[VERIFIER_HONEST]);
    double friends = network->first[ROLE_COUNT] - network->first[VERIFIER_FRIEND];
    double honest = network->first[VERIFIER_HONEST + 1] - network->first[VERIFIER_HONEST];
    double hasty = network->first[VERIFIER_HASTY + 1] - network->first[VERIFIER_HASTY];
    double seeing = (honest + hasty / 2.0 + (role == SOLVER_COLLUDING ? 0.0 : friends)) / seats;
    struct plan_terms terms = {.attestors = network->terms.attestors,
                               .coverage = network->terms.coverage,
                               .watchers = honest,
                               .extra = network->terms.extra};
    struct plan_economy economy;

    terms.honest = role == SOLVER_COLLUDING ? seeing * (1.0 - network->terms.seized) : seeing;
    plan_economy(&economy, &terms);
    return economy.detection;
}

static void record(struct bench *bench, const struct network *network, int role, const char *unit,
                   double played, double expected)
{
    char name[BENCH_NAME_MAX];

    (void)snprintf(name, sizeof(name), "%s, attestors %u", network_role_names[role],
                   network->terms.attestors);
    bench_record(bench, name, unit, played, expected, 1);
}

static int tell_detection(struct bench *bench, const struct network *network, int role)
{
    const struct network_tally *tally = &network->tally[role];
    double expected = expected_detection(network, role);
    double low;
    double high;
    double error = sqrt(expected * (1.0 - expected) / (double)tally->falses);
    double share = (double)tally->caught / (double)tally->falses;

    interval(&low, &high, (double)tally->caught, (double)tally->falses);
    printf("| %s | %llu | %llu | %llu | %.2f %% | %.2f to %.2f %% | %.2f %% |\n",
           network_role_names[role], (unsigned long long)tally->jobs,
           (unsigned long long)tally->falses, (unsigned long long)tally->passed, 100.0 * share,
           100.0 * low, 100.0 * high, 100.0 * expected);
    record(bench, network, role, "share convicted", share, expected);
    return fabs(share - expected) <= ALARM_Z * error;
}

static int play_network(struct bench *bench, struct network *network)
{
    double sum = 0.0;
    double volume = 0.0;
    int good = 1;

    for (int i = 0; i < JOBS; i++) {
        network_play(network);
    }
    for (uint32_t i = 0; i < network->node_count; i++) {
        sum += network->money[i];
        volume += fabs(network->money[i]);
    }
    printf("\n| false segments of | jobs taken | false | became final | convicted | 95 %% interval "
           "| closed form |\n|---|---|---|---|---|---|---|\n");
    for (int role = SOLVER_SLOPPY; role <= SOLVER_COLLUDING; role++) {
        good &= tell_detection(bench, network, role);
    }
    printf("\n| who | nodes | earned | spent on work | net of a node | 95 %% interval | convicted "
           "|\n|---|---|---|---|---|---|---|\n");
    for (int role = 0; role < ROLE_COUNT; role++) {
        struct spread spread = earnings(network, role);
        uint32_t count = network->first[role + 1] - network->first[role];

        printf("| %s | %u | %.2f | %.2f | %+.2f | %+.2f to %+.2f | %llu |\n",
               network_role_names[role], count, spread.mean + spread.work, spread.work, spread.mean,
               spread.mean - spread.half, spread.mean + spread.half,
               (unsigned long long)network->tally[role].convicted);
        record(bench, network, role, "net of a node", spread.mean, 0.0);
    }
    printf("\nmoney in less money out: %.3g of %.6g\n", sum + network->clients, volume);
    return good && fabs(sum + network->clients) < 1e-6 * volume && network->tally[0].convicted == 0;
}

/* ---- the break-even --------------------------------------------------------------------- */

static struct plan_economy closed_form(const struct network_terms *terms, int role)
{
    const struct plan_terms plan = {
        .reward = terms->reward,
        .stake = terms->stake,
        .cost = 1.0,
        .saved = terms->saved,
        .watchers = SWEEP_WATCHER,
        .extra = terms->extra,
        .accomplice = role == SOLVER_COLLUDING ? terms->accomplice : 0.0,
        .open_segments = terms->open_segments,
    };
    struct plan_economy economy;

    plan_economy(&economy, &plan);
    return economy;
}

/* Plays one point many times: a solver of that role with SWEEP_FALSE false segments. */
static int play_point(struct plot_point *point, const struct network_terms *terms, int role,
                      uint64_t seed)
{
    const uint32_t counts[ROLE_COUNT] = {
        [SOLVER_LAZY] = 1, [SOLVER_COLLUDING] = 1, [VERIFIER_HONEST] = SWEEP_WATCHER};
    struct network network;
    struct plan_economy economy = closed_form(terms, role);
    double sum = 0.0;
    double squares = 0.0;

    if (network_init(&network, terms, counts, seed) != 0) {
        return 0;
    }
    for (int i = 0; i < PLAYS; i++) {
        double more = network_advantage(&network, network.first[role]);

        sum += more;
        squares += more * more;
    }
    network_release(&network);
    point->x = economy.detection;
    point->y = sum / PLAYS;
    point->half = CONFIDENCE_Z * sqrt(fmax(0.0, squares / PLAYS - point->y * point->y) / PLAYS);
    point->expected = plan_advantage(&economy, SWEEP_FALSE);
    return fabs(point->y - point->expected) <= ALARM_Z / CONFIDENCE_Z * point->half + 1e-9;
}

/* Where the played points change sign, interpolated between two of them. */
static double crossing(const struct plot_series *series)
{
    for (int i = 1; i < series->count; i++) {
        const struct plot_point *a = &series->points[i - 1];
        const struct plot_point *b = &series->points[i];

        if (a->y > 0.0 && b->y <= 0.0) {
            return a->x + (b->x - a->x) * a->y / (a->y - b->y);
        }
    }
    return NAN;
}

static int play_series(struct bench *bench, struct plot_series *series, double stake, int role,
                       uint64_t seed)
{
    struct network_terms terms = usual;
    int good = 1;

    terms.segments = SWEEP_FALSE;
    terms.coverage = 0.0;
    terms.stake = stake;
    terms.open_segments = 1;
    terms.false_share[role] = 1.0;
    series->count = PLOT_POINTS_MAX;
    (void)snprintf(series->name, sizeof(series->name), "stake %g%s", stake,
                   role == SOLVER_COLLUDING ? ", a friend claims" : "");
    for (int i = 0; i < series->count; i++) {
        double detection = 0.25 * (i + 0.5) / series->count;

        terms.extra = plan_rate(1.0, SWEEP_WATCHER, detection);
        good &= play_point(&series->points[i], &terms, role, seed + (uint64_t)i);
    }

    double played = crossing(series);
    double least = closed_form(&terms, role).detection_least;

    series->break_even = least;
    printf("| %s | %.2f %% | %.2f %% |\n", series->name, 100.0 * played, 100.0 * least);
    bench_record(bench, series->name, "break-even detection", played, least, 0);
    return good && fabs(played - least) < 0.1 * least;
}

int main(int argc, char **argv)
{
    static struct plot_series series[PLOT_SERIES_MAX];
    static const double stakes[] = {4.0, 8.0, 16.0, 32.0, 16.0};
    struct network network;
    struct bench bench;
    int good;

    bench_init(&bench, "network", "closed form", argc, argv);
    good = 1;
    for (uint32_t attestors = 1; attestors <= 2; attestors++) {
        struct network_terms terms = usual;

        terms.attestors = attestors;
        if (network_init(&network, &terms, usual_counts, SEED) != 0) {
            return 2;
        }
        printf("\n%u nodes, %d jobs of %u segments, %u attestor%s each; in costs of a segment\n",
               network.node_count, JOBS, usual.segments, attestors, attestors == 1 ? "" : "s");
        good &= play_network(&bench, &network);
        network_release(&network);
    }
    printf("\n| break-even of a cheat | played | closed form |\n|---|---|---|\n");
    for (int i = 0; i < PLOT_SERIES_MAX; i++) {
        int role = i == PLOT_SERIES_MAX - 1 ? SOLVER_COLLUDING : SOLVER_LAZY;

        good &= play_series(&bench, &series[i], stakes[i], role, SEED + 1000u * (unsigned)(i + 1));
    }
    if (argc > 2 && plot_write(argv[2], series, PLOT_SERIES_MAX) != 0) {
        (void)fprintf(stderr, "network: cannot write %s\n", argv[2]);
        return 2;
    }
    printf("\n");
    if (!good) {
        (void)fprintf(stderr, "network: played and closed form differ, or money was made\n");
    }
    return bench_finish(&bench) != 0 ? 2 : !good;
}
