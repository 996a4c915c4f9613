/* economy.c - see economy.h. */
#include "chain/game/economy.h"

#include <math.h>

/* Shares of a stake (docs/PROTOCOL.md, sections 5 and 6). A cheat may claim against itself. */
#define CLAIMANT_SHARE 0.25
#define VOID_SHARE     0.125
#define VOID_SCORE     10.0

/* The chance that one of `count` tries of chance `rate` hits. */
static double one_of(double count, double rate)
{
    if (count <= 0.0 || rate <= 0.0) {
        return 0.0;
    }
    return rate >= 1.0 ? 1.0 : -expm1(count * log1p(-rate));
}

/* Served, an honest seat sees the lie: all rights must be those of partners. Else the score is a
 * walk that ends at +seats or at -VOID_SCORE: the gambler's ruin. */
double economy_passes(double seats, double partners, bool served)
{
    double odds;

    if (seats <= 0.0 || partners >= 1.0) {
        return 1.0;
    }
    if (partners <= 0.0) {
        return 0.0;
    }
    if (served) {
        return pow(partners, seats);
    }
    odds = (1.0 - partners) / partners;
    if (fabs(odds - 1.0) < 1e-9) {
        return VOID_SCORE / (seats + VOID_SCORE);
    }
    return (1.0 - pow(odds, VOID_SCORE)) / (1.0 - pow(odds, seats + VOID_SCORE));
}

static double loss_of(const struct economy *economy, bool served)
{
    double share = served ? 1.0 - CLAIMANT_SHARE : VOID_SHARE;

    return share * economy->stake + economy->open_segments * economy->reward;
}

void economy_cheat(struct economy_cheat *cheat, const struct economy *economy, double partners,
                   bool served)
{
    double seen = economy->coverage * (1.0 - economy_passes(economy->seats, partners, served));
    double watched = served ? one_of(economy->watchers, economy->extra) : 0.0;

    cheat->detection = seen + watched - seen * watched;
    cheat->gain = economy->saved * economy->cost;
    cheat->loss = loss_of(economy, served);
    cheat->value = cheat->gain - cheat->detection * cheat->loss;
}

double economy_advantage(const struct economy_cheat *cheat, double bad)
{
    double caught = one_of(bad, cheat->detection);

    return cheat->detection > 0.0 ? caught * (cheat->gain / cheat->detection - cheat->loss)
                                  : bad * cheat->gain;
}

double economy_coverage_least(const struct economy *economy, double partners)
{
    double seen = 1.0 - economy_passes(economy->seats, partners, true);
    double loss = loss_of(economy, true);
    double least = seen * loss > 0.0 ? economy->saved * economy->cost / (seen * loss) : INFINITY;

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

double economy_verifying(const struct economy *economy)
{
    double rest = economy->segments > 1.0 ? 1.0 - 1.0 / economy->segments : 0.0;

    return economy->seats * economy->fee * (economy->coverage * rest + 1.0 - rest);
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
