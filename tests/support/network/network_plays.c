/* network_plays.c - see network_plays.h. */
#include "tests/support/network/network_plays.h"

#include <math.h>

#include "chain/game/policy/economy.h"

#define UNIT       NETWORK_UNIT
#define HOUR_S     3600
#define DAY_S      (24 * HOUR_S)
#define PARTS      10
#define GAIN_Z     4.0
#define GAIN_LEAST 0.005

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ALL     0.45
#define FARMERS 0.33

const struct network_play network_plays[] = {
    {.name = "everybody is honest", .share_most = ALL},
    {"sloppy: 2 % false", SOLVER_FALSE, PANEL_PARTNER, .false_share = 0.02, .share_most = ALL},
    {"colluding: 20 % false", SOLVER_FALSE, PANEL_PARTNER, .false_share = 0.2, .share_most = ALL},
    {"lazy: all false", SOLVER_FALSE, PANEL_PARTNER, .false_share = 1.0, .share_most = ALL},
    {"void to save a lie", SOLVER_FALSE, PANEL_DENYING, .false_share = 0.2, .share_most = ALL},
    {"withholds, and lies in 2 %", SOLVER_WITHHOLDING, PANEL_PARTNER, .false_share = 0.02,
     .share_most = ALL},
    {"withholds, and lies in 20 %", SOLVER_WITHHOLDING, PANEL_PARTNER, .false_share = 0.2,
     .share_most = ALL},
    {"withholds, and lies always", SOLVER_WITHHOLDING, PANEL_PARTNER, .false_share = 1.0,
     .share_most = ALL},
    {"serves the keeper, lies in 20 %", SOLVER_SELECTIVE, PANEL_PARTNER, .false_share = 0.2,
     .share_most = ALL},
    {"honeypot: serves nobody", SOLVER_SILENT, PANEL_PARTNER, .share_most = ALL},
    {"withholds the last state", SOLVER_LAST, PANEL_PARTNER, .share_most = ALL},
    {"accepts and sleeps", SOLVER_SLEEPING, PANEL_PARTNER, .share_most = ALL},
    {"leaves before the last", SOLVER_LEAVING, PANEL_PARTNER, .share_most = ALL},
    {"tenth of the blocks, lies in 20 %", SOLVER_FALSE, PANEL_PARTNER, .false_share = 0.2,
     .blocks = 0.1, .share_most = ALL},
    {"trusting verifiers", SOLVER_HONEST, PANEL_TRUSTING, .may_gain = true},
    {"guessing verifiers", SOLVER_HONEST, PANEL_GUESSING, .share_most = ALL},
    {"guess, and challenge themselves", SOLVER_HONEST, PANEL_CHALLENGING, .share_most = ALL},
    {"sleeping entries", SOLVER_HONEST, PANEL_ABSENT, .share_most = ALL},
    {"alarming verifiers", SOLVER_HONEST, PANEL_ALARMING, .share_most = ALL},
    {"swarm of ten claims", SOLVER_HONEST, PANEL_HONEST, .swarm = 10, .share_most = ALL},
    {"fee farming", SOLVER_HONEST, PANEL_FARMING, .share_most = FARMERS},
    {"fee farming, reads the seed", SOLVER_HONEST, PANEL_READING, .share_most = FARMERS},
    {"a rival denies", SOLVER_HONEST, PANEL_DENYING, .share_most = ALL},
    {"free work: its panel denies", SOLVER_HONEST, PANEL_DENYING, CLIENT_DENYING,
     .share_most = ALL},
    {"free work: its panel sleeps", SOLVER_HONEST, PANEL_ABSENT, CLIENT_DENYING, .share_most = ALL},
    {"free work: refuses", SOLVER_HONEST, PANEL_HONEST, CLIENT_REFUSING, .share_most = ALL},
    {"free work: stops, then refuses", SOLVER_HONEST, PANEL_HONEST, CLIENT_STOPPING,
     .share_most = ALL},
    {"slow job: nobody is in time", SOLVER_HONEST, PANEL_ABSENT, CLIENT_DENYING, .late = 1.0,
     .share_most = ALL},
};
const size_t network_play_count = sizeof(network_plays) / sizeof(network_plays[0]);

/* As client/job_terms.c has them. */
const struct network_class network_classes[] = {
    {"lean", 1, 0.1, 0.1}, {"standard", 1, 0.2, 0.3}, {"careful", 2, 0.5, 0.5}};
const size_t network_class_count = sizeof(network_classes) / sizeof(network_classes[0]);

#define BOND_FEES      20
#define COVERAGE_SPARE 1.5

static double coverage_of(const struct network_setting *setting, const struct game_terms *terms)
{
    const struct network_class *class = setting->class;
    const struct economy economy = {.segments = setting->segments,
                                    .reward = (double)terms->reward,
                                    .cost = UNIT,
                                    .fee = (double)terms->fee,
                                    .stake = (double)terms->stake,
                                    .seats = terms->seats,
                                    .panel = ECONOMY_PANEL_USUAL,
                                    .coverage = class->coverage,
                                    .saved = 1.0,
                                    .kept = setting->keeper,
                                    .open_segments = economy_open_segments(
                                        class->coverage, DAY_S, 6 * HOUR_S, ECONOMY_AHEAD_USUAL)};

    return fmin(1.0, fmax(class->coverage,
                          COVERAGE_SPARE * economy_coverage_least(&economy, class->partners)));
}

static struct game_terms game_terms_of(const struct network_setting *setting)
{
    const uint64_t length_s = (uint64_t)setting->segments * (setting->segment_s + DAY_S);
    struct game_terms terms = {
        .steps = setting->segments,
        .segment_steps = 1,
        .reward = 13 * UNIT / 10,
        .fee = 13 * UNIT / 10,
        .seats = setting->class->seats > 1 || setting->keeper ? setting->class->seats : 2,
        .panel_least = setting->panel,
        .segment_period_s = DAY_S,
        .seal_period_s = 2 * HOUR_S,
        .reveal_period_s = HOUR_S,
        .claim_period_s = 3 * HOUR_S,
        .clock_s = 12 * HOUR_S,
        .deadline_s = 1000 * length_s};
    const wei bond = BOND_FEES * terms.fee;
    const wei whole = setting->segments * terms.reward;

    terms.stake = whole > GAME_FEES_OF_BOND * terms.fee ? whole : GAME_FEES_OF_BOND * terms.fee;
    terms.bond = bond < terms.stake ? bond : terms.stake;
    terms.query_fee = game_query_fee_max(&terms); /* who denies gets a part of it */
    terms.coverage_ppm = (uint32_t)(coverage_of(setting, &terms) * GAME_PPM);
    return terms;
}

struct network_terms network_terms_of(const struct network_play *play,
                                      const struct network_setting *setting)
{
    bool theirs = play->client == CLIENT_REFUSING || play->client == CLIENT_STOPPING;

    return (struct network_terms){.game = game_terms_of(setting),
                                  .panel = setting->panel,
                                  .attackers = (uint32_t)(setting->share * setting->panel),
                                  .segment_s = setting->segment_s,
                                  .draw_s = 210, /* sixteen blocks, and the next */
                                  .fetch_s = 90,
                                  .ahead = ECONOMY_AHEAD_USUAL,
                                  .replay = 105 * UNIT / 100,
                                  .gas = UNIT / 100,
                                  .solver = play->solver,
                                  .panel_plays = play->panel,
                                  .client = play->client,
                                  .keeper = setting->keeper && !theirs,
                                  .false_share = play->false_share,
                                  .late = play->late,
                                  .blocks = play->blocks,
                                  .swarm = play->swarm,
                                  .watched = 0.1, /* ten nodes with --extra 0.01 */
                                  .killed_s = NETWORK_NEVER};
}

struct network_gain network_play_jobs(struct network *network, uint64_t jobs)
{
    struct network_gain gain = {0};
    double squares = 0.0;
    double total = 0.0;
    uint64_t each = (jobs + PARTS - 1) / PARTS;

    for (int part = 1; part <= PARTS; part++) {
        double all;
        double mean;

        for (uint64_t i = 0; i < each; i++) {
            network_play(network);
        }
        all = network_advantage(network) * (double)network->jobs;
        mean = (all - total) / (double)each;
        total = all;
        squares += mean * mean;
    }
    gain.mean = network_advantage(network);
    gain.error = sqrt(fmax(0.0, squares / PARTS - gain.mean * gain.mean) / (PARTS - 1));
    return gain;
}

bool network_gains(const struct network_gain *gain)
{
    return gain->mean > GAIN_LEAST && gain->mean > GAIN_Z * gain->error;
}

bool network_setting(struct network_setting *setting, const struct network_play *play,
                     uint32_t number)
{
    static const struct {
        uint32_t panel;
        uint32_t segments;
        uint32_t segment_s;
    } jobs[] = {{12, 5, 600},   {24, 10, 6 * HOUR_S},  {100, 20, 600},  {12, 20, 6 * HOUR_S},
                {12, 100, 600}, {24, 100, 6 * HOUR_S}, {100, 100, 600}, {12, 1000, 600}};
    static const double shares[] = {0.0, 0.1, 0.2, FARMERS, ALL};
    const size_t job = number % COUNT(jobs);
    const size_t share = number / COUNT(jobs) % COUNT(shares);
    const size_t class = number / COUNT(jobs) / COUNT(shares) % network_class_count;

    *setting = (struct network_setting){
        .class = &network_classes[class],
        .segments = jobs[job].segments,
        .segment_s = jobs[job].segment_s,
        .panel = jobs[job].panel,
        .share = shares[share],
        .keeper = number / COUNT(jobs) / COUNT(shares) / network_class_count > 0};
    if (setting->share <= 0.0 && play->solver == SOLVER_HONEST && play->swarm == 0 &&
        (play->client == CLIENT_HONEST || play->client == CLIENT_DENYING)) {
        return false; /* nobody attacks */
    }
    return play->may_gain || setting->share <= play->share_most;
}

uint64_t network_jobs(const struct network_setting *setting, uint64_t segments)
{
    return segments / setting->segments > PARTS ? segments / setting->segments : PARTS;
}

/* ---- one honest solver --------------------------------------------------------------------- */

static struct network_terms honest_terms(uint32_t segments, bool keeper)
{
    static const struct network_play honest = {.name = "everybody is honest"};
    const struct network_setting setting = {.class = &network_classes[1],
                                            .segments = segments,
                                            .segment_s = 600,
                                            .panel = ECONOMY_PANEL_USUAL,
                                            .keeper = keeper};

    return network_terms_of(&honest, &setting);
}

struct network_kill network_kill(bool keeper, uint64_t seed)
{
    struct network_terms terms = honest_terms(100, keeper);
    struct network network;
    uint64_t random = seed;

    terms.killed_s = network_random(&random) % (100 * terms.segment_s);
    network_init(&network, &terms, network_random(&random));
    network_play(&network);
    return (struct network_kill){.burned = (double)network.client_burned / UNIT,
                                 .open = (uint32_t)network.void_open,
                                 .voided = network.voids > 0};
}

double network_busy(bool keeper, uint64_t seed)
{
    struct network_terms terms = honest_terms(1000, keeper);
    struct network network;

    network_init(&network, &terms, seed);
    network_play(&network);
    return (double)network.worked_s / (double)(network.worked_s + network.stalled_s);
}
