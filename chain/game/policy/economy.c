/* economy.c - see economy.h. */
#include "chain/game/policy/economy.h"

#include <math.h>
#include <string.h>

#include "chain/game/leg.h"

/* Of a stake: a cheat may claim against itself. */
#define CLAIMANT_SHARE (1.0 / GAME_POT_SHARE)

double economy_one_of(double count, double rate)
{
    if (count <= 0.0 || rate <= 0.0) {
        return 0.0;
    }
    return rate >= 1.0 ? 1.0 : -expm1(count * log1p(-rate));
}

/* ---- the panel -------------------------------------------------------------------------- */

#define DRAWN_MAX GAME_PLACES_MAX

/* A covered segment that honest seats cannot fetch: they say unseen, partners say right. at: the
 * chance to be at the begin of a round with so many rights and unseens. */
struct walk {
    uint32_t panel;
    uint32_t partners;
    uint32_t wanted;
    uint32_t rounds;            /* played */
    double ends[DRAWN_MAX + 1]; /* the chance that so many seats are all that the places have */
    double at[DRAWN_MAX + 1][DRAWN_MAX + 1];
    double next[DRAWN_MAX + 1][DRAWN_MAX + 1];
    double final;
};

static struct leg_tally tally_of(const struct walk *walk, uint32_t rights, uint32_t unseen)
{
    return (struct leg_tally){.wanted = walk->wanted,
                              .rights = rights,
                              .unseen = unseen,
                              .round = walk->rounds > 0 ? walk->rounds - 1 : 0,
                              .drawn = rights + unseen,
                              .panel = UINT32_MAX};
}

static void end_walk(struct walk *walk, uint32_t rights, uint32_t unseen, double chance)
{
    struct leg_tally tally = tally_of(walk, rights, unseen);

    walk->final += leg_is_final(&tally) ? chance : 0.0;
}

/* Doubled places are skipped, so the 64 places hold as many seats as 64 throws hit entries. */
static void find_ends(struct walk *walk)
{
    double held[DRAWN_MAX + 2] = {1.0};
    double behind = 1.0;

    for (uint32_t place = 0; place < GAME_PLACES_MAX; place++) {
        for (uint32_t seats = place + 1; seats > 0; seats--) {
            held[seats] = held[seats] * seats / walk->panel +
                          held[seats - 1] * (1.0 - (double)(seats - 1) / walk->panel);
        }
        held[0] = 0.0;
    }
    for (uint32_t seats = 0; seats <= DRAWN_MAX; seats++) {
        walk->ends[seats] = behind > held[seats] ? held[seats] / behind : 1.0;
        behind -= held[seats];
    }
}

/* One round of `need` seats, drawn without replacement. */
static void play_round(struct walk *walk, uint32_t rights, uint32_t unseen, uint32_t need)
{
    double told[DRAWN_MAX + 2] = {walk->at[rights][unseen]}; /* by partners in this round */

    for (uint32_t seat = 0; seat < need; seat++) {
        uint32_t drawn = rights + unseen + seat;

        for (uint32_t more = seat + 1; more-- > 0;) {
            double chance = told[more];
            double left = chance * (1.0 - walk->ends[drawn]);
            double partner = drawn < walk->panel
                                 ? fmax(0.0, (double)walk->partners - rights - more) /
                                       (double)(walk->panel - drawn)
                                 : 0.0;

            end_walk(walk, rights + more, unseen + seat - more, chance - left);
            told[more + 1] += left * partner;
            told[more] = left * (1.0 - partner);
        }
    }
    for (uint32_t more = 0; more <= need; more++) {
        if (told[more] > 0.0) {
            walk->next[rights + more][unseen + need - more] += told[more];
        }
    }
}

/* Returns false when no draw goes on. */
static bool play_rounds(struct walk *walk)
{
    bool goes_on = false;

    for (uint32_t rights = 0; rights <= DRAWN_MAX; rights++) {
        for (uint32_t unseen = 0; rights + unseen <= DRAWN_MAX; unseen++) {
            struct leg_tally tally = tally_of(walk, rights, unseen);
            uint32_t room = DRAWN_MAX - rights - unseen;
            uint32_t need = walk->rounds == 0 ? walk->wanted : leg_seats_needed(&tally);

            if (walk->at[rights][unseen] <= 0.0) {
                continue;
            }
            if (need == 0 || room == 0) {
                end_walk(walk, rights, unseen, walk->at[rights][unseen]);
                continue;
            }
            play_round(walk, rights, unseen, need < room ? need : room);
            goes_on = true;
        }
    }
    return goes_on;
}

static double final_of_walk(uint32_t wanted, uint32_t panel, uint32_t partners)
{
    struct walk walk = {.panel = panel, .partners = partners, .wanted = wanted};

    find_ends(&walk);
    walk.at[0][0] = 1.0;
    while (play_rounds(&walk)) {
        memcpy(walk.at, walk.next, sizeof(walk.at));
        memset(walk.next, 0, sizeof(walk.next));
        walk.rounds++;
    }
    return walk.final;
}

/* An honest seat sees the lie: all that are drawn must be partners. */
static double final_of_partners(uint32_t wanted, uint32_t panel, uint32_t partners)
{
    double all = 1.0;

    for (uint32_t seat = 0; seat < wanted && seat < panel; seat++) {
        all *= partners > seat ? (double)(partners - seat) / (double)(panel - seat) : 0.0;
    }
    return all;
}

double economy_passes(const struct economy *economy, double partners, bool served)
{
    uint32_t panel = (uint32_t)fmax(1.0, fmin(economy->panel, GAME_PANEL_MAX));
    uint32_t seats = (uint32_t)fmin(economy->seats, GAME_SEATS_MAX);
    uint32_t friends = (uint32_t)lround(partners * panel);

    if (economy->seats <= 0.0) {
        return 1.0;
    }
    if (!served && economy->kept) {
        return 0.0;
    }
    return served ? final_of_partners(seats, panel, friends) : final_of_walk(seats, panel, friends);
}

/* ---- a cheat ---------------------------------------------------------------------------- */

/* What a solver loses with its job. Nobody convicts whom nobody sees: then the leg is void. */
static double loss_of(const struct economy *economy, bool served)
{
    double taken = served ? (1.0 - CLAIMANT_SHARE) * economy->stake
                          : fmin(economy->stake, (economy->open_segments + 1.0) * economy->reward);

    return taken + economy->open_segments * economy->reward;
}

void economy_cheat(struct economy_cheat *cheat, const struct economy *economy, double partners,
                   bool served)
{
    double seen = economy->coverage * (1.0 - economy_passes(economy, partners, served));
    double watched = served ? economy_one_of(economy->watchers, economy->extra) : 0.0;

    cheat->detection = seen + watched - seen * watched;
    cheat->gain = economy->saved * economy->cost;
    cheat->loss = loss_of(economy, served);
    cheat->value = cheat->gain - cheat->detection * cheat->loss;
}

double economy_advantage(const struct economy_cheat *cheat, double bad)
{
    double caught = economy_one_of(bad, cheat->detection);

    return cheat->detection > 0.0 ? caught * (cheat->gain / cheat->detection - cheat->loss)
                                  : bad * cheat->gain;
}

/* Where it is served and nobody watches, or not served. */
static double coverage_least(const struct economy *economy, double partners, bool served)
{
    double seen = 1.0 - economy_passes(economy, partners, served);
    double loss = loss_of(economy, served);

    return seen * loss > 0.0 ? economy->saved * economy->cost / (seen * loss) : INFINITY;
}

double economy_coverage_least(const struct economy *economy, double partners)
{
    double least =
        fmax(coverage_least(economy, partners, true), coverage_least(economy, partners, false));

    return least <= 1.0 ? least : INFINITY;
}

double economy_stake_least(const struct economy *economy, double partners)
{
    struct economy_cheat cheat;
    double rewards = economy->open_segments * economy->reward;

    economy_cheat(&cheat, economy, partners, true);
    return cheat.detection > 0.0
               ? fmax(0.0, (cheat.gain / cheat.detection - rewards) / (1.0 - CLAIMANT_SHARE))
               : INFINITY;
}

double economy_leg(double coverage)
{
    return coverage > 0.0 ? -expm1(GAME_LEG_MAX * log1p(-fmin(coverage, 1.0))) / coverage
                          : GAME_LEG_MAX;
}

double economy_open_segments(double coverage, double segment_s, double wait_s, double ahead)
{
    double leg = economy_leg(coverage);
    double waiting = segment_s > 0.0 ? wait_s / segment_s : INFINITY;

    /* Half of a leg is not covered yet; a solver that waits has as many as it may have. */
    return fmin(waiting + (leg + 1.0) / 2.0, fmax(ahead, GAME_LEG_MAX));
}

double economy_verifying(const struct economy *economy)
{
    double rest = economy->segments > 1.0 ? 1.0 - 1.0 / economy->segments : 0.0;
    double last = fmax(economy->seats, GAME_LAST_RIGHTS) * (1.0 - rest);

    return economy->seats > 0.0
               ? economy->fee * (economy->seats * rest / economy_leg(economy->coverage) + last)
               : 0.0;
}

double economy_seat_profit(const struct economy *economy)
{
    return economy->fee - economy->cost * (1.0 + economy->overhead) - economy->gas;
}

double economy_watch_least(const struct economy *economy)
{
    return economy->stake > 0.0
               ? economy->cost * (1.0 + economy->overhead) / (CLAIMANT_SHARE * economy->stake)
               : INFINITY;
}
