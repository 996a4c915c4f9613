/* job_terms.c - see job_terms.h. */
#include "client/job_terms.h"

#include <math.h>
#include <string.h>

#include "chain/commands/allow_file.h"
#include "chain/commands/commands.h"
#include "chain/game/ledger.h"
#include "chain/game/leg.h"
#include "chain/game/terms.h"
#include "proofs/run/known_pace.h"

/* A fee pays a replay with something to spare, and a reward the computing: 13/10 of the cost. */
#define COVER_NUMERATOR   13
#define COVER_DENOMINATOR 10

#define BOND_FEES        20
#define BOND_SHARE       10 /* of the stake, where no seat has a fee */
#define QUERY_SHARE      10 /* of the bond */
#define QUERY_FEE_USUAL  (WEI_PER_ETHER / 1000)
#define OPEN_USUAL       24 /* segments that a solver at its defaults has open at most */
#define SEGMENTS_FEW     20 /* below, the last segment weighs heavily */
#define BURN_USUAL_LEAST 5
#define BURN_USUAL_MOST  25
#define DEFAULT_UNITS    1000 /* a default has three digits */

/* Periods are at least so many measured checks of a segment. */
#define CHECKS_SEAL    4
#define CHECKS_CLAIM   2
#define CHECKS_SEGMENT 4

/* Coverage is this many times what makes cheating a loss. */
#define COVERAGE_SPARE 1.5

struct times {
    uint32_t segment_s;
    uint32_t seal_s;
    uint32_t reveal_s;
    uint32_t claim_s;
    uint32_t clock_s;
    uint32_t deadline_s;
};

#define MINUTE_S 60
#define HOUR_S   (60 * MINUTE_S)
#define DAY_S    (24 * HOUR_S)

static const struct times usual_times = {
    .segment_s = DAY_S,
    .seal_s = 2 * HOUR_S,
    .reveal_s = HOUR_S,
    .claim_s = 3 * HOUR_S,
    .clock_s = 12 * HOUR_S,
    .deadline_s = 14 * DAY_S,
};
static const struct times quick_times = {
    .segment_s = 10 * MINUTE_S,
    .seal_s = 30,
    .reveal_s = 20,
    .claim_s = 20,
    .clock_s = MINUTE_S,
    .deadline_s = HOUR_S,
};
/* A chain has blocks of some seconds, and moves wait for several. */
static const struct times quick_chain_times = {
    .segment_s = HOUR_S,
    .seal_s = 6 * MINUTE_S,
    .reveal_s = 4 * MINUTE_S,
    .claim_s = 4 * MINUTE_S,
    .clock_s = 15 * MINUTE_S,
    .deadline_s = DAY_S,
};

/* partners: the share of the panel that the class withstands. */
static const struct terms_class {
    const char *name;
    uint32_t seats;
    uint32_t panel;
    double coverage;
    double partners;
    const struct times *times;
    const struct times *chain_times;
} classes[] = {
    {POLICY_QUICK, 1, 1, 1.0, 0.0, &quick_times, &quick_chain_times},
    {"lean", 1, ECONOMY_PANEL_USUAL, 0.1, 0.1, &usual_times, &usual_times},
    {"standard", 1, ECONOMY_PANEL_USUAL, 0.2, 0.3, &usual_times, &usual_times},
    {"careful", 2, ECONOMY_PANEL_USUAL, 0.5, 0.5, &usual_times, &usual_times},
};

static const struct terms_class *class_of(const struct options *options)
{
    const char *name = options_text(options, "terms");

    for (size_t i = 0; i + 1 < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strcmp(name, classes[i].name) == 0) {
            return &classes[i];
        }
    }
    return &classes[sizeof(classes) / sizeof(classes[0]) - 1];
}

bool job_terms_are_quick(const struct options *options)
{
    return class_of(options) == &classes[0];
}

/* ---- time ------------------------------------------------------------------------------- */

static const struct times *times_of(const struct options *options)
{
    const struct terms_class *class = class_of(options);

    return ledger_is_embedded(options_text(options, "ledger")) ? class->times : class->chain_times;
}

static uint32_t period(const struct options *options, const char *name, uint32_t usual_s)
{
    return options_given(options, name) ? (uint32_t)options_number(options, name) : usual_s;
}

uint64_t job_terms_deadline_s(const struct options *options)
{
    return options_given(options, "deadline") ? options_number(options, "deadline")
                                              : times_of(options)->deadline_s;
}

/* What a check of a segment takes, by what 'prover probe' measured on this machine; 0: nobody
 * did. */
static uint32_t check_s(const struct game_terms *terms, const struct options *options)
{
    struct known_pace pace;
    struct error none;
    double seconds;

    error_init(&none);
    if (known_pace_find(&pace, &terms->job_id, options_text(options, "device"), &none) !=
        STATUS_OK) {
        return 0;
    }
    seconds = (double)pace.step_ns * terms->segment_steps / 1e9;
    return seconds < 1 ? 1 : seconds > DAY_S ? DAY_S : (uint32_t)seconds;
}

/* A verifier that is slower than this machine, and fetches first, still has its time. */
static uint32_t least_s(uint32_t usual_s, uint32_t measured_s, uint32_t checks)
{
    uint32_t least = (measured_s * checks + 9) / 10 * 10;

    return usual_s > least ? usual_s : least;
}

static void take_times(struct game_terms *terms, const struct options *options)
{
    struct times stretched = *times_of(options);
    const struct times *times = &stretched;
    const uint32_t measured_s = check_s(terms, options);

    stretched.seal_s = least_s(stretched.seal_s, measured_s, CHECKS_SEAL);
    stretched.claim_s = least_s(stretched.claim_s, measured_s, CHECKS_CLAIM);
    stretched.segment_s = least_s(stretched.segment_s, measured_s, CHECKS_SEGMENT);

    terms->segment_period_s = period(options, "segment-period", times->segment_s);
    terms->seal_period_s = period(options, "seal-period", times->seal_s);
    terms->reveal_period_s = period(options, "reveal-period", times->reveal_s);
    terms->claim_period_s = period(options, "claim-period", times->claim_s);
    terms->clock_s = period(options, "clock", times->clock_s);
}

/* From a commit to its payment at the earliest, which is how long a client has to refuse. */
static uint64_t unseen_s(const struct game_terms *terms)
{
    return (uint64_t)terms->seal_period_s + terms->reveal_period_s + terms->claim_period_s;
}

/* ---- money ------------------------------------------------------------------------------ */

static wei more(wei a, wei b)
{
    return a > b ? a : b;
}

static wei less(wei a, wei b)
{
    return a < b ? a : b;
}

/* The next amount of at most three digits and zeros: what people read is short. */
static wei round_up(wei amount)
{
    wei unit = 1;

    while (amount / unit >= DEFAULT_UNITS) {
        unit *= 10;
    }
    return less((amount + unit - 1) / unit * unit, WEI_MAX);
}

static enum status take_reward(struct game_terms *terms, const struct job *job,
                               const struct options *options, struct error *error)
{
    uint32_t segments = game_segment_count(terms);
    wei whole = 0;

    if (!options_given(options, "reward")) {
        (void)error_set(error, STATUS_USAGE, "a job has a --reward");
        error_advise(error, "--reward 0.5eth pays that for the whole job, a part for each segment");
        return STATUS_USAGE;
    }
    TRY(chain_amount(&whole, options, "reward", error));
    TRY(job_price_whole(&whole, whole, job, options, error));
    terms->reward = whole / segments;
    return terms->reward > 0
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--reward: less than a wei for each of %u segments",
                           segments);
}

/* Fee, bond and stake hang together: a bond holds four fees, a stake a bond. */
static enum status take_deposits(struct game_terms *terms, wei segment_cost,
                                 const struct options *options, struct error *error)
{
    wei whole = terms->reward * game_segment_count(terms);

    terms->fee =
        terms->seats == 0 ? 0 : round_up(segment_cost * COVER_NUMERATOR / COVER_DENOMINATOR);
    TRY(chain_amount(&terms->fee, options, "fee", error));
    terms->stake = round_up(more(whole, GAME_FEES_OF_BOND * terms->fee));
    TRY(chain_amount(&terms->stake, options, "stake", error));
    terms->bond = terms->fee > 0 ? less(BOND_FEES * terms->fee, terms->stake)
                                 : round_up(more(terms->stake / BOND_SHARE, 1));
    TRY(chain_amount(&terms->bond, options, "bond", error));
    terms->query_fee =
        less(less(QUERY_FEE_USUAL, round_up(terms->bond / QUERY_SHARE)), game_query_fee_max(terms));
    return chain_amount(&terms->query_fee, options, "query-fee", error);
}

/* Where no keeper says that the states are there, one seat's word is not enough. */
static uint32_t usual_seats(const struct game_terms *terms, const struct terms_class *class)
{
    return address_is_zero(&terms->keeper) && class != &classes[0] && class->seats < 2
               ? 2
               : class->seats;
}

static enum status take_seats(struct game_terms *terms, const struct terms_class *class,
                              const struct options *options, struct error *error)
{
    terms->seats = usual_seats(terms, class);
    if (options_given(options, "seats")) {
        terms->seats = (uint32_t)options_number(options, "seats");
    }
    terms->panel_least = terms->seats > 0 ? class->panel : 0;
    if (options_given(options, "panel")) {
        terms->panel_least = (uint32_t)options_number(options, "panel");
    }
    if (terms->panel_least < terms->seats) {
        return error_set(error, STATUS_USAGE, "--panel: fewer entries than --seats");
    }
    return STATUS_OK;
}

/* A short job has little to lose in a conviction, so more of it is covered. */
static enum status take_coverage(struct game_terms *terms, const struct terms_class *class,
                                 wei segment_cost, const struct options *options,
                                 struct error *error)
{
    struct economy economy;
    double coverage;

    terms->coverage_ppm = (uint32_t)(class->coverage * GAME_PPM);
    economy = job_terms_economy(terms, segment_cost);
    coverage =
        fmax(class->coverage, COVERAGE_SPARE * economy_coverage_least(&economy, class->partners));

    if (terms->seats == 0) {
        coverage = 0.0;
    }
    if (options_given(options, "coverage")) {
        coverage = options_real(options, "coverage");
        if (coverage > 1.0) {
            return error_set(error, STATUS_USAGE, "--coverage: a share from 0 to 1");
        }
        if (coverage > 0.0 && terms->seats == 0) {
            return error_set(error, STATUS_USAGE, "--coverage: without seats it can only be 0");
        }
    }
    terms->coverage_ppm = (uint32_t)(fmin(coverage, 1.0) * GAME_PPM + 0.5);
    return STATUS_OK;
}

static enum status check(const struct game_terms *terms, struct error *error)
{
    if (terms->stake == 0) {
        return error_set(error, STATUS_USAGE, "--stake: a solver must have something to lose");
    }
    if (terms->bond == 0 || terms->bond > terms->stake) {
        return error_set(error, STATUS_USAGE, "--bond: more than nothing, and at most the stake");
    }
    if (terms->seats > 0 && terms->fee == 0) {
        return error_set(error, STATUS_USAGE, "--fee: seats are paid; --seats 0 has none");
    }
    if (terms->bond < GAME_FEES_OF_BOND * terms->fee) {
        return error_set(error, STATUS_USAGE, "--bond: at least %d fees", GAME_FEES_OF_BOND);
    }
    if (terms->query_fee > game_query_fee_max(terms)) {
        return error_set(error, STATUS_USAGE,
                         "--query-fee: at most a segment's reward / %d, and --stake / %d",
                         GAME_QUERY_REWARDS, GAME_QUERY_STAKES);
    }
    return game_escrow(terms) <= WEI_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--reward: a ledger holds less than 2^96 wei");
}

/* ---- all of them -------------------------------------------------------------------------- */

static enum status take_segment_cost(wei *cost, const struct game_terms *terms,
                                     const struct options *options, struct error *error)
{
    *cost = terms->reward * COVER_DENOMINATOR / COVER_NUMERATOR;
    return chain_amount(cost, options, "segment-cost", error);
}

static enum status take_accounts(struct game_terms *terms, const struct options *options,
                                 struct error *error)
{
    if (options_given(options, "solvers")) {
        TRY(allow_file_root(&terms->solvers, options_text(options, "solvers"), error));
    }
    if (options_given(options, "verifiers")) {
        TRY(allow_file_root(&terms->verifiers, options_text(options, "verifiers"), error));
    }
    return options_given(options, "keeper") &&
                   address_parse(&terms->keeper, options_text(options, "keeper")) != STATUS_OK
               ? error_set(error, STATUS_USAGE, "--keeper: '%.60s' is not an address",
                           options_text(options, "keeper"))
               : STATUS_OK;
}

enum status job_terms_make(struct game_terms *terms, const struct job *job,
                           const struct options *options, struct error *error)
{
    const struct terms_class *class = class_of(options);
    wei cost = 0;

    memset(terms, 0, sizeof(*terms));
    TRY(terms_of_job(terms, job, error));
    terms->salt = options_number(options, "salt");
    take_times(terms, options);
    TRY(take_accounts(terms, options, error));
    TRY(take_reward(terms, job, options, error));
    TRY(take_segment_cost(&cost, terms, options, error));
    TRY(take_seats(terms, class, options, error));
    TRY(take_deposits(terms, cost, options, error));
    TRY(take_coverage(terms, class, cost, options, error));
    return check(terms, error);
}

const char *job_terms_differ(const struct game_terms *there, const struct game_terms *wanted)
{
    const struct {
        const char *option;
        bool same;
    } terms[] = {
        {"reward", there->reward == wanted->reward},
        {"stake", there->stake == wanted->stake},
        {"seats", there->seats == wanted->seats},
        {"coverage", there->coverage_ppm == wanted->coverage_ppm},
        {"fee", there->fee == wanted->fee},
        {"bond", there->bond == wanted->bond},
        {"query-fee", there->query_fee == wanted->query_fee},
        {"panel", there->panel_least == wanted->panel_least},
        {"solvers", hash32_equal(&there->solvers, &wanted->solvers)},
        {"verifiers", hash32_equal(&there->verifiers, &wanted->verifiers)},
        {"keeper", address_equal(&there->keeper, &wanted->keeper)},
        {"segment-period", there->segment_period_s == wanted->segment_period_s},
        {"seal-period", there->seal_period_s == wanted->seal_period_s},
        {"reveal-period", there->reveal_period_s == wanted->reveal_period_s},
        {"claim-period", there->claim_period_s == wanted->claim_period_s},
        {"clock", there->clock_s == wanted->clock_s},
    };

    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        if (!terms[i].same) {
            return terms[i].option;
        }
    }
    return NULL;
}

struct economy job_terms_economy(const struct game_terms *terms, wei segment_cost)
{
    double coverage = (double)terms->coverage_ppm / GAME_PPM;

    return (struct economy){
        .segments = game_segment_count(terms),
        .reward = (double)terms->reward,
        .cost = segment_cost > 0 ? (double)segment_cost
                                 : (double)terms->fee * COVER_DENOMINATOR / COVER_NUMERATOR,
        .fee = (double)terms->fee,
        .stake = (double)terms->stake,
        .seats = terms->seats,
        .panel = terms->panel_least,
        .coverage = coverage,
        .saved = 1.0,
        .kept = !address_is_zero(&terms->keeper),
        /* A solver that is faster than it must be has more of them open, and more to lose. */
        .open_segments = economy_open_segments(coverage, terms->segment_period_s,
                                               (double)unseen_s(terms), OPEN_USUAL),
    };
}

/* ---- for people ---------------------------------------------------------------------------- */

static void show_amount(FILE *out, const struct currency *currency, const char *what, wei amount,
                        const char *why)
{
    char text[WEI_TEXT_SIZE];

    currency_print(text, currency, amount);
    fprintf(out, "%-16s %s%s\n", what, text, why);
}

/* What the segments cannot share of the reward that was asked for, to the wei. */
static void show_remainder(FILE *out, const struct currency *currency,
                           const struct game_terms *terms, wei reward)
{
    uint32_t segments = game_segment_count(terms);
    wei rest = reward - terms->reward * segments;
    char text[WEI_TEXT_SIZE];
    char wanted[WEI_TEXT_SIZE];

    if (rest > 0) {
        wei_print_plain(text, rest);
        currency_print(wanted, currency, reward);
        fprintf(out, "%-16s %s wei of the %s: %u segments cannot share them\n", "not paid in", text,
                wanted, segments);
    }
}

/* What the reward is for an hour and for a million tokens, where somebody has measured. */
static void show_rates(FILE *out, const struct currency *currency, const struct game_terms *terms,
                       const struct options *options)
{
    const char *device = options_text(options, "device");
    struct job_price price = job_price_of(terms, terms->reward, device);
    char hour[WEI_TEXT_SIZE];
    char million[WEI_TEXT_SIZE];

    if (price.measured) {
        currency_print(hour, currency, price.hour);
        currency_print(million, currency, price.million);
        fprintf(out, "%-16s %s for an hour of this machine's %s, %s for a million tokens\n",
                "which is", hour, device, price.million > 0 ? million : "nothing");
    }
}

static void show_reward(FILE *out, const struct currency *currency, const struct game_terms *terms,
                        const struct options *options)
{
    struct error error;
    wei reward = 0;

    show_amount(out, currency, "a segment pays", terms->reward, " to the solver");
    show_rates(out, currency, terms, options);
    error_init(&error);
    if (!job_price_is_rate(options) &&
        chain_amount(&reward, options, "reward", &error) == STATUS_OK) {
        show_remainder(out, currency, terms, reward);
    }
}

static void show_panel(FILE *out, const struct currency *currency, const struct game_terms *terms,
                       const struct economy *economy)
{
    char verifying[WEI_TEXT_SIZE];
    double all = economy_verifying(economy) * economy->segments;
    double share;

    if (terms->seats == 0) {
        fprintf(out, "%-16s none: nobody is paid to look\n", "seats");
        return;
    }
    fprintf(out, "%-16s %u for each covered segment; %.4g %% are covered, and the last one\n",
            "seats", terms->seats, terms->coverage_ppm / 1e4);
    fprintf(out, "%-16s a solver waits for %u entries%s\n", "panel", terms->panel_least,
            hash32_is_zero(&terms->verifiers) ? "" : " of the allow-list");
    show_amount(out, currency, "a seat gets", terms->fee, "");
    currency_print(verifying, currency, round_up((wei)all));
    share = all / (economy->reward * economy->segments);
    fprintf(out, "%-16s about %s in all, %.3g %% of the reward; what nobody earns comes back\n",
            "verifying costs", verifying, 100.0 * share);
    if (economy->segments < SEGMENTS_FEW) {
        fprintf(out,
                "%-16s a job of fewer than %d segments pays much for its last, which needs %d "
                "rights; 'job new --segment-steps' makes shorter ones\n",
                "WARNING", SEGMENTS_FEW, GAME_LAST_RIGHTS);
    }
}

/* What a cheat may expect of one false segment, in shares of what it saves by it. */
static void show_cheating(FILE *out, const struct economy *economy)
{
    static const double shares[] = {0.1, 0.3, 0.5};

    if (economy->seats <= 0.0 || economy->cost <= 0.0) {
        return;
    }
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        struct economy_cheat kept;
        struct economy_cheat hidden;

        economy_cheat(&kept, economy, shares[i], true);
        economy_cheat(&hidden, economy, shares[i], false);
        fprintf(out,
                "%-16s %.2g %% of the panel: %+.3g times what it saves; %+.3g when it hides the "
                "states and no keeper runs\n",
                i == 0 ? "a cheat with" : "", 100.0 * shares[i], kept.value / kept.gain,
                hidden.value / hidden.gain);
    }
}

static void show_times(FILE *out, const struct game_terms *terms)
{
    char periods[5][TERMS_PERIOD_SIZE];

    terms_period(periods[0], terms->seal_period_s);
    terms_period(periods[1], terms->reveal_period_s);
    terms_period(periods[2], terms->claim_period_s);
    terms_period(periods[3], terms->clock_s);
    terms_period(periods[4], unseen_s(terms));
    fprintf(out, "%-16s seal %s, reveal %s, claim %s; a clock of %s in a dispute\n", "periods",
            periods[0], periods[1], periods[2], periods[3]);
    fprintf(out, "%-16s %s after a covered segment, with all before it\n", "paid", periods[4]);
}

/* ---- what can burn -------------------------------------------------------------------- */

/* What a void of so many open segments burns of the client's money. */
static wei burned_by(const struct game_terms *terms, uint32_t open)
{
    uint32_t segments = game_segment_count(terms);
    struct leg_void lost = leg_void(terms, game_fees(terms, segments),
                                    open < segments ? open : segments, segments, 0, false);

    return lost.escrow + lost.pool;
}

static void show_risk(FILE *out, const struct currency *currency, const struct game_terms *terms)
{
    char most[WEI_TEXT_SIZE];
    char few[WEI_TEXT_SIZE];
    char many[WEI_TEXT_SIZE];
    char keeper[ADDRESS_TEXT_SIZE];
    char away[TERMS_PERIOD_SIZE];
    char down[TERMS_PERIOD_SIZE];

    terms_period(away, unseen_s(terms));
    terms_period(down, terms->claim_period_s);
    if (!address_is_zero(&terms->keeper)) {
        address_print(keeper, &terms->keeper);
        fprintf(out, "%-16s %s: anybody with its key can give this escrow away, and nothing else\n",
                "the keeper", keeper);
        fprintf(out,
                "%-16s until the deadline, where 'lockstep job keep' is never down for longer "
                "than %s; by yourself %s\n",
                "you may be away", down, away);
        return;
    }
    currency_print_about(most, currency, burned_by(terms, GAME_OPEN_MAX));
    currency_print_about(few, currency, burned_by(terms, BURN_USUAL_LEAST - 1));
    currency_print_about(many, currency, burned_by(terms, BURN_USUAL_MOST - 1));
    fprintf(out,
            "%-16s usually %s to %s (%d to %d segments), at most %s (%d), once for each time you "
            "resume it, by anybody who burns as much\n",
            "can burn", few, many, BURN_USUAL_LEAST, BURN_USUAL_MOST, most, GAME_OPEN_MAX + 1);
    fprintf(out, "%-16s %s: nobody refuses for you later; with --keeper, until the deadline\n",
            "you may be away", away);
}

void job_terms_show(FILE *out, const struct currency *currency, const struct game_terms *terms,
                    const struct options *options)
{
    struct economy economy;
    struct error error;
    char period[TERMS_PERIOD_SIZE];
    char deadline[TERMS_TIME_SIZE];
    wei cost = 0;

    error_init(&error);
    if (take_segment_cost(&cost, terms, options, &error) != STATUS_OK) {
        cost = 0;
    }
    economy = job_terms_economy(terms, cost);
    terms_period(period, terms->segment_period_s);
    terms_time(deadline, terms->deadline_s);
    fprintf(out, "%-16s %u of %u steps, one at least every %s, all by %s\n", "segments",
            game_segment_count(terms), terms->segment_steps, period, deadline);
    show_reward(out, currency, terms, options);
    show_panel(out, currency, terms, &economy);
    show_amount(out, currency, "a solver stakes", terms->stake, "");
    show_amount(out, currency, "a bond is", terms->bond, ", of a seat or a claim");
    show_times(out, terms);
    show_risk(out, currency, terms);
    show_cheating(out, &economy);
    if (job_terms_are_quick(options)) {
        fprintf(out,
                "%-16s a party away for a minute loses money, and one verifier is the whole "
                "panel: not for real money\n",
                "quick terms");
        if (check_s(terms, options) == 0) {
            fprintf(out,
                    "%-16s nobody has measured a check: one that takes over %u s makes segments "
                    "void; 'lockstep prover probe JOB --data FILE' measures it\n",
                    "WARNING", terms->seal_period_s / CHECKS_SEAL);
        }
    }
    show_amount(out, currency, "ESCROW", game_escrow(terms),
                ", paid now; what no segment and no seat earns comes back when the job is over");
}
