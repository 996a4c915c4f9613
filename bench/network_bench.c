/*
 * network_bench.c - attackers play the game of docs/PROTOCOL.md at the default terms of each class
 * of `job open --terms`: what they gain over honest conduct, and what honest parties earn beside
 * them.
 *
 *     build/bench/network_bench build/bench/network.json
 *
 * The seed is fixed, so every machine prints the same figures (docs/ECONOMICS.md shows them). Fails
 * if money appears or disappears, if an honest solver is convicted, or if the closed forms of
 * chain/game/economy.h lie outside of what was played.
 */
#include <math.h>
#include <stdio.h>

#include "bench/support/bench.h"
#include "bench/support/network.h"

#define SEED     UINT64_C(20261122)
#define JOBS     4000
#define SEGMENTS 100.0
/* With about 100 comparisons, 4.5 standard errors come by chance in one of 1,500 benchmarks. */
#define ALARM_Z  4.5

/* As client/job_terms.c has them. */
static const struct {
    const char *name;
    double seats;
    double coverage;
} classes[] = {{"lean", 1.0, 0.1}, {"standard", 1.0, 0.2}, {"careful", 2.0, 0.5}};

static const double shares[] = {0.1, 0.3, 0.5};

static const struct play {
    const char *name;
    enum network_solver solver;
    enum network_panel panel;
    double false_share;
    double swarm;
    bool kept;
    bool attacks_client;
    bool shared; /* played at every share; else at the first alone */
} plays[] = {
    {"everybody is honest", SOLVER_HONEST, PANEL_HONEST, 0, 0, true, false, false},
    {"sloppy: 2 % false", SOLVER_FALSE, PANEL_PARTNER, 0.02, 0, true, false, true},
    {"colluding: 20 % false", SOLVER_FALSE, PANEL_PARTNER, 0.2, 0, true, false, true},
    {"lazy: all false", SOLVER_FALSE, PANEL_PARTNER, 1.0, 0, true, false, true},
    {"withholding, data kept", SOLVER_WITHHOLDING, PANEL_PARTNER, 0.2, 0, true, false, true},
    {"withholding, data lost", SOLVER_WITHHOLDING, PANEL_PARTNER, 0.2, 0, false, false, true},
    {"honeypot: serves nobody", SOLVER_SILENT, PANEL_PARTNER, 0, 0, false, false, true},
    {"trusting verifiers", SOLVER_HONEST, PANEL_TRUSTING, 0, 0, true, false, true},
    {"guessing verifiers", SOLVER_HONEST, PANEL_GUESSING, 0, 0, true, false, true},
    {"absent verifiers", SOLVER_HONEST, PANEL_ABSENT, 0, 0, true, false, true},
    {"alarming verifiers", SOLVER_HONEST, PANEL_ALARMING, 0, 0, true, false, true},
    {"swarm of ten claims", SOLVER_HONEST, PANEL_HONEST, 0, 10, true, false, false},
    {"free work: all denied", SOLVER_HONEST, PANEL_DENYING, 0, 0, true, true, true},
};

static struct network_terms terms_of(size_t class, const struct play *play, double share)
{
    const double fee = 1.3;
    const double reward = 1.3;

    return (struct network_terms){
        .economy = {.segments = SEGMENTS,
                    .reward = reward,
                    .cost = 1.0,
                    .fee = fee,
                    .stake = SEGMENTS * reward,
                    .seats = classes[class].seats,
                    .panel = ECONOMY_PANEL_USUAL,
                    .coverage = classes[class].coverage,
                    .saved = 1.0,
                    .watchers = 10.0,
                    .extra = 0.01,
                    .open_segments = 3.0,
                    .overhead = 0.05,
                    .gas = 0.01},
        .bond = 10.0 * fee,
        .replay = 1.05,
        .open_segments = 3,
        .solver = play->solver,
        .panel = play->panel,
        .share = share,
        .false_share = play->false_share,
        .first = 1.0,
        .swarm = play->swarm,
        .kept = play->kept,
        .attacks_client = play->attacks_client,
    };
}

/* Of false segments whose fate was decided by somebody who looked: as economy.h says? The last
 * segment is always covered, so jobs that reach it are a little better than the closed form. */
static bool is_as_expected(const struct network *network)
{
    const struct network_terms *terms = &network->terms;
    struct economy_cheat cheat;
    double played;
    double error;

    if (terms->solver != SOLVER_FALSE || network->falses == 0) {
        return true;
    }
    economy_cheat(&cheat, &terms->economy, terms->share, true);
    played = (double)network->convicted / (double)network->falses;
    error = sqrt(cheat.detection * (1.0 - cheat.detection) / (double)network->falses);
    return fabs(played - cheat.detection) <= ALARM_Z * error + 1.0 / terms->economy.segments;
}

static void print_net(double net)
{
    if (isnan(net)) {
        printf(" - |");
    } else {
        printf(" %+.3f |", net);
    }
}

static bool play(struct bench *bench, size_t class, const struct play *one, double share,
                 uint64_t seed)
{
    struct network_terms terms = terms_of(class, one, share);
    struct network network;
    char name[BENCH_NAME_MAX];
    double advantage;
    bool sound;

    network_init(&network, &terms, seed);
    for (int i = 0; i < JOBS; i++) {
        network_play(&network);
    }
    advantage = network_advantage(&network);
    sound = fabs(network_leak(&network)) < 1e-6 * fabs(network.client.money) &&
            network.unfairly == 0 && is_as_expected(&network);
    printf("| %s | %s | %g %% | %+.2f | %s |", classes[class].name, one->name, 100.0 * share,
           fabs(advantage) < 0.005 ? 0.0 : advantage,
           fabs(advantage) < 0.005 ? "-"
           : advantage > 0.0       ? "**gains**"
                                   : "loses");
    print_net(network_solver_net(&network));
    print_net(network_seat_net(&network));
    printf(" %.1f %% |%s\n",
           network.falses == 0 ? 0.0 : 100.0 * (double)network.passed / (double)network.falses,
           sound ? "" : " UNSOUND");
    (void)snprintf(name, sizeof(name), "%s, %s, %g %%", classes[class].name, one->name,
                   100.0 * share);
    bench_record(bench, name, "gain of a job", advantage, 0.0, 0);
    return sound;
}

int main(int argc, char **argv)
{
    struct bench bench;
    uint64_t seed = SEED;
    bool good = true;

    bench_init(&bench, "network", "nothing", argc, argv);
    printf("%d jobs of %g segments in each row; in costs of computing a segment\n\n"
           "| class | attacker | share of the panel | gains in a job | so it | honest solver, a "
           "segment | honest seat | false and final |\n|---|---|---|---|---|---|---|---|\n",
           JOBS, SEGMENTS);
    for (size_t class = 0; class < sizeof(classes) / sizeof(classes[0]); class ++) {
        for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
            for (size_t s = 0; s < (plays[i].shared ? sizeof(shares) / sizeof(shares[0]) : 1);
                 s++) {
                good &= play(&bench, class, &plays[i], shares[s], seed += 1000);
            }
        }
    }
    printf("\n");
    if (!good) {
        (void)fprintf(stderr, "network: played and closed form differ, or money was made\n");
    }
    return bench_finish(&bench) != 0 ? 2 : !good;
}
