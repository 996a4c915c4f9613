/*
 * network_bench.c - attackers play the game of docs/PROTOCOL.md at the default terms of each class
 * of `job open --terms`: what they gain over honest conduct, what honest parties earn beside them,
 * and what burns.
 *
 *     build/bench/network_bench build/bench/network.json
 *
 * The seed is fixed, so every machine prints the same figures (docs/ECONOMICS.md shows them);
 * below the table it says in which setting each attacker does best, and what farming of fees
 * brings (bench/results has these lines). Fails if anybody gains but trusting verifiers, if the
 * ledger pays what it does not hold, if an honest solver is convicted, or if rivals that deny void
 * what a keeper vouched.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/support/bench.h"
#include "tests/support/network/network_plays.h"

#define SEED           UINT64_C(20261128)
#define SHOWN_JOBS     400
#define SHOWN_SEGMENTS 100
#define GRID_SEGMENTS  2000 /* of each setting of the grid */
#define BEST_SEGMENTS  40000
#define FARMED_JOBS    100
#define KILLS          20
#define PLAYS_MAX      40

static bool play_at(struct network *network, struct network_gain *gain, uint64_t seed,
                    const struct network_play *play, const struct network_setting *setting,
                    uint64_t jobs)
{
    const struct network_terms terms = network_terms_of(play, setting);

    network_init(network, &terms, seed);
    *gain = network_play_jobs(network, jobs);
    return network_is_sound(network) && (play->may_gain || !network_gains(gain));
}

/* Where an attacker does best. */
struct best {
    struct network_setting setting; /* class NULL: nobody attacks */
    struct network_gain gain;
};

/* The most that a play gains, or the least that it loses, in all settings: where it seemed so, it
 * is played again, and more often. */
static bool play_grid(struct best *best, const struct network_play *play)
{
    struct network network;
    struct network_gain gain;
    double highest = -INFINITY;
    bool good = true;

    *best = (struct best){.setting = {.class = NULL}};

    for (uint32_t i = 0; i < NETWORK_SETTINGS; i++) {
        struct network_setting setting;

        if (!network_setting(&setting, play, i)) {
            continue;
        }
        good &=
            play_at(&network, &gain, SEED, play, &setting, network_jobs(&setting, GRID_SEGMENTS));
        if (gain.mean > highest) {
            highest = gain.mean;
            best->setting = setting;
        }
    }
    return best->setting.class == NULL
               ? good
               : good & play_at(&network, &best->gain, SEED + 1, play, &best->setting,
                                network_jobs(&best->setting, BEST_SEGMENTS));
}

static void show_best(const struct network_play *play, const struct best *best)
{
    const struct network_setting *setting = &best->setting;

    if (setting->class != NULL) {
        printf("- %s: %+.3f, error %.3f: %s, %u segments of %u s, %.0f %% of %u entries, %s\n",
               play->name, best->gain.mean, best->gain.error, setting->class->name,
               setting->segments, setting->segment_s, 100.0 * setting->share, setting->panel,
               setting->keeper ? "keeper" : "no keeper");
    }
}

static double rounded(double value)
{
    return fabs(value) < 0.005 ? 0.0 : value;
}

static void print_net(double net)
{
    if (isnan(net)) {
        printf(" - |");
    } else {
        printf(" %+.2f |", rounded(net));
    }
}

static bool show_play(struct bench *bench, struct best *best, const struct network_play *play)
{
    static const double shares[] = {0.33, 0.45};
    struct network network;
    struct network first;
    struct network_gain gain;
    bool good = true;

    printf("| %s |", play->name);
    for (int keeper = 0; keeper < 2; keeper++) {
        for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
            const struct network_setting setting = {.class = &network_classes[1],
                                                    .segments = SHOWN_SEGMENTS,
                                                    .segment_s = 3600,
                                                    .panel = 12,
                                                    .share = shares[i],
                                                    .keeper = keeper > 0};
            bool fair = play_at(&network, &gain, SEED, play, &setting, SHOWN_JOBS);

            good &= fair || shares[i] > play->share_most;
            printf(" %+.2f |", rounded(gain.mean));
            first = keeper == 0 && i == 0 ? network : first;
        }
    }
    good &= play_grid(best, play);
    printf(" %+.2f |", rounded(best->gain.mean));
    print_net(network_solver_net(&first));
    print_net(network_seat_net(&first));
    printf(" %.1f |%s\n", (double)first.client_burned / NETWORK_UNIT / (double)first.jobs,
           good ? "" : " **gains**");
    (void)fflush(stdout);
    bench_record(bench, play->name, "gain of a job at most", best->gain.mean, 0.0, 0);
    return good;
}

/* Entries that deny everything: how many legs they void, and what each costs the client. */
static uint64_t show_rival(uint32_t attackers, uint32_t panel, const struct network_class *class,
                           bool keeper)
{
    static const struct network_play rival = {.name = "", .panel = PANEL_DENYING};
    const struct network_setting setting = {.class = class,
                                            .segments = SHOWN_SEGMENTS,
                                            .segment_s = 3600,
                                            .panel = panel,
                                            .share = (attackers + 0.5) / panel,
                                            .keeper = keeper};
    struct network network;
    struct network_gain gain;
    double each;

    (void)play_at(&network, &gain, SEED, &rival, &setting, SHOWN_JOBS);
    each = network.voids == 0
               ? 0.0
               : (double)network.client_burned / NETWORK_UNIT / (double)network.voids;
    printf("- %u of %u entries, %s, %s: %.2f legs of a job void, %.1f of the client's burns with "
           "each\n",
           attackers, panel, class->name, keeper ? "keeper" : "no keeper",
           (double)network.voids / (double)network.jobs, each);
    return network.voids;
}

/* What a keeper vouched is never void. */
static bool show_rivals(void)
{
    static const uint32_t panels[][2] = {{4, 12},  {5, 12},   {8, 24},   {10, 24},
                                         {14, 24}, {33, 100}, {45, 100}, {60, 100}};
    uint64_t vouched = 0;

    printf("Rivals that deny %d segments, %d jobs each:\n\n", SHOWN_SEGMENTS, SHOWN_JOBS);
    for (size_t i = 0; i < 4 * sizeof(panels) / sizeof(panels[0]); i++) {
        const uint32_t *panel = panels[i / 4];
        uint64_t voids = show_rival(panel[0], panel[1], &network_classes[1 + i / 2 % 2], i % 2 > 0);

        vouched += i % 2 > 0 ? voids : 0;
    }
    printf("\n");
    return vouched == 0;
}

static bool show_kills(bool keeper)
{
    double burned = 0.0;
    double open = 0.0;
    uint32_t whole = 0;

    for (uint64_t i = 0; i < KILLS; i++) {
        struct network_kill kill = network_kill(keeper, SEED + i);

        burned += kill.burned;
        open += kill.open;
        whole += !kill.voided;
    }
    printf(
        "A solver of 100 ten-minute segments that is killed at a random moment, %s a keeper: the "
        "client burns nothing in %u of %d, and %.1f on average.\n\n",
        keeper ? "with" : "without", whole, KILLS, burned / KILLS);
    return keeper ? whole >= 17 : burned / KILLS <= 8.0;
}

static const struct network_play *play_named(const char *name)
{
    size_t i = 0;

    while (strcmp(network_plays[i].name, name) != 0) {
        i++;
    }
    return &network_plays[i];
}

/* What a client pays for a job. */
static double paid_by_client(const struct network *network)
{
    return (double)-network->money[ACCOUNT_CLIENT] / NETWORK_UNIT / (double)network->jobs;
}

static void show_farmer(uint32_t attackers, uint32_t panel, const struct network_class *class,
                        bool keeper)
{
    const struct network_setting setting = {.class = class,
                                            .segments = SHOWN_SEGMENTS,
                                            .segment_s = 3600,
                                            .panel = panel,
                                            .share = (attackers + 0.5) / panel,
                                            .keeper = keeper};
    struct network network;
    struct network_gain gain;
    double paid;

    (void)play_at(&network, &gain, SEED, play_named("everybody is honest"), &setting, FARMED_JOBS);
    paid = paid_by_client(&network);
    (void)play_at(&network, &gain, SEED, play_named("fee farming, reads the seed"), &setting,
                  FARMED_JOBS);
    printf("- %u of %u entries, %s, %s: %+.2f, error %.2f; the client pays %+.1f\n", attackers,
           panel, class->name, keeper ? "keeper" : "no keeper", rounded(gain.mean), gain.error,
           paid_by_client(&network) - paid);
}

/* It gains what the client pays more than among honest verifiers, or less. */
static void show_farmers(void)
{
    static const uint32_t panels[][2] = {{4, 12}, {5, 12}, {8, 24}, {33, 100}, {45, 100}};

    printf("Fees of %d segments farmed by reading the seed:\n\n", SHOWN_SEGMENTS);
    for (size_t i = 0; i < 4 * sizeof(panels) / sizeof(panels[0]); i++) {
        const uint32_t *panel = panels[i / 4];

        show_farmer(panel[0], panel[1], &network_classes[1 + i / 2 % 2], i % 2 > 0);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct best best[PLAYS_MAX];
    bool good = true;
    double busy;

    assert(network_play_count <= PLAYS_MAX);
    bench_init(&bench, "network", "nothing", argc, argv);
    printf("| attack | no keeper, 33 %% | 45 %% | keeper, 33 %% | 45 %% | most anywhere | honest "
           "solver, "
           "a segment | honest seat | client burns |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < network_play_count; i++) {
        good &= show_play(&bench, &best[i], &network_plays[i]);
    }
    printf("\nWhere each does best:\n\n");
    for (size_t i = 0; i < network_play_count; i++) {
        show_best(&network_plays[i], &best[i]);
    }
    printf("\n");
    show_farmers();
    good &= show_rivals();
    good &= show_kills(true);
    good &= show_kills(false);
    busy = network_busy(true, SEED);
    printf(
        "A solver of 1,000 ten-minute segments computes %.1f %% of the time with a keeper, %.1f %% "
        "without.\n\n",
        100.0 * busy, 100.0 * network_busy(false, SEED));
    good &= busy >= 0.95;
    if (!good) {
        (void)fprintf(stderr, "network: somebody gains, or what the rules promise is not so\n");
    }
    return bench_finish(&bench) != 0 ? 2 : !good;
}
