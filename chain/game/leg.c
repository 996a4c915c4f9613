/* leg.c - see leg.h. */
#include "chain/game/leg.h"

static uint32_t less_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static wei less_wei(wei a, wei b)
{
    return a < b ? a : b;
}

bool leg_is_covered(const struct game_terms *terms, const struct game_segment *segment,
                    uint32_t segments, uint32_t leg_start, const struct hash32 *seed, bool late)
{
    return terms->seats == 0 || late || segment->diverged || segment->index + 1 == segments ||
           segment->index - leg_start >= GAME_LEG_MAX - 1 ||
           segment->time_s + terms->segment_period_s > terms->deadline_s ||
           game_seed_covers(seed, terms->coverage_ppm);
}

static uint32_t unseen_that_counts(const struct leg_tally *tally)
{
    return tally->vouched ? 0 : tally->unseen;
}

/* Rights that end the draw. One unseen among several that are wanted counts as silence. */
static uint32_t rights_enough(const struct leg_tally *tally)
{
    uint32_t unseen = unseen_that_counts(tally);

    return tally->wanted + unseen - (unseen > 0 && tally->wanted > 1 ? 1 : 0);
}

uint32_t leg_seats_needed(const struct leg_tally *tally)
{
    uint32_t enough = rights_enough(tally);
    uint32_t missing = enough > tally->rights ? enough - tally->rights : 0;
    uint32_t least =
        tally->round + 2 < GAME_FULL_ROUND ? 1 : less_of(tally->drawn, GAME_FULL_SEATS);

    if (missing == 0 || tally->to >= GAME_PLACES_MAX || tally->drawn >= tally->panel) {
        return 0;
    }
    return missing > least ? missing : least;
}

uint32_t leg_waits(const struct leg_tally *tally)
{
    if (tally->vouched || tally->wanted == 0) {
        return 1;
    }
    return tally->rights == 0 && tally->unseen == 0 ? GAME_WAITS_MAX
                                                    : less_of(GAME_WAITS_MAX, 1 + tally->unseen);
}

bool leg_is_final(const struct leg_tally *tally)
{
    uint32_t unseen = unseen_that_counts(tally);

    return tally->rights >= rights_enough(tally) ||
           (tally->rights > 0 && tally->rights >= 2 * unseen) ||
           (tally->rights == 0 && unseen == 0);
}

wei leg_fee(const struct game_terms *terms, wei pool, uint32_t rights, bool late)
{
    wei fee = less_wei(terms->fee, pool / rights);

    return late ? fee - fee / GAME_LATER_SHARE : fee;
}

struct leg_void leg_void(const struct game_terms *terms, wei pool, uint32_t open, uint32_t left,
                         uint32_t unseen, bool last)
{
    struct leg_void burned = {.priced = open + 1};
    wei fees = burned.priced * (wei)terms->seats * terms->fee * terms->coverage_ppm / GAME_PPM;
    wei match;
    wei spare;

    burned.stake = game_void_price(terms, open);
    burned.escrow = less_wei(burned.stake, left * terms->reward);
    match = less_wei(pool, burned.stake - burned.escrow);
    burned.pool = match + less_wei(pool - match, fees);
    /* What the client burns beyond the price of what was trained. */
    spare = burned.escrow + burned.pool - less_wei(burned.escrow, open * (wei)terms->reward);
    if (unseen > 0 && !last) {
        burned.each = less_wei(terms->query_fee / GAME_UNSEEN_SHARE, spare / unseen);
    }
    return burned;
}
