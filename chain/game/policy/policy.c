/* policy.c - see policy.h. */
#include "chain/game/policy/policy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chain/game/leg.h"
#include "chain/game/terms.h"

#define MOST        (~(wei)0)
#define MS_PER_HOUR 3600000u
#define DAY_S       86400u

/* Sixteen blocks of twelve seconds: of the chains that are known none has its seeds later. */
#define SEED_S (16 * 12)

/* "4294967.295" fits. */
#define MULTIPLE_SIZE 24

struct policy policy_default(void)
{
    return (struct policy){
        .lock_all = {.set = true, .is_share = true, .share_ppm = 20000},
        .lock_job = {.set = true, .is_share = true, .share_ppm = 10000},
        .lock_party = {.set = true, .is_share = true, .share_ppm = 10000},
        .fee_least = WEI_PER_GWEI,
        .bond_fees_max = 20,
        .seal_least_s = 600,
        .reveal_least_s = 600,
        .segment_most_s = 2 * DAY_S,
        .lock_time_max_s = 30 * DAY_S,
        .clock_least_s = 3600,
        .clock_factor = 3 * POLICY_ONE,
        .cost_cover = 1300,
        .price = 300000 * WEI_PER_GWEI,
        .stake_rewards_max = 4 * POLICY_ONE,
        .reward_least = WEI_PER_GWEI,
        .time_spare = 1250,
    };
}

struct policy policy_quick(void)
{
    struct policy policy = policy_default();

    policy.lock_all.share_ppm = 200000;
    policy.lock_job.share_ppm = 100000;
    policy.lock_party.share_ppm = 200000;
    policy.seal_least_s = 10;
    policy.reveal_least_s = 10;
    policy.clock_least_s = 30;
    policy.clock_factor = POLICY_ONE;
    policy.time_spare = POLICY_ONE;
    return policy;
}

/* ---- terms and refusals -------------------------------------------------------- */

static const struct {
    const char *word;
    const char *name;
    const char *option;
} term_names[POLICY_TERMS] = {
    [POLICY_AGREED] = {"", "nothing", ""},
    [POLICY_FEE] = {"fee", "the fee of a seat", "--fee"},
    [POLICY_BOND] = {"bond", "the bond", "--bond"},
    [POLICY_SEAL_PERIOD] = {"seal", "the seal period", "--seal-period"},
    [POLICY_REVEAL_PERIOD] = {"reveal", "the reveal period", "--reveal-period"},
    [POLICY_CLAIM_PERIOD] = {"claim", "the claim period", "--claim-period"},
    [POLICY_CLOCK] = {"clock", "the clock of a dispute", "--clock"},
    [POLICY_REWARD] = {"reward", "the reward of a segment", "--reward"},
    [POLICY_STAKE] = {"stake", "the stake", "--stake"},
    [POLICY_SEGMENT_PERIOD] = {"segment", "the segment period", "--segment-period"},
    [POLICY_DEADLINE] = {"deadline", "the time until the deadline", "--deadline"},
    [POLICY_PACE] = {"pace", "the pace of this machine", ""},
};

const char *policy_term_word(enum policy_term term)
{
    return term_names[term].word;
}

const char *policy_term_option(enum policy_term term)
{
    return term_names[term].option;
}

/* The sentence begins with the name of the term. Always false. */
static bool refuse(struct policy_refusal *refusal, enum policy_term term, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(struct policy_refusal *refusal, enum policy_term term, const char *format, ...)
{
    int size = snprintf(refusal->text, POLICY_TEXT_MAX, "%s ", term_names[term].name);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(refusal->text + size, POLICY_TEXT_MAX - (size_t)size, format, arguments);
    va_end(arguments);
    refusal->term = term;
    return false;
}

static void agree(struct policy_refusal *refusal)
{
    refusal->term = POLICY_AGREED;
    refusal->for_now = false;
    refusal->text[0] = '\0';
}

/* ---- arithmetic that saturates ------------------------------------------------- */

static wei sum(wei left, wei right)
{
    return left > MOST - right ? MOST : left + right;
}

static wei times(wei amount, uint64_t factor)
{
    return factor != 0 && amount > MOST / factor ? MOST : amount * factor;
}

/* amount * part / whole, rounded up. */
static wei portion(wei amount, uint64_t part, uint64_t whole)
{
    wei rest = times(amount % whole, part);

    return sum(times(amount / whole, part), rest / whole + (rest % whole != 0));
}

static wei cap_of(const struct policy_cap *cap, wei means)
{
    if (!cap->set) {
        return MOST;
    }
    return cap->is_share ? portion(means, cap->share_ppm, POLICY_WHOLE_PPM) : cap->amount;
}

static void print_multiple(char text[MULTIPLE_SIZE], uint32_t thousandths)
{
    (void)snprintf(text, MULTIPLE_SIZE, "%.6g", (double)thousandths / POLICY_ONE);
}

static void print_ms(char text[TERMS_PERIOD_SIZE], uint64_t ms)
{
    if (ms < 10000) {
        (void)snprintf(text, TERMS_PERIOD_SIZE, "%.3gs", (double)ms / 1000.0);
    } else {
        terms_period(text, ms / 1000);
    }
}

/* ---- clocks ---------------------------------------------------------------------- */

/* Is a period as long as the floor, as short as the ceiling, and as long as the work times a
 * factor? */
static bool is_long(struct policy_refusal *refusal, enum policy_term term, uint64_t period_s,
                    uint32_t least_s, const char *least_option)
{
    char is_text[TERMS_PERIOD_SIZE];
    char least[TERMS_PERIOD_SIZE];

    if (period_s >= least_s) {
        return true;
    }
    terms_period(is_text, period_s);
    terms_period(least, least_s);
    return refuse(refusal, term, "is %s, and the policy takes %s at least (%s)", is_text, least,
                  least_option);
}

static bool is_short(struct policy_refusal *refusal, enum policy_term term, uint64_t period_s,
                     uint32_t most_s, const char *most_option)
{
    char is_text[TERMS_PERIOD_SIZE];
    char most[TERMS_PERIOD_SIZE];

    if (most_s == 0 || period_s <= most_s) {
        return true;
    }
    terms_period(is_text, period_s);
    terms_period(most, most_s);
    return refuse(refusal, term, "is %s, and the policy takes %s at most (%s)", is_text, most,
                  most_option);
}

static bool covers(struct policy_refusal *refusal, enum policy_term term, uint64_t period_s,
                   uint64_t work_ms, uint32_t factor, const char *factor_option)
{
    wei wanted_ms = portion(work_ms, factor, POLICY_ONE);
    char is_text[TERMS_PERIOD_SIZE];
    char work[TERMS_PERIOD_SIZE];
    char multiple[MULTIPLE_SIZE];

    if (times(period_s, 1000) >= wanted_ms) {
        return true;
    }
    terms_period(is_text, period_s);
    print_ms(work, work_ms);
    print_multiple(multiple, factor);
    return refuse(refusal, term,
                  "is %s, and the work in it takes about %s on this machine: this machine's "
                  "policy takes %s times that at least (%s)",
                  is_text, work, multiple, factor_option);
}

static bool can_respond(struct policy_refusal *refusal, const struct policy *policy,
                        const struct game_terms *terms, const struct policy_pace *pace)
{
    return is_long(refusal, POLICY_CLOCK, terms->clock_s, policy->clock_least_s, "--clock-min") &&
           covers(refusal, POLICY_CLOCK, terms->clock_s, pace->segment_ms, policy->clock_factor,
                  "--clock-factor");
}

/* What holds a bond or a stake, one after the other. */
struct hold {
    enum policy_term term;
    uint64_t period_s;
    uint32_t times;
};
#define HOLDS 5

/* The most rounds of a segment: each lacks one right, and has as few seats as the rules allow. */
static uint32_t rounds_max(uint32_t seats)
{
    struct leg_tally tally = {.wanted = seats,
                              .rights = seats == 0 ? 0 : seats - 1,
                              .drawn = seats,
                              .to = seats,
                              .panel = GAME_PANEL_MAX};
    uint32_t needed = leg_seats_needed(&tally);

    while (needed > 0) {
        tally.round++;
        tally.drawn += needed;
        tally.to += needed;
        needed = leg_seats_needed(&tally);
    }
    return tally.round + 1;
}

static void list_holds(struct hold holds[HOLDS], const struct game_terms *terms, uint64_t now_s)
{
    uint64_t left_s = terms->deadline_s > now_s ? terms->deadline_s - now_s : 0;
    uint32_t waits = terms->seats == 0 ? 1 : GAME_WAITS_MAX;
    const struct hold all[HOLDS] = {
        {POLICY_DEADLINE, left_s, 1},
        {POLICY_SEAL_PERIOD, terms->seal_period_s, rounds_max(terms->seats)},
        {POLICY_REVEAL_PERIOD, terms->reveal_period_s, rounds_max(terms->seats)},
        {POLICY_CLAIM_PERIOD, terms->claim_period_s, waits},
        /* All claim the same: each leads with whole clocks, and the solver's last is whole too. */
        {POLICY_CLOCK, terms->clock_s, GAME_OUTSIDERS_MAX + 1},
    };

    memcpy(holds, all, sizeof(all));
}

uint64_t policy_lock_time(const struct game_terms *terms, uint64_t now_s)
{
    struct hold holds[HOLDS];
    wei time_s = 0;

    list_holds(holds, terms, now_s);
    for (size_t i = 0; i < HOLDS; i++) {
        time_s += (wei)holds[i].period_s * holds[i].times;
    }
    time_s += terms->seats == 0 ? 0 : (wei)SEED_S * rounds_max(terms->seats);
    return time_s > UINT64_MAX ? UINT64_MAX : (uint64_t)time_s;
}

/* Names the term that holds the longest. */
static bool is_soon_over(struct policy_refusal *refusal, const struct policy *policy,
                         const struct game_terms *terms, uint64_t now_s)
{
    uint64_t time_s = policy_lock_time(terms, now_s);
    struct hold holds[HOLDS];
    size_t longest = 0;
    char is_text[TERMS_PERIOD_SIZE];
    char time[TERMS_PERIOD_SIZE];
    char most[TERMS_PERIOD_SIZE];

    if (policy->lock_time_max_s == 0 || time_s <= policy->lock_time_max_s) {
        return true;
    }
    list_holds(holds, terms, now_s);
    for (size_t i = 1; i < HOLDS; i++) {
        if ((wei)holds[i].period_s * holds[i].times >
            (wei)holds[longest].period_s * holds[longest].times) {
            longest = i;
        }
    }
    terms_period(is_text, holds[longest].period_s);
    terms_period(time, time_s);
    terms_period(most, policy->lock_time_max_s);
    return refuse(refusal, holds[longest].term,
                  "is %s, so that the terms can hold bond and stake for %s in all, and the policy "
                  "locks them for %s at most (--lock-time-max)",
                  is_text, time, most);
}

/* ---- pay --------------------------------------------------------------------------- */

static bool pays(struct policy_refusal *refusal, const struct policy *policy, enum policy_term term,
                 wei pay, wei least, const char *least_option)
{
    char is_text[WEI_TEXT_SIZE];
    char wanted[WEI_TEXT_SIZE];

    if (pay >= least) {
        return true;
    }
    currency_print(is_text, &policy->currency, pay);
    currency_print(wanted, &policy->currency, least);
    return refuse(refusal, term, "is %s, and the policy takes %s at least (%s)", is_text, wanted,
                  least_option);
}

/* Of a machine's time and of gas, in the registry's currency. */
static wei cost_of(const struct policy *policy, const struct policy_pace *pace, uint32_t gas)
{
    wei coins = times(pace->gas_price, gas);

    return sum(portion(policy->price, pace->segment_ms, MS_PER_HOUR),
               policy->currency.is_token ? portion(coins, policy->token_price, WEI_PER_ETHER)
                                         : coins);
}

/* The pay against the cost of computing a segment, and of the moves about it. */
static bool pays_cost(struct policy_refusal *refusal, enum policy_term term, wei pay,
                      const struct policy *policy, const struct policy_pace *pace, uint32_t gas)
{
    wei cost = cost_of(policy, pace, gas);
    char is_text[WEI_TEXT_SIZE];
    char costs[WEI_TEXT_SIZE];
    char multiple[MULTIPLE_SIZE];

    if (pay >= portion(cost, policy->cost_cover, POLICY_ONE)) {
        return true;
    }
    currency_print(is_text, &policy->currency, pay);
    currency_print(costs, &policy->currency, cost);
    print_multiple(multiple, policy->cost_cover);
    return refuse(refusal, term,
                  "is %s, and computing a segment costs %s here at --price, gas included: the "
                  "policy takes %s times that at least (--cost-cover)",
                  is_text, costs, multiple);
}

/* Does a node know what a seat costs, and is it paid? */
static bool pays_seat(struct policy_refusal *refusal, const struct policy *policy,
                      const struct game_terms *terms, const struct policy_pace *pace)
{
    if (pace->segment_ms == 0) {
        return refuse(refusal, POLICY_PACE,
                      "is not known: the policy enlists only where the job's steps were measured");
    }
    if (policy->currency.is_token && pace->gas_price > 0 && policy->token_price == 0) {
        return refuse(refusal, POLICY_FEE,
                      "is paid in a token, and nobody has said what a coin of the ledger's gas "
                      "costs in it (--token-price)");
    }
    return pays_cost(refusal, POLICY_FEE, terms->fee, policy, pace, POLICY_SEAT_GAS);
}

/* ---- locks ------------------------------------------------------------------------- */

static bool has_room(struct policy_refusal *refusal, const struct policy *policy,
                     enum policy_term term, wei bond, const struct policy_cap *cap, wei means,
                     wei locked, const char *where, const char *option)
{
    wei most = cap_of(cap, means);
    char bond_text[WEI_TEXT_SIZE];
    char locked_text[WEI_TEXT_SIZE];
    char most_text[WEI_TEXT_SIZE];

    if (sum(locked, bond) <= most) {
        return true;
    }
    currency_print(bond_text, &policy->currency, bond);
    currency_print(locked_text, &policy->currency, locked);
    currency_print(most_text, &policy->currency, most);
    refusal->for_now = bond <= most;
    return refuse(refusal, term,
                  "is %s, %s are locked %s or were lost lately, and the policy locks "
                  "%s there at most (%s)",
                  bond_text, locked_text, where, most_text, option);
}

/* locked NULL: nobody asks. */
static bool can_lock(struct policy_refusal *refusal, const struct policy *policy,
                     enum policy_term term, wei bond, const struct policy_locked *locked)
{
    if (locked == NULL) {
        return true;
    }
    return has_room(refusal, policy, term, bond, &policy->lock_all, locked->means, locked->all,
                    "in all", "--lock-max") &&
           has_room(refusal, policy, term, bond, &policy->lock_job, locked->means, locked->job,
                    "in this job", "--lock-job-max") &&
           has_room(refusal, policy, term, bond, &policy->lock_party, locked->means, locked->client,
                    "in jobs of this client", "--lock-party-max") &&
           has_room(refusal, policy, term, bond, &policy->lock_party, locked->means, locked->solver,
                    "in jobs of this solver", "--lock-party-max");
}

/* ---- the roles --------------------------------------------------------------------- */

static bool is_small_bond(struct policy_refusal *refusal, const struct policy *policy,
                          const struct game_terms *terms)
{
    char bond[WEI_TEXT_SIZE];
    char fee[WEI_TEXT_SIZE];

    if (policy->bond_fees_max == 0 || terms->bond <= times(terms->fee, policy->bond_fees_max)) {
        return true;
    }
    currency_print(bond, &policy->currency, terms->bond);
    currency_print(fee, &policy->currency, terms->fee);
    return refuse(refusal, POLICY_BOND,
                  "is %s for a fee of %s, and the policy locks %" PRIu32
                  " fees at most (--bond-fees-max)",
                  bond, fee, policy->bond_fees_max);
}

/* What holds on every machine. */
static bool offers_seat(struct policy_refusal *refusal, const struct policy *policy,
                        const struct game_terms *terms, uint64_t now_s)
{
    return pays(refusal, policy, POLICY_FEE, terms->fee, policy->fee_least, "--fee-min") &&
           is_small_bond(refusal, policy, terms) &&
           is_long(refusal, POLICY_SEAL_PERIOD, terms->seal_period_s, policy->seal_least_s,
                   "--seal-period-min") &&
           is_long(refusal, POLICY_REVEAL_PERIOD, terms->reveal_period_s, policy->reveal_least_s,
                   "--reveal-period-min") &&
           is_long(refusal, POLICY_CLOCK, terms->clock_s, policy->clock_least_s, "--clock-min") &&
           is_short(refusal, POLICY_SEGMENT_PERIOD, terms->segment_period_s, policy->segment_most_s,
                    "--segment-period-max") &&
           is_soon_over(refusal, policy, terms, now_s);
}

bool policy_enlist(struct policy_refusal *refusal, const struct policy *policy,
                   const struct game_terms *terms, const struct policy_locked *locked,
                   const struct policy_pace *pace, uint64_t now_s)
{
    agree(refusal);
    return offers_seat(refusal, policy, terms, now_s) &&
           (pace == NULL || (pays_seat(refusal, policy, terms, pace) &&
                             covers(refusal, POLICY_SEAL_PERIOD, terms->seal_period_s,
                                    pace->segment_ms, policy->clock_factor, "--clock-factor") &&
                             can_respond(refusal, policy, terms, pace))) &&
           can_lock(refusal, policy, POLICY_BOND, terms->bond, locked);
}

bool policy_claim(struct policy_refusal *refusal, const struct policy *policy,
                  const struct game_terms *terms, wei bond, const struct policy_locked *locked,
                  const struct policy_pace *pace)
{
    agree(refusal);
    return can_respond(refusal, policy, terms, pace) &&
           can_lock(refusal, policy, POLICY_BOND, bond, locked);
}

static bool is_small_stake(struct policy_refusal *refusal, const struct policy *policy,
                           const struct game_terms *terms)
{
    wei reward = times(terms->reward, game_segment_count(terms));
    char stake[WEI_TEXT_SIZE];
    char whole[WEI_TEXT_SIZE];
    char multiple[MULTIPLE_SIZE];

    if (policy->stake_rewards_max == 0 ||
        terms->stake <= portion(reward, policy->stake_rewards_max, POLICY_ONE)) {
        return true;
    }
    currency_print(stake, &policy->currency, terms->stake);
    currency_print(whole, &policy->currency, reward);
    print_multiple(multiple, policy->stake_rewards_max);
    return refuse(refusal, POLICY_STAKE,
                  "is %s for a whole reward of %s, and the policy stakes %s times the "
                  "reward at most (--stake-rewards-max)",
                  stake, whole, multiple);
}

static bool can_stake(struct policy_refusal *refusal, const struct policy *policy, wei stake,
                      wei means)
{
    wei most = cap_of(&policy->stake_max, means);
    char stake_text[WEI_TEXT_SIZE];
    char most_text[WEI_TEXT_SIZE];

    if (stake <= most) {
        return true;
    }
    currency_print(stake_text, &policy->currency, stake);
    currency_print(most_text, &policy->currency, most);
    return refuse(refusal, POLICY_STAKE, "is %s, and the policy stakes %s at most (--stake-max)",
                  stake_text, most_text);
}

wei policy_hour(wei reward, const struct policy_pace *pace)
{
    return pace->segment_ms == 0 ? 0 : portion(reward, MS_PER_HOUR, pace->segment_ms);
}

/* An hour that nobody has measured yet is not refused. */
static bool earns(struct policy_refusal *refusal, const struct policy *policy, wei reward,
                  const struct policy_pace *pace)
{
    wei hour = policy_hour(reward, pace);
    char hour_text[WEI_TEXT_SIZE];
    char price[WEI_TEXT_SIZE];
    char least[WEI_TEXT_SIZE];

    if (pace->segment_ms == 0 || hour >= sum(policy->hour_least, policy->price) ||
        policy->hour_least == 0) {
        return true;
    }
    currency_print(hour_text, &policy->currency, hour);
    currency_print(price, &policy->currency, policy->price);
    currency_print(least, &policy->currency, policy->hour_least);
    return refuse(refusal, POLICY_REWARD,
                  "gives %s for an hour of this machine, which costs %s, and the policy earns %s "
                  "beyond that at least (--hour-min)",
                  hour_text, price, least);
}

bool policy_solve(struct policy_refusal *refusal, const struct policy *policy,
                  const struct game_terms *terms, wei means, const struct policy_pace *pace,
                  uint64_t now_s)
{
    uint64_t left_s = terms->deadline_s > now_s ? terms->deadline_s - now_s : 0;

    agree(refusal);
    return pays(refusal, policy, POLICY_REWARD, terms->reward, policy->reward_least,
                "--reward-min") &&
           pays_cost(refusal, POLICY_REWARD, terms->reward, policy, pace, 0) &&
           earns(refusal, policy, terms->reward, pace) && is_small_stake(refusal, policy, terms) &&
           can_stake(refusal, policy, terms->stake, means) &&
           can_respond(refusal, policy, terms, pace) &&
           covers(refusal, POLICY_SEGMENT_PERIOD, terms->segment_period_s, pace->segment_ms,
                  policy->time_spare, "--time-spare") &&
           covers(refusal, POLICY_DEADLINE, left_s, pace->left_ms, policy->time_spare,
                  "--time-spare") &&
           is_soon_over(refusal, policy, terms, now_s);
}

uint32_t policy_ahead(const struct game_terms *terms, uint32_t ahead)
{
    wei staked = terms->reward == 0 ? MOST : terms->stake / terms->reward;
    wei most = staked > ahead ? ahead : staked > 0 ? staked - 1 : 0;

    return most < GAME_LEG_MAX ? GAME_LEG_MAX : (uint32_t)most;
}

bool policy_open(struct policy_refusal *refusal, const struct policy *policy,
                 const struct game_terms *terms, uint64_t now_s)
{
    const struct policy_pace unknown = {0};

    return (terms->seats == 0 || policy_enlist(refusal, policy, terms, NULL, NULL, now_s)) &&
           policy_claim(refusal, policy, terms, terms->bond, NULL, &unknown) &&
           policy_solve(refusal, policy, terms, terms->stake, &unknown, now_s);
}

/* ---- for people ---------------------------------------------------------------------- */

static void print_cap(char text[WEI_TEXT_SIZE], const struct policy *policy,
                      const struct policy_cap *cap)
{
    if (!cap->set) {
        (void)snprintf(text, WEI_TEXT_SIZE, "any");
    } else if (cap->is_share) {
        (void)snprintf(text, WEI_TEXT_SIZE, "%.6g %%", (double)cap->share_ppm / 10000.0);
    } else {
        currency_print(text, &policy->currency, cap->amount);
    }
}

static void print_time(char text[TERMS_PERIOD_SIZE], uint32_t most_s)
{
    if (most_s == 0) {
        (void)snprintf(text, TERMS_PERIOD_SIZE, "any time");
    } else {
        terms_period(text, most_s);
    }
}

void policy_describe_node(char text[POLICY_TEXT_MAX], const struct policy *policy)
{
    char caps[3][WEI_TEXT_SIZE];
    char periods[5][TERMS_PERIOD_SIZE];
    char fee[WEI_TEXT_SIZE];
    char bond[16] = "any number of";

    print_cap(caps[0], policy, &policy->lock_all);
    print_cap(caps[1], policy, &policy->lock_job);
    print_cap(caps[2], policy, &policy->lock_party);
    currency_print(fee, &policy->currency, policy->fee_least);
    terms_period(periods[0], policy->seal_least_s);
    terms_period(periods[1], policy->reveal_least_s);
    terms_period(periods[2], policy->clock_least_s);
    print_time(periods[3], policy->lock_time_max_s);
    print_time(periods[4], policy->segment_most_s);
    if (policy->bond_fees_max > 0) {
        (void)snprintf(bond, sizeof(bond), "%" PRIu32, policy->bond_fees_max);
    }
    (void)snprintf(
        text, POLICY_TEXT_MAX,
        "locks at most %s in all, %s in a job, %s for a party, %s fees in a bond, for "
        "%s; takes fees from %s, seals from %s, reveals from %s, clocks from %s, segments to "
        "%s",
        caps[0], caps[1], caps[2], bond, periods[3], fee, periods[0], periods[1], periods[2],
        periods[4]);
}

void policy_describe_solver(char text[POLICY_TEXT_MAX], const struct policy *policy)
{
    char stake[WEI_TEXT_SIZE];
    char rewards[MULTIPLE_SIZE] = "any number of";
    char reward[WEI_TEXT_SIZE];
    char response[TERMS_PERIOD_SIZE];
    char time[TERMS_PERIOD_SIZE];
    char hour[WEI_TEXT_SIZE] = "any earnings";

    print_cap(stake, policy, &policy->stake_max);
    if (policy->stake_rewards_max > 0) {
        print_multiple(rewards, policy->stake_rewards_max);
    }
    currency_print(reward, &policy->currency, policy->reward_least);
    terms_period(response, policy->clock_least_s);
    print_time(time, policy->lock_time_max_s);
    if (policy->hour_least > 0) {
        currency_print(hour, &policy->currency, policy->hour_least);
    }
    (void)snprintf(text, POLICY_TEXT_MAX,
                   "stakes at most %s whole rewards, and %s in a job, for %s; takes a "
                   "segment's reward from %s, %s an hour, a clock from %s",
                   rewards, stake, time, reward, hour, response);
}
