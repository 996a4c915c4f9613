/* network_leg.c - see network_leg.h. */
#include "tests/support/network/network_leg.h"

#include <math.h>

/* The seats of a segment in the order of their places, as far as rounds were drawn; doubled places
 * are skipped. */
struct seating {
    uint32_t count;
    uint32_t walked; /* places */
    uint32_t entries[GAME_PLACES_MAX];
    uint32_t places[GAME_PLACES_MAX];
    bool theirs[GAME_PLACES_MAX]; /* the attacker's */
};

/* One that is played. */
struct play {
    struct network *network;
    struct network_leg *leg;
    struct seating seating;
    struct hash32 seed; /* of the round */
    struct leg_tally tally;
    uint32_t at; /* the next seat */
    uint64_t start_s;
    bool replayed; /* by somebody honest */
    bool worked;   /* the attacker replayed it, once for all of its seats */
};

static bool sits_already(const struct seating *seating, uint32_t entry)
{
    for (uint32_t i = 0; i < seating->count; i++) {
        if (seating->entries[i] == entry) {
            return true;
        }
    }
    return false;
}

static void find_seats(struct play *play, uint32_t count)
{
    const struct network_terms *terms = &play->network->terms;
    struct seating *seating = &play->seating;

    while (seating->count < count && seating->walked < GAME_PLACES_MAX) {
        uint32_t place = seating->walked++;
        uint32_t entry = game_place_entry(&play->seed, place, terms->panel);

        if (!play->network->gone[entry] && !sits_already(seating, entry)) {
            seating->entries[seating->count] = entry;
            seating->places[seating->count] = place;
            seating->theirs[seating->count++] = entry < terms->attackers;
        }
    }
}

/* ---- verdicts ------------------------------------------------------------------------- */

static void say_right(struct play *play, enum network_side side)
{
    play->tally.rights++;
    play->leg->rights[side]++;
    play->leg->late_rights[side] += play->tally.round > 0;
}

static void say_unseen(struct play *play, enum network_side side)
{
    play->tally.unseen++;
    play->leg->unseen[side]++;
}

static void alarm(struct play *play)
{
    uint64_t at_s = play->start_s + play->network->terms.game.seal_period_s + 1;

    play->leg->alarm_s = at_s < play->leg->alarm_s ? at_s : play->leg->alarm_s;
}

static void honest_seat(struct play *play)
{
    struct network *network = play->network;

    network->honest_seats++;
    if (!play->leg->serves_seats) {
        network->work[ACCOUNT_PANEL] += network->terms.gas;
        say_unseen(play, SIDE_HONEST);
        return;
    }
    network->work[ACCOUNT_PANEL] += network->terms.replay;
    if (network_chance(network, network->terms.late)) {
        return;
    }
    network->work[ACCOUNT_PANEL] += network->terms.gas;
    play->replayed = true;
    if (play->leg->is_false) {
        alarm(play);
    } else {
        say_right(play, SIDE_HONEST);
    }
}

/* The attacker replays a segment once, however many seats it has in it. */
static void work_once(struct play *play)
{
    play->network->work[ACCOUNT_ATTACKER] += play->worked ? 0 : play->network->terms.replay;
    play->worked = true;
}

/* A bond that a false alarm loses. The solver replays to answer. */
static void alarm_falsely(struct play *play, uint32_t entry)
{
    struct network *network = play->network;
    int64_t bond = (int64_t)network->terms.game.bond;
    enum network_account solver = play->leg->attacks ? ACCOUNT_ATTACKER : ACCOUNT_SOLVERS;

    network_move(network, ACCOUNT_ATTACKER, solver, bond / 2);
    network_move(network, ACCOUNT_ATTACKER, ACCOUNT_BURNED, bond - bond / 2);
    network->work[solver] += network->terms.replay;
    network->gone[entry] = true;
}

static void attacking_seat(struct play *play, uint32_t entry)
{
    struct network *network = play->network;
    enum network_panel plays = network->terms.panel_plays;

    network->work[ACCOUNT_ATTACKER] += plays == PANEL_ABSENT ? 0 : network->terms.gas;
    switch (plays) {
    case PANEL_HONEST:
    case PANEL_PARTNER: /* what is true it replays: what it saves else is the row of trusting */
    case PANEL_FARMING:
    case PANEL_READING:
        if (!play->leg->is_false) {
            work_once(play);
        }
        say_right(play, SIDE_ATTACKER);
        return;
    case PANEL_TRUSTING:
    case PANEL_GUESSING:
    case PANEL_CHALLENGING:
        say_right(play, SIDE_ATTACKER);
        return;
    case PANEL_DENYING:
        say_unseen(play, SIDE_ATTACKER);
        return;
    case PANEL_ALARMING:
        alarm_falsely(play, entry);
        return;
    case PANEL_ABSENT:
        return;
    }
}

/* ---- farming of fees ---------------------------------------------------------------------- */

static uint32_t theirs_in(const struct seating *seating, uint32_t at, uint32_t count)
{
    uint32_t theirs = 0;

    for (uint32_t i = at; i < at + count; i++) {
        theirs += seating->theirs[i];
    }
    return theirs;
}

static uint32_t seats_left(const struct seating *seating, uint32_t at, uint32_t need)
{
    return need < seating->count - at ? need : seating->count - at;
}

/* Where a farmer is in the draw, or would be. */
struct outlook {
    struct leg_tally tally;
    uint32_t theirs; /* seats of the farmer so far, silent ones too */
    bool worked;     /* the replay is paid */
};

/* What a farmer's seats of a round do: so many say right, so many unseen, the others nothing. */
struct farm {
    uint32_t rights;
    uint32_t unseen;
    double gain; /* with what follows */
};

static double right_gain(const struct network_terms *terms, bool late)
{
    return (double)leg_fee(&terms->game, WEI_MAX, 1, late) - (double)terms->gas;
}

/* What `need` more seats bring by its share of the panel, if all of its seats say right. */
static double share_gain(const struct network_terms *terms, const struct outlook *after,
                         uint32_t need)
{
    double used = after->theirs;
    uint32_t drawn = after->tally.drawn;
    double share = drawn < terms->panel ? (terms->attackers - used) / (terms->panel - drawn) : 0.0;
    double replay = after->worked ? 0.0 : (double)terms->replay;

    return need * share * right_gain(terms, true) - (1.0 - pow(1.0 - share, need)) * replay;
}

static struct farm best_farm(struct network *network, const struct outlook *now, uint32_t count,
                             uint32_t theirs);

/* Of a draw's state. Never zero: one seat at least was drawn. */
static uint64_t farm_key(const struct outlook *after)
{
    const struct leg_tally *tally = &after->tally;
    const uint64_t numbers[] = {tally->wanted, tally->round, tally->rights,
                                tally->unseen, tally->drawn, after->theirs};
    uint64_t key = after->worked + 2 * (uint64_t)tally->vouched;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        key = key << 8 | numbers[i];
    }
    return key;
}

/* A place for the key, or the key's own; NULL: none is near. */
static struct network_farm *find_farm(struct network *network, uint64_t key)
{
    uint64_t hash = key;

    for (uint64_t i = 0; i < NETWORK_FARMS_NEAR; i++) {
        struct network_farm *farm = &network->farms[network_random(&hash) % NETWORK_FARMS];

        if (farm->key == key || farm->key == 0) {
            return farm;
        }
    }
    return NULL;
}

/* What a next round of `count` seats brings to who plays it best. Each round has a seed of its own,
 * so before it is drawn nobody knows more than chances: of each number of its seats, drawn without
 * replacement. */
static double expected_gain(struct network *network, const struct outlook *after, uint32_t count)
{
    const struct network_terms *terms = &network->terms;
    const uint32_t left = terms->panel - after->tally.drawn;
    const uint32_t own = terms->attackers - after->theirs;
    struct network_farm *known = find_farm(network, farm_key(after));
    struct outlook next = *after;
    double gain = 0.0;

    if (known != NULL && known->key != 0) {
        return known->value;
    }
    next.tally.round++;
    for (uint32_t theirs = 0; theirs <= count && theirs <= own; theirs++) {
        double ways = lgamma(own + 1.0) - lgamma(theirs + 1.0) - lgamma(own - theirs + 1.0) +
                      lgamma(left - own + 1.0) - lgamma(count - theirs + 1.0) -
                      lgamma((double)left - own - count + theirs + 1.0) - lgamma(left + 1.0) +
                      lgamma(count + 1.0) + lgamma(left - count + 1.0);

        if (count - theirs <= left - own) {
            gain += exp(ways) * best_farm(network, &next, count, theirs).gain;
        }
    }
    known = find_farm(network, farm_key(after)); /* what it asked for may have taken the place */
    if (known != NULL) {
        *known = (struct network_farm){farm_key(after), gain};
    }
    return gain;
}

/* What follows a round. A farmer does not let the leg be void. Who looks ahead does it for as many
 * rounds as are small, and goes by its share behind them. */
static double gain_after(struct network *network, const struct outlook *after)
{
    const struct network_terms *terms = &network->terms;
    uint32_t need = leg_seats_needed(&after->tally);
    uint32_t left = terms->panel - after->tally.drawn;

    if (need > 0 &&
        (terms->panel_plays == PANEL_FARMING || after->tally.round + 2 >= GAME_FULL_ROUND)) {
        return share_gain(terms, after, need);
    }
    if (need > 0) {
        return expected_gain(network, after, need < left ? need : left);
    }
    return leg_is_final(&after->tally) ? 0.0 : -INFINITY;
}

/* As if all others said right. */
static double farm_gain(struct network *network, const struct outlook *now, const struct farm *farm,
                        uint32_t count, uint32_t theirs)
{
    const struct network_terms *terms = &network->terms;
    struct outlook after = *now;
    double replay = farm->rights == 0 || now->worked ? 0.0 : (double)terms->replay;

    after.theirs += theirs;
    after.worked |= farm->rights > 0;
    after.tally.rights += farm->rights + count - theirs;
    after.tally.unseen += farm->unseen;
    after.tally.drawn += count;
    return farm->rights * right_gain(terms, now->tally.round > 0) - replay -
           farm->unseen * (double)terms->gas + gain_after(network, &after);
}

/* count: seats of the round; theirs: of the farmer. */
static struct farm best_farm(struct network *network, const struct outlook *now, uint32_t count,
                             uint32_t theirs)
{
    struct farm best = {.rights = theirs, .gain = -INFINITY};

    for (uint32_t rights = 0; rights <= theirs; rights++) {
        for (uint32_t unseen = 0; rights + unseen <= theirs; unseen++) {
            struct farm farm = {.rights = rights, .unseen = unseen};

            farm.gain = farm_gain(network, now, &farm, count, theirs);
            best = farm.gain > best.gain ? farm : best;
        }
    }
    return best;
}

/* A keeper that has the bytes vouches. */
static void farm_round(struct play *play, uint32_t count)
{
    struct outlook now = {.tally = play->tally,
                          .theirs = theirs_in(&play->seating, 0, play->at),
                          .worked = play->worked};
    struct farm best;

    now.tally.vouched = play->leg->vouched_s != NETWORK_NEVER;
    best = best_farm(play->network, &now, count, theirs_in(&play->seating, play->at, count));
    for (uint32_t i = 0; i < best.rights; i++) {
        attacking_seat(play, 0);
    }
    for (uint32_t i = 0; i < best.unseen; i++) {
        play->network->work[ACCOUNT_ATTACKER] += play->network->terms.gas;
        say_unseen(play, SIDE_ATTACKER);
    }
}

/* ---- rounds ----------------------------------------------------------------------------- */

/* Rights that were made up are disproved when somebody replays the segment: by a stranger, or first
 * by their owner, who then has half of its own bond. */
static void challenge(struct play *play)
{
    struct network *network = play->network;
    struct network_leg *leg = play->leg;
    int64_t bonds = leg->rights[SIDE_ATTACKER] * (int64_t)network->terms.game.bond;
    bool guessed = network->terms.panel_plays == PANEL_GUESSING ||
                   network->terms.panel_plays == PANEL_CHALLENGING;

    if (!guessed || !(play->replayed || leg->watched)) {
        return;
    }
    network_move(network, ACCOUNT_ATTACKER,
                 network->terms.panel_plays == PANEL_GUESSING ? ACCOUNT_PANEL : ACCOUNT_ATTACKER,
                 bonds / 2);
    network_move(network, ACCOUNT_ATTACKER, ACCOUNT_BURNED, bonds - bonds / 2);
    play->tally.rights -= leg->rights[SIDE_ATTACKER];
    play->tally.unseen += leg->rights[SIDE_ATTACKER];
    leg->rights[SIDE_ATTACKER] = 0;
    for (uint32_t i = 0; i < play->at; i++) {
        network->gone[play->seating.entries[i]] |= play->seating.theirs[i];
    }
    leg->late_rights[SIDE_ATTACKER] = 0;
}

/* Where verdicts differ, or nobody said right, the keeper replays what it has. */
static void keep(struct play *play)
{
    struct network_leg *leg = play->leg;
    bool doubts = play->tally.rights == 0 || play->tally.unseen > 0;

    if (leg->vouched_s == NETWORK_NEVER) {
        return;
    }
    if (leg->is_false && doubts) {
        alarm(play);
    }
    play->tally.vouched = leg->alarm_s == NETWORK_NEVER;
}

static void play_round(struct play *play, uint32_t need)
{
    const struct game_terms *terms = &play->network->terms.game;
    bool farms = play->network->terms.panel_plays == PANEL_FARMING ||
                 play->network->terms.panel_plays == PANEL_READING;
    uint32_t count;

    find_seats(play, play->at + need);
    count = seats_left(&play->seating, play->at, need);
    if (farms) {
        farm_round(play, count);
    }
    for (uint32_t i = play->at; i < play->at + count; i++) {
        if (!play->seating.theirs[i]) {
            honest_seat(play);
        } else if (!farms) {
            attacking_seat(play, play->seating.entries[i]);
        }
    }
    play->at += count;
    play->tally.drawn += count;
    play->tally.to = count < need ? GAME_PLACES_MAX : play->seating.places[play->at - 1] + 1;
    play->leg->end_s = play->start_s + terms->seal_period_s + terms->reveal_period_s;
    challenge(play);
    keep(play);
}

/* What honest conduct would earn in the same seats: one replay serves all of them. */
static void count_honest(struct network *network, const struct seating *seating, uint32_t wanted)
{
    int64_t theirs = theirs_in(seating, 0, seats_left(seating, 0, wanted));

    network->honest += theirs * ((int64_t)network->terms.game.fee - network->terms.gas) -
                       (theirs > 0 ? network->terms.replay : 0);
}

void network_leg_play(struct network *network, struct network_leg *leg)
{
    const struct game_terms *terms = &network->terms.game;
    struct play play = {.network = network,
                        .leg = leg,
                        .seed = leg->seed,
                        .tally = {.wanted = leg->wanted, .panel = network->terms.panel},
                        .start_s = leg->drawn_s};
    uint32_t need = leg->wanted;

    leg->alarm_s = NETWORK_NEVER;
    leg->vouched_s = NETWORK_NEVER;
    leg->refuse_s = NETWORK_NEVER;
    if (network->terms.keeper && leg->serves_keeper) {
        leg->vouched_s = leg->drawn_s + network->terms.fetch_s;
    } else if (network->terms.keeper) {
        leg->refuse_s = leg->drawn_s + terms->seal_period_s + terms->reveal_period_s + 1;
    }
    find_seats(&play, leg->wanted);
    count_honest(network, &play.seating, leg->wanted);
    while (need > 0) {
        play_round(&play, need);
        if (leg->alarm_s != NETWORK_NEVER) {
            break;
        }
        need = leg_seats_needed(&play.tally);
        play.start_s = leg->end_s + 1 + network->terms.draw_s;
        play.seed = network_seed(network);
        play.tally.round += need > 0;
    }
    leg->is_final = leg_is_final(&play.tally);
    leg->end_s += (uint64_t)leg_waits(&play.tally) * terms->claim_period_s + 1;
}
