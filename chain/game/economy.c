/* economy.c - see economy.h. */
#include "chain/game/economy.h"

#include <math.h>
#include <string.h>

#include "chain/game/game.h"

/* Shares of a stake (docs/PROTOCOL.md, sections 5 and 6). A cheat may claim against itself. */
#define CLAIMANT_SHARE 0.25
#define VOID_SHARE     0.125

/* The chance that one of `count` tries of chance `rate` hits. */
static double one_of(double count, double rate)
{
    if (count <= 0.0 || rate <= 0.0) {
        return 0.0;
    }
    return rate >= 1.0 ? 1.0 : -expm1(count * log1p(-rate));
}

/* Not served, an honest seat can only deny: the score is a walk, as long as there are entries. What
 * it has not reached then counts by its sign. */
static struct economy_fate fate_of_walk(uint32_t seats, uint32_t places, double partners)
{
    struct economy_fate fate = {0};
    double at[GAME_SEATS_MAX - GAME_SCORE_VOID + 1] = {0};
    const uint32_t zero = -GAME_SCORE_VOID;
    const uint32_t end = zero + seats;

    at[zero] = 1.0;
    for (uint32_t place = 0; place < places; place++) {
        double next[sizeof(at) / sizeof(at[0])] = {0};

        for (uint32_t i = 1; i < end; i++) {
            next[i + 1] += partners * at[i];
            next[i - 1] += (1.0 - partners) * at[i];
        }
        fate.final += next[end];
        fate.refused += next[0];
        memcpy(at, next, sizeof(at));
    }
    for (uint32_t i = zero + 1; i < end; i++) {
        fate.final += at[i];
    }
    return fate;
}

struct economy_fate economy_fate(const struct economy *economy, double partners, bool served)
{
    if (economy->seats <= 0.0) {
        return (struct economy_fate){.final = 1.0};
    }
    if (served) { /* an honest seat sees the lie: all rights must be those of partners */
        return (struct economy_fate){.final = pow(partners, economy->seats)};
    }
    return fate_of_walk((uint32_t)economy->seats, (uint32_t)fmin(economy->panel, GAME_PLACES_MAX),
                        partners);
}

/* What a solver loses with its job. refused: the chance that the panel then says -10. */
static double loss_of(const struct economy *economy, bool served, double refused)
{
    double share = served ? 1.0 - CLAIMANT_SHARE : VOID_SHARE * refused;

    return share * economy->stake + economy->open_segments * economy->reward;
}

void economy_cheat(struct economy_cheat *cheat, const struct economy *economy, double partners,
                   bool served)
{
    const struct economy_fate fate = economy_fate(economy, partners, served);
    double seen = economy->coverage * (1.0 - fate.final);
    double watched = served ? one_of(economy->watchers, economy->extra) : 0.0;

    cheat->detection = seen + watched - seen * watched;
    cheat->gain = economy->saved * economy->cost;
    cheat->loss =
        loss_of(economy, served, fate.final < 1.0 ? fate.refused / (1.0 - fate.final) : 0.0);
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
    double seen = 1.0 - economy_fate(economy, partners, true).final;
    double loss = loss_of(economy, true, 0.0);
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
